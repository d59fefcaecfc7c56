"""A contract gets other columns: who touches the table, what enters together, what releases show, what goes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.contracts import Catalogue, Column, Contract, ContractError
from platform_assets.engine.pending import waiting
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.refresh import RefreshResult, refresh
from platform_assets.engine.state.planner import outlook
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.layout import Lake, located
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.lakehouse.releases import current_release
from platform_assets.operations.audit import audit_installation
from platform_assets.operations.audit_logs import Scope
from platform_assets.operations.maintenance import maintain
from platform_assets.operations.rollback import rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.operations.verify import verify
from platform_assets.planning.selection import AUTOMATIC, BY_PERSON, Request, Selection
from platform_assets_tests.support.domains.transforms import gold, silver
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.world import World, recompute

RAW, SILVER, GOLD = "raw.readings", "silver.readings", "gold.sensor_week"
DAYS = [f"2017-01-{day:02}" for day in range(1, 5)]
NOTE = Column("note", "string", "How warm that is.")

Rows = Callable[[DataFrame], DataFrame]


def noted(rows: DataFrame) -> DataFrame:
    """A column more."""
    return rows.withColumn("note", F.when(F.col("celsius") > 3, "warm").otherwise("cold"))


def on(*days: str) -> frozenset[date]:
    return frozenset(map(date.fromisoformat, days))


def four_readings(lakes: Lakes) -> World:
    """Four days of one reading each, loaded under the contracts as they are."""
    world = lakes.new(days=len(DAYS), domains="platform_assets_tests.support.domains.sensors", compaction_files=1)
    for number, day in enumerate(DAYS, start=1):
        deliver(world, day, "r", f"{number}.50")
    world.refresh()
    return world


@pytest.fixture
def world(prepared: Prepared) -> World:
    return prepared(four_readings)


def deliver(world: World, day: str, name: str, celsius: str, hour: int = 6, **more: Any) -> None:
    row = {"sensor": "north", "measured_at": f"{day}T{hour:02}:00:00Z", "celsius": celsius} | more
    world.deliver_rows("readings", day, f"{name}.jsonl", [row])


@dataclass(frozen=True)
class Later:
    """The world after somebody changed a contract."""

    world: World
    changed: tuple[Contract, ...]

    @contextmanager
    def open(self) -> Iterator[Platform]:
        with self.world.open() as opened:
            [domain] = opened.catalogue.domains
            by_name = {contract.name: contract for contract in self.changed}
            tables = tuple(by_name.get(table.name, table) for table in domain.tables)
            yield replace(opened, catalogue=Catalogue.of([replace(domain, tables=tables)]))

    def refresh(self, request: Request = AUTOMATIC, run: str = "later") -> RefreshResult:
        with self.open() as platform:
            return refresh(platform, lambda: self.world.spark, Author(run, "a test"), request=request)

    def rollback(self, run: str = "later", **options: Any) -> None:
        with self.open() as platform:
            rollback(platform, chosen_publications(platform, run=run), Author("undo", "it was wrong"), **options)

    def needs(self, table: str) -> list[tuple[str, str]]:
        with self.open() as platform:
            return [(change.what, change.needs) for change in outlook(platform).changes.get(table, ())]

    def faults(self, folder: Path) -> list[str]:
        """What an audit down to the rows and a verification find wrong."""
        with self.open() as platform:
            spark = self.world.spark
            found = audit_installation(platform.settings, Scope(), lambda *_: None, lambda: spark).findings
            every = frozenset(platform.calendar.days())
            only = Selection(frozenset({SILVER, GOLD}), every)
            verified = verify(platform, lambda: spark, only, located(folder))
        different = [f"{t.table} {d.day}: {d.reason}" for t in verified for d in t.days if d.verdict == "different"]
        return [*(str(fault) for fault in found.faults), *different]


@pytest.fixture
def later(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Later]:
    """Changes contracts and, with them, the transforms."""

    def change(columns: dict[str, tuple[Column, ...]], rows: dict[str, Rows] | None = None, **others: Any) -> Later:
        with world.open() as platform:
            tables = tuple(replace(platform.catalogue[name], columns=new, **others) for name, new in columns.items())
        for name, after in (rows or {}).items():
            module, function = (silver, "readings") if name == SILVER else (gold, "sensor_week")
            before = getattr(module, function)
            monkeypatch.setattr(module, function, _then(before, after))
        return Later(world, tables)

    return change


def _then(before: Callable[..., DataFrame], after: Rows) -> Callable[..., DataFrame]:
    def readings(readings: Any) -> DataFrame:
        return after(before(readings))

    return readings


def columns_of(world: World, table: str) -> tuple[Column, ...]:
    with world.open() as platform:
        return platform.catalogue[table].columns


def digests(world: World, table: str) -> dict[str, str]:
    return {str(day): digest for day, digest in world.digests()[table].items()}


def column(world: World, table: str, name: str, release: int | None = None) -> list[Any]:
    rows = read_arrow(Lake.at(world.settings.lake), table, release=release).to_pylist()
    return [row[name] for row in sorted(rows, key=lambda row: (row["event_date"], str(row)))]


def names(world: World, table: str, release: int | None = None) -> list[str]:
    return list(read_arrow(Lake.at(world.settings.lake), table, release=release).column_names)


def newest(world: World) -> int:
    return current_release(Lake.at(world.settings.lake)).number


def last_commit(world: World, table: str) -> set[str]:
    lake = Lake.at(world.settings.lake)
    said = commits.actions(lake.table_path(table), current_release(lake).versions[table])
    return {next(iter(action)) for action in said}


@pytest.mark.proof
def test_an_added_column_waits_for_a_person_and_enters_with_the_days_that_have_it(
    world: World, later: Callable[..., Later], tmp_path: Path
) -> None:
    """Four refreshes under a contract with one more column."""
    before, old = digests(world, SILVER), newest(world)
    changed = later({SILVER: (*columns_of(world, SILVER), NOTE)}, {SILVER: noted})
    assert changed.needs(SILVER) == [("column 'note' (string) added", "any days")]

    deliver(world, DAYS[1], "more", "9.00", hour=9)
    with changed.open() as platform:
        assert waiting(platform, 10).stale == {}
    done = changed.refresh()
    assert (done.by_people, done.steps) == ((GOLD, SILVER), ())
    assert [len(one.arrivals) for one in done.ingests] == [1], "what was delivered is taken"
    assert digests(world, SILVER) == before
    with changed.open() as platform:
        found = outlook(platform)
        assert waiting(platform, 10).stale == {}
        assert {step.table: len(step.days) for step in found.automatic.waiting} == {SILVER: 4}
    assert found.everything.steps[0].reasons[date(2017, 1, 2)] == ("correction", "configuration")

    some = changed.refresh(Request(frozenset({SILVER}), on(DAYS[1]), by_person=True))
    assert {step.table: set(step.published) for step in some.steps} == {SILVER: on(DAYS[1])}
    assert last_commit(world, SILVER) == {"commitInfo", "metaData", "add", "remove"}
    assert column(world, SILVER, "note") == [None, "cold", "warm", None, None]
    assert names(world, SILVER, old) == ["sensor", "measured_at", "celsius", "event_date"]
    assert len(column(world, SILVER, "celsius", old)) == 4
    assert {day for day, digest in digests(world, SILVER).items() if digest != before[day]} == {DAYS[1]}
    assert changed.needs(SILVER) == [("column 'note' (string) added", "nothing")]
    assert changed.faults(tmp_path) == []

    assert {step.table for step in changed.refresh().steps} == {GOLD}, "runs go on with the table by themselves"
    assert {step.table: len(step.published) for step in changed.refresh(BY_PERSON).steps}[SILVER] == 3
    assert column(world, SILVER, "note") == ["cold", "cold", "warm", "warm", "warm"]
    assert changed.faults(tmp_path) == []
    with changed.open() as platform:
        assert outlook(platform).everything.steps == ()


@pytest.fixture
def narrower(world: World, later: Callable[..., Later]) -> Later:
    """Gold without one column, with a wider one and with another name for a third."""
    sensor, readings, coldest, warmest = columns_of(world, GOLD)
    columns = (sensor, readings, replace(coldest, name="lowest"), replace(warmest, type="decimal(9,3)"))
    return later(
        {GOLD: columns},
        {
            GOLD: lambda rows: rows.withColumnRenamed("coldest", "lowest").withColumn(
                "warmest", F.col("warmest").cast("decimal(9,3)")
            )
        },
        reconciles=(),
    )


@pytest.mark.proof
def test_columns_dropped_or_retyped_enter_with_all_days_and_go_back_with_them(
    world: World, narrower: Later, tmp_path: Path
) -> None:
    before, rows, old = digests(world, GOLD), world.rows(GOLD), newest(world)
    assert narrower.needs(GOLD) == [
        ("column 'coldest' renamed to 'lowest'", "all days"),
        ("column 'warmest' widened from decimal(6,2) to decimal(9,3)", "all days"),
    ]
    deliver(world, DAYS[1], "more", "9.00", hour=9)
    assert narrower.refresh().by_people == (GOLD,)
    assert set(digests(world, SILVER)) == set(DAYS), "what it is made from goes on"
    with pytest.raises(ContractError, match=r"only with all its 4 days .* and 2017-01-01 and 2 more would be left out"):
        narrower.refresh(Request(frozenset({GOLD}), on(DAYS[1]), by_person=True))
    with narrower.open() as platform, pytest.raises(ContractError, match="Run `platform-assets refresh gold"):
        recompute(platform, lambda: world.spark, (GOLD,), tuple(on(*DAYS)), Author("asset", "a test"))
    assert (digests(world, GOLD), world.rows(GOLD)) == (before, rows)

    number = newest(world)
    done = narrower.refresh(Request(frozenset({GOLD}), by_person=True), "narrower")
    assert {step.table: len(step.published) for step in done.steps} == {GOLD: 4}
    assert newest(world) == number + 1
    assert last_commit(world, GOLD) == {"commitInfo", "metaData", "add", "remove"}
    assert names(world, GOLD) == ["sensor", "readings", "lowest", "warmest", "event_date"]
    assert names(world, GOLD, old) == ["sensor", "readings", "coldest", "warmest", "event_date"]
    assert world.spark.read.format("delta").load(str(world.settings.lake_folder / "gold" / "sensor_week")).count() == 4
    assert narrower.faults(tmp_path) == []

    with pytest.raises(PlatformError, match=r"2017-01-02 as it is has other columns .*\(coldest, lowest, warmest\)"):
        narrower.rollback("narrower", days=on(DAYS[0]))
    narrower.rollback("narrower")
    assert (digests(world, GOLD), world.rows(GOLD)) == (before, rows)
    assert names(world, GOLD) == ["sensor", "readings", "coldest", "warmest", "event_date"]
    assert last_commit(world, GOLD) == {"commitInfo", "metaData", "add", "remove"}
    assert narrower.refresh().by_people == (GOLD,), "no tick undoes it"
    assert narrower.faults(tmp_path) == []


@pytest.mark.proof
def test_an_added_column_goes_back_unless_somebody_built_on_it(world: World, later: Callable[..., Later]) -> None:
    before = digests(world, SILVER)
    changed = later({SILVER: (*columns_of(world, SILVER), NOTE)}, {SILVER: noted})
    changed.refresh(Request(frozenset({SILVER}), on(DAYS[1]), by_person=True), "first")
    changed.refresh(Request(frozenset({SILVER}), on(DAYS[2]), by_person=True), "second")
    with pytest.raises(
        PlatformError, match=r"silver\.readings 2017-01-03 as it is has .*\(note\); nothing was rolled back"
    ):
        changed.rollback("first")
    changed.rollback("second")
    assert "note" in names(world, SILVER), "brought by the first, which stays"
    changed.rollback("first")
    assert "note" not in names(world, SILVER)
    assert digests(world, SILVER) == before


def test_a_day_that_does_not_come_out_good_keeps_all_from_being_published(
    world: World, later: Callable[..., Later]
) -> None:
    before, number = digests(world, GOLD), newest(world)
    sensor, readings, *_ = columns_of(world, GOLD)

    def twice(rows: DataFrame) -> DataFrame:
        again = rows.where(F.col("event_date") == DAYS[2])
        return rows.unionByName(again).select("sensor", "readings", "event_date")

    changed = later({GOLD: (sensor, readings)}, {GOLD: twice}, reconciles=())
    with pytest.raises(ContractError, match=r"2017-01-03 did not come out good.*\n?.*2017-01-03: held: "):
        changed.refresh(Request(frozenset({GOLD}), by_person=True))
    assert (digests(world, GOLD), newest(world)) == (before, number)


@pytest.mark.proof
def test_raw_takes_an_added_column_with_the_next_delivery_and_no_other_change(
    world: World, later: Callable[..., Later], tmp_path: Path
) -> None:
    more = (*columns_of(world, RAW), Column("battery", "int", "Percent.", may_be_absent=True))
    changed = later({RAW: more}, {SILVER: lambda rows: rows.drop("battery")})
    assert changed.needs(RAW) == [("column 'battery' (int) added", "any days")]
    deliver(world, DAYS[1], "more", "9.00", hour=9, battery=80)
    done = changed.refresh()
    assert done.by_people == ()
    assert {step.table for step in done.steps} == {SILVER, GOLD}
    assert column(world, RAW, "battery") == [None, None, 80, None, None]
    assert changed.needs(RAW) == []
    assert changed.faults(tmp_path) == []
    with changed.open() as platform:
        compacted = maintain(platform, lambda: world.spark, "compaction", Author("maintenance run", "a test"))
    assert compacted.differing == {}
    assert changed.faults(tmp_path) == []

    fewer = later({RAW: columns_of(world, RAW)})
    deliver(world, DAYS[2], "even more", "7.00", hour=9)
    done = fewer.refresh()
    assert (done.by_people, done.ingests) == ((RAW, SILVER), ())
    with pytest.raises(ContractError, match=r"raw\.readings on disk cannot take rows .*'battery' dropped"):
        fewer.refresh(BY_PERSON)
    assert sum(len(one.arrivals) for one in changed.refresh().ingests) == 1, "the file has waited"


@pytest.mark.proof
def test_another_key_enters_with_all_days(world: World, later: Callable[..., Later]) -> None:
    changed = later({GOLD: columns_of(world, GOLD)}, key=("sensor", "readings"))
    assert changed.needs(GOLD) == [("key changed from (sensor) to (sensor, readings)", "all days")]
    assert changed.refresh().by_people == (GOLD,)
    with pytest.raises(ContractError, match="would be left out"):
        changed.refresh(Request(frozenset({GOLD}), on(DAYS[1]), by_person=True))
    assert len(changed.refresh(BY_PERSON).steps[0].published) == 4
    assert changed.needs(GOLD) == []
