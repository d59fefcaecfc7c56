"""When a run of `refresh` that failed is tried again, and what a run says that it is for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace

import dagster as dg
import pytest

from platform_assets.engine.pending import Waiting
from platform_assets.orchestration.automation.refresh_requests import WHY_TAG, describe, pause_left_s, request, work_of
from platform_assets.planning.circuit import Try
from platform_assets.planning.plan import Plan
from platform_assets.sources.landing import Problem

MINUTE, DAY = 60.0, 86_400.0
EMPTY_PLAN = Plan()


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


def stale_on(days: Sequence[date], *problems: Problem) -> Waiting:
    """Days of some tables to recompute, and files that nobody can take."""
    stale = {f"silver.table_{number}": dict.fromkeys(days, "mark") for number in range(9)}
    return Waiting({}, None, 0, (), problems, {}, {}, stale, EMPTY_PLAN, {})


def test_what_a_run_publishes_is_not_on_record_with_files_that_it_did_not_take() -> None:
    waits = stale_on([date(2017, 1, 1)], Problem("sales/notes.txt", "has the unknown ending '.txt'"))
    assert "notes.txt" in describe(waits)
    why = request(waits, "work", ()).tags[WHY_TAG]
    assert why.startswith("9 days stale (silver.table_0 2017-01-01")
    assert "notes.txt" not in why


def test_a_long_reason_says_that_it_goes_on() -> None:
    why = request(stale_on([date(2017, 1, 1) + timedelta(2 * day) for day in range(9)]), "work", ()).tags[WHY_TAG]
    assert (len(why), why[-1]) == (250, "…")


def test_a_try_of_a_circuit_waits_as_its_policy_says_and_not_for_the_pauses_of_runs_that_tried_it_before() -> None:
    def work(due: datetime) -> str:
        plan = Plan(tries={"silver.x": Try(date(2017, 1, 1), due)})
        return work_of(replace(stale_on([]), plan=plan), {})

    first, next_one = datetime(2017, 1, 2, 1, tzinfo=UTC), datetime(2017, 1, 2, 3, tzinfo=UTC)
    assert work(first) == work(first)
    assert work(first) != work(next_one)
