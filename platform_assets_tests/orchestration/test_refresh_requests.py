"""When a run of `refresh` that failed is tried again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace

import dagster as dg
import pytest

from platform_assets.orchestration.automation.refresh_requests import pause_left_s

MINUTE, DAY = 60.0, 86_400.0


def tries(*ended_ago_s: float) -> Sequence[dg.RunRecord]:
    """Of the same work, newest first."""
    now = time.time()
    return [SimpleNamespace(end_time=now - ago, update_timestamp=datetime.now(UTC)) for ago in ended_ago_s]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("ended_ago_s", "left_s"),
    [
        ((), 0),
        ((0,), 5 * MINUTE),
        ((4 * MINUTE,), MINUTE),
        ((6 * MINUTE,), 0),
        ((0, 9 * MINUTE), 20 * MINUTE),
        ((0, 1, 2), 80 * MINUTE),
        ((0, *range(1, 9)), 360 * MINUTE),
    ],
)
def test_every_pause_is_four_times_the_last_one_up_to_six_hours(ended_ago_s: tuple[float, ...], left_s: float) -> None:
    assert pause_left_s(tries(*ended_ago_s)) == pytest.approx(left_s, abs=10)


def test_nobody_waits_for_a_clock_that_was_ahead_when_a_run_ended() -> None:
    assert pause_left_s(tries(-DAY)) == 0
    assert pause_left_s(tries(0, -DAY)) == pytest.approx(20 * MINUTE, abs=10), "by the try that ended by a true clock"
