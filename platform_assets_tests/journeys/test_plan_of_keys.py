"""A plan of some keys by commands alone, killed wherever it can be: what it leaves alone is never seen to change."""

from __future__ import annotations

import signal
from datetime import date
from pathlib import Path

import pytest

from platform_assets.engine.refresh import refresh
from platform_assets.failpoints import VARIABLE
from platform_assets.planning.selection import Request
from platform_assets_tests.support.cli.commands import Run, run, run_apart, state
from platform_assets_tests.support.prepared import Lakes
from platform_assets_tests.support.registers import DAYS, DOMAIN, GOLDS, Line, five_stores
from platform_assets_tests.support.stores import author

DEATHS = (
    "stage.logged",
    "stage.logged:2",
    "gate.decided",
    "plan.staged",
    "plan.step_done:2",
    "plan.publishing",
    "publish.after_table:2",
    "plan.published",
)
"""One after the other. A job of days writes two logs: of what is computed, and with what is carried over."""
ODD = 'x"y'
__all__ = ["run", "state"]
"""Fixtures of the command line."""


@pytest.mark.proof
@pytest.mark.timeout(1200)
def test_a_plan_of_keys_goes_on_after_every_kill_and_is_undone(
    run: Run, state: Path, lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"DOMAINS": DOMAIN, "CALENDAR_LAST": str(DAYS[-1]), "TODAY": "2017-07-01"}.items():
        monkeypatch.setenv(f"PLATFORM_{name}", value)
    found = lakes.copy(state, five_stores)
    found.deliver(Line(131, 1, ODD, amount=9), Line(101, 1, "A", amount=9), Line(242, 2, ODD, voided=True))
    with found.world.open() as platform:
        request = Request(frozenset(["silver.lines"]), by_person=True)
        refresh(platform, lambda: found.world.spark, author(), request=request)
    before = _golds(found.world.digests())
    tables = [part for table in GOLDS for part in ("--table", table)]
    days = ("--days", f"{DAYS[0]}..{DAYS[-1]}", "--only", 'store="x""y"')
    written = run("plan", "new", "keys", *tables, *days, "--reason", "set up wrong", "--by", "Zoë")
    assert written.code == 0, written.err
    [file] = state.with_name("plans").glob("keys.yaml")
    explained = run("plan", "explain", str(file))
    assert explained.code == 0, explained.err
    for point in DEATHS:
        dead = run_apart("plan", "apply", str(file), **{VARIABLE: point})
        assert dead.code == -signal.SIGKILL, (point, dead.out, dead.err)
        if point != DEATHS[-1]:
            assert _golds(found.world.digests()) == before, point
    done = run_apart("plan", "apply", str(file), "--json")
    assert (done.code, done.json["state"]) == (0, "published"), done.err
    found.now_true(GOLDS, DAYS, [ODD])
    found.check()
    undone = run("plan", "rollback", "keys", "--reason", "no need", "--by", "Zoë")
    assert undone.code == 0, undone.err
    assert _golds(found.world.digests()) == before


def _golds(digests: dict[str, dict[date, str]]) -> dict[str, dict[date, str]]:
    return {table: digests[table] for table in GOLDS}
