"""Which files repeat the content of an earlier one: from the arrivals alone."""

from __future__ import annotations

from datetime import date
from itertools import permutations

import pytest

from platform_assets.planning.replays import Delivery, file_order, order_number, replays


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
