"""The demo's punchline: what it says of a correction is compared, and would be said to be wrong if it were."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from platform_assets.cli.commands.demo import Phase, summary_parts
from platform_assets.cli.commands.demo_state import begin_demo, remove_demo, set_clock
from platform_assets.cli.commands.demo_story import Shown, Story, compare, story_parts
from platform_assets.cli.console import print_parts
from platform_assets.settings import load_settings
from platform_assets_tests.support.cli.commands import run_apart

FIRST, SECOND = date(2017, 1, 1), date(2017, 1, 2)
SILVER, GOLD = "silver.transactions", "gold.daily_sales"
OLD, NEW = Shown("p1", "1-1-1-1-1", ("a",)), Shown("p2", "1-2-2-2-2", ("b",))
BEFORE = {SILVER: {FIRST: OLD, SECOND: OLD}, GOLD: {FIRST: OLD, SECOND: OLD}}
AFTER = {SILVER: {FIRST: NEW, SECOND: OLD}, GOLD: {FIRST: NEW, SECOND: OLD}}
STALE = {SILVER: {FIRST}, GOLD: {FIRST}}


def test_exactly_the_stale_days_were_rewritten() -> None:
    compared = compare(BEFORE, AFTER, STALE)
    assert compared.rewritten == {SILVER: (FIRST,), GOLD: (FIRST,)}
    assert (compared.days, compared.untouched, compared.surprises) == (2, 2, ())


@pytest.mark.parametrize("part", ["publication", "digest", "files"])
def test_a_day_that_is_another_one_without_being_stale_is_a_surprise(part: str) -> None:
    other = OLD._replace(**{part: getattr(NEW, part)})
    after = {**AFTER, GOLD: {FIRST: NEW, SECOND: other}}
    assert compare(BEFORE, after, STALE).surprises == ((GOLD, SECOND),)


def test_a_stale_day_that_nobody_rewrote_is_a_surprise() -> None:
    assert compare(BEFORE, {**AFTER, GOLD: BEFORE[GOLD]}, STALE).surprises == ((GOLD, FIRST),)


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_day_that_comes_or_goes_without_being_stale_is_a_surprise(side: str) -> None:
    fewer = {**AFTER, GOLD: {FIRST: NEW}} if side == "after" else AFTER
    more = {**BEFORE, GOLD: {FIRST: OLD}} if side == "before" else BEFORE
    assert compare(more, fewer, STALE).surprises == ((GOLD, SECOND),)


STORY = Story(
    "transactions/2017-01-21/recount-1.csv",
    FIRST,
    406,
    10,
    12,
    {
        SILVER: "correction: reads the same day of raw.transactions",
        GOLD: f"upstream content: reads 28 days of {SILVER}",
    },
    compare(BEFORE, AFTER, STALE),
    (Decimal("13222.35"), Decimal("13242.30")),
)


def test_that_an_earlier_demo_is_removed_is_no_part_of_what_programs_read(state: Path, monkeypatch, capsys) -> None:
    for name in ("CALENDAR_FIRST", "CALENDAR_LAST", "TODAY"):
        monkeypatch.delenv(f"PLATFORM_{name}")
    begin_demo(load_settings())
    remove_demo(set_clock(load_settings(), SECOND, SECOND))
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "Removed the earlier demo.\n")


@pytest.mark.parametrize("width", [40, 60, 100])
def test_the_story_cuts_no_name_number_or_command(width: int, monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    print_parts(story_parts(STORY))
    told = capsys.readouterr().out
    assert all(len(line) <= width for line in told.splitlines() if "platform-assets" not in line)
    assert "\N{HORIZONTAL ELLIPSIS}" not in told
    assert 'uv run platform-assets rollback --to 10 --reason "just trying"' in told
    told = " ".join(told.split())
    for text in (SILVER, GOLD, "13,222.35", "13,242.30", "+19.95", "Exactly these 2 days", "other 2 of 4"):
        assert text in told


def test_a_surprise_is_said_instead(monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    print_parts(story_parts(replace(STORY, compared=compare(BEFORE, {**AFTER, GOLD: BEFORE[GOLD]}, STALE))))
    told = capsys.readouterr().out
    assert (
        f"Not as promised: 1 day rewritten without being stale, or stale and not rewritten, for example {GOLD}" in told
    )
    assert "Exactly" not in told


def test_a_demo_that_did_nothing_says_so_and_nothing_else(capsys) -> None:
    print_parts(summary_parts([], [Phase("one correction", 0, {}, 0.1)], 1.0))
    told = capsys.readouterr().out
    assert "Nothing to do" in told
    assert "one correction" not in told


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

    undone = run("rollback", "--to", str(told["releases"]["before"]), "--reason", "just trying")
    assert undone.code == 0, undone.err
    assert _net(run) == before
    assert "Nothing to do" in run_apart("demo", "--days", "3").out
    fresh = run_apart("demo", "--days", "3", "--fresh", "--json")
    assert fresh.code == 0, fresh.err
    assert fresh.json["correction"]["net_sales"] == told["net_sales"]


def _net(run) -> Decimal:
    rows = run("read", GOLD, "--day", "2017-01-02", "--format", "json").out.splitlines()
    return sum((Decimal(json.loads(row)["net"]) for row in rows), Decimal(0))
