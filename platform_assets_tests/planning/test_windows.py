"""Windows mean the same in both directions, for any day and any window, those of what is valid on a day, too."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.contracts import (
    AllHistory,
    AsOf,
    Column,
    Contract,
    ContractError,
    Input,
    MonthToDate,
    Span,
    Window,
    all_history,
    as_of,
    month_to_date,
    offsets,
    same_date,
    same_day,
    span,
)
from platform_assets.domains.retail.contracts import DAILY_SALES, HOUSEHOLD_28D
from platform_assets.planning.fingerprints import View, fingerprints
from platform_assets.planning.windows import (
    Calendar,
    Read,
    day_range,
    days_before_calendar,
    days_later,
    days_read,
    first_outside,
    in_any,
    ranges,
    ranges_reached,
    ranges_read,
    read_for_day,
    read_in_all,
    union_read,
    within_reach,
)

CALENDAR = Calendar(date(2019, 1, 1), date(2021, 3, 31))


distances = st.lists(st.integers(-800, 40), min_size=1, max_size=4, unique=True)


years = st.lists(st.integers(-2, 1), min_size=1, max_size=3, unique=True)


windows = st.one_of(
    st.builds(Span, st.integers(0, 40), st.integers(0, 40)),
    st.sampled_from([MonthToDate(), AsOf(), AllHistory()]),
    distances.filter([0].__ne__).map(lambda some: offsets(*some)),
    years.filter([0].__ne__).map(lambda some: same_date(*some)),
)


days = st.dates(CALENDAR.first, CALENDAR.last)


@st.composite
def two_days(draw):
    """Any two, half of them near each other: of those far apart, most windows say nothing."""
    day = draw(days)
    near = day + timedelta(days=draw(st.integers(-45, 45)))
    return day, near if draw(st.booleans()) and near in CALENDAR else draw(days)


@given(windows, two_days())
def test_a_day_is_reached_by_exactly_the_days_it_reads(window, both):
    output, source = both
    read = in_any(ranges_read(window, output, CALENDAR), source)
    assert read == in_any(ranges_reached(window, source, CALENDAR), output)


leap_days = st.sampled_from([date(2020, 2, 28), date(2020, 2, 29), date(2020, 3, 1), date(2019, 2, 28)])


@given(years, leap_days, leap_days | days)
def test_around_a_leap_day_a_day_is_reached_by_exactly_the_days_it_reads(some, output, source):
    window = same_date(*{1, *some})
    read = in_any(ranges_read(window, output, CALENDAR), source)
    assert read == in_any(ranges_reached(window, source, CALENDAR), output)


@given(windows, st.sets(days, max_size=20))
def test_the_days_read_together_are_those_read_alone(window, outputs):
    together = {day for span in union_read(window, outputs, CALENDAR) for day in day_range(*span)}
    alone = {day for output in outputs for day in days_read(window, output, CALENDAR)}
    assert together == alone


@given(windows, days)
def test_no_window_leaves_the_calendar(window, day):
    for start, end in (*ranges_read(window, day, CALENDAR), *ranges_reached(window, day, CALENDAR)):
        assert start in CALENDAR
        assert end in CALENDAR


@given(st.sets(days))
def test_ranges_hold_every_day_once_and_do_not_touch(some):
    found = ranges(some)
    assert [day for span in found for day in day_range(*span)] == sorted(some)
    assert all(b[0] - a[1] > timedelta(days=1) for a, b in pairwise(found))


@given(windows, days)
def test_what_the_calendar_cuts_off_is_what_a_longer_one_would_have(window, day):
    longer = Calendar(CALENDAR.first - timedelta(days=900), CALENDAR.last)
    before = [other for other in days_read(window, day, longer) if other < CALENDAR.first]
    expected = 0 if isinstance(window, AsOf | AllHistory) else len(before)
    assert days_before_calendar(window, day, CALENDAR) == expected


def test_the_trailing_28_days_end_with_the_day():
    assert ranges_read(Span(27, 0), date(2020, 3, 28), CALENDAR) == ((date(2020, 3, 1), date(2020, 3, 28)),)


def test_a_changed_day_reaches_the_rest_of_its_month():
    assert ranges_reached(MonthToDate(), date(2020, 2, 10), CALENDAR) == ((date(2020, 2, 10), date(2020, 2, 29)),)


def test_a_day_with_its_year_before_reads_and_reaches_two_days_and_none_between():
    window = offsets(-365, -1)
    assert [*days_read(window, date(2021, 3, 1), CALENDAR)] == [date(2020, 3, 1), date(2021, 2, 28)]
    changed = ranges_reached(window, date(2020, 1, 2), CALENDAR)
    assert changed == ((date(2020, 1, 3),) * 2, (date(2021, 1, 1),) * 2)


def test_a_leap_day_reads_nothing_of_a_year_without_one_so_that_no_day_counts_twice():
    a_year_before = same_date(-1)
    read = {day: [*days_read(a_year_before, day, CALENDAR)] for day in (date(2020, 2, 29), date(2021, 2, 28))}
    assert read == {date(2020, 2, 29): [], date(2021, 2, 28): [date(2020, 2, 28)]}
    assert ranges_reached(a_year_before, date(2019, 2, 28), CALENDAR) == ((date(2020, 2, 28),) * 2,)
    assert ranges_reached(a_year_before, date(2020, 2, 29), CALENDAR) == ()


@pytest.mark.parametrize(
    ("declare", "what", "todo"),
    [
        (lambda: offsets(), "of days () names nothing", "offsets(-365, -1)"),
        (lambda: offsets(0), "is the day itself", "Write same_day()"),
        (lambda: same_date(0), "is the day itself", "Write same_day()"),
        (lambda: offsets(-1, -7, -1), "names a distance twice", "Name each once"),
        (lambda: offsets(*range(-100, -1)), "names more than 60", "span(before, after)"),
        (lambda: offsets(-40_000), "each[0]=", "greater than or equal to -36500"),
        (lambda: same_date(-101), "more than 100 years", "from -100 to 100"),
    ],
)
def test_chosen_days_that_make_no_window_are_refused_with_the_way_out(declare, what, todo):
    with pytest.raises(ContractError) as refused:
        declare()
    assert (what in refused.value.what, todo in refused.value.todo, refused.value.field) == (True, True, "each")


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


AS_OF_DAYS = Calendar(date(2017, 1, 29), date(2017, 2, 6))


BEFORE = {date(2017, 1, 29): "meat", date(2017, 2, 2): "deli"}
"""A view: what is valid from which day on."""


AFTER = BEFORE | {date(2017, 1, 29): "bakery"}
"""A correction: it was bakery, not meat, before it became deli."""


def made_from(window: Window, view: View) -> dict[date, str]:
    contract = Contract(
        name="gold.sales",
        description="",
        owner="",
        columns=(Column("k", "long", "Key.", nullable=False),),
        key=("k",),
        inputs=(Input("silver.lines", window), Input("silver.things", as_of())),
    )
    loaded = {table: dict.fromkeys(AS_OF_DAYS.days(), "x") for table in ("silver.lines", "silver.things")}
    return fingerprints(contract, AS_OF_DAYS.days(), loaded, AS_OF_DAYS, {"silver.things": view})


@pytest.mark.parametrize(
    ("window", "last"),
    [
        (same_day(), date(2017, 2, 1)),
        (span(2), date(2017, 2, 3)),
        (month_to_date(), date(2017, 2, 6)),
        (all_history(), date(2017, 2, 6)),
    ],
)
def test_a_correction_reaches_the_days_of_which_rows_are_joined_as_of_when_it_was_valid(
    window: Window, last: date
) -> None:
    before, after = made_from(window, BEFORE), made_from(window, AFTER)
    assert [day for day in before if before[day] != after[day]] == [day for day in AS_OF_DAYS.days() if day <= last]


@pytest.mark.parametrize("window", [same_day(), span(2), month_to_date(), all_history()])
def test_what_becomes_valid_later_reaches_no_day_before(window: Window) -> None:
    later = BEFORE | {date(2017, 2, 5): "fish"}
    before, after = made_from(window, BEFORE), made_from(window, later)
    assert [day for day in before if before[day] != after[day]] == [date(2017, 2, 5), date(2017, 2, 6)]


YEAR = Calendar(date(2017, 1, 1), date(2018, 1, 1))
SALES, PRODUCTS = "silver.transactions", "silver.products"


def march(number: int) -> date:
    return date(2017, 3, number)


def test_a_day_that_no_window_holds_is_named_the_oldest_first():
    read = {SALES: {march(2): 1, march(3): 1, march(31): 1}}
    assert first_outside(HOUSEHOLD_28D, [march(30), march(31)], YEAR, read) == (SALES, march(2))
    assert first_outside(HOUSEHOLD_28D, [march(29), march(31)], YEAR, read) is None
    assert first_outside(HOUSEHOLD_28D, [march(29), march(30)], YEAR, read) == (SALES, march(31))
    assert first_outside(HOUSEHOLD_28D, [march(29)], YEAR, {}) is None


def test_of_days_computed_together_each_counts_what_its_own_windows_hold():
    read = {SALES: {march(1): 2, march(2): 1}, PRODUCTS: {date(2017, 1, 1): 1, march(2): 3}}
    assert read_for_day(DAILY_SALES, march(1), YEAR, read) == Read(days=2, files=3)
    assert read_for_day(DAILY_SALES, march(2), YEAR, read) == Read(days=3, files=5)
    assert read_for_day(DAILY_SALES, march(3), YEAR, {}) == Read()
    assert read_in_all(read) == {SALES: Read(2, 3), PRODUCTS: Read(2, 4)}
