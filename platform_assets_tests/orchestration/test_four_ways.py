"""A day that fails gets into gold by none of the four ways there are.

They are a backfill of everything, a backfill of gold alone, late data, and a person's run of a single table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import dagster as dg
import pytest
from dagster._core.event_api import PartitionKeyFilter
from dagster._core.execution.backfill import BulkActionStatus
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord
from pyspark.sql import SparkSession

from platform_assets.orchestration.assets.checks import NEW_SINCE
from platform_assets.orchestration.assets.events import asset_key
from platform_assets.orchestration.build import build_definitions
from platform_assets.orchestration.instance.launcher import create_pools
from platform_assets.settings import load_settings
from platform_assets_tests.support.installation import JARS
from platform_assets_tests.support.orchestration.daemon import (
    QUIET,
    Daemon,
    complete,
    days_of_asset,
    days_of_check,
    enter_world,
    idle,
    launch,
    published,
    reasons,
    run_one,
    running_daemon,
    status,
)
from platform_assets_tests.support.world import World, product, sale

FIRST = date(2017, 1, 1)
DAYS = [str(FIRST + timedelta(days=n)) for n in range(20)]
LOADED = DAYS[:18]
VOIDED, GOOD, BROKEN = DAYS[17:]
"""Day 18 is loaded before all its lines are voided, day 19 is as it should be, of day 20 every line breaks a rule."""

SILVER = "silver.transactions"
GOLD = ("gold.daily_sales", "gold.household_28d", "gold.sales_month_to_date")
TABLES = ("raw.transactions", "raw.products", SILVER, "silver.products", *GOLD)
LINES = 10

pytestmark = [pytest.mark.proof, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Shop:
    """Twenty days of sales, after a backfill of everything that found two days to fail.

    Args:
        world: the installation.
        daemon: looks after it.
        good: digest of every day of every table before the failing days were delivered.
        backfill: the backfill's id.
        run: its run.
    """

    world: World
    daemon: Daemon
    good: Mapping[str, Mapping[date, str]]
    backfill: str
    run: dg.DagsterRun

    def check_that_nothing_failing_is_visible(self) -> None:
        """The voided day is what it was, the broken one is not there, and both are held."""
        now = self.world.digests()
        for table in (SILVER, *GOLD):
            assert date.fromisoformat(BROKEN) not in now[table]
            assert self.world.rows(table, BROKEN) == []
            assert now[table][date.fromisoformat(VOIDED)] == self.good[table][date.fromisoformat(VOIDED)]
        assert [row["lines"] for row in self.world.rows("gold.daily_sales", VOIDED)] == [LINES]
        with self.world.open() as platform:
            assert {(hold.table, str(hold.day), hold.gate) for hold in platform.ledger.holds()} == {
                (SILVER, VOIDED, "volume"),
                (SILVER, BROKEN, "volume"),
            }

    def check_that_the_failing_days_are_red(self, *arrivals: str) -> None:
        """Among the days of the table and of the check that holds them, with what may be to blame."""
        assert days_of_asset(self.daemon, SILVER)["FAILED"] == [VOIDED, BROKEN]
        assert days_of_check(self.daemon, SILVER, "volume")["FAILED"] == [VOIDED, BROKEN]
        assert newest_check(self, SILVER, "volume", GOOD).evaluation is not None
        for day, arrival in zip((VOIDED, BROKEN), arrivals, strict=True):
            evaluation = newest_check(self, SILVER, "volume", day).evaluation
            assert evaluation is not None
            assert f"undo {arrival} " in str(evaluation.metadata["new since"].value)


def deliver(world: World, day: str, name: str, arrival: str = "", **changes: Any) -> None:
    """The ten lines of a day, always the same ones."""
    first = 100 * DAYS.index(day)
    rows = [sale(first + n, 1, day, **changes) for n in range(LINES)]
    world.deliver_rows("transactions", arrival or day, name, rows)


def newest_check(shop: Shop, table: str, check: str, day: str) -> AssetCheckExecutionRecord:
    """What Dagster shows of a check for one day."""
    key = dg.AssetCheckKey(asset_key(table), check)
    [record] = shop.daemon.instance.event_log_storage.get_asset_check_execution_history(
        key, limit=1, partition_filter=PartitionKeyFilter(key=day)
    )
    return record


def by_hand(shop: Shop, table: str, day: str, *, force: bool = False) -> dg.ExecuteInProcessResult:
    """A person materializes one day of one table."""
    config = {"ops": {table.replace(".", "__"): {"config": {"force": force}}}}
    job = build_definitions(shop.world.settings).resolve_implicit_global_asset_job_def()
    return job.execute_in_process(
        instance=shop.daemon.instance,
        asset_selection=[asset_key(table)],
        partition_key=day,
        run_config=QUIET | config,
        raise_on_error=False,
    )


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Eighteen days are loaded; then a good day and two that fail are delivered and everything is backfilled."""
    folder = tmp_path_factory.mktemp("four-ways")
    settings = load_settings(
        state=folder / "state", jars=JARS, calendar_first=FIRST, calendar_last=BROKEN, today=BROKEN
    )
    world = World(settings, spark)
    world.deliver_rows("products", DAYS[0], "p.jsonl", [product(1, DAYS[0], "MEAT")])
    for day in LOADED:
        deliver(world, day, "t.jsonl")
    with pytest.MonkeyPatch.context() as patch:
        enter_world(world, patch)
        with running_daemon(folder / "dagster", patch) as daemon:
            create_pools(daemon.instance)
            [run] = complete(daemon, launch(daemon, LOADED, TABLES))
            assert run.status == dg.DagsterRunStatus.SUCCESS, reasons(daemon, run)
            good = world.digests()
            deliver(world, VOIDED, "voids.jsonl", BROKEN, voided=True, updated_at=f"{BROKEN}T12:00:00Z")
            deliver(world, GOOD, "t.jsonl")
            deliver(world, BROKEN, "t.jsonl", store_id=-1)
            backfill = launch(daemon, DAYS, TABLES)
            [run] = complete(daemon, backfill)
            yield Shop(world, daemon, good, backfill, run)


