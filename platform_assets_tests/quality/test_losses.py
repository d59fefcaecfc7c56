"""A day that loses most of its rows is told where no history can judge it, and stays told until it is mended."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from platform_assets.domains.retail.contracts import SILVER_TRANSACTIONS
from platform_assets.planning.windows import Calendar
from platform_assets.quality.baseline import (
    History,
    Interval,
    Rhythm,
    Undecided,
    loss_finding,
    not_missed,
    rows_before,
    scant_finding,
    with_rows_before,
)
from platform_assets.quality.findings import DayChecks, Finding, checked
from platform_assets.records.history import DayRecord

DAY = date(2017, 1, 2)
YOUNG = Undecided("3 of 14 days of history", lacks_history=True)
RHYTHM = Rhythm(Calendar(date(2017, 1, 1), date(2017, 3, 1)))


def loss(rows: int, before: int, gone: int = 0) -> Finding | None:
    return loss_finding(SILVER_TRANSACTIONS, DAY, rows, before, YOUNG, gone=gone)


def published(rows: int, *findings: Finding) -> DayRecord:
    """The record of a day that was published with what volume found."""
    day = DayChecks(rows, (checked("volume", findings, "", {}, judged=False),))
    return DayRecord("silver.transactions", DAY, "p", "d", "f", rows, 1, 1, day.figures, {}, "c", 0.0)


def test_a_halved_day_is_a_warning_with_both_numbers_and_says_why_nobody_can_judge_it() -> None:
    finding = loss(480, 1000)
    assert finding is not None
    assert not finding.blocks
    assert finding.actual == "rows fell from 1,000 to 480 with too little history to judge"
    assert finding.message.startswith(f"silver.transactions on 2017-01-02: {finding.actual} (3 of 14 days of history)")
    assert checked("volume", [finding], "", {}, judged=False).outcome == "warned"


@pytest.mark.parametrize(
    ("before", "rows", "warns"),
    [
        (1000, 0, True),
        (1000, 498, True),
        (1000, 499, False),
        (1000, 3000, False),
        (3, 0, True),
        (3, 1, False),
        (1, 0, True),
        (0, 0, False),
    ],
)
def test_half_may_go_and_one_row_more(before: int, rows: int, *, warns: bool) -> None:
    assert (loss(rows, before) is not None) is warns


def test_what_people_took_out_is_not_missed_but_the_rest_is() -> None:
    assert loss(0, 1000, gone=1000) is None
    assert loss(0, 1000, gone=1200) is None, "rows that had counted for nothing were withdrawn as well"
    assert loss(400, 1000, gone=300) is None
    finding = loss(100, 1000, gone=300)
    assert finding is not None
    assert finding.expected == "at least half of 700 rows; 300 are gone from what it is made from"


def test_a_loss_stays_told_when_the_day_is_computed_again_and_ends_when_rows_come_back() -> None:
    first = loss(480, rows_before(published(1000)))
    assert first is not None
    second = loss(481, rows_before(published(480, first)))
    assert second is not None
    assert second.actual.startswith("rows fell from 1,000 to 481")
    assert loss(600, rows_before(published(481, second))) is None
    assert rows_before(published(600)) == 600


def test_rows_that_people_took_out_are_missed_where_others_came_in_their_place() -> None:
    """A truncated repair is the likeliest of all losses."""
    assert not_missed(withdrawn=10, came=0) == 10
    assert not_missed(withdrawn=10, came=1) == 0
    assert not_missed(withdrawn=-4, came=0) == 0, "they count again"
    assert not_missed(withdrawn=3, came=-2) == 3, "some were erased"


def test_what_was_withdrawn_from_a_day_that_is_warned_of_does_not_end_the_warning_once_it_comes_back() -> None:
    first = loss(6, rows_before(published(20)))
    assert first is not None
    second = loss(0, rows_before(published(6, first)), gone=14)
    assert second is not None
    third = loss(6, rows_before(published(0, second)))
    assert third is not None
    assert third.actual.startswith("rows fell from 20 to 6")


def test_a_step_of_all_days_has_no_other_days_and_still_knows_what_one_had_lost() -> None:
    odd = Finding("volume", DAY, "warn", "too few rows", "900 to 1,100 rows", "400 rows", numbers={"rows": 400})
    kept = with_rows_before(odd, 400, published(1000))
    assert rows_before(published(400, kept)) == 1000
    assert with_rows_before(odd, 400, published(500)) == odd
    assert with_rows_before(odd, 400, None) == odd


def test_only_a_lack_of_history_leaves_a_day_to_its_own_content() -> None:
    days = {DAY + timedelta(days=n): 500 for n in range(20)}
    rhythm = replace(RHYTHM, closed=frozenset({DAY}))
    filled_later = replace(RHYTHM, full=Calendar(date(2017, 1, 20), date(2017, 3, 1)))
    usual = {
        "known": History(days, RHYTHM).usual(DAY),
        "young": History(dict(list(days.items())[:5]), RHYTHM).usual(DAY),
        "no whole window": History(days, filled_later).usual(DAY),
        "closed": History(days, rhythm).usual(DAY),
        "mostly empty": History({DAY + timedelta(days=n): 0 for n in range(40)}, RHYTHM).usual(DAY),
        "one like it, empty": History({DAY + timedelta(days=7): 0}, RHYTHM).usual(DAY),
    }
    assert isinstance(usual.pop("known"), Interval)
    told = {name for name, undecided in usual.items() if isinstance(undecided, Undecided) and undecided.lacks_history}
    assert told == {"young", "no whole window", "one like it, empty"}


def test_half_a_day_among_whole_ones_that_come_at_once_is_warned_of():
    usual = Interval(low=900, high=1100, middle=1000, days=20, of="days")
    finding = scant_finding(SILVER_TRANSACTIONS, DAY, 165, usual, YOUNG)
    assert finding is not None
    assert (finding.check, finding.severity, finding.numbers) == ("volume", "warn", {"rows": 165})
    assert (
        "165 rows, fewer than half of what is usual among the days that came with it; 900 to 1,100" in finding.message
    )
    for rows, beside in ((600, usual), (5000, usual), (165, YOUNG)):
        assert scant_finding(SILVER_TRANSACTIONS, DAY, rows, beside, YOUNG) is None
