"""People's decisions: a chain of entries, each written in the transaction that carries it out.

Writes are exclusive, so the entry before a new one is final.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, insert, not_, or_, select

from platform_assets.lakehouse.errors import masked
from platform_assets.ledger.connection import texts_of_any_bytes
from platform_assets.ledger.database import Database
from platform_assets.ledger.errors import LedgerError
from platform_assets.ledger.schema import decisions
from platform_assets.records.chain import Entry, Head
from platform_assets.records.decisions import (
    ABOUT,
    Acknowledgement,
    Decision,
    LateDecision,
    LiftDecision,
    PinDecision,
    PlanDecision,
    PublicationDecision,
    QuarantineDecision,
    about,
    beginning,
    decided_by,
    from_content,
    to_content,
)
from platform_assets.records.history import COMPACTION, ROLL_BACK, Hold, PublicationRecord
from platform_assets.words import visible

_LOG = logging.getLogger(__name__)
D = TypeVar("D", LateDecision, PinDecision, PlanDecision, QuarantineDecision, Acknowledgement)
_MOST_PARAMETERS = 500

_NEWEST: Select[Any] = select(decisions.c.number, decisions.c.chain).order_by(decisions.c.number.desc()).limit(1)


def append(connection: Connection, decided: Iterable[Decision]) -> None:
    """Append decisions to the chain."""
    with texts_of_any_bytes(connection):
        newest = connection.execute(_NEWEST).first()
    head = Head(newest.number, _text(newest.chain)) if newest else Head()
    for decision in decided:
        entry = Entry.after(head, to_content(decision))
        connection.execute(insert(decisions).values(**vars(entry)))
        head = entry.head


def append_carried_out(connection: Connection, new: Sequence[PublicationRecord], lifted: Collection[Hold]) -> None:
    """Append decisions carried out by publications, unless they are in the chain from an earlier indexing."""
    carried_out: list[Decision] = [decision for record in new if (decision := of_publication(record))]
    by_content = {to_content(decision): decision for decision in [*carried_out, *_lifts(new, lifted)]}
    query = select(decisions.c.content)
    if len(by_content) <= _MOST_PARAMETERS:
        query = query.where(decisions.c.content.in_(sorted(by_content)))
    with texts_of_any_bytes(connection):
        there = set(connection.execute(query).scalars()) if by_content else ()
    append(connection, [decision for content, decision in by_content.items() if content not in there])


def of_publication(record: PublicationRecord) -> PublicationDecision | None:
    """Return the decision carried out by a publication, as a chain entry; None for automatic work."""
    kind = decided_by(record.kind, record.decides)
    if not kind:
        return None
    return PublicationDecision(kind, record.publication, **_signature(record))


def _signature(record: PublicationRecord) -> dict[str, Any]:
    """Return the signature of a publication's author."""
    return {
        "reason": record.why,
        "who": record.who,
        "created_at": record.created_at,
        "as_user": record.as_user,
        "on_host": record.on_host,
    }


def _lifts(new: Iterable[PublicationRecord], lifted: Collection[Hold]) -> Iterator[LiftDecision]:
    """Return the holds that a rollback overrules: these days are published now, and not rolled back since."""
    left = {(hold.table, hold.day) for hold in lifted}
    for record in new:
        if record.kind in (ROLL_BACK, COMPACTION):
            continue
        by_table: defaultdict[str, list[date]] = defaultdict(list)
        for day in record.days:
            if (day.table, day.day) in left:
                by_table[day.table].append(day.day)
        for table, days in sorted(by_table.items()):
            yield LiftDecision("lift", record.publication, table, tuple(sorted(days)), **_signature(record))


def entries(database: Database, *among: ColumnElement[bool]) -> tuple[Entry, ...]:
    """Return the chain, or a part of it, by number, as stored; on SQLite bytes are returned as text."""
    rows = _rows(database, select(decisions).where(*among).order_by(decisions.c.number))
    return tuple(Entry(row["number"], *(_text(row[name]) for name in ("content", "before", "chain"))) for row in rows)


def _rows(database: Database, query: Select[Any]) -> Sequence[RowMapping]:
    with database.reading() as connection, texts_of_any_bytes(connection):
        return connection.execute(query).mappings().all()


def _text(value: object) -> str:
    return value if isinstance(value, str) else repr(value)


def chain_head(database: Database) -> Head:
    """Return the head of the chain."""
    newest = _rows(database, _NEWEST)
    return Head(newest[0]["number"], _text(newest[0]["chain"])) if newest else Head()


def decided(database: Database, type_: type[D], *, as_far_as_readable: bool = False) -> tuple[D, ...]:
    """Return people's decisions of one kind, oldest first.

    Only entries of that kind are read, and those whose beginning fits no kind.
    """
    begins = {kind: decisions.c.content.startswith(beginning(about(kind)), autoescape=True) for kind in ABOUT.values()}
    found: list[Decision] = []
    damaged: dict[int, ValueError] = {}
    for entry in entries(database, or_(begins[type_], not_(or_(*begins.values())))):
        try:
            found.append(from_content(entry.content))
        except ValueError as error:
            damaged[entry.number] = error
    if damaged:
        number, because = next(iter(damaged.items()))
        more = f", and {len(damaged) - 1:,} more" if len(damaged) > 1 else ""
        what = f"Decision {number} in the ledger {masked(database.engine.url)} cannot be read: {because}{more}."
        if not as_far_as_readable:
            raise LedgerError(
                what, "`platform-assets admin audit` names it. Restore the ledger from a backup from before."
            ) from because
        _LOG.warning("%s It is left out; `platform-assets admin audit` names it.", visible(what))
    return tuple(decision for decision in found if isinstance(decision, type_))
