"""How long a backfill will take yet."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from platform_assets.planning.backfill.standing import Standing


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
