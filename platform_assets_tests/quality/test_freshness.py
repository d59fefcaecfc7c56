"""Overdue days are found wherever they are in the calendar."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.contracts import Checks, Freshness
from platform_assets.domains.retail.contracts import DAILY_SALES
from platform_assets.planning.windows import Calendar
from platform_assets.quality.freshness import freshness_finding, overdue_days

CALENDAR = Calendar(date(2017, 1, 1), date(2017, 3, 1))
some_days = st.sets(st.dates(CALENDAR.first, CALENDAR.last))
todays = st.dates(date(2016, 12, 1), date(2017, 4, 1))


def day(number):
    return CALENDAR.first + timedelta(days=number)


@given(some_days, some_days, todays, st.integers(0, 9), st.integers(0, 3))
def test_overdue_days_equal_brute_force(published, closed, today, within, delay):
    contract = replace(DAILY_SALES, closed_days=frozenset(closed), freshness=Freshness(within))
    due = [day for day in CALENDAR.days() if day + timedelta(days=within + delay) < today]
    expected = [day for day in due if day not in published | closed]
    assert list(overdue_days(contract, published, CALENDAR, today, delay)) == expected


@pytest.mark.parametrize(
    ("within", "today", "overdue"), [(0, 0, 0), (0, 1, 1), (1, 1, 0), (1, 2, 1), (3, 3, 0), (3, 4, 1)]
)
def test_a_day_is_due_so_many_days_after_it_ended(within, today, overdue):
    contract = replace(DAILY_SALES, freshness=Freshness(within))
    assert len(overdue_days(contract, (), CALENDAR, day(today))) == overdue


def test_a_hole_behind_the_newest_day_is_found():
    published = set(CALENDAR.days()) - {day(10)}
    assert overdue_days(DAILY_SALES, published, CALENDAR, date(2018, 1, 1)) == (day(10),)


def test_a_finding_counts_all_days_and_names_the_first_as_ranges():
    missing = [day(n) for n in (0, 1, 2, 5, 7, 8, 10, 12, 14, 20, 21)]
    finding = freshness_finding(DAILY_SALES, missing)
    assert finding is not None
    assert finding.day == day(0)
    assert finding.severity == "warn"
    assert finding.numbers == {"overdue_days": 11}
    assert finding.examples == (
        "2017-01-01..2017-01-03",
        "2017-01-06",
        "2017-01-08..2017-01-09",
        "2017-01-11",
        "2017-01-13",
    )
    assert finding.message == (
        f"gold.daily_sales: 11 days overdue: {', '.join(finding.examples)} and 3 days more; "
        "expected every open day published within 1 day after it ended"
    )


def test_a_day_that_is_delivered_with_delay_may_be_published_as_much_later():
    finding = freshness_finding(DAILY_SALES, [day(3)], delay_days=2)
    assert finding is not None
    assert finding.expected == "every open day published within 3 days after it ended"


def test_the_contract_can_make_it_an_error():
    contract = replace(DAILY_SALES, checks=Checks(freshness="block"), freshness=Freshness(0))
    finding = freshness_finding(contract, [day(3)])
    assert finding is not None
    assert finding.blocks
    assert (
        finding.message == "gold.daily_sales: 1 day overdue: 2017-01-04; expected every open day published when it ends"
    )


def test_nothing_overdue_is_no_finding():
    assert freshness_finding(DAILY_SALES, ()) is None
