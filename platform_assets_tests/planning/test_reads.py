"""What was read is held against what was declared, day by day."""

from __future__ import annotations

from datetime import date

from platform_assets.domains.retail.contracts import DAILY_SALES, HOUSEHOLD_28D
from platform_assets.planning.windows import Calendar, Read, first_outside, read_for_day, read_in_all

CALENDAR = Calendar(date(2017, 1, 1), date(2018, 1, 1))
SALES, PRODUCTS = "silver.transactions", "silver.products"


def march(number: int) -> date:
    return date(2017, 3, number)


def test_a_day_that_no_window_holds_is_named_the_oldest_first():
    read = {SALES: {march(2): 1, march(3): 1, march(31): 1}}
    assert first_outside(HOUSEHOLD_28D, [march(30), march(31)], CALENDAR, read) == (SALES, march(2))
    assert first_outside(HOUSEHOLD_28D, [march(29), march(31)], CALENDAR, read) is None
    assert first_outside(HOUSEHOLD_28D, [march(29), march(30)], CALENDAR, read) == (SALES, march(31))
    assert first_outside(HOUSEHOLD_28D, [march(29)], CALENDAR, {}) is None


def test_of_days_computed_together_each_counts_what_its_own_windows_hold():
    read = {SALES: {march(1): 2, march(2): 1}, PRODUCTS: {date(2017, 1, 1): 1, march(2): 3}}
    assert read_for_day(DAILY_SALES, march(1), CALENDAR, read) == Read(days=2, files=3)
    assert read_for_day(DAILY_SALES, march(2), CALENDAR, read) == Read(days=3, files=5)
    assert read_for_day(DAILY_SALES, march(3), CALENDAR, {}) == Read()
    assert read_in_all(read) == {SALES: Read(2, 3), PRODUCTS: Read(2, 4)}
