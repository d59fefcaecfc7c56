"""A folder of files that others made to do harm: each is refused by its name, or by its rows, and the others arrive."""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest

from platform_assets.engine.results import IngestResult
from platform_assets.records.manifest import Arrival
from platform_assets_tests.support.hostile import (
    BOUNDS,
    REFUSED,
    ROWS,
    SPARKS,
    csv,
    good,
    parquet,
    parquet_for_spark,
    spark_schema,
)
from platform_assets_tests.support.orchestration.readings import SENSORS
from platform_assets_tests.support.world import MakeWorld, World

ARRIVAL = "2017-01-01"
EVERY: dict[str, Callable[[], bytes]] = {name: make for name, (make, _) in (REFUSED | SPARKS).items()}
EVERY |= {name: make for name, (make, _, _) in ROWS.items()}
BOUNDED = {name: getattr(BOUNDS, name) for name in type(BOUNDS).__dataclass_fields__}
MOST_SECONDS = 240.0


def taken(world: World) -> tuple[dict[str, Arrival], IngestResult]:
    """What a refresh made of the readings that lie there."""
    [result] = [ingest for ingest in world.refresh().ingests if ingest.table == "raw.readings"]
    return {arrival.path.rpartition("/")[2]: arrival for arrival in result.arrivals}, result


def balanced(world: World, arrivals: dict[str, Arrival]) -> None:
    """Landed is raw, refused and late, in all and by file."""
    read = [arrival for arrival in arrivals.values() if arrival.reason is None]
    assert all(arrival.landed == arrival.taken + arrival.refused + arrival.late for arrival in read)
    counts = {
        "raw.readings": sum(arrival.taken for arrival in read),
        "refused.readings": sum(arrival.refused for arrival in arrivals.values()),
        "late.readings": sum(arrival.late for arrival in read),
    }
    assert {table: len(world.rows(table)) if rows else 0 for table, rows in counts.items()} == counts


@pytest.mark.proof
def test_what_a_file_says_of_its_columns_to_spark_changes_no_other_file(make_world: MakeWorld) -> None:
    """Spark takes the types of files that look alike from what one of them says beside its schema."""
    world = make_world(days=3, domains=SENSORS, **BOUNDED)
    twenty = pa.array([20], pa.int32())
    said = [("sensor", "string"), ("measured_at", "timestamp"), ("celsius", "interval year")]
    lies = parquet_for_spark(spark_schema(said), celsius=twenty)
    world.deliver("readings", ARRIVAL, "a_lies.parquet", lies)
    world.deliver("readings", ARRIVAL, "good.parquet", parquet(celsius=twenty))
    arrivals, _ = taken(world)
    assert (arrivals["a_lies.parquet"].reason or "").startswith("says to Spark that celsius is interval year, and")
    assert [row["celsius"] for row in world.rows("raw.readings")] == [Decimal(20)]
    balanced(world, arrivals)


@pytest.mark.proof
def test_every_hostile_file_is_told_and_every_good_one_arrives(make_world: MakeWorld) -> None:
    world = make_world(days=3, domains=SENSORS, **BOUNDED)
    whole = {f"bad_{name}": make for name, make in EVERY.items()}
    for name, make in whole.items():
        world.deliver("readings", ARRIVAL, name, make())
    goods = dict(map(good, range(20)))
    for name, content in goods.items():
        world.deliver("readings", ARRIVAL, name, content)
    started = time.monotonic()
    arrivals, result = taken(world)
    assert time.monotonic() - started < MOST_SECONDS
    too_large = {problem.path.rpartition("/")[2] for problem in result.problems}
    assert {*arrivals} | too_large == {*whole} | {*goods}
    for name in goods:
        assert (arrivals[name].reason, arrivals[name].taken, arrivals[name].refused) == (None, 1, 0), name
    for name, (_, rows, refused) in ROWS.items():
        found = arrivals[f"bad_{name}"]
        has_delivered = rows > 0 or not refused
        assert (found.reason is None, found.taken, found.refused) == (has_delivered, rows, refused), name
    for name, (_, reason) in REFUSED.items():
        assert (arrivals[f"bad_{name}"].reason or "").startswith(reason), name
    for name, (_, word) in SPARKS.items():
        reason = arrivals[f"bad_{name}"].reason or ""
        assert word in reason, name
        assert str(world.settings.landing_folder) not in reason
    balanced(world, arrivals)
    again, _ = taken(world)
    assert not again


@pytest.mark.proof
def test_files_that_all_look_different_cost_no_more_than_their_number(make_world: MakeWorld) -> None:
    """A hundred headers: in one plan Spark would need several minutes for them, and for some more for ever."""
    world = make_world(days=3, domains=SENSORS)
    for n in range(100):
        row = f"s{n},2017-01-01T10:00:00Z,1,x"
        world.deliver("readings", ARRIVAL, f"{n}.csv", csv(row, header=f"sensor,measured_at,celsius,more{n}"))
    started = time.monotonic()
    arrivals, _ = taken(world)
    assert time.monotonic() - started < MOST_SECONDS
    assert sum(arrival.taken for arrival in arrivals.values()) == 100
