"""What the checks say of deliveries: rows refused, too late or too far ahead warn, and are accounted for."""

from __future__ import annotations

from datetime import date

import pytest

from platform_assets.domains.retail.contracts import RAW_TRANSACTIONS
from platform_assets.quality.deliveries import delivery_checks, remedy, repaired_by
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
        "that file out with `platform-assets withdraw transactions/2017-05-02/a.csv`"
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
    assert "correct the contract, if the files are right, and `platform-assets reload raw." in remedy(
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
