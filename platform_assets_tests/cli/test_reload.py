"""`reload` on the command line: what it would do, did, and needs. No Spark: no file is there to be taken."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from platform_assets.failpoints import VARIABLE
from platform_assets_tests.support.cli.commands import TABLE, Run
from platform_assets_tests.support.cli.probe import PROBE

RAW = "raw.transactions"


@pytest.mark.usefixtures("published")
def test_a_dry_run_shows_and_a_reload_does(run: Run) -> None:
    before = run("reload", RAW, "--dry-run")
    assert before.code == 0, before.err
    assert TABLE in before.out
    assert "release 1 would still show them. Nothing was changed" in before.out
    assert run("releases", "--json").json[0]["release"] == 1
    done = run("reload", RAW, "--reason", "the week [/b] was misspelt", "--by", "Zoë", "--json")
    assert done.code == 0, done.err
    assert done.json["days"] == {TABLE: ["2017-01-01", "2017-01-02"]}
    assert (done.json["before"], done.json["release"], done.json["taken"]) == (1, 2, {"arrivals": [], "days": []})
    [newest, *_] = run("releases", "--json").json
    assert (newest["kind"], newest["who"], newest["why"]) == ("reload", "Zoë", "the week [/b] was misspelt")
    assert "reload" in run("release", "show").out
    assert "reload" in run("audit", "show", TABLE, "2017-01-01").out
    assert run("read", TABLE, "--json").json["rows"] == []
    assert "lacks the column" not in run("status").out


@pytest.mark.usefixtures("published")
@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        ([RAW], 2, "needs --reason"),
        ([TABLE, "--dry-run"], 3, f"refresh {TABLE} --force"),
        (["raw.transaction", "--dry-run"], 2, RAW),
        (["raw.products", "--dry-run"], 3, "Nothing was taken for raw.products yet"),
    ],
)
def test_what_cannot_be_reloaded_is_told(run: Run, args: list[str], code: int, says: str) -> None:
    said = run("reload", *args)
    assert (said.code, says in said.err) == (code, True), said.err


@pytest.mark.proof
@pytest.mark.usefixtures("published")
@pytest.mark.parametrize(
    "point",
    ["publish.written", "publish.checked", "replace.after_commit", "publish.after_table", "ledger.before_record"],
)
def test_killed_anywhere_it_is_done_whole_or_not_at_all(run: Run, point: str) -> None:
    """Five processes that die, each in an installation of its own."""
    command = [
        sys.executable,
        "-c",
        PROBE,
        "reload",
        RAW,
        "--reason",
        "the week was misspelt",
        "--by",
        "zoe",
    ]
    died = subprocess.run(command, env=os.environ | {VARIABLE: point}, capture_output=True, text=True, timeout=120)
    assert died.returncode == -9, died.stderr
    assert run("recover").code == 0
    newest, *_ = run("releases", "--json").json
    days = {row["event_date"] for row in run("read", TABLE, "--json").json["rows"]}
    refused = "lacks the column" in run("status").out
    is_done = point not in ("publish.written", "publish.checked")
    assert (newest["kind"] == "reload", days == set(), not refused) == (is_done,) * 3
    again = run("reload", RAW, "--reason", "once more", "--by", "zoe")
    assert again.code == (3 if is_done else 0), again.err
