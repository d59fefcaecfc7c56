"""`erase` on the command line: what it would do, asks for, and refuses; without Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from platform_assets.lakehouse.layout import Lake
from platform_assets_tests.support.cli.commands import PROBE, Run, Said
from platform_assets_tests.support.prepared import Lakes
from platform_assets_tests.support.visits import DOMAIN, WHO, Visits, files_with, loaded

KEY = ("--key", f"person={WHO}")
WHY = ("--reason", "request 17", "--by", "Zoë")


@pytest.fixture
def visits(state: Path, lakes: Lakes, monkeypatch: pytest.MonkeyPatch) -> Visits:
    """The installation that commands see."""
    monkeypatch.setenv("PLATFORM_DOMAINS", DOMAIN)
    monkeypatch.setenv("PLATFORM_CALENDAR_LAST", "2017-01-04")
    monkeypatch.setenv("PLATFORM_TODAY", "2017-01-04")
    return lakes.copy(state, loaded, True)


def untouched(visits: Visits, said: Said, code: int) -> str:
    """What was said, by which nothing was changed and the value not repeated."""
    assert said.code == code, said.out + said.err
    assert files_with(Lake.at(visits.world.settings.lake)) != set()
    assert str(WHO) not in said.out + said.err
    return " ".join((said.out + said.err).split())


def test_a_dry_run_shows_tables_days_rows_and_what_stays(run: Run, visits: Visits) -> None:
    run("release", "pin", "1", "--reason", "the quarter")
    shown = run("erase", "raw.visits", *KEY, "--dry-run", "--json").json
    assert shown["dry_run"]
    assert shown["rows"]["raw.visits"] == {"2017-01-01": 2, "2017-01-02": 3}
    assert shown["rows"]["refused.visits"] == {"2017-01-03": 2}
    assert (shown["before"], shown["pins"], shown["older"]) == (shown["before"], [1], {})
    told = untouched(visits, run("erase", "silver.visits", *KEY, "--dry-run"), 0)
    assert "Looked into raw.visits, late.visits, refused.visits, silver.visits, quarantine.visits, gold" in told
    assert "could not be read any more, pinned ones (1) among them. Nothing was changed" in told
    assert "logs and manifests of raw.visits: the value is the smallest or greatest of" in told
    assert "generations of backups from before" in told


@pytest.mark.usefixtures("visits")
def test_a_dry_run_needs_neither_dagster_nor_spark() -> None:
    command = [sys.executable, "-c", PROBE, "erase", "raw.visits", *KEY, "--dry-run"]
    ended = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert not {"dagster", "pyspark", "py4j"} & set(ended.stderr.splitlines()[-1].split())


def test_what_cannot_be_erased_is_told_without_the_value(run: Run, visits: Visits) -> None:
    cases = (
        (("raw.visits", *KEY, *WHY), 2, "cannot be undone, and cuts the history of all tables"),
        (("raw.visits", *KEY, "--yes"), 2, "A decision needs --reason"),
        (("raw.visits", *WHY, "--yes"), 2, "Say whose rows are to be erased"),
        (("raw.visits", "--key", "person", *WHY, "--yes"), 2, "--key is not FIELD=VALUE"),
        (("raw.visit", *KEY, *WHY, "--yes"), 2, "Did you mean raw.visits?"),
        (("raw.visits", "--key", "persn=1", *WHY, "--yes"), 3, "Did you mean person?"),
        (("raw.visits", *KEY, "--also", "guest", *WHY, "--yes"), 2, "'guest' is not TABLE.FIELD"),
        (("raw.visits", "--key", "person=99", *WHY, "--yes"), 3, "No row has this key: looked into every file of raw"),
        (("raw.visits", *KEY, "--lift", *WHY), 3, "Nothing with this key was erased from raw.visits"),
    )
    for args, code, says in cases:
        assert says in untouched(visits, run("erase", *args), code), args
    named = run("erase", "raw.visits", *KEY, "--reason", f"for {WHO}.", "--by", "zoe", "--yes")
    assert "The reason names the value" in untouched(visits, named, 3)
