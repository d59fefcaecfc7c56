"""maintenance, verify and engine; a weekly source on a daily calendar."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from importlib.util import find_spec
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.operations import deletion
from platform_assets.orchestration.assets.events import asset_key
from platform_assets.orchestration.assets.table_checks import freshness_events
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.commands import TABLE, Run, run, state
from platform_assets_tests.support.meanwhile import usage_later
from platform_assets_tests.support.own_domain import PACKAGE, importable, write_domain
from platform_assets_tests.support.shelf import age, contents, day, stage, staged_manifest
from platform_assets_tests.support.world import World, empty_world

__all__ = ["run", "state"]
"""Fixtures."""


@pytest.fixture
def untidy(published: Settings) -> tuple[str, str]:
    """A day published twice, and a stage left behind; the names of the first publication and of the stage."""
    lake = Lake.at(published.lake)
    first = staged_manifest(lake, {TABLE: {day(2): [("x", 1)]}})
    publish(lake, first)
    publish(lake, staged_manifest(lake, {TABLE: {day(2): [("x", 2)]}}))
    left = stage(lake, TABLE, {day(0): [("y", 1)]})
    age(lake, TABLE)
    return first.publication, left


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rollback window has passed."""
    monkeypatch.setattr(deletion, "usage", usage_later)


@pytest.mark.usefixtures("later")
def test_a_dry_run_shows_what_a_run_then_does(run: Run, published: Settings, untidy: tuple[str, str]) -> None:
    lake, (first, left) = Lake.at(published.lake), untidy
    before = contents(lake, TABLE)
    due = run("admin", "maintenance", "--dry-run", "--json")
    assert due.code == 0, due.err
    assert [one["publication"] for one in due.json["stages"]] == [left]
    assert [one["publication"] for one in due.json["deletion"]] == [first]
    shown = run("admin", "maintenance", "--dry-run").out
    assert "1 orphaned stage" in shown
    assert "Nothing was changed" in shown
    assert lake.stage_path(TABLE, first).exists()

    done = run("admin", "maintenance", "--only", "stages", "--json").json
    assert (done["stages"], done["deletion"]) == (due.json["stages"], [])
    assert run("admin", "maintenance", "--json").json["deletion"] == due.json["deletion"]
    assert not lake.stage_path(TABLE, first).exists()
    assert contents(lake, TABLE) == before
    assert run("admin", "maintenance").out.startswith("Nothing to do: releases of the last 90 days")


def test_a_task_that_does_not_exist_is_a_mistake(run: Run, published: Settings) -> None:
    assert run("admin", "maintenance", "--only", "vacuum").code == 2


def test_days_without_a_record_of_their_inputs_are_counted_and_said_to_be_so(run: Run, published: Settings) -> None:
    said = run("admin", "verify", TABLE)
    assert said.code == 0
    assert (
        f"not verifiable {TABLE} 2017-01-01 and 1 more day: it is not on record which version of silver.transactions "
        "it was made from" in said.out
    )
    assert "Drawn by --seed" in said.out
    [table] = run("admin", "verify", TABLE, "--days", "2017-01-02", "--json").json["tables"]
    assert (table["equal"], table["different"], table["not_verifiable"]) == (0, 0, 1)


def test_days_never_published_are_an_error(run: Run, published: Settings) -> None:
    said = run("admin", "verify", "gold.household_28d")
    assert said.code == 3
    assert "Nothing is published of gold.household_28d." in said.err
    said = run("admin", "verify", TABLE, "--days", "2017-01-03")
    assert said.code == 3
    assert f"Nothing is published of {TABLE} on 2017-01-03." in said.err


COMPUTED = {
    "silver.transactions", "silver.products", "gold.household_28d", "gold.daily_sales", "gold.sales_month_to_date",
}  # fmt: skip


def test_nothing_is_computed_by_sail_unless_it_is_asked_for(run: Run) -> None:
    listed = run("status", "engines", "--json").json["tables"]
    assert {row["table"] for row in listed} == COMPUTED
    assert {(row["engine"], row["why"]) for row in listed} == {("spark", "PLATFORM_ENGINE is spark")}
    assert run("status", "--json").json["computed_by_spark"] == {}


def test_what_spark_computes_though_sail_was_asked_for_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_ENGINE", "sail")
    assert run("status", "--json").json["computed_by_spark"] == dict.fromkeys(COMPUTED, "it was not verified")
    said = run("status").out
    assert (
        "Spark computes gold.daily_sales: it was not verified; `platform-assets admin verify --admit gold.daily_sales`"
        in said
    )
    assert "gold.daily_sales" in run("status", "engines").out


