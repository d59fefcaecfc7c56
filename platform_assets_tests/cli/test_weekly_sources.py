"""A weekly source on a daily calendar: a day is not delivered yet until its file came, and never held for that.

One lake of seven weeks is computed with Spark for each of the two declarations.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from platform_assets.orchestration.assets.events import asset_key
from platform_assets.orchestration.assets.freshness import freshness_events
from platform_assets_tests.support.cli.commands import Run, run, state
from platform_assets_tests.support.own_domain import PACKAGE, importable, write_domain
from platform_assets_tests.support.world import World, empty_world

__all__ = ["run", "state"]
"""Fixtures of the command line."""

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
