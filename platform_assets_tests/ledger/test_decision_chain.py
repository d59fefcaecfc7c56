"""The chain of decisions: what enters it, when, and that it stays whatever becomes of the index."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from platform_assets.ledger.database import salvage
from platform_assets.ledger.errors import LedgerCorruptError, LedgerError
from platform_assets.ledger.ledger import Ledger
from platform_assets.operations.audit import DecisionAudit
from platform_assets.operations.audit_logs import Findings
from platform_assets.records.chain import Head, breaks
from platform_assets.records.code_version import Attempt, Version
from platform_assets.records.decisions import Decision, LateDecision, LiftDecision, PublicationDecision, from_content
from platform_assets.records.history import COMPACTION, ROLL_BACK, PublicationRecord
from platform_assets_tests.support.ledger_records import NOON, TABLE, approval, hold, name_of, nth, pinned, simple


def decided(ledger: Ledger) -> list[Decision]:
    """The chain, which must be sound."""
    chain = ledger.decision_chain()
    assert list(breaks(chain)) == []
    assert ledger.decision_head() == (chain[-1].head if chain else Head())
    return [from_content(entry.content) for entry in chain]


def withdrawal(release: int) -> PublicationRecord:
    return replace(simple(release, 0), kind="withdrawal", as_user="zoe", on_host="till")


def carried_out(record: PublicationRecord, kind: str) -> PublicationDecision:
    return PublicationDecision(
        kind,
        record.publication,
        reason=record.why,
        who=record.who,
        created_at=record.created_at,
        as_user=record.as_user,
        on_host=record.on_host,
    )


def test_decisions_of_all_kinds_are_one_chain_in_the_order_in_which_they_were_taken(ledger: Ledger) -> None:
    assert decided(ledger) == []
    out = withdrawal(1)
    signed = replace(approval("ä\0.csv"), as_user="zoe", on_host="till")
    ledger.decide(signed)
    ledger.record(out)
    ledger.decide(pinned(name_of(1)))
    kept = replace(signed, arrival="ä\N{REPLACEMENT CHARACTER}.csv")  # as no database refuses it
    assert decided(ledger) == [kept, carried_out(out, "withdrawal"), pinned(name_of(1))]
    assert ledger.decisions(LateDecision) == (kept,)


@pytest.mark.parametrize(
    ("kind", "decides", "enters"),
    [
        ("withdrawal", "", "withdrawal"),
        ("roll back", "", "roll back"),
        ("roll back", "put back", "put back"),
        ("reload", "", "reload"),
        ("recompute", "acceptance", "acceptance"),
        ("recompute", "stage", "stage"),
        ("recompute", "", None),
        ("ingest", "", None),
        # Whoever approved is in the chain before any row entered
        ("approval", "", None),
        (COMPACTION, "", None),
    ],
)
def test_of_publications_those_that_a_person_decided_enter_the_chain(
    ledger: Ledger, kind: str, decides: str, enters: str | None
) -> None:
    record = replace(simple(1, 0), kind=kind, decides=decides)
    ledger.record(record)
    assert decided(ledger) == ([carried_out(record, enters)] if enters else [])


def test_what_was_indexed_before_enters_once_however_often_it_is_indexed_anew(ledger: Ledger) -> None:
    first, second = withdrawal(1), withdrawal(2)
    ledger.record(first)
    ledger.decide(approval())
    before = ledger.decision_chain()
    ledger.record(first)
    ledger.reindex([first.publication], [first])
    assert ledger.decision_chain() == before
    ledger.reindex(tuple(ledger.indexed()), [first, second], lift=True)
    assert decided(ledger) == [carried_out(first, "withdrawal"), approval(), carried_out(second, "withdrawal")]
    ledger.reindex([first.publication, second.publication], ())
    assert len(decided(ledger)) == 3, "what was decided stays, whatever the lake has"


def test_an_index_that_fails_leaves_no_decision(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform_assets.ledger.ledger.mark_replaced", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        ledger.record(withdrawal(1))
    assert decided(ledger) == []
    monkeypatch.undo()
    ledger.record(withdrawal(1))
    assert len(decided(ledger)) == 1


def test_whoever_overrules_what_a_person_had_put_back_lifts_its_hold_and_signs_for_it(ledger: Ledger) -> None:
    forced = replace(simple(1, 0, 1, 2), who="Max", why="it was right", as_user="max", on_host="till")
    refused = [Attempt(day.fingerprint, Version(day.code_version, day.configuration)) for day in forced.days]
    ledger.hold([replace(hold(nth(n)), gate=ROLL_BACK, refused=refused[n]) for n in (2, 0)])
    ledger.hold([hold(nth(1), refused=refused[1])])
    ledger.record(forced)
    assert decided(ledger) == [
        LiftDecision(
            "lift",
            name_of(1),
            TABLE,
            (nth(0), nth(2)),
            reason="it was right",
            who="Max",
            created_at=NOON,
            as_user="max",
            on_host="till",
        )
    ]
    ledger.reindex([name_of(1)], [forced])
    assert len(decided(ledger)) == 1


def test_a_rollback_that_brings_back_what_was_refused_is_one_decision(ledger: Ledger) -> None:
    record = replace(simple(1, 0), kind="roll back")
    [day] = record.days
    ledger.hold([replace(hold(nth(0)), gate=ROLL_BACK, refused=Attempt(day.fingerprint, day.made_by))])
    ledger.record(record)
    assert decided(ledger) == [carried_out(record, "roll back")]


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("UPDATE ledger_decisions SET content = x'00ff' WHERE number = 2", "Decision 2 says something else"),
        ("UPDATE ledger_decisions SET chain = x'00ff' WHERE number = 3", r"Decision 3 .* says something else"),
        ("UPDATE ledger_decisions SET before = x'' WHERE number = 1", r"Decision 1 .* says something else"),
        (f"UPDATE ledger_decisions SET content = '{'[' * 50_000}' WHERE number = 2", "Decision 2 says something else"),
        (
            "UPDATE ledger_decisions SET content = CAST(x'ff' AS TEXT) WHERE number = 2",
            "Decision 2 says something else",
        ),
        (
            "UPDATE ledger_decisions SET chain = CAST(x'ff' AS TEXT) WHERE number = 3",
            "Decision 3 .* says something else",
        ),
    ],
)
def test_what_only_sql_can_write_is_named_and_stops_no_audit(tmp_path: Path, sql: str, named: str) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with Ledger.open(url) as ledger:
        for name in ("a", "b", "c"):
            ledger.decide(approval(f"{name}.csv"))
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as database, database:
        database.execute(sql)
    findings = Findings()
    with Ledger.open(url) as ledger:
        DecisionAudit(ledger.decision_chain(), findings)
        assert any(re.search(named, fault.what) for fault in findings.faults), findings.faults
        ledger.decide(approval("d.csv"))
        ledger.decision_head()
        with suppress(LedgerError):
            ledger.decisions(LateDecision)


NO_TEXT = "UPDATE ledger_decisions SET content = CAST(x'7bff' AS TEXT) WHERE number = 2"


@pytest.fixture
def damaged(tmp_path: Path) -> str:
    """The URL of a ledger of which the second of three decisions is no text."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with Ledger.open(url) as ledger:
        for name in ("a", "b", "c"):
            ledger.decide(approval(f"{name}.csv"))
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as database, database:
        database.execute(NO_TEXT)
    return url


def test_a_link_that_is_no_text_is_named_and_the_others_are_told_to_whoever_only_shows_them(
    damaged: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Ledger.open(damaged) as ledger:
        with pytest.raises(LedgerError, match=r"Decision 2 in the ledger .* cannot be read") as caught:
            ledger.decisions(LateDecision)
        assert not isinstance(caught.value, LedgerCorruptError), "of which the index would be made anew"
        shown = ledger.decisions(LateDecision, as_far_as_readable=True)
        assert [decision.arrival for decision in shown] == ["a.csv", "c.csv"]
        [told] = caplog.messages
        assert "Decision 2 in the ledger" in told
        assert "It is left out" in told
        ledger.decide(approval("d.csv"))
        assert [broken.number for broken in breaks(ledger.decision_chain())] == [2]


def test_a_ledger_that_is_set_aside_gives_all_decisions_to_the_next_and_the_damaged_link_stays_one(
    damaged: str, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'next.db'}"
    with Ledger.open(url) as ledger:
        assert salvage(tmp_path / "ledger.db", url)["ledger_decisions"] == 3
        assert [entry.number for entry in ledger.decision_chain()] == [1, 2, 3]
        assert [broken.number for broken in breaks(ledger.decision_chain())] == [2]