def test_a_backfill_of_everything_publishes_the_good_days_and_says_why_not_the_others(shop: Shop) -> None:
    """The first of the module: it waits for the shop of twenty days that all its tests look at."""
    assert status(shop.daemon, shop.backfill) == BulkActionStatus.COMPLETED_FAILED
    told = reasons(shop.daemon, shop.run).splitlines()
    assert told[0] == f"{SILVER}: 2 of 20 days not published."
    for line, day in zip(told[1:3], (VOIDED, BROKEN), strict=True):
        assert line.startswith(f"{SILVER} {day}: held: {SILVER} on {day}: too few rows: 0 rows; 9 to 11 rows are usual")
    assert told[-1].startswith(f"What to do: `platform-assets why {SILVER} {VOIDED}`")
    assert "readers see its last good content, 10 rows" in told[1]
    assert "readers see nothing of it" in told[2]
    assert told[3] == NEW_SINCE
    arrivals = (f"transactions/{BROKEN}/voids.jsonl", f"transactions/{BROKEN}/t.jsonl")
    assert [line.split(" --reason")[0] for line in told[4:6]] == [
        f"platform-assets undo {arrival}" for arrival in arrivals
    ]
    shop.check_that_the_failing_days_are_red(*arrivals)
    assert published(shop.world, shop.run)[SILVER] == {19}
    shop.check_that_nothing_failing_is_visible()


def test_a_backfill_of_gold_alone_leaves_them_out_and_says_what_to_do(shop: Shop) -> None:
    backfill = launch(shop.daemon, DAYS, GOLD)
    [run] = complete(shop.daemon, backfill)
    assert status(shop.daemon, backfill) == BulkActionStatus.COMPLETED_FAILED
    told = reasons(shop.daemon, run)
    assert "gold.daily_sales: 2 of 20 days not published." in told
    for day, has in ((VOIDED, "its last good content stays"), (BROKEN, "it has no content yet")):
        assert f"{day}: {SILVER} is held on {day} and {has}: {SILVER} on {day}: too few rows" in told
        assert f"Correct its input or its code and recompute {SILVER} for {day}; this day is then stale." in told
    assert {"gold.daily_sales", "gold.household_28d"} <= set(published(shop.world, run))
    shop.check_that_nothing_failing_is_visible()


