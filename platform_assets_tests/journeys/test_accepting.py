"""A day that is right, only unusual: held, looked at, and accepted on the command line."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from platform_assets_tests.support.cli.commands import Run, run, run_apart, state
from platform_assets_tests.support.history import TILLS
from platform_assets_tests.support.prepared import Lakes
from platform_assets_tests.support.world import World, sale

KNOWN, LINES = 16, 10
TABLE, QUIET_DAY = "silver.transactions", date(2017, 1, 18)
RAW_AND_SILVER = ("raw.transactions", TABLE)

__all__ = ["run", "state"]
"""Fixtures of the command line."""


def sixteen_days_and_an_empty_one(lakes: Lakes) -> World:
    """Days that are all alike, and one without a row, which volume holds."""
    world = lakes.new(days=20, domains=TILLS)
    days = [date(2017, 1, number) for number in range(1, KNOWN + 1)]
    for day in days:
        rows = [sale(100 * day.day + n, 1, str(day)) for n in range(LINES)]
        world.deliver_rows("transactions", str(day), "a.jsonl", rows)
    world.recompute(RAW_AND_SILVER, days)
    world.deliver_rows("transactions", str(QUIET_DAY), "a.jsonl", [])
    world.recompute(RAW_AND_SILVER, [QUIET_DAY])
    return world


@pytest.mark.proof
def test_a_held_day_is_accepted_by_name_and_for_a_reason(
    run: Run, state: Path, lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the acceptance starts a Spark, of its own."""
    last = "2017-01-20"
    for name, value in {"CALENDAR_LAST": last, "TODAY": last, "DOMAINS": TILLS}.items():
        monkeypatch.setenv(f"PLATFORM_{name}", value)
    world = lakes.copy(state, sixteen_days_and_an_empty_one)
    asked = ("accept", TABLE, "--days", str(QUIET_DAY))

    said = run(*asked, "--dry-run")
    assert said.code == 0, said.err
    assert f"would be accepted {TABLE} {QUIET_DAY}, held by volume: too few rows" in said.out
    assert "nothing was done" in said.out
    with world.open() as platform:
        assert [hold.day for hold in platform.ledger.holds()] == [QUIET_DAY]
    said = run("accept", TABLE, "--days", f"2017-01-16..{QUIET_DAY}", "--dry-run")
    assert said.code == 3
    assert f"{TABLE} 2017-01-16 is not held" in said.err

    said = run_apart(*asked, "--reason", "stocktaking", "--by", "Zoë", "--json")
    assert said.code == 0, said.err
    done = said.json
    assert done["checks"] == ["volume"]
    assert done["published"] == [str(QUIET_DAY)]
    assert done["not_published"] == {}
    with world.open() as platform:
        assert platform.ledger.holds() == ()
        [record] = platform.ledger.current_days(TABLE, among=[QUIET_DAY]).values()
        assert record.figures["accepted_volume"] == 1
    said = run("audit", "show", TABLE, str(QUIET_DAY))
    assert re.search(r"by Zoë \(\S+ on \S+\): stocktaking", said.out)
    assert "accepted by hand: what volume found" in said.out
    assert run(*asked, "--dry-run").code == 3
