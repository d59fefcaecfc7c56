"""A table that its domain declares no more: readers keep what it has, and nobody is asked to do anything about it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from platform_assets.contracts import UnknownTableError
from platform_assets.engine.late.withdrawals import withdraw
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes
from platform_assets.operations.lineage.held_days import held_days
from platform_assets.operations.opening import open_platform
from platform_assets.records.history import Hold
from platform_assets.records.manifest import Arrival, new_publication
from platform_assets.records.refused import Attempt
from platform_assets.settings import load_settings
from platform_assets_tests.support.cli.commands import Run, run, state
from platform_assets_tests.support.days_on_paper import publish
from platform_assets_tests.support.history import DAILY, GOODS, no_session

TWO_RAWS = "platform_assets_tests.support.domains.two_raws"
DAY, TABLE = date(2017, 1, 1), "silver.transactions"
DATES = {"calendar_first": DAY, "calendar_last": DAY, "today": DAY}
FILE = "transactions/2017-01-01/a.csv"

__all__ = ["run", "state"]
"""Fixtures of the command line."""


def taken(platform: Platform, *tables: str, reason: str | None = None) -> None:
    """One file without rows as several raw tables took or refused it."""
    what = {"path": FILE, "arrival_date": DAY, "size": 1, "sha256": "0" * 64, "modified_ns": 1, "reason": reason}
    arrivals = [Arrival(table=table, **what) for table in tables]
    publish_changes(platform, new_publication(), "ingest", [], Author("r", "a test"), arrivals)


def test_a_held_day_of_it_is_told_no_more_and_again_once_it_is_back(tmp_path: Path) -> None:
    """No command could lift its hold: whatever takes a table knows no such table."""
    with_it = load_settings(state=tmp_path / "state", domains=DAILY, **DATES)
    without = load_settings(state=tmp_path / "state", domains=GOODS, **DATES)
    with open_platform(with_it) as platform:
        publish(platform, "raw.transactions", [DAY], 1)
        mark = Attempt("of other rows", platform.version(TABLE))
        platform.ledger.hold([Hold(TABLE, DAY, mark, "volume", "too few rows", "r", datetime.now(UTC))])
    for settings, told in ((with_it, [DAY]), (without, []), (with_it, [DAY])):
        with open_platform(settings) as platform:
            assert [held.hold.day for held in held_days(platform, platform.ledger.holds())] == told


def test_a_file_that_only_it_refused_is_told_no_more(run: Run, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_platform(load_settings()) as platform:
        taken(platform, "raw.transactions", reason="is empty")
    assert [file["path"] for file in run("status", "--json").json["refused_files"]] == [FILE]
    monkeypatch.setenv("PLATFORM_DOMAINS", GOODS)
    assert run("status", "--json").json["refused_files"] == []


def test_a_file_that_it_had_taken_is_withdrawn_from_those_that_are_left(tmp_path: Path) -> None:
    with open_platform(load_settings(state=tmp_path / "state", domains=TWO_RAWS, **DATES)) as platform:
        taken(platform, "raw.receipts", "raw.transactions")
    with open_platform(load_settings(state=tmp_path / "state", domains=DAILY, **DATES)) as platform:
        [done] = withdraw(platform, no_session, [FILE], Author("r", "a mistake"))
        assert done.table == "raw.transactions"
    with (
        open_platform(load_settings(state=tmp_path / "state", domains=DAILY, **DATES)) as platform,
        pytest.raises(UnknownTableError, match=r"raw\.receipts"),
    ):
        withdraw(platform, no_session, [FILE], Author("r", "a mistake"))
