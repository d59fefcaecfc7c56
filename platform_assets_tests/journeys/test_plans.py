"""A plan by commands alone, killed wherever it can be: it goes on, and readers see in the end what they would have."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from platform_assets.failpoints import VARIABLE
from platform_assets_tests.support.cli.commands import Run, run, run_apart, state
from platform_assets_tests.support.prepared import Lakes
from platform_assets_tests.support.world import World, product, sale

DAYS = 6
DEATHS = (
    "stage.logged",
    "plan.staged",
    "plan.step_done",
    "stage.logged:2",
    "plan.step_done",
    "plan.publishing",
    "publish.after_table:2",
    "plan.published",
)
"""One after the other: each finds what the one before left."""
__all__ = ["run", "state"]
"""Fixtures of the command line."""


def six_days(lakes: Lakes) -> World:
    """Six days of sales, of one product."""
    world = lakes.new(days=DAYS)
    world.deliver_rows("products", "2017-01-01", "p.jsonl", [product(1, "2017-01-01", "GROCERY")])
    for number in range(1, DAYS + 1):
        day = f"2017-01-0{number}"
        world.deliver_rows("transactions", day, "t.jsonl", [sale(10 * number + n, 1, day) for n in range(3)])
    world.refresh()
    return world


@pytest.mark.proof
@pytest.mark.timeout(900)
def test_a_plan_goes_on_after_every_kill(
    run: Run, state: Path, lakes: Lakes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nine processes, each with a Spark of its own."""
    for name in ("CALENDAR_LAST", "TODAY"):
        monkeypatch.setenv(f"PLATFORM_{name}", f"2017-01-0{DAYS}")
    world = lakes.copy(state, six_days)
    before = world.digests()
    file = str(tmp_path / "plan.yaml")
    tables = ("silver.transactions", "gold.daily_sales")
    said = (*tables, "--reason", "all", "--by", "Zoë", "--out", file)
    written = run("backfill", "new", "again", *said, "--days", "2017-01-02..2017-01-05")
    assert written.code == 0, written.err
    assert run("backfill", "new", "again", *said, "--stale").code == 2
    explained = run("backfill", "explain", file, "--json").json
    assert [step["share"] for step in explained["rollout"]] == [10, 100]
    for point in DEATHS:
        dead = run_apart("backfill", "apply", file, **{VARIABLE: point})
        assert dead.code == -signal.SIGKILL, (point, dead.out, dead.err)
        assert world.digests() == before, "all that it makes is as it was"
    done = run_apart("backfill", "apply", file, "--json")
    assert (done.code, done.json["state"], done.json["hash"]) == (0, "published", explained["hash"]), done.err
    assert [event["what"] for event in done.json["events"]].count("100 % staged, gates passed") == 1
    assert run("status", "stages", "--json").json == []
    planned = [row for row in run("status", "recomputed", "--json").json if row["plan"] == "again"]
    assert len(planned) == 1, (planned, done.json["events"])
    report = run("backfill", "report", "again")
    assert "# Plan again: published" in report.out
    assert "| gold.daily_sales | 2017-01-05 |" in report.out
    undone = run("undo", "backfill:again", "--reason", "no need", "--by", "Zoë")
    assert undone.code == 0, undone.err
    assert "One new row in what such a day is made from ends the rollback" in undone.out
    assert run("undo", "backfill:again", "--reason", "no need", "--by", "Zoë").code == 3
    assert re.match(r"again published in release \d+ and rolled back:", run("status", "backfills").out)
    assert world.digests() == before
