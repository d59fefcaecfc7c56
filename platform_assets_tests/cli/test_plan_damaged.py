"""`plan status` where some records cannot be read: the others are shown, and these are named with what to do."""

from __future__ import annotations

import json
from pathlib import Path

from platform_assets_tests.support.cli.commands import Run

FILE = {"name": "good", "reason": "a", "owner": "ada", "tables": ["gold.daily_sales"], "days": {"stale": True}}
RECORD = {"name": "good", "hash": "25ae4916c48caffb", "file": FILE, "steps": [], "state": "cancelled"}


def test_a_record_that_cannot_be_read_hides_no_other(run: Run, state: Path) -> None:
    run("plan", "status")
    folder = state / "lake" / "_plans"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "good.json").write_text(json.dumps(RECORD))
    (folder / "newer.json").write_text(json.dumps(RECORD | {"name": "newer", "waves": 3}))
    (folder / "torn.json").write_text(json.dumps(RECORD)[:40])
    said = run("plan", "status")
    assert said.code == 1, said.err
    out = " ".join(said.out.split())
    assert "good cancelled" in out
    assert "The record of the plan torn is damaged" in out
    assert "stage drop plan-torn" in out
    assert "newer is of a newer version of the platform" in out
    assert "waves" in out
    good, *damaged = run("plan", "status", "--json").json
    assert good["name"] == "good"
    assert [set(one) for one in damaged] == [{"damaged", "do"}] * 2
    assert run("plan", "status", "good").code == 0
    assert run("plan", "status", "torn").code == 3
