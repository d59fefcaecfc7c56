"""What gates of a plan say, what a budget allows, when it may compute: by hand and against plain arithmetic."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.planning.backfill.plan_file import Gate
from platform_assets.planning.backfill.verdicts import Figures, judged

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
