"""What only the ledger knows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from platform_assets.ledger.ledger import Ledger
from platform_assets.records.history import ROLL_BACK
from platform_assets_tests.support.ledger_records import NOON, TABLE, hold, nth, simple


def test_a_hold_comes_back_as_it_was_written(ledger: Ledger) -> None:
    given = hold(nth(0), reason="amount > 10 %; 'x'")
    ledger.hold([given])
    assert ledger.holds() == ledger.holds(TABLE) == (given,)
    assert ledger.holds("gold.daily_sales") == ()


def test_the_same_fingerprint_refused_again_renews_the_hold(ledger: Ledger) -> None:
    ledger.hold([hold(nth(0))])
    again = replace(hold(nth(0)), reason="still", run="another", created_at=NOON + timedelta(hours=1))
    ledger.hold([hold(nth(0)), again])
    assert ledger.holds() == (again,)


def test_another_refused_fingerprint_or_gate_stands_beside_the_first(ledger: Ledger) -> None:
    first, second, third = hold(nth(0)), hold(nth(0), refused="d" * 32), hold(nth(0), gate="conservation")
    ledger.hold([first])
    ledger.hold([second, third])
    assert set(ledger.holds()) == {first, second, third}


def test_exactly_the_holds_that_somebody_has_read_are_lifted(ledger: Ledger) -> None:
    elsewhere = replace(hold(nth(0)), table="gold.daily_sales")
    ledger.hold([hold(nth(0)), hold(nth(0), gate="conservation"), hold(nth(1)), elsewhere])
    read = [hold(nth(0)), hold(nth(9))]
    ledger.drop(read)
    assert set(ledger.holds()) == {elsewhere, hold(nth(0), gate="conservation"), hold(nth(1))}
    ledger.drop([])
    assert len(ledger.holds()) == 3


def test_a_hold_that_was_renewed_since_it_was_read_stays(ledger: Ledger) -> None:
    ledger.hold([hold(nth(0), gate=ROLL_BACK)])
    read = ledger.holds()
    renewed = replace(hold(nth(0), gate=ROLL_BACK), created_at=NOON + timedelta(microseconds=1))
    ledger.hold([renewed])
    ledger.drop(read)
    assert ledger.holds() == (renewed,)


def test_what_was_refused_and_somebody_publishes_or_puts_back_is_refused_no_more(ledger: Ledger) -> None:
    [day] = simple(1, 0).days
    ends = (f"@{day.made_by}", "@code+configuration", "")
    back, by_todays_code, alone = (
        replace(hold(nth(0)), gate=ROLL_BACK, refused=f"{day.fingerprint}{end}") for end in ends
    )
    other = replace(back, refused=f"{'e' * 32}@{day.made_by}")
    by_gate, another_day = replace(back, gate="contract"), replace(back, day=nth(1))
    ledger.hold([back, by_todays_code, alone, other, by_gate, another_day])
    ledger.record(simple(1, 0))
    assert set(ledger.holds()) == {other, another_day}
    ledger.hold([back, by_gate])
    ledger.record(simple(1, 0))
    assert {back, by_gate} <= {*ledger.holds()}, "it was indexed before somebody refused it"


def test_what_other_code_had_made_of_the_same_input_stays_refused(ledger: Ledger) -> None:
    [day] = simple(1, 0).days
    refused = replace(hold(nth(0)), gate=ROLL_BACK, refused=f"{day.fingerprint}@wrong+configuration")
    ledger.hold([refused])
    ledger.record(simple(1, 0))
    assert ledger.holds() == (refused,)


def test_decisions_are_kept_in_order_and_found_by_kind_and_subject(ledger: Ledger) -> None:
    first = ledger.decide("approval", "late rows of 2017-01-01", reason="agreed", who="Zoë", created_at=NOON)
    second = ledger.decide("override", "gate contract", reason="known", who="Max", created_at=NOON)
    third = ledger.decide("approval", "late rows of 2017-01-02", reason="agreed", who="Max", created_at=NOON)
    assert [decision.id for decision in (first, second, third)] == [1, 2, 3]
    assert ledger.decisions() == (first, second, third)
    assert ledger.decisions("approval") == (first, third)
    assert ledger.decisions("approval", "late rows of 2017-01-02") == (third,)
    assert ledger.decisions(subject="gate contract") == (second,)