def test_a_spark_connect_server_is_not_for_sail(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_ENGINE", "sail")
    monkeypatch.setenv("PLATFORM_SPARK_REMOTE", "sc://127.0.0.1:1")
    listed = run("status", "engines", "--json").json["tables"]
    assert {row["why"] for row in listed} == {
        "Sail works beside a Spark of this machine, not beside a Spark Connect server"
    }
    refused = run("admin", "verify", "--admit", "gold.daily_sales")
    assert refused.code == 3
    assert "Sail cannot compute gold.daily_sales" in refused.err


def test_days_to_compare_are_named_and_raw_tables_are_none(run: Run) -> None:
    assert run("diff", "spark", "sail", "gold.daily_sales").code == 2
    refused = run("admin", "verify", "--admit", "raw.transactions")
    assert refused.code == 3
    assert "raw.transactions has no transform" in refused.err


def test_doctor_starts_it_and_says_where_it_cannot_start(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("pysail") is None and "CI" not in os.environ:
        pytest.skip("pysail is not installed: uv sync --extra sail")
    monkeypatch.setenv("PLATFORM_ENGINE", "sail")
    assert "starts, with 3g of memory at most" in run("admin", "doctor").words
    monkeypatch.setenv("PLATFORM_SAIL_MEMORY", "20m")
    assert "Sail does not start" in run("admin", "doctor").words


SATURDAY = date(2017, 1, 7)
LAST = SATURDAY + timedelta(weeks=6)
BEYOND = """\
BEYOND = Contract("gold.beyond", "Of tills.", "me", (K, Column("paid", "decimal(18,2)", "Dollars.")), ("till",),
                  inputs=(Input("gold.tills", same_day()),))
TABLES = (RAW, SILVER, GOLD, WEEK, BEYOND)"""


@contextmanager
def weekly(state: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, delivers: str) -> Iterator[World]:
    """Six Saturdays that were delivered; today is the seventh, before its file came."""
    declared = (
        ("as_of, same", "Weekdays, EveryDays, as_of, same"),
        ('event_time="at")', f'event_time="at", delivers={delivers})'),
        ("TABLES = (RAW, SILVER, GOLD, WEEK)", BEYOND),
    )
    beyond = ("def week(sales):", "def beyond(tills):\n    return tills\n\n\ndef week(sales):")
    for name, value in {"CALENDAR_LAST": LAST, "TODAY": LAST, "DOMAINS": PACKAGE}.items():
        monkeypatch.setenv(f"PLATFORM_{name}", str(value))
    with importable(write_domain(state.parent / "code", contracts=declared, gold=(beyond,))):
        world = empty_world(state, spark, days=(LAST - date(2017, 1, 1)).days + 1, domains=PACKAGE)
        for week in range(6):
            deliver(world, SATURDAY + timedelta(weeks=week), 50)
        world.on(str(LAST - timedelta(days=1))).refresh()
        world.refresh()
        yield world


def deliver(world: World, day: date, tills: int) -> None:
    rows = ({"till": till, "at": f"{day}T02:00:00Z", "paid": "1.25"} for till in range(tills))
    world.deliver_rows("sales", str(day), "sales.jsonl", rows)


def rows_of(world: World, table: str) -> dict[date, int]:
    with world.open() as platform:
        return {day: found.rows for day, found in platform.ledger.current_days(table).items() if found.rows}


@pytest.mark.proof
def test_a_day_on_which_rows_are_expected_is_not_delivered_yet_and_nothing_is_held(
    state: Path, run: Run, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with weekly(state, spark, monkeypatch, 'Weekdays(("saturday",))') as world:
        status = run("status")
        assert f"not delivered yet raw.sales: {LAST}\n" in status.out
        tables = {table["table"]: table for table in run("status", "--json").json["tables"]}
        assert {(table["missing"], table["held"]) for table in tables.values()} == {(1, 0)}
        by_day = {name: (table["days"], table["newest"]) for name, table in tables.items() if name != "gold.week"}
        assert set(by_day.values()) == {(6, "2017-02-11")}, "all but the Saturdays are no days to look at"
        with dg.DagsterInstance.ephemeral() as instance, world.open() as platform:
            for table in by_day:
                instance.report_runless_asset_event(dg.AssetMaterialization(asset_key(table)))
            looks = [look for look in freshness_events(instance, platform) if look.check_name == "freshness"]
        assert {look.metadata["days published"].value for look in looks} == {6}
        said = run("refresh")
        assert f"not delivered yet raw.sales: {LAST}; days that read these wait" in said.out
        assert said.code == 0, "to wait is no failure"
        assert run("refresh", "--json").json["not_delivered"] == {"raw.sales": [str(LAST)]}
        assert f"raw.sales is not delivered yet for {LAST}" in run("why", "gold.beyond", str(LAST)).out
        [raw] = world.recompute(["raw.sales"], [LAST]).ingests
        assert raw.missing == (LAST,)
        deliver(world, LAST, 53)
        world.refresh()
        expected = {SATURDAY + timedelta(weeks=week): 50 for week in range(6)} | {LAST: 53}
        assert rows_of(world, "gold.beyond") == expected


@pytest.mark.proof
def test_nothing_is_accepted_of_a_day_for_which_nothing_came_and_what_is_held_is_named_where_it_is(
    state: Path, run: Run, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with weekly(state, spark, monkeypatch, '"on change"') as world:
        status = run("status").out
        assert f"held silver.sales {LAST}" in status
        assert "platform-assets accept" not in status
        assert "Nothing was delivered yet for raw.sales" in status
        asked = run("refresh", "gold.beyond", "--days", str(LAST), "--explain")
        for said in (run("why", "gold.beyond", str(LAST)).out, asked.out + asked.err):
            assert f"silver.sales is held on {LAST}: silver.sales on {LAST}: too few rows" in " ".join(said.split())
            assert "never been loaded" not in said
        [step] = world.recompute(["gold.beyond"], [LAST]).steps
        assert step.blocked[LAST].startswith(f"silver.sales is held on {LAST}")
        world.deliver("sales", str(LAST), "empty.jsonl", "")
        world.refresh()
        assert "platform-assets accept silver.sales" in run("status").out, "now that nothing is what came"
