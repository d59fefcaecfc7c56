"""Failures as runs write them down, for tests of circuits that compute nothing."""

from __future__ import annotations

from datetime import UTC, date, datetime

from platform_assets.operations.opening import open_platform
from platform_assets.records.history import Hold
from platform_assets.records.refused import Attempt
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.products import DAY, SILVER, computed


def fail(settings: Settings, run: str, day: date = DAY, gate: str = "volume") -> None:
    """What a run writes down of a day that a gate refused, made from what is there now."""
    with open_platform(settings) as platform:
        refused = Attempt(computed(platform, SILVER)[day].fingerprint, platform.version(SILVER))
        reason = f"{SILVER} on {day}: no rows"
        platform.ledger.hold([Hold(SILVER, day, refused, gate, reason, run, datetime.now(UTC))])
