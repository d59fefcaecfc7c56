"""Two tables that differ are told apart key by key, from digests and counts where these are enough."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Context, Decimal, localcontext

import pytest

from platform_assets.contracts import Amount, Contract, Reconciliation
from platform_assets.contracts.checks import EXACT, Tolerance
from platform_assets.domains.retail.contracts import DAILY_SALES, HOUSEHOLD_28D
from platform_assets.quality.findings import Finding, Masking
from platform_assets.quality.gates import reconciled_sentence, reconciliation_finding
from platform_assets.quality.sides import (
    DayBeside,
    SidesBeside,
    days_to_join,
    difference,
    differing_days,
    facts,
    outcome_of,
    shared_columns,
)
from platform_assets.records.differences import Difference, Differences, Digest, KeyCounts

DAY = date(2017, 3, 4)


MASKING = Masking(b"secret")


BY_STORE = DAILY_SALES.reconciles[0]


def finding_of(found: Differences, declared: Reconciliation = BY_STORE, contract: Contract = DAILY_SALES) -> Finding:
    finding = reconciliation_finding(contract, declared, DAY, found, MASKING)
    assert finding is not None
    return finding


def unequal(*examples):
    return Differences(keys=len(examples), unequal=len(examples), examples=examples)


def test_tables_that_agree_are_no_finding():
    assert reconciliation_finding(DAILY_SALES, BY_STORE, DAY, Differences(keys=9), MASKING) is None
    assert reconciled_sentence(BY_STORE) == "lines, units, net as in silver.transactions for each store_id"


def test_what_differs_is_named_with_both_values_and_the_difference():
    examples = (
        Difference(("3",), None, (2, 2, Decimal("7.25"))),
        Difference(("4",), (1, 2, Decimal("0.10")), None),
        Difference(("1",), (3, 9, Decimal("12.50")), (3, 9, Decimal("1014.00"))),
    )
    finding = finding_of(Differences(4, 1, 1, 1, examples))
    assert finding.blocks
    assert finding.examples == (
        "store_id 3: only in silver.transactions, lines 2, units 2, net 7.25",
        "store_id 4: only in gold.daily_sales, lines 1, units 2, net 0.10",
        "store_id 1: net 12.50, not 1,014.00 (-1,001.50)",
    )
    assert finding.message == (
        "gold.daily_sales on 2017-03-04: lines, units, net by store_id not as in silver.transactions: of 4 keys "
        "1 only in silver.transactions, 1 only in gold.daily_sales, 1 with other figures; "
        f"first {finding.examples[0]}"
    )
    assert finding.numbers == {"keys": 4, "missing": 1, "extra": 1, "unequal": 1}


def test_a_comparison_per_day_has_no_keys():
    declared = Reconciliation("silver.transactions", (), (Amount("lines", "sum(lines)", "count(1)"),))
    assert finding_of(unequal(Difference((), (4,), (5,))), declared).message == (
        "gold.daily_sales on 2017-03-04: lines not as in silver.transactions: 1 with other figures; "
        "first the day: lines 4, not 5 (-1)"
    )


def test_a_sum_over_nulls_is_not_zero():
    declared = Reconciliation("silver.transactions", (), (Amount("net", "sum(net)", "sum(net_amount)"),))
    found = unequal(Difference((), (None,), (Decimal(0),)))
    assert finding_of(found, declared).examples == ("the day: net null, not 0",)


def test_a_household_is_masked():
    found = unequal(Difference(("4711",), (Decimal("5.00"),), (Decimal("6.00"),)))
    finding = finding_of(found, HOUSEHOLD_28D.reconciles[0], HOUSEHOLD_28D)
    assert finding.examples == (f"household_id {MASKING.masked(4711)}: spend 5.00, not 6.00 (-1.00)",)
    assert "4711" not in finding.message


def test_a_figure_made_of_a_sensitive_column_is_masked():
    columns = tuple(replace(column, sensitive=column.name == "spend") for column in HOUSEHOLD_28D.columns)
    contract = replace(HOUSEHOLD_28D, columns=columns)
    found = unequal(
        Difference(("2",), (Decimal("5.00"),), None), Difference(("1",), (Decimal("5.00"),), (Decimal("6.00"),))
    )
    five, six = MASKING.masked(Decimal("5.00")), MASKING.masked(Decimal("6.00"))
    assert finding_of(found, contract.reconciles[0], contract).examples == (
        f"household_id 2: only in gold.household_28d, spend {five}",
        f"household_id 1: spend {five}, not {six}",
    )


def test_each_comparison_has_a_severity_and_a_tolerance_of_its_own():
    warns = replace(BY_STORE, severity="warn", tolerance="0.05, 1200 keys")
    found = Differences(keys=9000, missing=1200, ours=(1, 1, Decimal(2)), theirs=(4, 1, Decimal(3)))
    assert reconciliation_finding(DAILY_SALES, warns, DAY, found, MASKING) is None
    assert reconciled_sentence(warns).endswith("for each store_id, within 0.05, 1,200 keys")
    finding = finding_of(replace(found, extra=1), warns)
    assert not finding.blocks
    assert finding.actual == (
        "of 9,000 keys 1,200 only in silver.transactions, 1 only in gold.daily_sales; "
        "in all lines 1, not 4 (-3), net 2, not 3 (-1)"
    )
    assert finding_of(replace(found, extra=1)).blocks


DAYS = [date(2017, 1, day) for day in range(1, 5)]


ONE, OTHER, EMPTY = Digest(5, (1, 2, 3, 4)), Digest(5, (1, 2, 3, 5)), Digest()


def test_a_day_differs_by_its_content_and_an_empty_one_is_as_a_missing_one() -> None:
    left = dict(zip(DAYS, (ONE, ONE, EMPTY, ONE), strict=True))
    assert differing_days(left, {DAYS[0]: ONE, DAYS[1]: OTHER}) == (DAYS[1], DAYS[3])


def test_keys_are_joined_where_somebody_asks_or_a_hash_cannot_tell() -> None:
    assert days_to_join(DAYS, EXACT, drill=False) == ()
    assert days_to_join(DAYS, EXACT, drill=True) == days_to_join(DAYS, Tolerance.parse("1 key"), drill=False)


@pytest.mark.parametrize(
    ("tolerance", "keys", "outcome"),
    [
        ("", None, "different"),
        ("", KeyCounts(1), "different"),
        ("", KeyCounts(), "different"),
        ("0.05", KeyCounts(), "within tolerance"),
        ("0.05", KeyCounts(0, 0, 1), "different"),
        ("0.05, 3 keys", KeyCounts(1, 1, 1), "within tolerance"),
        ("2 keys", KeyCounts(1, 1, 1), "different"),
    ],
)
def test_a_day_agrees_if_no_more_keys_differ_than_may(tolerance: str, keys: KeyCounts | None, outcome: str) -> None:
    assert outcome_of(keys, Tolerance.parse(tolerance)) == outcome


def test_columns_that_one_side_lacks_or_has_otherwise_are_told() -> None:
    left = {"event_date": "date", "k": "long", "x": "int", "_arrival": "string"}
    right = {"event_date": "date", "k": "long", "x": "long", "y": "string"}
    shared, told = shared_columns(left, right)
    assert shared == ("k",)
    assert told == (
        "column 'x' is int on the left and long on the right",
        "column 'y' is absent on the left and string on the right",
    )
    assert shared_columns(left, right, is_one_table=False)[1] == told[:1]


def test_the_sums_of_all_days_are_those_of_each() -> None:
    days = (
        DayBeside(DAYS[0], "different", (5, 4), {"x": (Decimal(3), Decimal(1)), "y": (Decimal(1), None)}, KeyCounts(1)),
        DayBeside(DAYS[1], "within tolerance", (5, 5), {"x": (Decimal(1), Decimal(2)), "y": (None, None)}, KeyCounts()),
    )
    found = SidesBeside(("a", "b"), ("k",), (), Tolerance.parse("1"), 4, (20, 19), days, (), (DAYS[0],))
    assert f"The calendar does not have {DAYS[0]}: raw keeps such rows" in " ".join(facts(found))
    assert found.sums == {"x": (Decimal(4), Decimal(3)), "y": (None, None)}
    assert (found.counts, found.different, found.agree) == (KeyCounts(1), days[:1], False)
    assert days[0].figures == {"rows": (5, 4), "x": (Decimal(3), Decimal(1)), "y": (Decimal(1), None)}


def test_a_difference_is_told_of_numbers_alone_and_exactly() -> None:
    with localcontext(Context(prec=3, traps=[])):  # as code of a user may have it
        assert difference("1234567890123456789012345678.05", "0.01") == "+1,234,567,890,123,456,789,012,345,678.04"
        assert difference("a", "b") is None
    assert (difference("1234.50", 1), difference("a", "b"), difference(None, 1)) == ("+1,233.50", None, None)
