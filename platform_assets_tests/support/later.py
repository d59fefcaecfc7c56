"""Maintenance at a time when nothing is in the rollback window any more but what is shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from platform_assets.lakehouse.horizon import NO_CUT, Cut
from platform_assets.lakehouse.layout import Lake
from platform_assets.operations.maintenance.deletion import Pins, Usage, usage

A_YEAR = timedelta(days=365)
SHORT = timedelta(days=7)
"""A window that is over after a year in which nothing was published."""


def usage_later(lake: Lake, window: timedelta, pins: Pins, cut: Cut = NO_CUT) -> Usage:
    """As `usage` in a year, with the window no longer than a pause can count."""
    return usage(lake, min(window, SHORT), pins, now=datetime.now(UTC) + A_YEAR, cut=cut)
