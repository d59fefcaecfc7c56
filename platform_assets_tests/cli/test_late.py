"""What waits is told as what it is: rows that came too late for whoever decides, rows far ahead for their day."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from platform_assets_tests.support.cli.commands import Run, run, state
from platform_assets_tests.support.cli.probe import PROBE
from platform_assets_tests.support.history import GOODS
from platform_assets_tests.support.prepared import Lakes
from platform_assets_tests.support.world import World, product

__all__ = ["run", "state"]
"""Fixtures of the command line."""

DECIDED = ("--reason", "a slip of the pen", "--by", "Zoë")


def late_and_ahead(lakes: Lakes) -> World:
    """One row a year late, one a year ahead, and one of the day after tomorrow, which the contract takes."""
    world = lakes.new(days=3, calendar_last=None, domains=GOODS)
    rows = [product(number, day, "MEAT") for number, day in enumerate(("2016-01-03", "2017-01-05", "2018-01-03"))]
    world.deliver_rows("products", "2017-01-03", "p.jsonl", rows)
    world.refresh()
    return world


@pytest.fixture
def world(state: Path, lakes: Lakes, monkeypatch: pytest.MonkeyPatch) -> World:
    """The installation that commands see, on the 3rd of January."""
    for name, value in {"CALENDAR_LAST": "", "TODAY": "2017-01-03", "DOMAINS": GOODS}.items():
        monkeypatch.setenv(f"PLATFORM_{name}", value)
    monkeypatch.setenv("COLUMNS", "250")
    return lakes.copy(state, late_and_ahead)


@pytest.mark.usefixtures("world")
def test_rows_are_listed_with_how_late_or_how_far_ahead_they_came(run: Run) -> None:
    shown = run("late", "list").out
    assert "366 days late" in shown
    assert "365 days ahead" in shown
    assert "1 row waits: late approve" in shown
    assert "1 row waits till the day comes" in shown
    states = {row["day"]: (row["state"], row["days_late"]) for row in run("late", "list", "--json").json}
    assert states == {"2016-01-03": ("waiting", 366), "2018-01-03": ("ahead", -365)}


@pytest.mark.usefixtures("world")
def test_what_waits_is_read_without_numpy() -> None:
    asked = subprocess.run([sys.executable, "-c", PROBE, "late", "list"], capture_output=True, text=True, timeout=120)
    assert "2018-01-03" in asked.stdout
    assert asked.stderr.splitlines()[-1].split() == ["imported", "duckdb"]


@pytest.mark.usefixtures("world")
def test_status_says_what_waits_for_whom_and_what_lies_outside_the_calendar(run: Run) -> None:
    shown = run("status").out
    assert "1 row waits for a decision" in shown
    assert "1 row waits for the day to come" in shown
    assert "raw.products has rows of 1 day that the calendar does not have, 2017-01-05" in shown


@pytest.mark.usefixtures("world")
def test_a_plan_names_the_days_that_have_come_and_a_person_keeps_their_rows_out(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "far ahead" not in run("refresh", "--explain").out
    monkeypatch.setenv("PLATFORM_TODAY", "2018-01-03")
    due = "1 day of which rows arrived far ahead (2018-01-03) to take first, since their day has come"
    assert due in run("refresh", "--explain").out
    monkeypatch.setenv("PLATFORM_TODAY", "2017-01-03")
    refused = run("late", "refuse", "--table", "raw.products", "--days", "2018-01-03", *DECIDED)
    assert refused.code == 0, refused.err
    monkeypatch.setenv("PLATFORM_TODAY", "2018-01-03")
    assert "far ahead" not in run("refresh", "--explain").out
