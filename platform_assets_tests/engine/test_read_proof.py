"""Reads are bounded, and what was executed proves it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.engine.step.proofs import UndeclaredReadError
from platform_assets.planning.windows import Read
from platform_assets.spark.windows import Windowed
from platform_assets_tests.support.domains.transforms import gold
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.world import World

DAYS = 12
right = gold.sensor_week


def day(number: int) -> date:
    return date(2017, 1, number)


def twelve_days(lakes: Lakes) -> World:
    """Twelve days of a sensor, up to silver; nothing was delivered for the third."""
    world = lakes.new(days=DAYS, domains="platform_assets_tests.support.domains.sensors")
    for number in range(1, DAYS + 1):
        rows = [{"sensor": "north", "measured_at": f"{day(number)}T01:00:00Z", "celsius": f"{number}.00"}]
        world.deliver_rows("readings", str(day(number)), "r.jsonl", [] if number == 3 else rows)
    world.recompute(("raw.readings", "silver.readings"), [day(number) for number in range(1, DAYS + 1)])
    return world


@pytest.fixture
def world(prepared: Prepared) -> World:
    return prepared(twelve_days)


def week(world: World, *numbers: int) -> dict[str, Read]:
    [step] = world.recompute(["gold.sensor_week"], [day(number) for number in numbers]).steps
    return step.read


@pytest.mark.proof
def test_days_and_files_read_are_counted_from_what_was_executed(world: World) -> None:
    assert week(world, 12) == {"silver.readings": Read(days=7, files=7)}
    assert week(world, 4, 11) == {"silver.readings": Read(days=10, files=10)}
    with world.open() as platform:
        found = platform.ledger.current_days("gold.sensor_week")
        [(*_, first)] = [platform.ledger.history("silver.readings", day(3))]
    figures = {at.day: (record.figures["days_read"], record.figures["files_read"]) for at, record in found.items()}
    assert figures == {4: (3, 3), 11: (7, 7), 12: (7, 7)}
    assert (first.figures["days_read"], first.figures["files_read"]) == (0, 0)


Bad = Callable[[World], Callable[[Windowed], DataFrame]]


def path_of(world: World, table: str) -> str:
    return str(world.settings.lake_folder.joinpath(*table.split(".")))


def reads_another_table(world: World) -> Callable[[Windowed], DataFrame]:
    def transform(readings: Windowed) -> DataFrame:
        raw = world.spark.read.format("delta").load(path_of(world, "raw.readings"))
        return right(readings).join(raw.select("sensor").distinct(), "sensor")

    return transform


def looks_into_another_table_beforehand(world: World) -> Callable[[Windowed], DataFrame]:
    def transform(readings: Windowed) -> DataFrame:
        [row] = world.spark.read.format("delta").load(path_of(world, "raw.readings")).select("celsius").take(1)
        return right(readings).withColumn("warmest", F.lit(row[0]).cast("decimal(6,2)"))

    return transform


def reads_a_file_of_another_day(world: World) -> Callable[[Windowed], DataFrame]:
    def transform(readings: Windowed) -> DataFrame:
        file = next(Path(path_of(world, "silver.readings")).rglob("event_date=2017-01-01/*.parquet"))
        return right(readings).join(world.spark.read.parquet(str(file)).select("sensor"), "sensor", "left_semi")

    return transform


def reads_a_foreign_file(world: World) -> Callable[[Windowed], DataFrame]:
    elsewhere = str(world.settings.state / "elsewhere.parquet")
    world.spark.range(3).write.parquet(elsewhere)

    def transform(readings: Windowed) -> DataFrame:
        some = world.spark.read.parquet(elsewhere).agg(F.count("*").alias("n"))
        return right(readings).crossJoin(some).drop("n")

    return transform


def reads_an_older_version(world: World) -> Callable[[Windowed], DataFrame]:
    world.recompute(["silver.readings"], [day(1)])

    def transform(readings: Windowed) -> DataFrame:
        old = world.spark.read.format("delta").option("versionAsOf", 0).load(path_of(world, "silver.readings"))
        return right(readings).join(old.select("sensor").distinct(), "sensor")

    return transform


def reads_the_whole_input(world: World) -> Callable[[Windowed], DataFrame]:
    def transform(readings: Windowed) -> DataFrame:
        every = world.spark.read.format("delta").load(path_of(world, "silver.readings"))
        return right(readings).join(every.select("sensor").distinct(), "sensor")

    return transform


def reads_in_a_subquery(world: World) -> Callable[[Windowed], DataFrame]:
    def transform(readings: Windowed) -> DataFrame:
        every = world.spark.read.format("delta").load(path_of(world, "raw.readings"))
        return right(readings).withColumn("warmest", every.agg(F.max_by("celsius", "measured_at")).scalar())

    return transform


def brings_rows_along(world: World) -> Callable[[Windowed], DataFrame]:
    def transform(readings: Windowed) -> DataFrame:
        old = world.spark.read.format("delta").load(path_of(world, "raw.readings")).localCheckpoint()
        return right(readings).join(old.select("sensor").distinct(), "sensor")

    return transform


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (reads_another_table, "reads raw.readings for 2017-01-11..2017-01-12, which its contract does not declare"),
        (reads_the_whole_input, "reads silver.readings on 2017-01-01, which no window of 2017-01-11..2017-01-12 holds"),
        *(
            pytest.param(*case, marks=pytest.mark.proof)
            for case in (
                (looks_into_another_table_beforehand, "Spark jobs of its own"),
                (reads_a_file_of_another_day, "reads silver.readings on 2017-01-01, which no window of"),
                (reads_a_foreign_file, "elsewhere.parquet"),
                (
                    reads_an_older_version,
                    "of silver.readings for 2017-01-11..2017-01-12, which is not part of the release",
                ),
                (reads_in_a_subquery, "reads raw.readings for"),
                (brings_rows_along, "which its contract does not declare"),
            )
        ),
    ],
)
def test_a_transform_that_reads_something_else_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch, bad: Bad, says: str
) -> None:
    monkeypatch.setattr(gold, "sensor_week", bad(world))
    with pytest.raises(UndeclaredReadError) as error:
        week(world, 11, 12)
    assert says in error.value.what
    assert "gold.sensor_week" in error.value.what
    assert world.digests()["gold.sensor_week"] == {}
    assert not list(Path(path_of(world, "gold.sensor_week")).glob("*Z-*"))
