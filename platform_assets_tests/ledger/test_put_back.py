"""What a rollback refuses is held from the moment in which the ledger knows of the rollback, whoever indexes it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from platform_assets.failpoints import failpoint
from platform_assets.ledger import ledger as indexing
from platform_assets.ledger.ledger import Ledger
from platform_assets.records.code_version import Attempt, Version
from platform_assets.records.history import COMPACTION, ROLL_BACK, Hold, PublicationRecord
from platform_assets_tests.support.ledger_records import NOON, TABLE, hold, name_of, nth, simple

LATER = NOON + timedelta(hours=1)
BAD, WORSE, EARLIER = (Attempt(fingerprint, Version("c")) for fingerprint in ("bad", "worse", "earlier"))


def rollback(release: int, *refused: Attempt, day: int = 0) -> PublicationRecord:
    """The publication that puts a day back and refuses what it was."""
    made = simple(release, day, digest="1-1-1-1-1")
    return replace(made, kind="roll back", created_at=LATER, refuses={(TABLE, nth(day)): refused})


def held(refused: Attempt, day: int = 0) -> Hold:
    """What comes of such a rollback."""
    return Hold(TABLE, nth(day), refused, ROLL_BACK, "rolled back by Zoë: because", "run", LATER)


def test_index_and_holds_are_there_together_or_not_at_all(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.record(simple(1, 0))

    def dies(name: str) -> None:
        failpoint(name)
        raise InterruptedError(name)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(indexing, "failpoint", dies)
        with pytest.raises(InterruptedError):
            ledger.record(rollback(2, BAD, WORSE))
    assert (ledger.holds(), list(ledger.indexed())) == ((), [name_of(1)])
    ledger.record(rollback(2, BAD, WORSE))
    assert ledger.holds() == (held(BAD), held(WORSE))


def test_it_ends_what_earlier_rollbacks_refused_and_leaves_what_gates_did(ledger: Ledger) -> None:
    by_gate, other_day = hold(nth(0)), held(BAD, 1)
    ledger.hold([by_gate, held(EARLIER), other_day])
    ledger.record(rollback(1, BAD))
    assert set(ledger.holds()) == {by_gate, held(BAD), other_day}


def test_where_nothing_has_to_keep_the_day_nothing_does(ledger: Ledger) -> None:
    ledger.hold([hold(nth(0)), held(EARLIER), hold(nth(1))])
    ledger.record(rollback(1))
    assert ledger.holds() == (hold(nth(1)),)


def test_a_day_that_was_made_anew_since_is_not_held_but_one_with_fewer_files_is(ledger: Ledger) -> None:
    anew, fewer_files = simple(3, 0), replace(simple(4, 1), kind=COMPACTION)
    two = replace(rollback(2, BAD), days=simple(2, 0, 1).days, refuses={(TABLE, nth(n)): (BAD,) for n in (0, 1)})
    ledger.record(simple(1, 0, 1), two, anew, fewer_files)
    assert ledger.holds() == (held(BAD, 1),)


def test_what_somebody_lifted_is_not_held_again_where_the_rollback_is_indexed_again(ledger: Ledger) -> None:
    records = (simple(1, 0), rollback(2, BAD))
    ledger.record(*records)
    ledger.drop(ledger.holds())
    ledger.record(*records)
    ledger.reindex(list(ledger.indexed()), records)
    assert ledger.holds() == ()


def test_what_was_made_of_the_day_since_is_forgotten_and_the_day_held_again(ledger: Ledger) -> None:
    """The lake was restored to where the rollback had just been."""
    records = (simple(1, 0), rollback(2, BAD))
    ledger.record(*records, simple(3, 0))
    ledger.drop(ledger.holds())
    ledger.reindex(list(ledger.indexed()), records)
    assert ledger.holds() == (held(BAD),)
