"""Which waiting rows a decision is about, and which of them no person has to decide."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from platform_assets.planning.rows_aside import (
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
