"""How much of a backfill is done at once, and when it has to stop: never beyond the file's bounds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.planning.backfill.pace import UNBOUNDED, Pace, Seen, may_compute, nearly_spent, seconds_left, spent
from platform_assets.planning.backfill.plan_file import Budget, Service

HEALTHY = st.builds(Seen, st.just("gold.a"), st.integers(0, 400), st.floats(0.1, 1e4))
STRAINED = st.builds(
    Seen,
    st.just("gold.a"),
    st.integers(1, 400),
    st.floats(0.1, 1e4),
    st.booleans(),
    st.integers(0, 1 << 40),
    st.floats(0, 1),
)


@given(most=st.integers(1, 1000), before=st.integers(-5, 2000), jobs=st.lists(HEALTHY | STRAINED, max_size=40))
def test_a_job_never_has_more_days_than_the_file_allows_nor_none(most: int, before: int, jobs: list[Seen]) -> None:
    pace = Pace.of(most, before)
    for job in jobs:
        assert 1 <= pace.days <= most
        pace = pace.after(job)
    assert 1 <= pace.days <= most


@given(most=st.integers(1, 1000), job=STRAINED.filter(lambda job: job.failed or job.spilled_bytes > 0))
def test_what_was_too_much_is_halved_at_once(most: int, job: Seen) -> None:
    pace = Pace.of(most)
    after = pace.after(job)
    assert after.days == max(min(most, job.days) // 2, 1)
    assert pace.strain(job)
    assert after.best == pace.best, "the speed of a job that failed is no measure"


@given(most=st.integers(1, 1000), start=st.integers(1, 1000))
def test_a_pace_that_was_lowered_grows_back_by_equal_steps_and_no_further(most: int, start: int) -> None:
    pace = Pace.of(most, start)
    seen = [pace.days]
    for _ in range(1000):
        pace = pace.after(Seen("gold.a", pace.days, float(pace.days)))
        seen.append(pace.days)
    steps = {b - a for a, b in pairwise(seen) if b < most}
    assert seen[-1] == most
    assert len(steps) <= 1
    assert all(a <= b for a, b in pairwise(seen))


@given(knee=st.integers(2, 200), most=st.integers(1, 400))
def test_it_settles_around_what_the_machine_can_take(knee: int, most: int) -> None:
    """A machine that spills above some days a job: half of all jobs and more stay below, and none is far above."""
    pace = Pace.of(most)
    days: list[int] = []
    for _ in range(400):
        days.append(pace.days)
        pace = pace.after(Seen("gold.a", pace.days, float(pace.days), spilled_bytes=int(pace.days > knee)))
    late = days[200:]
    step = max(min(most, 90) // 8, 1)
    assert max(late) <= max(knee + step, 1)
    assert sum(late) / len(late) >= min(most, knee) / 4


def test_days_that_take_twice_as_long_as_at_best_are_too_many_at_once() -> None:
    pace = Pace.of(64).after(Seen("gold.a", 64, 64.0))
    assert pace.after(Seen("gold.a", 64, 130.0)).days == 32
    assert pace.after(Seen("gold.a", 1, 130.0)).days == 64, "a single day has its job's start alone"
    assert pace.after(Seen("gold.b", 64, 900.0)).days == 64, "another table has another measure"
    assert "a day took 2.0 s, 1.0 s at best" in pace.strain(Seen("gold.a", 64, 130.0))


def test_without_a_bound_the_first_strain_halves_what_the_job_had() -> None:
    pace = Pace.of(None)
    assert pace.days == UNBOUNDED
    slower = pace.after(Seen("gold.a", 90, 9.0, full_share=0.9))
    assert slower.days == 45
    assert slower.after(Seen("gold.a", 45, 4.0)).days == 56
    assert pace.after(Seen("gold.a", 0, 9.0, failed=True)) == pace, "a job of no day says nothing"


def test_a_budget_warns_at_four_fifths_with_the_same_words_and_stops_at_all_of_it() -> None:
    budget = Budget.model_validate({"bytes": 1000, "minutes": 10, "money": 2, "price_per_core_hour": 6})
    assert nearly_spent(budget, 479, 799, 2) == ()
    assert nearly_spent(budget, 480, 800, 2) == (
        "80 % of the budget of 1,000 bytes are used",
        "80 % of the budget of 10 minutes are used",
        "80 % of the budget of 2 money are used",
    )
    assert nearly_spent(budget, 599, 801, None) == nearly_spent(budget, 480, 800, None)
    assert spent(budget, 599, 999, 2) == ""
    assert spent(budget, 600, 999, 2) == "the budget of 10 minutes is used up (10.00)"
    assert spent(budget, 599, 1000, 2) == "the budget of 1,000 bytes is used up (1,000.00)"
    assert nearly_spent(budget, 601, 1001, None) == ()
    assert spent(Budget(), 1e9, 1 << 60, 2) == ""


@pytest.mark.parametrize(
    ("hours", "at", "may"),
    [
        (None, "12:00", True),
        ("08:00-10:00", "08:00", True),
        ("08:00-10:00", "10:00", False),
        ("20:00-05:30", "23:59", True),
        ("20:00-05:30", "05:29", True),
        ("20:00-05:30", "05:30", False),
    ],
)
def test_hours_may_reach_over_midnight_and_their_end_is_outside(hours: str | None, at: str, may: bool) -> None:
    moment = datetime.fromisoformat(f"2017-01-01T{at}").replace(tzinfo=UTC)
    assert may_compute(Service(hours=hours), moment) is may


HOURS = st.one_of(
    st.none(),
    st.tuples(st.integers(0, 1439), st.integers(0, 1439))
    .filter(lambda ends: ends[0] != ends[1])
    .map(lambda ends: "-".join(f"{end // 60:02}:{end % 60:02}" for end in ends)),
)


@given(hours=HOURS, start=st.integers(0, 1439), minutes=st.integers(-100, 5000))
def test_the_time_that_is_left_is_every_minute_in_which_it_may_compute(
    hours: str | None, start: int, minutes: int
) -> None:
    now = datetime(2017, 3, 1, tzinfo=UTC) + timedelta(minutes=start)
    service = Service(hours=hours, until=f"{now + timedelta(minutes=minutes):%Y-%m-%d %H:%M}")
    theirs = sum(may_compute(service, now + timedelta(minutes=minute)) for minute in range(minutes))
    assert seconds_left(service, now) == 60 * theirs


def test_without_an_end_or_with_one_far_away_there_is_always_time() -> None:
    now = datetime(2017, 3, 1, tzinfo=UTC)
    assert seconds_left(Service(hours="20:00-05:30"), now) is None
    far = seconds_left(Service(hours="20:00-05:30", until="9999-12-31 23:59"), now)
    assert far is not None
    assert far > 365 * 9 * 3600
