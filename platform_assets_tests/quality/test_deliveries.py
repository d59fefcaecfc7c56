"""What the checks say of deliveries and of days that are overdue: what is refused, late, early or set aside warns."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.contracts import Checks, Freshness
from platform_assets.domains.retail.contracts import DAILY_SALES, RAW_TRANSACTIONS, SILVER_TRANSACTIONS
from platform_assets.planning.windows import Calendar
from platform_assets.quality.deliveries import (
    delivery_checks,
    freshness_finding,
    overdue_days,
    quarantine_finding,
    remedy,
    repaired_by,
)
from platform_assets.records.history import ArrivalRecord
from platform_assets.records.manifest import Arrival

DAY = date(2017, 5, 2)


def arrival(name: str, *, taken: int, refused: int = 0, late: int = 0) -> Arrival:
    return Arrival(
        table="raw.transactions",
        path=f"transactions/{DAY}/{name}",
        arrival_date=DAY,
        size=1,
        sha256="0" * 64,
        modified_ns=1,
        landed=taken + refused + late,
        taken=taken,
        refused=refused,
        late=late,
    )


def test_rows_that_are_all_taken_pass() -> None:
    contract, conservation = delivery_checks(RAW_TRANSACTIONS, [arrival("a.csv", taken=3)], [DAY])[DAY]
    assert (contract.outcome, conservation.outcome) == ("passed", "passed")
    assert conservation.sentence == "3 rows landed = 3 in raw + 0 refused + 0 in the late queue"


def test_late_rows_are_told_and_counted_apart_from_refused_ones() -> None:
    files = [arrival("a.csv", taken=3, refused=1), arrival("b.csv", taken=1, late=1_200)]
    contract, conservation = delivery_checks(RAW_TRANSACTIONS, files, [DAY])[DAY]
    assert contract.outcome == "warned"
    assert "1 of 1,205 rows refused, 1,200 rows wait in the late queue" in contract.sentence
    assert contract.numbers["rows waiting"] == 1_200
    [finding] = contract.findings
    assert finding.message.endswith(
        "of refused rows: deliver them again in order, as a-again.csv beside transactions/2017-05-02/a.csv, or take "
        "that file out with `platform-assets undo transactions/2017-05-02/a.csv --reason …`"
    )
    assert finding.expected == "every file and row as declared, at most 90 days after its day and 366 before it"
    assert finding.examples == (
        "transactions/2017-05-02/a.csv: 1 of 4 rows",
        "transactions/2017-05-02/b.csv: 1,200 rows wait",
    )
    assert conservation.sentence == "1,205 rows landed = 4 in raw + 1 refused + 1,200 in the late queue"


@pytest.mark.parametrize(
    ("name", "again"), [("a.csv", "a-again.csv"), ("a b.csv.gz", "a b-again.csv.gz"), ("a.1.jsonl", "a.1-again.jsonl")]
)
def test_rows_delivered_again_as_it_is_advised_repair_the_file(name: str, again: str) -> None:
    refused = ArrivalRecord(**vars(arrival(name, taken=1, refused=2)), publication="1")
    assert f"as {again} beside" in remedy([refused, arrival("other.csv", taken=3, refused=1)], 7)
    assert "(and 1 other file likewise)" in remedy([refused, arrival("other.csv", taken=3, refused=1)], 7)
    assert "reload" not in remedy([refused, arrival("other.csv", taken=3, refused=1)], 7)
    assert "correct the contract, if the files are right, and `platform-assets admin reload raw." in remedy(
        [refused], refused.landed
    )
    assert "reload" not in remedy([refused], 700)
    later = ArrivalRecord(**vars(arrival(again, taken=2)), publication="2")
    assert repaired_by(refused, [later], {"1": 4, "2": 5}) == (later,)


def test_which_of_two_deliveries_came_later_the_releases_say_and_no_clock() -> None:
    """Two machines take files, and the clock of one is behind."""
    refused = ArrivalRecord(**vars(arrival("a.csv", taken=1, refused=2)), publication="20170502T1220-of-one")
    again = ArrivalRecord(**vars(arrival("a-again.csv", taken=2)), publication="20170502T1205-of-the-other")
    assert repaired_by(refused, [again], {refused.publication: 7, again.publication: 8}) == (again,)
    assert repaired_by(refused, [again], {refused.publication: 8, again.publication: 7}) == ()


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


def figures(keys: int, quarantined: int) -> dict[str, int]:
    return {"keys": keys, "keys_quarantined": quarantined}


def test_a_day_of_which_hardly_anything_is_good_is_warned_of_with_both_numbers() -> None:
    finding = quarantine_finding(SILVER_TRANSACTIONS, DAY, figures(832, 831))
    assert finding is not None
    assert not finding.blocks
    assert finding.message == (
        "silver.transactions on 2017-05-02: of 831 of 832 keys every row is in quarantine, more than 10 %; "
        "`platform-assets read quarantine.transactions --day 2017-05-02` shows them"
    )


@pytest.mark.parametrize(
    ("percent", "keys", "bad", "warns"),
    [(10, 10, 1, False), (10, 1000, 101, True), (0, 1000, 1, True), (0, 0, 0, False), (100, 5, 5, False)],
)
def test_the_limit_is_the_contract_s_and_may_be_reached(percent: int, keys: int, bad: int, *, warns: bool) -> None:
    contract = replace(SILVER_TRANSACTIONS, checks=Checks(aside_percent=percent))
    assert (quarantine_finding(contract, DAY, figures(keys, bad)) is not None) is warns


def test_nothing_is_said_of_days_whose_keys_were_not_counted() -> None:
    assert quarantine_finding(SILVER_TRANSACTIONS, DAY, {"quarantined": 831}) is None
