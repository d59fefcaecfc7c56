"""Which days of two sides are looked at, and whether they agree, is decided from digests, types and counts alone."""

from __future__ import annotations

from datetime import date
from decimal import Context, Decimal, localcontext

import pytest

from platform_assets.contracts.checks import EXACT, Tolerance
from platform_assets.quality.sides import (
    DayBeside,
    SidesBeside,
    days_to_join,
    difference,
    differing_days,
    outcome_of,
    shared_columns,
)
from platform_assets.records.differences import KeyCounts
from platform_assets.records.digest import Digest

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
    found = SidesBeside(("a", "b"), ("k",), (), Tolerance.parse("1"), 4, (20, 19), days, ())
    assert found.sums == {"x": (Decimal(4), Decimal(3)), "y": (None, None)}
    assert (found.counts, found.different, found.agree) == (KeyCounts(1), days[:1], False)
    assert days[0].figures == {"rows": (5, 4), "x": (Decimal(3), Decimal(1)), "y": (Decimal(1), None)}


def test_a_difference_is_told_of_numbers_alone_and_exactly() -> None:
    with localcontext(Context(prec=3, traps=[])):  # as code of a user may have it
        assert difference("1234567890123456789012345678.05", "0.01") == "+1,234,567,890,123,456,789,012,345,678.04"
        assert difference("a", "b") is None
    assert (difference("1234.50", 1), difference("a", "b"), difference(None, 1)) == ("+1,233.50", None, None)
