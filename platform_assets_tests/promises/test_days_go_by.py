"""Days of sales land one by one, with everything switched on: what is published is right after every tick."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
import duckdb
import pytest
from dagster._core.scheduler.instigation import TickStatus

from platform_assets.domains.retail.sample import Simulation, land
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import read_arrow
from platform_assets_tests.support.models.oracle import DERIVED, Oracle
from platform_assets_tests.support.orchestration.daemon import (
    Daemon,
    enter_world,
    idle,
    published,
    run_one,
    running_daemon,
)
from platform_assets_tests.support.world import MakeWorld, World

FIRST = Simulation().first
BY_SCHEDULE = {3, 7}
"""Days on which the schedule comes first; on all others the sensor does."""
_READERS = {
    ".parquet": "read_parquet('{file}')",
    ".csv": "read_csv('{file}', all_varchar = true, ignore_errors = true)",
    ".jsonl": "read_json('{file}', format = 'nd', columns = {{{column}: 'VARCHAR'}}, ignore_errors = true)",
}
MIDNIGHT = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


class Touched:
    """Which days of the month the files of one arrival date have to do with, by the simulator's truth."""

    def __init__(self, landing: Path, today: date) -> None:
        self._db = duckdb.connect()
        self._db.execute("SET TimeZone = 'UTC'")
        self._truth, self._today = landing / ".truth", today

    def rows(self, table: str) -> set[int]:
        """Days that rows landed for."""
        return self._days(table, f"arrival_date = DATE '{self._today}'")

    def lines(self, table: str, column: str) -> set[int]:
        """Days of all lines in the files; the truth leaves out those that were delivered before."""
        found: set[int] = set()
        for file in (self._truth.parent / table / str(self._today)).iterdir():
            source = _READERS[file.suffix].format(file=file, column=column)
            day = f"try_cast(left({column}::VARCHAR, 10) AS DATE)"
            days = self._db.sql(f"SELECT DISTINCT {day} FROM {source}").fetchall()
            found |= self._numbers(day for (day,) in days if day)
        return found

    def keys(self, table: str, key: str) -> set[int]:
        """Days on which any version of a landed row's key lies."""
        theirs = f"SELECT {key} FROM truth WHERE arrival_date = DATE '{self._today}'"
        return self._days(table, f"arrival_date <= DATE '{self._today}' AND ({key}) IN ({theirs})")

    def _days(self, table: str, condition: str) -> set[int]:
        source = f"SELECT * FROM read_parquet('{self._truth / f'{table}.parquet'}') WHERE kind <> 'malformed_refused'"
        found = self._db.sql(f"WITH truth AS ({source}) SELECT DISTINCT event_date FROM truth WHERE {condition}")
        return self._numbers(day for (day,) in found.fetchall())

    def _numbers(self, days: Iterable[date]) -> set[int]:
        return {day.day for day in days if FIRST <= day <= self._today}


def reached(touched: Collection[int], today: int, days: int) -> set[int]:
    """Days whose trailing window of so many days holds one of those touched."""
    return {day for first in touched for day in range(first, min(first + days - 1, today) + 1)}


def check_only_touched_days_ran(world: World, run: dg.DagsterRun, number: int, today: date) -> None:
    """Every day that was published has to do with what landed."""
    ran = published(world, run)
    touched = Touched(world.settings.landing_folder, today)
    sold, moved = touched.rows("transactions"), touched.keys("transactions", "basket_id, product_id")
    again = touched.lines("transactions", "transaction_timestamp")
    assert sold <= ran["raw.transactions"] <= sold | moved | again | {number}
    products = touched.rows("products") | {number}
    assert ran["raw.products"] <= products
    assert ran["silver.transactions"] <= ran["raw.transactions"]
    assert ran["silver.products"] <= products
    sales = ran["silver.transactions"]
    assert ran["gold.daily_sales"] <= sales | reached(ran["silver.products"], number, number)
    assert ran["gold.household_28d"] <= reached(sales, number, 28)
    assert ran["gold.sales_month_to_date"] <= reached(ran["gold.daily_sales"], number, number)


def check_oracle(world: World, today: date) -> None:
    """Everything published up to a day equals what DuckDB computes from what landed until then."""
    oracle, lake = Oracle(world.settings.landing_folder, today, today), Lake.at(world.settings.lake)
    for table in DERIVED:
        assert oracle.differences(table, read_arrow(lake, table)) == [], (table, today)


def run_by_schedule(daemon: Daemon, number: int) -> dg.DagsterRun:
    """The run that the daily schedule requested."""
    daemon.schedules(MIDNIGHT + timedelta(days=number, hours=1, seconds=30))
    [run] = daemon.launch()
    return run


@pytest.mark.timeout(1200)
@pytest.mark.proof
def test_days_of_sales_with_late_corrected_and_moved_rows(
    make_world: MakeWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = 10
    sales = Simulation(days=days)
    world = make_world(days=days, settle_s=0)
    enter_world(world, monkeypatch)
    corrected: set[int] = set()
    with running_daemon(tmp_path / "dagster", monkeypatch) as daemon:
        daemon.schedules(MIDNIGHT)
        for number in range(1, days + 1):
            today = FIRST + timedelta(days=number - 1)
            monkeypatch.setenv("PLATFORM_TODAY", str(today))
            daemon.reload()
            land(sales, world.settings.landing_folder, today)
            run = run_by_schedule(daemon, number) if number in BY_SCHEDULE else run_one(daemon)
            assert run.status == dg.DagsterRunStatus.SUCCESS
            check_only_touched_days_ran(world, run, number, today)
            check_oracle(world, today)
            corrected |= {day for day in published(world, run)["silver.transactions"] if day < number}
            assert idle(daemon)
        daemon.schedules(MIDNIGHT + timedelta(days=days + 1, hours=1, seconds=30))
        assert daemon.ticks("daily")[0].status == TickStatus.SKIPPED
    assert len(corrected) >= days // 2, "hardly anything was late; there was nothing to see"
