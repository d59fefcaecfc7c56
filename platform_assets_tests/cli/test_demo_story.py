"""The demo's punchline: what it says of a correction is compared, and would be said to be wrong if it were."""

from __future__ import annotations

import json
import re
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from platform_assets.cli.commands.demo_story import Shown, Story, compare, story_parts
from platform_assets.cli.console import print_parts
from platform_assets_tests.support.cli.commands import run_apart

FIRST, SECOND = date(2017, 1, 1), date(2017, 1, 2)
SILVER, GOLD = "silver.transactions", "gold.daily_sales"
OLD, NEW = Shown("p1", "1-1-1-1-1", ("a",)), Shown("p2", "1-2-2-2-2", ("b",))
BEFORE = {SILVER: {FIRST: OLD, SECOND: OLD}, GOLD: {FIRST: OLD, SECOND: OLD}}
AFTER = {SILVER: {FIRST: NEW, SECOND: OLD}, GOLD: {FIRST: NEW, SECOND: OLD}}
STALE = {SILVER: {FIRST}, GOLD: {FIRST}}


def test_exactly_the_stale_days_were_rewritten_and_any_other_is_a_surprise() -> None:
    compared = compare(BEFORE, AFTER, STALE)
    assert compared.rewritten == {SILVER: (FIRST,), GOLD: (FIRST,)}
    assert (compared.days, compared.untouched, compared.surprises) == (2, 2, ())
    for part in ("publication", "digest", "files"):
        other = OLD._replace(**{part: getattr(NEW, part)})
        assert compare(BEFORE, {**AFTER, GOLD: {FIRST: NEW, SECOND: other}}, STALE).surprises == ((GOLD, SECOND),)
    assert compare(BEFORE, {**AFTER, GOLD: BEFORE[GOLD]}, STALE).surprises == ((GOLD, FIRST),), "nobody rewrote it"
    for before, after in ((BEFORE, {**AFTER, GOLD: {FIRST: NEW}}), ({**BEFORE, GOLD: {FIRST: OLD}}, AFTER)):
        assert compare(before, after, STALE).surprises == ((GOLD, SECOND),), "it comes, or goes"


def test_a_surprise_is_said_instead(monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    compared, net = compare(BEFORE, {**AFTER, GOLD: BEFORE[GOLD]}, STALE), (Decimal("13.35"), Decimal("13.30"))
    why = {SILVER: "correction", GOLD: "upstream content"}
    print_parts(story_parts(Story("transactions/2017-01-21/recount-1.csv", FIRST, 406, 10, 12, why, compared, net)))
    told = capsys.readouterr().out
    assert (
        f"Not as promised: 1 day rewritten without being stale, or stale and not rewritten, for example {GOLD}" in told
    )
    assert "Exactly" not in told


@pytest.mark.proof
def test_a_demo_tells_what_happened_is_undone_by_its_own_command_and_does_nothing_twice(
    run, state: Path, monkeypatch
) -> None:
    """Three days of the sample through Dagster and Spark, each in a process of its own: a minute."""
    for name in ("CALENDAR_FIRST", "CALENDAR_LAST", "TODAY"):
        monkeypatch.delenv(f"PLATFORM_{name}")
    first = run_apart("demo", "--days", "3", "--json")
    assert first.code == 0, first.err
    told = first.json["correction"]
    assert told["day"] == "2017-01-02"
    assert told["surprises"] == []
    assert told["rewritten"] == {
        "raw.transactions": ["2017-01-02"],
        SILVER: ["2017-01-02"],
        "gold.household_28d": ["2017-01-02", "2017-01-03"],
        GOLD: ["2017-01-02"],
        "gold.sales_month_to_date": ["2017-01-02", "2017-01-03"],
    }
    assert told["untouched"] == 3 * 7 - 7
    before, after = (Decimal(told["net_sales"][at]) for at in ("before", "after"))
    assert _net(run) == after > before

    again = run_apart("demo", "--days", "3")
    assert again.code == 0
    assert "Nothing to do" in again.out
    assert {*re.findall(r"2017-\d\d-\d\d", again.out)} <= {"2017-01-01", "2017-01-02", "2017-01-03"}

    undone = run("undo", f"since:{told['releases']['before']!s}", "--reason", "just trying")
    assert undone.code == 0, undone.err
    assert _net(run) == before
    assert "Nothing to do" in run_apart("demo", "--days", "3").out
    fresh = run_apart("demo", "--days", "3", "--fresh", "--json")
    assert fresh.code == 0, fresh.err
    assert fresh.json["correction"]["net_sales"] == told["net_sales"]


def _net(run) -> Decimal:
    rows = run("read", GOLD, "--day", "2017-01-02", "--format", "json").out.splitlines()
    return sum((Decimal(json.loads(row)["net"]) for row in rows), Decimal(0))
