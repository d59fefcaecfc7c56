"""What arrivals come to: a raw day counts once its source has had its time; copies keep a place; the new are named.

It is the same whenever the files were taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.contracts import Catalogue, EveryDays, Weekdays
from platform_assets.domains.retail.contracts import RAW_PRODUCTS, RAW_TRANSACTIONS
from platform_assets.planning.arrivals import (
    Delivered,
    Delivery,
    RawDay,
    comes_with,
    delays,
    empty_days,
    file_order,
    loaded_days,
    missing_days,
    new_arrivals,
    order_number,
    replays,
)
from platform_assets.planning.windows import Calendar
from platform_assets.records.history import ArrivalRecord
from platform_assets_tests.support.domains import windows

CLOSED = 4
DAILY = replace(RAW_TRANSACTIONS, closed_days=frozenset({date(2017, 1, CLOSED)}))
ON_CHANGE = RAW_PRODUCTS


@dataclass(frozen=True)
class Day:
    rows: int = 1


def january(*numbers: int) -> dict[date, Day]:
    return {date(2017, 1, number): Day() for number in numbers}


def numbers(days: Any) -> list[int]:
    return [day.day for day in days]


def delivered(today: int, newest: int | None = None, last: int | None = None) -> Delivered:
    """The calendar of January up to a day of it, today by default."""
    calendar = Calendar(date(2017, 1, 1), date(2017, 1, last or today))
    return Delivered(calendar, date(2017, 1, today), date(2017, 1, newest) if newest else None)


@pytest.mark.parametrize(("delay", "loaded"), [(0, [1, 2, 3]), (1, [1, 2]), (3, [])])
def test_a_day_counts_once_the_arrival_that_brings_it_or_a_later_one_was_taken(delay: int, loaded: list[int]) -> None:
    contract = replace(DAILY, delivered_after_days=delay)
    assert numbers(loaded_days(contract, january(1, 2, 3, 5, 6), delivered(6, newest=3))) == loaded


@pytest.mark.parametrize(
    ("delivers", "expected"),
    [(Weekdays(("saturday", "monday")), [2, 7, 9, 14]), (EveryDays(5, date(2017, 1, 12)), [2, 7, 12]), ("daily", None)],
)
def test_only_days_of_which_rows_are_expected_wait_for_them(delivers: Any, expected: list[int] | None) -> None:
    contract = replace(DAILY, delivers=delivers, closed_days=frozenset({date(2017, 1, 3)}))
    open_days = [day for day in range(1, 15) if day != 3] if expected is None else expected
    empty = empty_days(contract, {}, (), delivered(14))
    assert numbers(empty) == [day for day in range(1, 15) if day not in open_days]
    assert numbers(missing_days(contract, {}, (), empty, delivered(14))) == [day for day in open_days if day < 14]


def test_before_the_first_arrival_only_closed_days_count() -> None:
    assert numbers(loaded_days(DAILY, january(1, 2, CLOSED), delivered(6))) == [CLOSED]


def test_a_day_that_was_loaded_empty_stays_so() -> None:
    days = {date(2017, 1, 5): Day(rows=0), date(2017, 1, 6): Day()}
    assert numbers(loaded_days(replace(DAILY, delivered_after_days=1), days, delivered(6, newest=3))) == [5]


@pytest.mark.parametrize(("delay", "loaded"), [(0, [1, 5, 6]), (1, [1, 5]), (6, [])])
def test_where_deliveries_come_on_change_the_date_has_to_do(delay: int, loaded: list[int]) -> None:
    contract = replace(ON_CHANGE, delivered_after_days=delay)
    assert numbers(loaded_days(contract, january(1, 5, 6, 7), delivered(6))) == loaded


def test_days_outside_the_calendar_do_not_count() -> None:
    days = {date(2016, 12, 31): Day(), **january(1, 8, 9)}
    assert numbers(loaded_days(DAILY, days, delivered(9, newest=9, last=8))) == [1, 8]


@pytest.mark.parametrize(
    ("delay", "until", "empty"),
    [
        (0, None, [2, 3, CLOSED]),
        (1, None, [1, 2, CLOSED]),
        (0, 2, [2]),
        (1, 2, [1]),
        (1, 3, [1, 2]),
        (9, None, [CLOSED]),
    ],
)
def test_a_day_is_empty_if_the_arrival_that_brings_it_came_without_it(
    delay: int, until: int | None, empty: list[int]
) -> None:
    """Days 2 and 3 are the arrival dates; of the first of them, or of days 5 and 6, there are rows."""
    contract = replace(DAILY, delivered_after_days=delay)
    have = january(1, 5, 6) if delay == 0 else january(5, 6)
    end = date(2017, 1, until) if until else None
    assert numbers(empty_days(contract, have, january(2, 3), delivered(6), end)) == empty


def test_days_on_change_are_empty_as_the_calendar_comes_to_them() -> None:
    assert numbers(empty_days(ON_CHANGE, january(2), (), delivered(3))) == [1, 3]
    late = replace(ON_CHANGE, delivered_after_days=1)
    assert numbers(empty_days(late, january(2), (), delivered(4))) == [1, 3]
    assert numbers(empty_days(late, january(2), (), delivered(4), until=date(2017, 1, 3))) == [1]
    assert numbers(empty_days(late, january(2), (), delivered(9, last=4))) == [1, 3, 4]


@pytest.mark.parametrize(("delay", "missing"), [(0, [1, 5]), (1, [1, 3]), (2, [3])])
def test_a_day_is_missing_only_after_its_time(delay: int, missing: list[int]) -> None:
    """Day 2 is loaded; a file of arrival date 3 waits, which brings day 3, 2 or 1; today is the 6th."""
    contract = replace(DAILY, delivered_after_days=delay)
    found = missing_days(contract, january(2), january(3), january(CLOSED), delivered(6, newest=5))
    assert numbers(found) == missing


def test_a_day_with_rows_that_a_waiting_file_completes_is_not_missing() -> None:
    have = january(1, 2, 3)
    assert numbers(missing_days(DAILY, have, january(3), january(CLOSED), delivered(6, newest=1))) == [5]
    assert numbers(missing_days(DAILY, have, (), january(CLOSED), delivered(6, newest=1))) == [2, 3, 5]


@given(st.sets(st.integers(1, 9)), st.sets(st.integers(1, 9)), st.integers(0, 4), st.integers(1, 9))
def test_every_day_before_its_time_is_neither_loaded_nor_empty_nor_missing(
    with_rows: set[int], arrivals: set[int], delay: int, today: int
) -> None:
    contract = replace(DAILY, delivered_after_days=delay, closed_days=frozenset())
    taken = january(*(day for day in arrivals if day <= today))
    state = replace(delivered(today), newest=max(taken, default=None))
    have = january(*with_rows)
    empty = empty_days(contract, have, taken, state)
    loaded = loaded_days(contract, have | dict.fromkeys(empty, Day(0)), state)
    missing = missing_days(contract, have, (), empty, state)
    assert set(empty) <= set(loaded)
    assert not set(missing) & set(loaded)
    for day in (*loaded, *missing):
        assert comes_with(contract, day) <= state.today
    for day in state.calendar.days():
        if comes_with(contract, day) < state.today:
            assert day in loaded or day in missing


def test_no_day_is_delivered_after_the_last_that_there_is() -> None:
    assert comes_with(replace(DAILY, delivered_after_days=2), date.max - timedelta(days=1)) == date.max


def test_derived_days_wait_for_the_slowest_of_what_they_are_made_from() -> None:
    slow = replace(windows.TABLES[0], delivered_after_days=2)
    catalogue = Catalogue.of([replace(windows.DOMAIN, tables=(slow, *windows.TABLES[1:]))])
    assert delays(catalogue) == {"raw.transactions": 2, "silver.transactions": 2, "gold.household_28d": 2}


SECOND = date(2017, 1, 2)


RELEASED = {"p0": 0, "p1": 1, "p2": 2}


def arrival(path: str, publication: str, **changes: Any) -> ArrivalRecord:
    known: dict[str, Any] = {"table": "raw.t", "path": path, "arrival_date": SECOND, "size": 1, "sha256": "0"}
    known |= {"modified_ns": 1, "taken": 1, "publication": publication}
    return ArrivalRecord(**(known | changes))


def named(*arrivals: ArrivalRecord, since: int = 0) -> list[str]:
    day = RawDay("raw.t", SECOND, since, {each.path for each in arrivals} - {"elsewhere"})
    return [each.path for each in new_arrivals([day], arrivals, RELEASED)]


def test_those_that_came_since_the_last_good_content_are_named_newest_first() -> None:
    arrivals = arrival("old", "p0"), arrival("new", "p1"), arrival("newest", "p2"), arrival("elsewhere", "p2")
    assert named(*arrivals) == ["newest", "new"]
    assert named(*arrivals, since=-1) == ["newest", "new", "old"]


def test_what_was_withdrawn_counts_no_more() -> None:
    gone = arrival("withdrawal of new", "p2", kind="withdrawal", origin="new")
    assert named(arrival("new", "p1"), arrival("other", "p1"), gone) == ["other"]


def test_what_is_new_on_any_of_the_days_is_named_once() -> None:
    days = [RawDay("raw.t", SECOND, 1, {"a"}), RawDay("raw.t", date(2017, 1, 3), 0, {"a"})]
    assert [each.path for each in new_arrivals(days, [arrival("a", "p1")], RELEASED)] == ["a"]


def delivery(day: int, name: str, content: str = "a", modified: int = 0, origin: str | None = None) -> Delivery:
    return Delivery(f"shop/2024-03-0{day}/{name}", origin, date(2024, 3, day), modified, content)


@pytest.mark.parametrize(
    "names",
    [
        ["part-1", "part-2", "part-10"],
        ["2024-3-9.csv", "2024-3-10.csv"],
        ["a.csv", "b.csv", "b1.csv", "b02.csv"],
        ["x-9", "x-12345678901234567890"],
        ["part-01", "part-1"],
    ],
)
def test_names_sort_by_their_numbers(names: list[str]) -> None:
    orders = [file_order(f"shop/2024-03-01/{name}") for name in names]
    assert orders == sorted(orders)


def test_a_file_with_the_content_of_an_earlier_one_has_its_place_in_whatever_order_they_came() -> None:
    first, renamed, later = delivery(1, "b-2"), delivery(1, "b-10"), delivery(3, "a")
    other, approved = delivery(2, "c", "other"), delivery(3, "late/a", origin=later.path)
    for taken in permutations([first, renamed, later, other, approved]):
        assert replays(taken) == {renamed.path: first, later.path: first, approved.path: first}
    assert replays([renamed, later, other, approved]) == {later.path: renamed, approved.path: renamed}, "withdrawn"
    assert replays([later, other, approved]) == {}


def test_where_the_time_of_change_orders_files_it_says_which_of_a_date_is_the_first() -> None:
    new, old = delivery(1, "a", modified=2), delivery(1, "b", modified=1)
    assert replays([new, old], "modified") == {new.path: old}
    assert replays([new, old]) == {old.path: new}


def test_where_a_number_in_the_name_orders_files_it_says_so_and_a_name_without_one_is_before_all() -> None:
    second, tenth, unnumbered = delivery(1, "z_2.csv"), delivery(1, "a_10.csv"), delivery(1, "b.csv")
    by_number = r"_(\d+)\.csv"
    assert [order_number(file, by_number) for file in (second, tenth, unnumbered)] == [2, 10, -1]
    assert replays([tenth, second], by_number) == {tenth.path: second}
