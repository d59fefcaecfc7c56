"""People's decisions: a chain of entries, each written in the transaction that also does what was decided.

Whoever writes to the ledger does so alone, so every entry finds the one before it as it stays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date
from typing import Any, TypeVar

from sqlalchemy import Connection, Select, insert, select

from platform_assets.lakehouse.database_url import masked
from platform_assets.ledger.database import Database
from platform_assets.ledger.errors import LedgerError
from platform_assets.ledger.schema import decisions
from platform_assets.records.chain import Entry, Head
from platform_assets.records.decisions import (
    Decision,
    LateDecision,
    LiftDecision,
    PinDecision,
    PlanDecision,
    PublicationDecision,
    decided_by,
    from_content,
    to_content,
)
from platform_assets.records.history import COMPACTION, ROLL_BACK, Hold, PublicationRecord

D = TypeVar("D", LateDecision, PinDecision, PlanDecision)
_MOST_PARAMETERS = 500
_GREATEST_NUMBER = 2**31 - 1
"""That a column of whole numbers has room for on every database."""

_NEWEST: Select[Any] = select(decisions.c.number, decisions.c.chain).order_by(decisions.c.number.desc()).limit(1)


def append(connection: Connection, decided: Iterable[Decision]) -> None:
    """Write decisions to the end of the chain.

    Args:
        connection: to the ledger, in a transaction nobody else writes beside.
        decided: oldest first.

    Raises:
        LedgerError: somebody put an entry in behind which no other has room.
    """
    newest = connection.execute(_NEWEST).first()
    head = Head(newest.number, _text(newest.chain)) if newest else Head()
    for decision in decided:
        if head.number >= _GREATEST_NUMBER:
            raise LedgerError(
                f"The newest decision in the ledger {masked(connection.engine.url)} has the number {head.number}, "
                "which none was given; nothing was decided.",
                "`platform-assets audit verify` names it. Restore the ledger from a backup from before.",
            )
        entry = Entry.after(head, to_content(decision))
        connection.execute(insert(decisions).values(**vars(entry)))
        head = entry.head


def append_carried_out(connection: Connection, new: Sequence[PublicationRecord], lifted: Collection[Hold]) -> None:
    """Write down what people decided by publications, unless it is there from when they were indexed before.

    Args:
        connection: to the ledger, in the transaction that indexes them.
        new: that are indexed now, oldest first.
        lifted: holds of people that ended with it.
    """
    carried_out: list[Decision] = [decision for record in new if (decision := of_publication(record))]
    by_content = {to_content(decision): decision for decision in [*carried_out, *_lifts(new, lifted)]}
    query = select(decisions.c.content)
    if len(by_content) <= _MOST_PARAMETERS:
        query = query.where(decisions.c.content.in_(sorted(by_content)))
    there = set(connection.execute(query).scalars()) if by_content else ()
    append(connection, [decision for content, decision in by_content.items() if content not in there])


def of_publication(record: PublicationRecord) -> PublicationDecision | None:
    """What a person decided by a publication, as the chain has it; None for work that nobody decided."""
    kind = decided_by(record.kind, record.decides)
    if not kind:
        return None
    return PublicationDecision(
        kind, record.publication, record.why, record.who, record.created_at, record.as_user, record.on_host
    )


def _lifts(new: Iterable[PublicationRecord], lifted: Collection[Hold]) -> Iterator[LiftDecision]:
    """What somebody overruled who put days back: what they refused is published now, and was not put back itself."""
    left = {(hold.table, hold.day) for hold in lifted}
    for record in new:
        if record.kind in (ROLL_BACK, COMPACTION):
            continue
        by_table: defaultdict[str, list[date]] = defaultdict(list)
        for day in record.days:
            if (day.table, day.day) in left:
                by_table[day.table].append(day.day)
        said = (record.why, record.who, record.created_at, record.as_user, record.on_host)
        for table, days in sorted(by_table.items()):
            yield LiftDecision("lift", record.publication, table, tuple(sorted(days)), *said)


def entries(database: Database) -> tuple[Entry, ...]:
    """The whole chain, by number, as it lies there; bytes, which SQLite keeps in a text's place, as another text."""
    rows = database.rows(select(decisions).order_by(decisions.c.number))
    return tuple(Entry(row["number"], *(_text(row[name]) for name in ("content", "before", "chain"))) for row in rows)


def _text(value: object) -> str:
    return value if isinstance(value, str) else repr(value)


def chain_head(database: Database) -> Head:
    """Where the chain stands."""
    newest = database.rows(_NEWEST)
    return Head(newest[0]["number"], _text(newest[0]["chain"])) if newest else Head()


def decided(database: Database, type_: type[D]) -> tuple[D, ...]:
    """What people decided of one kind of thing, oldest first.

    Raises:
        LedgerError: an entry is no decision.
    """
    try:
        every = [from_content(entry.content) for entry in entries(database)]
    except ValueError as error:
        raise LedgerError(
            f"The chain of decisions in the ledger {masked(database.engine.url)} has an entry that is none: {error}.",
            "`platform-assets audit verify` names it. Restore the ledger from a backup from before.",
        ) from error
    return tuple(decision for decision in every if isinstance(decision, type_))
