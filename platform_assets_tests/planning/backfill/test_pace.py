"""What gates of a plan say, what a budget allows, when it may compute: by hand and against plain arithmetic."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.planning.backfill.pace import (
    Figures,
    Standing,
    judged,
    may_compute,
    nearly_spent,
    seconds_left,
    spent,
)
from platform_assets.planning.backfill.plan_file import Budget, Gate, Service


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


DAY = date(2017, 1, 1)


T = "gold.t"


def gate(tolerance: str, **fields: object) -> Gate:
    return Gate.model_validate({"table": T, "metric": "rows", "tolerance_percent": tolerance} | fields)


def figures(*rows: tuple[int, int], table: str = T) -> list[Figures]:
    return [
        Figures(
            table, date.fromordinal(DAY.toordinal() + n), pair, pair, {"paid": (Decimal(pair[0]), Decimal(pair[1]))}
        )
        for n, pair in enumerate(rows)
    ]


@given(st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 1000)), min_size=1, max_size=9), st.integers(0, 50))
def test_all_days_together_keep_a_tolerance(rows, tolerance):
    [verdict] = judged([gate(str(tolerance))], figures(*rows))
    before, after = sum(pair[0] for pair in rows), sum(pair[1] for pair in rows)
    assert verdict.passed == (abs(after - before) * 100 <= tolerance * before)


def test_no_digit_of_a_sum_is_rounded_away_before_it_is_judged() -> None:
    sums = Decimal("123456789012.000000000000000000"), Decimal("123456789012.000000000000000001")
    [verdict] = judged([gate("0", metric="sum", column="paid")], [Figures(T, DAY, (1, 1), (1, 1), {"paid": sums})])
    assert not verdict.passed


@pytest.mark.parametrize(("each_day", "passed"), [(False, True), (True, False)])
def test_a_day_that_is_far_off_counts_by_itself_only_where_that_is_asked_for(each_day, passed):
    [verdict] = judged([gate("5", each_day=each_day)], figures((100, 150), (1000, 951)))
    assert verdict.passed is passed
    assert verdict.worst[0] == "2017-01-01: 100 before, 150 after, 50.00 % apart"
    assert "1,100 before and 1,101 after, 0.09 % apart" in verdict.sentence


def test_sums_are_of_their_column_and_days_the_release_does_not_have_say_nothing():
    by_sum = gate("0", metric="sum", column="paid")
    assert "sum of paid of 1 staged day 3 before" in judged([by_sum], figures((3, 7)))[0].sentence
    assert judged([by_sum], figures((0, 7))) == ()
    assert judged([by_sum], figures((5, 5), table="gold.other")) == ()
    assert [verdict.passed for verdict in judged([by_sum, gate("0")], figures((5, 6), (0, 9)))] == [False, False]


def compared(changed: int, shift: float, nulls: tuple[int, int] = (0, 0), day: int = 0) -> Figures:
    """Of a day of ten keys."""
    its_day = date.fromordinal(DAY.toordinal() + day)
    return Figures(T, its_day, (10, 10), (10, 10), {}, changed, {"paid": nulls}, {"paid": shift})


def test_changed_keys_are_a_share_of_what_there_was():
    days = [compared(1, 0), compared(4, 0, day=1)]
    [verdict] = judged([gate("25", metric="changed")], days)
    assert verdict.passed
    assert verdict.sentence == f"{T}: changed keys of 2 staged days, 25.00 % are others; 25 % allowed"
    [verdict] = judged([gate("25", metric="changed", each_day=True)], days)
    assert not verdict.passed
    assert verdict.worst[0] == "2017-01-02: 40.00 % are others"
    assert judged([gate("0", metric="changed")], [compared(0, 0)])[0].passed


def test_nulls_are_counted_and_values_weigh_by_how_many_there_were():
    of_nulls, of_values = (gate("0", metric=metric, column="paid") for metric in ("nulls", "distribution"))
    more, fewer = compared(0, 50.0, (5, 5)), compared(0, 20.0, (0, 1), day=1)
    nulls, values = judged([of_nulls, of_values], [more, fewer])
    assert "nulls of paid of 2 staged days 5 before and 6 after, 20.00 % apart" in nulls.sentence
    assert "distribution of paid of 2 staged days, 30.00 % apart" in values.sentence, "5 values by half, 10 by a fifth"
    assert not nulls.passed
    assert not values.passed


def test_values_of_a_column_that_had_none_are_others():
    of_values = gate("50", metric="distribution", column="paid", each_day=True)
    filled, as_it_was = compared(0, 100.0, (10, 4)), compared(0, 0.0, day=1)
    [verdict] = judged([of_values], [filled])
    assert (verdict.passed, verdict.worst) == (False, ("2017-01-01: 100.00 % apart",))
    [verdict] = judged([of_values], [filled, as_it_was])
    assert (verdict.passed, verdict.worst) == (False, ("2017-01-01: 100.00 % apart",))
    assert "60.00 % apart" in verdict.sentence, "6 values where there were 10"
    assert judged([of_values], [compared(0, 0.0, (10, 10))])[0].passed, "none before and none after"


@pytest.mark.parametrize("fields", [{"metric": "nulls"}, {"metric": "changed", "column": "paid"}])
def test_a_metric_of_a_column_has_one_and_no_other_has(fields):
    with pytest.raises(ValueError, match="column"):
        gate("0", **fields)
