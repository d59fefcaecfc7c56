"""Closed days wait, and say why; a table that its domain declares no more asks nobody for anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from platform_assets.contracts import UnknownTableError
from platform_assets.engine.late.approvals import approve, withdraw
from platform_assets.engine.late.queue import late_queue
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes
from platform_assets.engine.refresh import refresh
from platform_assets.engine.state.planner import outlook, plan_steps
from platform_assets.operations.backfill.afterwards import compare_plan
from platform_assets.operations.backfill.apply import apply
from platform_assets.operations.backfill.explain import explain
from platform_assets.operations.backfill.sitting import BackfillError
from platform_assets.operations.lineage.held_days import held_days
from platform_assets.operations.opening import open_platform
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.rows_aside import LateSelection
from platform_assets.planning.selection import BY_PERSON, ProtectedDaysError, Request
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import Hold
from platform_assets.records.manifest import Arrival, new_publication
from platform_assets.settings import load_settings
from platform_assets_tests.support.cli.commands import Run, run, state
from platform_assets_tests.support.days_on_paper import publish
from platform_assets_tests.support.history import DAILY, GOODS, no_session
from platform_assets_tests.support.own_domain import PACKAGE, importable, write_domain
from platform_assets_tests.support.world import MakeWorld, World, recompute

__all__ = ["run", "state"]
"""Fixtures."""

DAYS = tuple(date(2017, 1, day) for day in range(1, 5))
CLOSED = (
    (
        "from platform_assets.contracts import (\n",
        "from datetime import date\n\nfrom platform_assets.contracts import (\n",
    ),
    ("Reconciliation, Rule", "Protected, Reconciliation, Rule"),
    (
        'event_time="at")',
        'event_time="at", protected=(Protected(date(2017, 1, 1), date(2017, 1, 2), date(2017, 1, 3), "closed"),))',
    ),
)

MORE = ('F.sum("paid")', 'F.sum(F.col("paid") * 1)')
"""Other code, for the same."""

AUTHOR = Author("run", "a test", "zoe")


def plan(**fields: Any) -> PlanFile:
    said = {
        "name": "reopen",
        "reason": "new code",
        "owner": "ada",
        "tables": ["gold.tills"],
        "days": {"range": f"{DAYS[0]}..{DAYS[2]}"},
        "downstream": False,
        "afterwards": {"verify": 0},
    }
    return PlanFile.model_validate(said | fields)


@pytest.fixture
def world(make_world: MakeWorld, tmp_path: Path) -> World:
    """Four days, loaded; then a file corrects a closed day and an open one."""
    with importable(write_domain(tmp_path / "home", contracts=CLOSED)):
        world = make_world(days=len(DAYS), domains=PACKAGE)
        for day in DAYS:
            world.deliver_rows("sales", str(day), "a.jsonl", [sold(1, day, "1.00")])
        world.refresh()
        world.deliver_rows("sales", str(DAYS[3]), "b.jsonl", [sold(2, DAYS[1], "5.00"), sold(2, DAYS[2], "7.00")])
        world.refresh()
    return world


def sold(till: int, day: date, paid: str) -> dict[str, Any]:
    return {"till": till, "at": f"{day}T10:00:00Z", "paid": paid}


@contextmanager
def by_code(world: World, home: Path, *gold: tuple[str, str]) -> Iterator[Platform]:
    with importable(write_domain(home, contracts=CLOSED, gold=gold)), world.open() as platform:
        yield platform


def tills(world: World, day: date) -> dict[int, Decimal]:
    return {row["till"]: row["paid"] for row in world.rows("gold.tills", str(day))}


@pytest.mark.proof
def test_what_comes_for_a_closed_day_waits_and_new_code_leaves_it_alone(world: World, tmp_path: Path) -> None:
    with by_code(world, tmp_path / "home", MORE) as platform:
        assert tills(world, DAYS[1]) == {1: Decimal("1.00")}
        assert tills(world, DAYS[2]) == {1: Decimal("1.00"), 2: Decimal("7.00")}
        [waiting] = late_queue(platform)
        assert (waiting.day, waiting.days_late, waiting.state, waiting.protected) == (DAYS[1], 2, "waiting", "closed")
        found = outlook(platform).everything
        assert {step.table: step.days for step in found.waiting} == {"gold.tills": DAYS[:2], "gold.week": DAYS[:2]}
        assert {step.table: step.days for step in found.steps} == {"gold.tills": DAYS[2:], "gold.week": DAYS[2:]}
        forced = Request(frozenset(["gold.tills"]), frozenset(DAYS), by_person=True, force=True)
        with pytest.raises(ProtectedDaysError, match=r"2 days of gold\.tills"):
            plan_steps(platform, forced)
        with pytest.raises(ProtectedDaysError, match=r"2 days of gold\.tills"):
            recompute(platform, lambda: world.spark, ("gold.tills",), DAYS, AUTHOR)
        blocking = [obstacle.what for obstacle in explain(platform, plan()).blocking]
        assert blocking == [f"gold.tills has 2 protected days among these ({DAYS[0]}..{DAYS[1]}): closed."]
        with pytest.raises(BackfillError, match="has 2 protected days"):
            apply(platform, lambda: world.spark, plan(), AUTHOR)
        override = {"days": f"{DAYS[0]}..{DAYS[1]}", "reason": "the auditor asks for it"}
        allowed = explain(platform, plan(override_protected=override))
        assert not allowed.blocking
        assert any("the auditor asks for it" in obstacle.todo for obstacle in allowed.obstacles)
        assert allowed.hash != explain(platform, plan()).hash
        part = explain(platform, plan(override_protected=override | {"days": f"{DAYS[0]}..{DAYS[0]}"}))
        assert [obstacle.what for obstacle in part.blocking] == [
            f"gold.tills has 1 protected day among these ({DAYS[1]}): closed."
        ]
        assert explain(platform, plan(days={"stale": True})).days == DAYS[2:]


@pytest.mark.proof
def test_a_plan_that_says_why_computes_closed_days_and_so_does_an_approval(world: World, tmp_path: Path) -> None:
    override = {"days": f"{DAYS[0]}..{DAYS[1]}", "reason": "the auditor asks for it"}
    with by_code(world, tmp_path / "home", MORE) as platform:
        found = compare_plan(platform, lambda: world.spark, plan(), AUTHOR, most_days=1, most_examples=1)
        assert [day.day for table in found.tables for day in table.days] == [DAYS[0]], "to be looked at, any day may be"
        assert found.is_equal
        record = apply(platform, lambda: world.spark, plan(override_protected=override), AUTHOR)
        assert record.state == "published"
        left = outlook(platform).everything
        assert {step.table for step in left.waiting} == {"gold.week"}
        approve(platform, lambda: world.spark, LateSelection(table="raw.sales", days=frozenset(DAYS)), AUTHOR)
        refresh(platform, lambda: world.spark, AUTHOR, request=BY_PERSON)
        assert tills(world, DAYS[1]) == {1: Decimal("1.00"), 2: Decimal("5.00")}


TWO_RAWS = "platform_assets_tests.support.domains.two_raws"
DAY, TABLE = date(2017, 1, 1), "silver.transactions"
DATES = {"calendar_first": DAY, "calendar_last": DAY, "today": DAY}
FILE = "transactions/2017-01-01/a.csv"


def taken(platform: Platform, *tables: str, reason: str | None = None) -> None:
    """One file without rows as several raw tables took or refused it."""
    what = {"path": FILE, "arrival_date": DAY, "size": 1, "sha256": "0" * 64, "modified_ns": 1, "reason": reason}
    arrivals = [Arrival(table=table, **what) for table in tables]
    publish_changes(platform, new_publication(), "ingest", [], Author("r", "a test"), arrivals)


def test_a_held_day_of_it_is_told_no_more_and_again_once_it_is_back(tmp_path: Path) -> None:
    """No command could lift its hold: whatever takes a table knows no such table."""
    with_it = load_settings(state=tmp_path / "state", domains=DAILY, **DATES)
    without = load_settings(state=tmp_path / "state", domains=GOODS, **DATES)
    with open_platform(with_it) as platform:
        publish(platform, "raw.transactions", [DAY], 1)
        mark = Attempt("of other rows", platform.version(TABLE))
        platform.ledger.hold([Hold(TABLE, DAY, mark, "volume", "too few rows", "r", datetime.now(UTC))])
    for settings, told in ((with_it, [DAY]), (without, []), (with_it, [DAY])):
        with open_platform(settings) as platform:
            assert [held.hold.day for held in held_days(platform, platform.ledger.holds())] == told


def test_a_file_that_only_it_refused_is_told_no_more(run: Run, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_platform(load_settings()) as platform:
        taken(platform, "raw.transactions", reason="is empty")
    assert [file["path"] for file in run("status", "--json").json["refused_files"]] == [FILE]
    monkeypatch.setenv("PLATFORM_DOMAINS", GOODS)
    assert run("status", "--json").json["refused_files"] == []


def test_a_file_that_it_had_taken_is_withdrawn_from_those_that_are_left(tmp_path: Path) -> None:
    with open_platform(load_settings(state=tmp_path / "state", domains=TWO_RAWS, **DATES)) as platform:
        taken(platform, "raw.receipts", "raw.transactions")
    with open_platform(load_settings(state=tmp_path / "state", domains=DAILY, **DATES)) as platform:
        [done] = withdraw(platform, no_session, [FILE], Author("r", "a mistake"))
        assert done.table == "raw.transactions"
    with (
        open_platform(load_settings(state=tmp_path / "state", domains=DAILY, **DATES)) as platform,
        pytest.raises(UnknownTableError, match=r"raw\.receipts"),
    ):
        withdraw(platform, no_session, [FILE], Author("r", "a mistake"))
