"""A check speaks of every day, a person accepts only what can be true, and no measure or mask shows too much."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.contracts import Rule
from platform_assets.contracts.rules import RuleCount
from platform_assets.domains.retail.contracts import DAILY_SALES, HOUSEHOLD_28D, SILVER_PRODUCTS, SILVER_TRANSACTIONS
from platform_assets.quality.findings import (
    ACCEPTABLE,
    Checked,
    DayChecks,
    Finding,
    Masking,
    checked,
    checks_before_publication,
    day_metrics,
    percentile_95,
)
from platform_assets.quality.gates import (
    MovedKeys,
    RowBalance,
    conservation_findings,
    contract_findings,
    moved_keys_finding,
    rule_finding,
)

DAY = date(2017, 3, 4)
MASKING = Masking(b"secret")


def finding(check="volume", severity="block"):
    return Finding(check, DAY, severity, f"{check} is odd", "", "", numbers={"rows": 3})


def test_a_day_that_passes_says_what_was_looked_at():
    found = checked("volume", (), "3 rows; 2 to 4 are usual", {"rows": 3})
    assert found == Checked("volume", "3 rows; 2 to 4 are usual", {"rows": 3})
    assert found.outcome == "passed"


def test_a_day_is_blocked_by_its_first_finding_that_blocks():
    warned = checked("reconciliation", [finding("reconciliation", "warn")], "", {})
    blocked = checked("volume", [finding("volume", "warn"), finding()], "", {})
    assert (warned.outcome, blocked.outcome) == ("warned", "blocked")
    day = DayChecks(3, (warned, blocked))
    assert [found.check for found in day.findings] == ["reconciliation", "volume", "volume"]
    assert [found.check for found in day.blocking] == ["volume"]
    assert not DayChecks(3, (warned,)).blocking
    assert blocked.numbers == {"rows": 3}


def test_what_a_person_accepts_is_shown_and_counted_and_keeps_no_day_back():
    blocked = checked("volume", [finding()], "", {})
    accepted = blocked.accepted_by_hand()
    assert accepted.outcome == "warned"
    assert accepted.sentence == "volume is odd; accepted by hand"
    assert DayChecks(3, (accepted,)).figures == {"accepted_volume": 1}
    assert not DayChecks(3, (accepted,)).blocking
    assert not DayChecks(3, (accepted,)).warnings, "somebody has looked at it"
    [warned] = DayChecks(3, (checked("volume", [finding("volume", "warn")], "", {}), accepted)).warnings
    assert warned.gate == "volume"
    passed = checked("volume", (), "fine", {})
    assert passed.accepted_by_hand() == passed


def test_a_broken_promise_and_a_lost_row_cannot_be_accepted():
    assert set(ACCEPTABLE) == {"reconciliation", "rules", "settled", "volume"}


def test_every_table_has_the_checks_that_make_sense_for_it():
    assert checks_before_publication(SILVER_TRANSACTIONS) == ("contract", "conservation", "volume")
    assert checks_before_publication(SILVER_PRODUCTS) == ("contract", "conservation", "volume")
    assert checks_before_publication(DAILY_SALES) == ("contract", "reconciliation", "volume")


def test_a_broken_contract_names_the_rows_and_masks_whom_they_are_about():
    missing, repeated = contract_findings(
        HOUSEHOLD_28D, DAY, {"spend": 2}, 1, MASKING, without={"spend": [("4711",), ("4712",)]}, twice=[("4713",)]
    )
    assert missing.message == (
        "gold.household_28d on 2017-03-04: 2 rows without spend, which may not be null; "
        f"first household_id {MASKING.masked('4711')}"
    )
    assert len(missing.examples) == 2
    assert repeated.message == (
        "gold.household_28d on 2017-03-04: 1 key (household_id) with more than one row; "
        f"first household_id {MASKING.masked('4713')}"
    )
    assert missing.blocks
    assert repeated.blocks
    assert (missing.numbers, repeated.numbers) == ({"rows_without_spend": 2}, {"repeated_keys": 1})


def test_a_broken_rule_says_how_many_rows_may_break_it():
    rule = Rule("few_lines", "lines < 9", "Baskets are small.", severity="warn")
    found = rule_finding(DAILY_SALES, rule, DAY, RuleCount(2, 5), ())
    assert found.expected == "at most 0 rows may break 'few_lines'"


def test_rows_lost_and_won_are_named_on_either_side():
    row_balance = RowBalance(raw=10, kept=7, superseded=1, voided=1, quarantined=1)
    assert str(row_balance) == "10 raw rows = 7 kept + 1 superseded + 1 voided + 1 quarantined"
    found = conservation_findings(
        SILVER_TRANSACTIONS,
        DAY,
        row_balance,
        MASKING,
        expected=8,
        raw_recorded=10,
        quarantine_staged=1,
        missing=[("5", "1")],
        extra=[("6", None)],
    )
    [lost] = found
    assert lost.message == (
        "silver.transactions on 2017-03-04: 7 rows staged, but 8 keys that stay; first lost: basket_id 5, product_id 1"
    )
    assert lost.examples[1] == "not expected: basket_id 6, product_id null"
    assert lost.numbers == {"rows_staged": 7, "keys_that_stay": 8}
    assert not conservation_findings(
        SILVER_TRANSACTIONS, DAY, row_balance, MASKING, expected=7, raw_recorded=10, quarantine_staged=1
    )
    three = conservation_findings(
        SILVER_TRANSACTIONS, DAY, row_balance, MASKING, expected=8, raw_recorded=9, quarantine_staged=0
    )
    assert len(three) == 3


SILVER = {"raw": 1010, "withdrawn": 10, "keys": 990, "quarantined": 20}


@pytest.mark.parametrize(
    ("rows", "figures", "metrics"),
    [
        (970, SILVER, {"duplicates_per_1000": 10.0, "quarantined_share": 0.02}),
        (0, dict.fromkeys(SILVER, 0), {"duplicates_per_1000": 0.0, "quarantined_share": 0.0}),
        (970, SILVER | {"raw": 1510, "replaced": 500}, {"duplicates_per_1000": 10.0, "quarantined_share": 0.02}),
        (12, {"lag_days": 5, "tombstones": 2}, {"lag_of_arrival_days": 0.5}),
        (0, {"lag_days": 0}, {"lag_of_arrival_days": 0.0}),
        (5, {}, {}),
    ],
)
def test_metrics_of_a_day(rows: int, figures: dict[str, int], metrics: dict[str, float]) -> None:
    assert day_metrics(rows, figures) == metrics


@pytest.mark.parametrize(("values", "found"), [([], None), ([3.0], 3.0), (list(range(101)), 95.0), ([1.0, 2.0], 1.95)])
def test_the_95th_percentile(values: list[float], found: float | None) -> None:
    assert percentile_95(values) == found


def test_a_masked_value_never_changes():
    assert MASKING.masked(4711) == MASKING.masked("4711") == "#f53b7228"
    assert MASKING.masked(4712) != MASKING.masked(4711)


def test_another_installation_masks_otherwise_and_shows_no_secret():
    assert Masking(b"another secret").masked(4711) != MASKING.masked(4711)
    assert "secret'" not in repr(MASKING)


@given(st.text(min_size=9))
def test_a_masked_value_does_not_show_the_value(value):
    assert value not in MASKING.masked(value)
    assert len(MASKING.masked(value)) == 9


def test_a_null_is_not_hidden():
    assert MASKING.masked(None) == "null"


FIRST = "basket_id 7 from store_id 330 to store_id 331"


ON = f"gold.daily_sales on {DAY}:"


TWICE = "Beside what is carried over they would count twice or not at all;"


@pytest.mark.parametrize(
    ("moved", "what", "todo"),
    [
        (
            MovedKeys("silver.transactions", 2, (FIRST,), ("store_id 331",)),
            f"2 records of silver.transactions moved between these keys and others, first {FIRST}.",
            "name store_id 331, too, or compute the day whole",
        ),
        (
            MovedKeys("silver.transactions", unknown="it is gone"),
            "whether records of silver.transactions moved between keys is not known: it is gone.",
            "compute the day whole",
        ),
    ],
)
def test_it_names_what_moved_and_what_to_do_and_nobody_can_accept_it(moved: MovedKeys, what: str, todo: str) -> None:
    found = moved_keys_finding(DAILY_SALES, DAY, moved)
    assert found.message == f"{ON} {what} {TWICE} {todo}"
    assert found.blocks
    assert found.check not in ACCEPTABLE