def test_late_data_that_fails_again_gets_no_further(shop: Shop) -> None:
    """A run by the sensor that computes two days of five tables."""
    later = f"{BROKEN}T13:00:00Z"
    deliver(shop.world, VOIDED, "voids-again.jsonl", BROKEN, voided=True, updated_at=later)
    deliver(shop.world, BROKEN, "t-again.jsonl", store_id=-2, updated_at=later)
    run = run_one(shop.daemon)
    assert run.job_name == "refresh"
    assert run.status == dg.DagsterRunStatus.FAILURE
    told = reasons(shop.daemon, run)
    assert f"{SILVER} {VOIDED}: held: {SILVER} on {VOIDED}: too few rows: 0 rows" in told
    assert f"{SILVER} {BROKEN}: held: {SILVER} on {BROKEN}: too few rows: 0 rows" in told
    shop.check_that_nothing_failing_is_visible()
    again = (f"transactions/{BROKEN}/voids-again.jsonl", f"transactions/{BROKEN}/t-again.jsonl")
    shop.check_that_the_failing_days_are_red(*again)
    assert all(f"platform-assets undo {arrival} " in told for arrival in again)
    for table in GOLD:
        assert {day.day for day in shop.world.digests()[table]} == set(range(1, 20)), "all others are there"
    assert idle(shop.daemon), "held days are left alone until they change"


@pytest.mark.parametrize(
    ("table", "day", "why", "todo"),
    [
        (SILVER, VOIDED, f"held: {SILVER} on {VOIDED}: too few rows", "correct"),
        (SILVER, BROKEN, f"held: {SILVER} on {BROKEN}: too few rows", "correct"),
        ("gold.daily_sales", VOIDED, f"{SILVER} is held on {VOIDED}", "Correct its input or its code"),
        ("gold.daily_sales", BROKEN, f"{SILVER} is held on {BROKEN}", "Correct its input or its code"),
        ("gold.household_28d", BROKEN, f"{SILVER} is held on {BROKEN}", "Correct its input or its code"),
        ("gold.sales_month_to_date", BROKEN, f"{SILVER} is held on {BROKEN}", "Correct its input or its code"),
    ],
    ids=lambda value: value if value in (*TABLES, *DAYS) else "",
)
def test_a_person_gets_no_further_with_a_single_table(shop: Shop, table: str, day: str, why: str, todo: str) -> None:
    done = by_hand(shop, table, day)
    assert not done.success
    [failure] = [event for event in done.all_events if event.is_step_failure]
    assert failure.step_failure_data.user_failure_data is not None
    told = str(failure.step_failure_data.user_failure_data.description)
    assert told.startswith(f"{table}: 1 of 1 day not published.\n{table} {day}: ")
    assert why in told
    assert todo in told
    shop.check_that_nothing_failing_is_visible()


@pytest.mark.parametrize("table", ["gold.household_28d", "gold.sales_month_to_date"])
def test_through_a_longer_window_the_last_good_content_counts(shop: Shop, table: str) -> None:
    assert by_hand(shop, table, VOIDED).success
    shop.check_that_nothing_failing_is_visible()


def test_not_even_force_publishes_them(shop: Shop) -> None:
    assert not by_hand(shop, SILVER, BROKEN, force=True).success
    assert not by_hand(shop, "gold.daily_sales", VOIDED, force=True).success
    shop.check_that_nothing_failing_is_visible()


def test_corrected_days_heal_everywhere(shop: Shop) -> None:
    """A run by the sensor that computes two days of five tables, and what reads them."""
    for day in (VOIDED, BROKEN):
        deliver(shop.world, day, f"corrected-{day}.jsonl", BROKEN, updated_at=f"{BROKEN}T14:00:00Z")
    run = run_one(shop.daemon)
    assert run.status == dg.DagsterRunStatus.SUCCESS, reasons(shop.daemon, run)
    with shop.world.open() as platform:
        assert platform.ledger.holds() == ()
    for table in GOLD:
        assert {day.day for day in shop.world.digests()[table]} == set(range(1, 21))
    for day in DAYS:
        assert [row["lines"] for row in shop.world.rows("gold.daily_sales", day)] == [LINES]
        assert [row["lines"] for row in shop.world.rows("gold.sales_month_to_date", day)] == [LINES * int(day[-2:])]
    for day in (VOIDED, BROKEN):
        evaluation = newest_check(shop, SILVER, "volume", day).evaluation
        assert evaluation is not None
        assert evaluation.passed
    assert days_of_asset(shop.daemon, SILVER) == {"MATERIALIZED": DAYS}
    assert "FAILED" not in days_of_check(shop.daemon, SILVER, "volume")
    assert idle(shop.daemon)
