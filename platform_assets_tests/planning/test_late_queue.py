"""Which waiting rows a decision is about, which arrivals are to blame for a held day, and which files repeat others."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.planning.late_queue import (
    LateCounts,
    LateRows,
    LateSelection,
    State,
    counts_of,
    days_late,
    deep_restatement,
    due_rows,
    late_table,
    open_to,
)
from platform_assets.planning.new_arrivals import RawDay, new_arrivals
from platform_assets.planning.replays import Delivery, file_order, order_number, replays
from platform_assets.records.history import ArrivalRecord

FIRST = date(2017, 1, 1)


states = st.sampled_from(["waiting", "ahead", "refused", "withdrawn"])


some_rows = st.builds(
    LateRows,
    table=st.sampled_from(["raw.transactions", "raw.products"]),
    arrival=st.sampled_from(["a", "b"]),
    arrival_date=st.just(date(2017, 12, 1)),
    day=st.integers(0, 9).map(lambda n: FIRST + timedelta(days=n)),
    rows=st.integers(1, 5),
    state=states,
)


queues = st.lists(some_rows, max_size=12)


def days(first: int, last: int) -> frozenset[date]:
    return frozenset(FIRST + timedelta(days=n) for n in range(first, last + 1))


def test_lateness_is_the_arrival_date_less_the_day() -> None:
    assert days_late(date(2017, 4, 5), date(2017, 1, 5)) == 90
    assert days_late(date(2017, 1, 4), date(2017, 1, 5)) == -1
    assert late_table("raw.transactions") == "late.transactions"


@given(queues)
def test_only_what_waits_can_be_decided_but_a_refusal_is_taken_back_by_name(queue: list[LateRows]) -> None:
    by_table = LateSelection(table="raw.products", days=days(0, 4))
    by_name = LateSelection(arrival="a")
    assert {rows.state for rows in open_to("refusal", queue, by_name)} <= {"waiting", "ahead"}
    assert {rows.state for rows in open_to("approval", queue, by_table)} <= {"waiting", "ahead"}
    assert {rows.state for rows in open_to("approval", queue, by_name)} <= {"waiting", "ahead", "refused"}


@given(queues, st.integers(0, 9), st.integers(0, 9))
def test_every_row_that_waits_is_decided_by_one_of_a_table_s_parts(queue: list[LateRows], one: int, two: int) -> None:
    cut = min(one, two)
    parts = [
        part
        for table in ("raw.transactions", "raw.products")
        for part in (LateSelection(table=table, days=days(0, cut)), LateSelection(table=table, days=days(cut + 1, 9)))
    ]
    decided = [rows for part in parts for rows in open_to("refusal", queue, part)]
    assert sum(rows.rows for rows in decided) == counts_of(queue).waiting + counts_of(queue).ahead


def test_what_a_decision_is_about_is_told_in_words() -> None:
    assert str(LateSelection(arrival="a/2017-01-01/b.csv")) == "a/2017-01-01/b.csv"
    assert str(LateSelection(table="raw.x", days=days(0, 0))) == "raw.x on 2017-01-01"
    assert str(LateSelection(table="raw.x", days=days(0, 2))) == "raw.x on 2017-01-01..2017-01-03"
    assert str(LateSelection(table="raw.x", days=days(0, 2) - days(1, 1))) == "raw.x on 2017-01-01, 2017-01-03"


def test_the_deep_restatement_takes_what_waits_and_did_not_come_later_than_it_goes_deep() -> None:
    def late(days_after: int, state: State = "waiting") -> LateRows:
        return LateRows("raw.x", "a", FIRST + timedelta(days=days_after), FIRST, 1, state=state)

    in_time, too_late, refused = late(200), late(201), late(150, "refused")
    queue = [in_time, too_late, refused]
    selection = deep_restatement(queue, "raw.x", 200)
    assert selection is not None
    assert open_to("approval", queue, selection) == (in_time,)
    assert deep_restatement(queue, "raw.y", 200) is None
    assert deep_restatement([too_late, refused], "raw.x", 200) is None


def ahead(day: date, state: State = "ahead") -> LateRows:
    return LateRows("raw.x", "a", FIRST, day, 1, state=state)


def test_the_deep_restatement_leaves_what_came_before_its_day() -> None:
    assert deep_restatement([ahead(FIRST + timedelta(days=400))], "raw.x", 200) is None
    mixed = [ahead(FIRST + timedelta(days=400)), LateRows("raw.x", "b", FIRST + timedelta(days=600), FIRST, 1)]
    selection = deep_restatement([*mixed, *(replace(rows, arrival="c") for rows in mixed)], "raw.x", 700)
    assert selection is not None
    assert all(not rows.is_ahead for rows in mixed if rows in selection)


def test_what_came_ahead_is_due_once_its_day_has_come_unless_a_person_refused_it() -> None:
    tomorrow, next_year = FIRST + timedelta(days=1), FIRST + timedelta(days=400)
    late = LateRows("raw.x", "a", next_year, FIRST, 1)
    queue = [ahead(tomorrow), ahead(next_year), ahead(tomorrow, "refused"), ahead(tomorrow, "withdrawn"), late]
    assert due_rows(queue, FIRST) == ()
    assert due_rows(queue, tomorrow) == (ahead(tomorrow),)
    assert due_rows(queue, next_year) == (ahead(tomorrow), ahead(next_year))
    assert counts_of(queue) == LateCounts(waiting=1, ahead=2)


DAY = date(2017, 1, 2)


RELEASED = {"p0": 0, "p1": 1, "p2": 2}


def arrival(path: str, publication: str, **changes: Any) -> ArrivalRecord:
    known: dict[str, Any] = {"table": "raw.t", "path": path, "arrival_date": DAY, "size": 1, "sha256": "0"}
    known |= {"modified_ns": 1, "taken": 1, "publication": publication}
    return ArrivalRecord(**(known | changes))


def named(*arrivals: ArrivalRecord, since: int = 0) -> list[str]:
    day = RawDay("raw.t", DAY, since, {each.path for each in arrivals} - {"elsewhere"})
    return [each.path for each in new_arrivals([day], arrivals, RELEASED)]


def test_those_that_came_since_the_last_good_content_are_named_newest_first() -> None:
    arrivals = arrival("old", "p0"), arrival("new", "p1"), arrival("newest", "p2"), arrival("elsewhere", "p2")
    assert named(*arrivals) == ["newest", "new"]
    assert named(*arrivals, since=-1) == ["newest", "new", "old"]


def test_what_was_withdrawn_counts_no_more() -> None:
    gone = arrival("withdrawal of new", "p2", kind="withdrawal", origin="new")
    assert named(arrival("new", "p1"), arrival("other", "p1"), gone) == ["other"]


def test_what_is_new_on_any_of_the_days_is_named_once() -> None:
    days = [RawDay("raw.t", DAY, 1, {"a"}), RawDay("raw.t", date(2017, 1, 3), 0, {"a"})]
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
