"""A person on call decides about late rows and takes a bad delivery out, by commands alone; some of them are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from platform_assets.failpoints import VARIABLE
from platform_assets.records.decisions import LateDecision
from platform_assets_tests.support.cli.commands import PROBE, Run, run, state
from platform_assets_tests.support.history import CALENDAR_DAYS, TILLS, TODAY, History, Version, history
from platform_assets_tests.support.installation import FIRST, OWN_PROCESS
from platform_assets_tests.support.prepared import Lakes

__all__ = ["run", "state"]
"""Fixtures of the command line."""

FAILED = 3
REASON = ("--reason", "the till was offline", "--by", "Zoë")


def command(*args: str, failpoint: str = "") -> CompletedProcess[str]:
    """A command as a process of its own: one that starts Spark or dies, or of which the imports are looked at."""
    own = {"PLATFORM_SPARK_DRIVER_MEMORY": "1g", "PLATFORM_SPARK_CONF": OWN_PROCESS}
    if failpoint:
        own[VARIABLE] = failpoint
    started = [sys.executable, "-c", PROBE, *args]
    return subprocess.run(started, capture_output=True, text=True, env=os.environ | own, timeout=240)


def two_late_rows(lakes: Lakes) -> History:
    """Two lines, and a file with two late ones."""
    found = history(lakes.new)
    found.deliver("2017-01-02", "sold.jsonl", Version(1, 2, 0), Version(2, 3, 0))
    found.deliver("2017-04-10", "late.jsonl", Version(1, 3, 4, "4.00"), Version(3, 2, 4, "1234.50"))
    found.refresh()
    return found


@pytest.fixture
def story(state: Path, lakes: Lakes, monkeypatch: pytest.MonkeyPatch) -> History:
    """The installation that commands see."""
    named = {"CALENDAR_LAST": FIRST.replace(day=CALENDAR_DAYS), "TODAY": TODAY, "DOMAINS": TILLS}
    for name, value in named.items():
        monkeypatch.setenv(f"PLATFORM_{name}", str(value))
    monkeypatch.setenv("COLUMNS", "250")
    return lakes.copy(state, two_late_rows)


LATE = "transactions/2017-04-10/late.jsonl"


@pytest.mark.timeout(600)
@pytest.mark.proof
@pytest.mark.parametrize("failpoint", ["publish.after_manifest", "publish.after_table"])
def test_an_approval_killed_anywhere_and_repeated_takes_every_row_once(story: History, failpoint: str) -> None:
    """Two processes, each with a Spark of its own: one is killed."""
    dead = command("late", "approve", LATE, *REASON, failpoint=failpoint)
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    again = command("late", "approve", LATE, *REASON)
    assert again.returncode == (0 if failpoint == "publish.after_manifest" else FAILED), again.stderr
    if again.returncode:
        assert "waits in the late queue" in " ".join(again.stderr.split())
    story.refresh()
    assert story.kept() == story.expected()
    assert len([row for row in story.world.rows("raw.transactions") if row["_kind"] == "record"]) == 4
    with story.world.open() as platform:
        assert [decision.kind for decision in platform.ledger.decisions(LateDecision)] == ["approval", "approval"]


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_what_waits_is_listed_refused_and_a_delivery_withdrawn(run: Run, story: History) -> None:
    """The withdrawal is a process with a Spark of its own."""
    shown = command("status", "late")
    assert shown.returncode == 0, shown.stderr
    assert LATE in shown.stdout
    assert "1,234.50" in shown.stdout
    assert "2 rows wait" in shown.stdout
    assert not {"dagster", "pyspark", "py4j"} & set(shown.stderr.split())
    assert "2 rows wait for a decision" in run("status").out

    refused = run("late", "refuse", "raw.transactions", "--days", "2017-01-02", *REASON)
    assert refused.code == 0, refused.err
    [left] = run("status", "late", "raw.transactions", "--json").json
    assert (left["day"], left["days_late"], left["rows"]) == ("2017-01-03", 97, 1)
    assert "refused by Zoë: the till was offline" in run("status", "late", "--all").out

    gone = command("undo", "arrival:transactions/2017-01-02/sold.jsonl", "--reason", "wrong store")
    assert gone.returncode == 0, gone.stderr
    assert "2 rows" in gone.stdout
    story.refresh()
    assert story.kept() == set()
    why = run("why", "silver.transactions", "2017-01-02").out
    assert "file transactions/2017-01-02/sold.jsonl: 2 rows taken" in why
    assert "takes transactions/2017-01-02/sold.jsonl out again" in why
