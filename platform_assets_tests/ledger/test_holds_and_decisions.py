"""What only the ledger knows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from platform_assets.ledger.ledger import Ledger
from platform_assets.records.code_version import Attempt, TiedTo, Version
from platform_assets.records.decisions import Decision, LateDecision, PinDecision
from platform_assets.records.history import ROLL_BACK
from platform_assets.records.outbox import Announced, AnnouncedDay, AnnouncedHeads, CatchUp
from platform_assets_tests.support.ledger_records import NOON, TABLE, approval, hold, nth, pinned, simple


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
    first, second, third = hold(nth(0)), hold(nth(0), refused=Attempt("d" * 32)), hold(nth(0), gate="conservation")
    ledger.hold([first])
    ledger.hold([second, third])
    assert set(ledger.holds()) == {first, second, third}


def test_exactly_the_holds_that_somebody_has_read_are_lifted(ledger: Ledger) -> None:
    elsewhere = replace(hold(nth(0)), table="gold.daily_sales")
    ledger.hold([hold(nth(0)), hold(nth(0), gate="conservation"), hold(nth(1)), elsewhere])
    read = [hold(nth(0)), hold(nth(9))]
    ledger.drop(read)
    assert set(ledger.holds()) == {elsewhere, hold(nth(0), gate="conservation"), hold(nth(1))}
    [ended] = ledger.ended_holds(TABLE, nth(0))
    assert (ended.hold, ended.ended_at > ended.hold.created_at) == (hold(nth(0)), True)
    assert ledger.ended_holds(TABLE, nth(9)) == (), "it was none"
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
    back, by_todays_code, alone = (
        replace(hold(nth(0)), gate=ROLL_BACK, refused=Attempt(day.fingerprint, made_by))
        for made_by in (day.made_by, Version("code", "configuration"), Version())
    )
    other = replace(back, refused=Attempt("e" * 32, day.made_by))
    by_gate, another_day = replace(back, gate="contract"), replace(back, day=nth(1))
    ledger.hold([back, by_todays_code, alone, other, by_gate, another_day])
    ledger.record(simple(1, 0))
    assert set(ledger.holds()) == {other, another_day}
    ledger.hold([back, by_gate])
    ledger.record(simple(1, 0))
    assert {back, by_gate} <= {*ledger.holds()}, "it was indexed before somebody refused it"


def test_what_other_code_had_made_of_the_same_input_stays_refused(ledger: Ledger) -> None:
    [day] = simple(1, 0).days
    refused = replace(hold(nth(0)), gate=ROLL_BACK, refused=Attempt(day.fingerprint, Version("wrong", "configuration")))
    ledger.hold([refused])
    ledger.record(simple(1, 0))
    assert ledger.holds() == (refused,)


def test_a_day_tied_to_another_comes_back_so_beside_what_is_refused_of_itself(ledger: Ledger) -> None:
    """Whichever of the two days it is tied to, and though nothing is known of its own content."""
    own = hold(nth(0))
    tied = [replace(own, refused=TiedTo(nth(other))) for other in (1, 2)]
    ledger.hold([own, *tied])
    assert set(ledger.holds()) == {own, *tied}
    ledger.drop(tied[:1])
    assert set(ledger.holds()) == {own, tied[1]}
    ledger.record(simple(1, 0))
    assert set(ledger.holds()) == {own, tied[1]}, "no publication is what a tied day was refused for"


def test_decisions_come_back_as_they_were_written_oldest_first(ledger: Ledger) -> None:
    late = [approval("b.csv"), replace(approval("a file.csv"), kind="refusal"), approval("b.csv")]
    pins = [pinned("p2", name="closed"), pinned("p1"), pinned("p2", "unpin")]
    decisions: list[Decision] = [*late, *pins]
    for decision in decisions:
        ledger.decide(decision)
    assert ledger.decisions(LateDecision) == tuple(late)
    assert ledger.decisions(PinDecision) == tuple(pins)


def test_what_was_announced_is_known_of_each_channel_and_is_no_decision(ledger: Ledger) -> None:
    held = [
        AnnouncedDay(TABLE, nth(0), refused) for refused in (Attempt("f", Version("c")), Attempt("f"), TiedTo(nth(1)))
    ]
    told = Announced(frozenset(held), frozenset({"a run"}))
    for _ in range(2):
        ledger.notes.mark_announced("log", told)
    ledger.notes.mark_announced("log", Announced(runs=frozenset({"another"})))
    assert ledger.notes.announced("log") == Announced(told.held, frozenset({"a run", "another"}))
    assert ledger.notes.announced("webhook") == Announced()
    assert (ledger.decisions(LateDecision), ledger.decisions(PinDecision)) == ((), ())
    for heads in (AnnouncedHeads("first", NOON), AnnouncedHeads("second", NOON + timedelta(days=1))):
        ledger.notes.mark_announced("webhook", Announced(heads=heads))
        assert ledger.notes.announced("webhook") == Announced(heads=heads)
    told = replace(told, heads=heads)
    ledger.notes.mark_announced("webhook", replace(told, heads=None))
    ledger.notes.mark_announced("log", Announced(), over=held[:2])
    assert ledger.notes.announced("log").held == {held[2]}
    assert ledger.notes.announced("webhook") == told


def test_the_ledger_remembers_how_often_it_had_been_behind(ledger: Ledger) -> None:
    notes = [CatchUp(1, 3, "was restored", NOON), CatchUp(9, 9, "was new", NOON)]
    for note in notes:
        ledger.notes.catch_up(note)
    assert ledger.notes.catch_ups() == tuple(notes)
