"""Rows after their restatement window wait, are taken once they are approved, and are never lost or counted twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from platform_assets.contracts import UnknownTableError
from platform_assets.engine.late.approvals import RawOutcome, approve
from platform_assets.engine.late.queue import LateQueueError, added_up, late_counts, late_queue, refuse
from platform_assets.planning.rows_aside import LateRows, LateSelection, counts_of
from platform_assets.records.decisions import LateDecision
from platform_assets_tests.support.history import History, Version, history, no_session, person
from platform_assets_tests.support.prepared import Lakes, Prepared

LATE = "2017-04-05"
"""90 days after the 5th of January: what is of that day or later is in time, what is of the 4th or earlier is late."""

MIXED = f"transactions/{LATE}/corrections.jsonl"
"""A file of which one row is in time and three are late."""


def one_line_a_day(lakes: Lakes) -> History:
    """From the 2nd to the 5th, loaded."""
    found = history(lakes.new)
    for day in range(2, 6):
        found.deliver(f"2017-01-{day:02}", "sold.jsonl", Version(day, day, 0))
    found.refresh()
    return found


def with_late_rows(lakes: Lakes) -> History:
    """And a file most of which is late."""
    found = lakes.again(one_line_a_day)
    mixed(found)
    found.refresh()
    return found


@pytest.fixture
def story(prepared: Prepared) -> History:
    return prepared(one_line_a_day)


@pytest.fixture
def late(prepared: Prepared) -> History:
    return prepared(with_late_rows)


def waiting(story: History, *, all_of_it: bool = False) -> list[LateRows]:
    with story.world.open() as platform:
        queue = late_queue(platform)
        for table, counts in late_counts(platform).items():
            assert counts == counts_of([rows for rows in queue if rows.table == table])
        return [rows for rows in queue if all_of_it or rows.state == "waiting"]


def approved(story: History, selection: LateSelection) -> tuple[RawOutcome, ...]:
    with story.world.open() as platform:
        return approve(platform, lambda: story.world.spark, selection, person())


def mixed(story: History) -> str:
    """A correction in time, one that is late, one that moves a line from a day in time to a late one, and a new one."""
    return story.deliver(
        LATE,
        MIXED.rpartition("/")[2],
        Version(5, 5, 3, "5.00"),
        Version(2, 2, 3, "7.00"),
        Version(4, 3, 3, "8.00"),
        Version(9, 2, 3, "9.25"),
    )


@pytest.mark.proof
def test_late_rows_wait_and_the_others_of_their_file_are_taken(story: History) -> None:
    """Two refreshes, the second of which has nothing to do; of the window the last day is in time, no day before it."""
    path, edge = mixed(story), story.deliver(LATE, "edge.jsonl", Version(20, 5, 3), Version(21, 4, 3))
    [ingest] = story.world.refresh().ingests
    counts = {found.path: (found.landed, found.taken, found.refused, found.late) for found in ingest.arrivals}
    assert (counts[path], counts[edge]) == ((4, 1, 0, 3), (2, 1, 0, 1))
    assert story.kept() == story.expected(late=[path, edge])

    [at_the_edge] = [rows for rows in waiting(story) if rows.arrival == edge]
    assert (at_the_edge.day, at_the_edge.days_late) == (date(2017, 1, 4), 91)
    second, third = [rows for rows in waiting(story) if rows.arrival == path]
    assert (second.table, second.arrival, second.day) == ("raw.transactions", path, date(2017, 1, 2))
    assert (second.rows, second.days_late, second.amounts["sales_value"]) == (2, 93, Decimal("16.25"))
    assert (third.rows, third.days_late, third.amounts["sales_value"]) == (1, 92, Decimal("8.00"))
    assert {row["_arrival"] for row in story.world.rows("late.transactions")} == {path, edge}
    assert story.world.refresh().steps == ()
    assert len(waiting(story)) == 3


def test_approved_rows_enter_raw_once_as_an_arrival_of_their_own_and_exactly_their_days_are_mended(
    late: History,
) -> None:
    """An approval, and a refresh of the days it reaches."""
    [done] = approved(late, LateSelection(arrival=MIXED))
    [arrival] = done.arrivals
    assert (arrival.kind, arrival.origin, arrival.landed, arrival.taken) == ("approval", MIXED, 3, 3)
    assert arrival.path.startswith("late/transactions/")
    assert set(done.published) == {date(2017, 1, day) for day in (2, 3, 4)}  # the 4th loses the line that moves
    assert late.refresh()["silver.transactions"] == {2, 3, 4}
    assert late.kept() == late.expected()
    assert late.world.rows("late.transactions") == []

    with late.world.open() as platform:
        published = platform.ledger.publication(platform.ledger.arrivals()[-1].publication)
        assert published is not None
        assert (published.kind, published.who, published.why) == ("approval", "Zoë", "checked with the till vendor")
        assert [one.kind for one in platform.ledger.decisions(LateDecision)] == ["approval", "approval"]
        with pytest.raises(LateQueueError, match="waits in the late queue"):
            approve(platform, no_session, LateSelection(arrival=MIXED), person())
    assert late.refresh() == {}


def test_what_cannot_be_decided_is_said(story: History) -> None:
    cases: list[tuple[LateSelection, type[Exception], str]] = [
        (LateSelection(arrival="transactions/2017-01-02/none.jsonl"), LateQueueError, "none.jsonl waits"),
        (LateSelection(arrival="transactions/2017-01-02/sold.jsonl"), LateQueueError, "sold.jsonl waits"),
        (LateSelection(table="raw.transactions"), LateQueueError, "Nothing of raw.transactions"),
        (LateSelection(table="raw.nothing"), UnknownTableError, "There is no table 'raw.nothing'"),
        (LateSelection(table="silver.transactions"), LateQueueError, "silver.transactions takes no arrivals"),
    ]
    with story.world.open() as platform:
        for selection, error, says in cases:
            with pytest.raises(error, match=says):
                refuse(platform, selection, person())
            with pytest.raises(error, match=says):
                approve(platform, no_session, selection, person())
        assert platform.ledger.decisions(LateDecision) == ()


@pytest.mark.proof
def test_two_who_approve_and_one_who_ingests_at_once_take_every_row_once(late: History) -> None:
    late.deliver("2017-04-06", "more.jsonl", Version(2, 6, 5, "6.00"), Version(3, 3, 5, "6.00"))
    said: list[str] = []
    work: list[Callable[[], object]] = [
        lambda: approved(late, LateSelection(arrival=MIXED)),
        lambda: approved(late, LateSelection(arrival=MIXED)),
        late.world.refresh,
    ]
    together = threading.Barrier(len(work))

    def run(one: Callable[[], object]) -> None:
        together.wait()
        try:
            one()
        except LateQueueError as error:
            said.append(error.what)

    threads = [threading.Thread(target=run, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == [f"Nothing of {MIXED} waits in the late queue."]
    late.refresh()
    raw = [row for row in late.world.rows("raw.transactions") if row["_kind"] == "record"]
    assert len(raw) == 4 + 4 + 1
    assert late.kept() == late.expected(late=["transactions/2017-04-06/more.jsonl"])


def test_rows_that_wait_are_listed_though_their_amounts_are_too_large_for_an_exact_sum() -> None:
    huge = Decimal("900000000000000000000000000000000000.00")
    day, arrived = date(2017, 1, 2), date(2017, 6, 1)
    rows = pa.table(
        {
            "_arrival": ["t/a.jsonl"] * 2,
            "_arrival_date": pa.array([arrived] * 2, pa.date32()),
            "event_date": pa.array([day] * 2, pa.date32()),
            "x": pa.array([huge] * 2, pa.decimal128(38, 2)),
            "y": pa.array([Decimal("0.10"), Decimal("0.20")], pa.decimal128(12, 2)),
            "whole": pa.array([2**63 - 1, 2**63 - 1], pa.int64()),
        }
    )
    [found] = added_up("raw.t", ds.dataset(rows), ["x", "y", "whole"])
    assert (found.rows, found.amounts["y"]) == (2, Decimal("0.30"))
    assert found.amounts["whole"] == 2**64 - 2, "a whole number, as `diff` sums it"
    assert found.amounts["x"] == pytest.approx(2 * huge)
