"""What others do while a process is at work, played in one process; and maintenance a year later."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import ModuleType

import pytest

from platform_assets.lakehouse.horizon import NO_CUT, Cut
from platform_assets.lakehouse.layout import Lake
from platform_assets.operations.deletion import Pins, Usage, usage


def once_at(monkeypatch: pytest.MonkeyPatch, module: ModuleType, point: str, others: Callable[[], object]) -> None:
    """Others do something the first time a module comes by a fail point; whatever they do passes it as well."""
    to_come = [others]

    def meanwhile(name: str) -> None:
        if name == point and to_come:
            to_come.pop()()

    monkeypatch.setattr(module, "failpoint", meanwhile)


A_YEAR = timedelta(days=365)
SHORT = timedelta(days=7)
"""A window that is over after a year in which nothing was published."""


def usage_later(lake: Lake, window: timedelta, pins: Pins, cut: Cut = NO_CUT) -> Usage:
    """As `usage` in a year, with the window no longer than a pause can count."""
    return usage(lake, min(window, SHORT), pins, now=datetime.now(UTC) + A_YEAR, cut=cut)
