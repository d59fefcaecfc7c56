"""A settled figure moves no further than declared, however small the steps in which it does."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import pytest

from platform_assets.contracts import Contract, Settled
from platform_assets.domains.retail.contracts import DAILY_SALES
from platform_assets.quality.findings import Masking
from platform_assets.quality.gates import (
    MOST,
    Drift,
    as_figures,
    drift_of,
    is_settled,
    settled_finding,
)
from platform_assets.quality.sides import Pair
from platform_assets.records.differences import Moves, Sum

DAY = date(2017, 3, 4)
STORE = Settled(("net",), ("store_id",), after_days=30, tolerance="1.00")
SHARE = replace(STORE, tolerance="1 %")
EXACT = replace(STORE, tolerance="")
FIVE, NONE = Sum("net", ("store_id",), ("5",)), Sum("net", ("store_id",), (None,))


def contract(*declared: Settled) -> Contract:
    return replace(DAILY_SALES, settled=declared)


def money(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def judge(
    declared: Settled, pair: tuple[str | None, str | None], drift: str = "0", key: Sum = FIVE
) -> tuple[str, Drift]:
    before = {key: Decimal(drift)} if Decimal(drift) else {}
    pairs: dict[Sum, Pair] = {key: (money(pair[0]), money(pair[1]))}
    finding, moved = settled_finding(contract(declared), declared, DAY, Moves(1, pairs), before, Masking(b"secret"))
    return (finding.message if finding else ""), moved


@pytest.mark.parametrize(
    ("declared", "pair", "drift", "says"),
    [
        (STORE, ("100.00", "101.00"), "0", ""),
        (STORE, ("100.00", "101.01"), "0", "store_id 5: net 100.00 became 101.01 (+1.01)"),
        (STORE, ("100.00", "98.50"), "0", "store_id 5: net 100.00 became 98.50 (-1.50)"),
        (SHARE, ("100.00", "101.00"), "0", ""),
        (SHARE, ("-100.00", "-101.01"), "0", ""),
        (SHARE, ("100.00", "102.00"), "0", "store_id 5: net 100.00 became 102.00 (+2.00)"),
        (SHARE, ("100.00", "-100.00"), "0", "store_id 5: net 100.00 became -100.00 (-200.00)"),
        (EXACT, ("0.1", "0.1000000000000000000000000000000000001"), "0", "became"),
        (STORE, ("100.60", "101.20"), "0.60", "store_id 5: net 100.00 became 101.20 (+1.20)"),  # small steps add up
        (STORE, ("100.60", "100.00"), "0.60", ""),  # and back
        (STORE, ("100.90", "99.10"), "0.90", ""),
        (STORE, (None, "0.50"), "0", ""),
        (STORE, (None, "5.00"), "0", "store_id 5: net nothing became 5.00 (+5.00)"),  # a new key
        (STORE, ("5.00", None), "0", "store_id 5: net 5.00 became nothing (-5.00)"),  # a key that is gone
        (SHARE, (None, "0.01"), "0", "became 0.01"),  # of nothing every share is nothing
        (STORE, ("0.00", None), "0", ""),  # nothing is zero
        (STORE, (None, "1.80"), "-0.70", "store_id 5: net 0.70 became 1.80 (+1.10)"),  # and one that comes back
    ],
)
def test_a_figure_is_held_against_what_it_was_when_it_settled(
    declared: Settled, pair: tuple[str | None, str | None], drift: str, says: str
) -> None:
    found, _ = judge(declared, pair, drift)
    assert says in found
    assert bool(says) == bool(found)


def test_the_drift_is_kept_exactly_and_goes_when_the_figure_is_back() -> None:
    for key in (FIVE, NONE, Sum("net", (), ())):
        declared = replace(STORE, by=key.by)
        _, drift = judge(declared, ("100.00", "100.60"), key=key)
        assert drift == {key: Decimal("0.60")} == drift_of(as_figures(drift))
        assert judge(declared, ("100.60", "100.00"), "0.60", key)[1] == {}
    wide = {FIVE: Decimal("-12345678901234567890123456789012345.678"), NONE: Decimal("1E+3")}
    assert drift_of({"rows": 3} | as_figures(wide)) == wide
    untouched, moved = settled_finding(contract(STORE), STORE, DAY, Moves(), wide, Masking(b""))
    assert (untouched, moved) == (None, wide), "what this computation left alone was judged before"
    assert settled_finding(contract(STORE), replace(STORE, by=()), DAY, Moves(), wide, Masking(b""))[1] == {}


def test_an_accepted_sum_starts_anew_and_the_others_of_the_day_do_not() -> None:
    north, west = (Sum("net", ("store_id",), (store,)) for store in ("north", "west"))
    moves = Moves(1, {west: (Decimal(10), Decimal(30))})
    for keys, left in ((1, {north: Decimal("0.70")}), (MOST + 1, {})):
        many = replace(moves, keys=keys, pairs=moves.pairs if keys == 1 else {})
        before = {north: Decimal("0.70"), west: Decimal("0.20")}
        finding, drift = settled_finding(contract(STORE), STORE, DAY, many, before, Masking(b""), is_accepted=True)
        assert finding is not None
        assert drift == left


def test_the_farthest_sums_are_named_and_too_many_are_held_whatever_each_moves_by() -> None:
    sums: dict[Sum, Pair] = {Sum("net", ("store_id",), (str(n),)): (Decimal(10), Decimal(12 + n)) for n in range(7)}
    finding, _ = settled_finding(contract(STORE), STORE, DAY, Moves(7, sums), {}, Masking(b""))
    assert finding is not None
    assert finding.blocks
    assert finding.actual == "7 sums moved", "which stays in the manifest once it is accepted, and quotes no key"
    assert (len(finding.examples), finding.numbers) == (5, {"settled_sums_moved": 7})
    assert finding.message == (
        f"gold.daily_sales on {DAY}: settled figures moved: store_id 6: net 10 became 18 (+8) and 6 more sums; "
        "at most 1.00 allowed"
    )
    many, _ = settled_finding(contract(STORE), STORE, DAY, Moves(MOST + 1), {}, Masking(b""))
    assert many is not None
    assert many.blocks
    assert "1,001 sums, each within its limit; at most 1,000 of them may move" in many.message


def test_a_day_is_settled_by_what_was_delivered_and_not_by_the_clock() -> None:
    assert not is_settled(STORE, DAY, None)
    assert [is_settled(STORE, DAY, DAY + timedelta(days)) for days in (-1, 30, 31)] == [False, False, True]
