"""Windows mean the same in both directions, for any day and any window."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from platform_assets.contracts import AllHistory, AsOf, MonthToDate, Span
from platform_assets.planning.windows import (
    Calendar,
    day_range,
    days_before_calendar,
    days_later,
    days_reached,
    days_read,
    ranges,
    union_read,
    within_reach,
)

CALENDAR = Calendar(date(2017, 1, 1), date(2018, 1, 1))
windows = st.one_of(
    st.builds(Span, st.integers(0, 40), st.integers(0, 40)),
    st.sampled_from([MonthToDate(), AsOf(), AllHistory()]),
)
days = st.dates(CALENDAR.first, CALENDAR.last)


@given(windows, days, days)
def test_a_day_is_reached_by_exactly_the_days_it_reads(window, output, source):
    start, end = days_read(window, output, CALENDAR)
    first, last = days_reached(window, source, CALENDAR)
    assert (start <= source <= end) == (first <= output <= last)


@given(windows, st.sets(days, max_size=20))
def test_the_days_read_together_are_those_read_alone(window, outputs):
    together = {day for span in union_read(window, outputs, CALENDAR) for day in day_range(*span)}
    alone = {day for output in outputs for day in day_range(*days_read(window, output, CALENDAR))}
    assert together == alone


@given(windows, days)
def test_no_window_leaves_the_calendar(window, day):
    for start, end in (days_read(window, day, CALENDAR), days_reached(window, day, CALENDAR)):
        assert start in CALENDAR
        assert end in CALENDAR


@given(st.sets(days))
def test_ranges_hold_every_day_once_and_do_not_touch(some):
    found = ranges(some)
    assert [day for span in found for day in day_range(*span)] == sorted(some)
    assert all(b[0] - a[1] > timedelta(days=1) for a, b in pairwise(found))


@given(windows, days)
def test_what_the_calendar_cuts_off_is_what_a_longer_one_would_have(window, day):
    longer = Calendar(CALENDAR.first - timedelta(days=60), CALENDAR.last)
    start, _ = days_read(window, day, longer)
    expected = 0 if isinstance(window, AsOf | AllHistory) else max((CALENDAR.first - start).days, 0)
    assert days_before_calendar(window, day, CALENDAR) == expected


def test_the_trailing_28_days_end_with_the_day():
    assert days_read(Span(27, 0), date(2017, 3, 28), CALENDAR) == (date(2017, 3, 1), date(2017, 3, 28))


def test_a_changed_day_reaches_the_rest_of_its_month():
    assert days_reached(MonthToDate(), date(2017, 2, 10), CALENDAR) == (date(2017, 2, 10), date(2017, 2, 28))


@given(st.sets(st.dates(), max_size=5), st.integers(0, 3))
def test_within_reach_are_the_days_around_as_far_as_there_are_any(some, within):
    everything = {n for day in some for n in range(day.toordinal() - within, day.toordinal() + within + 1)}
    there = {n for n in everything if date.min.toordinal() <= n <= date.max.toordinal()}
    assert {day.toordinal() for day in within_reach(some, within)} == there


def test_the_years_1_and_9999_have_an_end():
    assert within_reach([date.min, date.max], 1) == {
        date.min,
        date(1, 1, 2),
        date(9999, 12, 30),
        date.max,
    }
    assert days_later(date(9999, 12, 30), 1) == days_later(date.max, 60) == date.max
    assert days_later(date(2016, 12, 31), 2) == date(2017, 1, 2)
