"""When a backfill has to stop: never beyond the bounds of its file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.planning.backfill.pace import Standing, may_compute, nearly_spent, seconds_left, spent
from platform_assets.planning.backfill.plan_file import Budget, Service


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


def test_what_is_left_is_what_was_explained_at_first_and_what_it_went_like_in_the_end() -> None:
    assert Standing(0, 100, 0.0, 60.0, 0).seconds_left == 60.0
    assert Standing(0, 100, 80.0, 60.0, 0).seconds_left == 0.0
    half = Standing(50, 100, 100.0, 60.0, 0)
    assert half.seconds_left == 50.0, "half of the hundred seconds by its rate; by what was explained none are left"
    assert half.days_per_minute == 30.0
    assert Standing(100, 100, 100.0, 60.0, 0).seconds_left == 0.0
    assert Standing(0, 0, 0.0, 0.0, 0).seconds_left == 0.0


@given(st.integers(0, 1000), st.integers(0, 1000), st.floats(0, 1e6), st.floats(0, 1e6))
def test_it_is_never_less_than_nothing(done: int, more: int, seconds: float, explained: float) -> None:
    assert Standing(done, done + more, seconds, explained, 0).seconds_left >= 0


def test_days_that_need_nothing_are_not_counted_as_staged() -> None:
    now = Standing(50, 100, 100.0, 60.0, 0, left_alone=20)
    assert (now.done, now.staged) == (50, 30)
