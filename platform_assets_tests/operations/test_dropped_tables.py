"""A table that its domain declares no more: readers keep what it has, and nobody is asked to do anything about it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

from platform_assets.operations.lineage.held_days import held_days
from platform_assets.operations.opening import open_platform
from platform_assets.records.history import Hold
from platform_assets.records.refused import Attempt
from platform_assets.settings import load_settings
from platform_assets_tests.support.days_on_paper import publish
from platform_assets_tests.support.history import DAILY

GOODS = "platform_assets_tests.support.domains.goods"
DAY, TABLE = date(2017, 1, 1), "silver.transactions"


def test_a_held_day_of_it_is_told_no_more_and_again_once_it_is_back(tmp_path: Path) -> None:
    """No command could lift its hold: whatever takes a table knows no such table."""
    dates = {"calendar_first": DAY, "calendar_last": DAY, "today": DAY}
    with_it = load_settings(state=tmp_path / "state", domains=DAILY, **dates)
    without = load_settings(state=tmp_path / "state", domains=GOODS, **dates)
    with open_platform(with_it) as platform:
        publish(platform, "raw.transactions", [DAY], 1)
        mark = Attempt("of other rows", platform.version(TABLE))
        platform.ledger.hold([Hold(TABLE, DAY, mark, "volume", "too few rows", "r", datetime.now(UTC))])
    for settings, told in ((with_it, [DAY]), (without, []), (with_it, [DAY])):
        with open_platform(settings) as platform:
            assert [held.hold.day for held in held_days(platform, platform.ledger.holds())] == told
