"""Holds of days, and verdicts about batches of tables, which decide circuits, in the transaction of their cause.

A step writes and renews holds; indexing a rollback brings holds; a good publication ends them. Indexing a publication
writes its verdicts; the step that computed unpublished days writes theirs.

People's decisions are a chain of entries, each written in the transaction that also does what was decided. Writes are
exclusive, so the entry before a new one is final.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    bindparam,
    case,
    func,
    insert,
    literal,
    not_,
    or_,
    select,
    update,
)

from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.errors import masked
from platform_assets.ledger.connection import texts_of_any_bytes
from platform_assets.ledger.database import Database
from platform_assets.ledger.errors import LedgerError
from platform_assets.ledger.queries import (
    Row,
    delete_each,
    insert_all,
    is_among,
    made_last_by,
    with_columns,
    without_columns,
)
from platform_assets.ledger.schema import days, decisions, ended_holds, holds, publications, verdicts
from platform_assets.planning.circuit import ROLLED_BACK, TableVerdict
from platform_assets.planning.rollback import TableDay, back_again
from platform_assets.records.chain import Entry, Head
from platform_assets.records.code_version import UNTIL_LIFTED, Attempt, Version
from platform_assets.records.decisions import (
    ABOUT,
    Acknowledgement,
    CircuitDecision,
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
from platform_assets.records.history import COMPACTION, LASTING, ROLL_BACK, EndedHold, Hold, PublicationRecord
from platform_assets.words import visible

_LOG = logging.getLogger(__name__)
D = TypeVar("D", LateDecision, PinDecision, PlanDecision, QuarantineDecision, Acknowledgement)
_MOST_PARAMETERS = 500

_LAST_ENTRY: Select[Any] = select(decisions.c.number, decisions.c.chain).order_by(decisions.c.number.desc()).limit(1)


def append(connection: Connection, decided: Iterable[Decision]) -> None:
    """Append decisions to the chain."""
    with texts_of_any_bytes(connection):
        newest = connection.execute(_LAST_ENTRY).first()
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
        for table, of_it in sorted(by_table.items()):
            yield LiftDecision("lift", record.publication, table, tuple(sorted(of_it)), **_signature(record))


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
    newest = _rows(database, _LAST_ENTRY)
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


_KEY = [column.name for column in holds.primary_key]


def end(connection: Connection, keys: Sequence[Row]) -> None:
    """Lift the holds with the values of one of the keys. All keys name the same columns.

    An ended hold stays on record, without effect.
    """
    if not keys:
        return
    matches = [holds.c[name] == bindparam(f"key_{name}") for name in keys[0]]
    names = [column.name for column in holds.columns]
    now = literal(datetime.now(UTC), ended_holds.c.ended_at.type)
    kept = select(*(holds.c[name] for name in names), now).where(*matches)
    bound = [{f"key_{name}": value for name, value in key.items()} for key in keys]
    connection.execute(insert(ended_holds).from_select([*names, "ended_at"], kept), bound)
    delete_each(connection, holds, keys)


def lift_read(connection: Connection, read: Iterable[Hold]) -> None:
    """Lift exactly the holds that were read."""
    key = [*_KEY, "created_at"]
    end(connection, [{name: row[name] for name in key} for row in map(with_columns, read)])


def ended_of_day(database: Database, table: str, day: date) -> Iterator[EndedHold]:
    """Yield the ended holds of a day, in the order of their ends."""
    ended = ended_holds.c
    asked = select(*(ended[column.name] for column in holds.columns), ended.ended_at)
    for row in database.rows(asked.where(ended.table == table, ended.day == day).order_by(ended.id)):
        fields = without_columns(row)
        yield EndedHold(ended_at=fields.pop("ended_at"), hold=Hold(**fields))


def renew(connection: Connection, given: Iterable[Hold]) -> None:
    """Hold days; an equal hold is replaced."""
    newest = {tuple(row[name] for name in _KEY): row for row in map(with_columns, given)}
    delete_each(connection, holds, [_key(row) for row in newest.values()])
    failpoint("ledger.holding")
    insert_all(connection, holds, list(newest.values()))


def hold_put_back(connection: Connection, rollback: PublicationRecord, among: Collection[TableDay]) -> None:
    """Hold the days that a rollback restored, except those published again since.

    Content that earlier rollbacks refused may be restored now, and is no longer refused. Refusals of gates stay, unless
    nothing has to hold the day.
    """
    last = {(row.table, row.day) for row in connection.execute(made_last_by(rollback.publication)).all()}
    # Lifting a rollback publishes none of its days.
    kept = {k: refused for k, refused in rollback.refuses.items() if k in among and (k in last or not rollback.days)}
    asked_for = select(holds).where(holds.c.table.in_({table for table, _ in kept})).order_by(holds.c.created_at)
    there = [row for row in connection.execute(asked_for).mappings() if (row["table"], row["day"]) in kept]
    # A day with nothing left to refuse is held no more.
    end(connection, [_key(row) for row in there if row["gate"] == ROLL_BACK or not kept[row["table"], row["day"]]])
    reason = f"rolled back by {rollback.who}: {rollback.why}"
    if rollback.decides == LASTING:
        reason = f"rolled back by {rollback.who}, until it is lifted: {rollback.why}"
        kept = dict.fromkeys(kept, (UNTIL_LIFTED,))
    renew(
        connection,
        [
            Hold(table, day, attempt, ROLL_BACK, reason, rollback.run, rollback.created_at)
            for (table, day), refused in kept.items()
            for attempt in refused
        ],
    )


def drop_contradicted(connection: Connection, touched: Set[TableDay], published: Set[TableDay]) -> tuple[Hold, ...]:
    """Drop the holds that refuse the present content of days.

    Args:
        touched: changed days: content that people refused may be restored.
        published: those of them that were computed and indexed for the first time: their publisher knew the gates'
            refusals, and may die before saying so.

    Returns:
        The holds of people among those that ended.
    """
    asked_for = select(holds).where(holds.c.table.in_({table for table, _ in touched}))
    refused: dict[tuple[TableDay, bool], list[Hold]] = {}
    for row in connection.execute(asked_for).mappings():
        if (row["table"], row["day"]) in touched:
            hold = Hold(**without_columns(row))
            by_person = hold.is_of_good_content
            if by_person or (hold.table, hold.day) in published:
                refused.setdefault(((hold.table, hold.day), by_person), []).append(hold)
    now = _made_from(connection, {day for day, _ in refused})
    gone: list[Hold] = []
    for (day, _), of_it in refused.items():
        fingerprint, made_by = now.get(day, ("", Version()))
        tried = [hold.refused for hold in of_it if isinstance(hold.refused, Attempt)]
        again = back_again(tried, fingerprint, made_by) if fingerprint else ()
        gone += [hold for hold in of_it if hold.refused in again]
    end(connection, [_key(with_columns(hold)) for hold in gone])
    return tuple(hold for hold in gone if hold.is_of_good_content)


def _made_from(connection: Connection, held: Set[TableDay]) -> dict[TableDay, tuple[str, Version]]:
    """Return the present fingerprints and code of some days."""
    made: dict[TableDay, tuple[str, Version]] = {}
    for table in {table for table, _ in held}:
        asked_for = select(days.c.day, days.c.fingerprint, days.c.code_version, days.c.configuration)
        among = {day for of_table, day in held if of_table == table}
        of_table = asked_for.where(days.c.table == table, days.c.replaced_at.is_(None), *is_among(among))
        for day, fingerprint, *made_by in connection.execute(of_table).all():
            made[table, day] = (fingerprint, Version(*made_by))
    return made


def _key(row: Mapping[Any, Any]) -> Row:
    return {name: row[name] for name in _KEY}


_NEWEST = 10_000
"""Verdicts of a table that are read, besides tries: a hundred for each of the runs or dates of the longest policy. All
older ones are left out: without the passes between them, failures would look closer together."""

_LOOKS_BACK = 100
"""Runs that a contract can look back. A run that passed is written down only after one of these that did
not, or as the first of its date."""

_ABOUT_CIRCUITS = decisions.c.content.startswith(beginning("circuit"), autoescape=True)
"""Picks people's decisions about circuits from the chain."""

_its = verdicts.c
_has_come = _its.failed.is_(None) & _its.warned.is_(None) & ~_its.is_pending & ~_its.is_try & (_its.publication == "")
"""The place that was kept for a verdict which has come since, and has a row of its own."""

_PLAIN = ("number", "table", "at", "run", "day", "publication", "is_try", "is_pending", "tries", "lives_by")


class Verdicts:
    """Verdicts about tables, and people's decisions about their circuits."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, tables: Collection[str]) -> dict[str, tuple[TableVerdict, ...]]:
        """Return the newest verdicts about some tables, by number; nothing for tables without any."""
        # Tries do not count: for them, what opened the circuit must not be forgotten.
        counted = case((verdicts.c.is_try, 0), else_=1)
        place = func.sum(counted).over(partition_by=verdicts.c.table, order_by=verdicts.c.number.desc())
        asked = verdicts.c.table.in_(sorted(tables))
        ranked = select(verdicts, place.label("place")).where(asked, ~_has_come).subquery()
        query = select(*(ranked.c[column.name] for column in verdicts.columns)).where(ranked.c.place <= _NEWEST)
        found: defaultdict[str, list[TableVerdict]] = defaultdict(list)
        for row in self._database.rows(query.order_by(ranked.c.number)):
            found[row["table"]].append(_verdict(row))
        return {table: tuple(of_it) for table, of_it in found.items()}

    def decisions(self) -> tuple[CircuitDecision, ...]:
        """Return people's decisions about circuits, oldest first."""
        found = (from_content(entry.content) for entry in entries(self._database, _ABOUT_CIRCUITS))
        return tuple(decision for decision in found if isinstance(decision, CircuitDecision))

    def newest(self) -> int:
        """Return the number of the newest verdict; 0 without any."""
        number: int | None = self._database.rows(select(func.max(verdicts.c.number).label("newest")))[0]["newest"]
        return number or 0

    def publications_of(self, run: str, table: str) -> tuple[str, ...]:
        """Return the publications of a run with days of a table, oldest first."""
        query = select(publications.c.publication).distinct().join_from(publications, days)
        query = query.where(publications.c.run == run, publications.c.kind == "recompute", days.c.table == table)
        return tuple(sorted(row["publication"] for row in self._database.rows(query)))

    def add(self, verdict: TableVerdict) -> int:
        """Record a verdict and return its number."""
        with self._database.writing() as connection:
            return _add(connection, verdict)

    def refuse(self, holds: Iterable[Hold]) -> None:
        """Record a verdict about refusals of gates without holding days."""
        with self._database.writing() as connection:
            add_refused(connection, holds)

    def settle(self, numbers: Collection[int], verdict: TableVerdict | None = None, *, once: bool = False) -> None:
        """Settle pending verdicts, and record one in their place in the same transaction."""
        if numbers or verdict:
            with self._database.writing() as connection:
                came = settle(connection, numbers)
                if verdict and (came == len(numbers) or not once):
                    _add(connection, verdict)

    def judged(self, number: int, lives_by: str) -> None:
        """Record which lock a process holds until it has published the days of a pending verdict."""
        with self._database.writing() as connection:
            connection.execute(update(verdicts).where(_its.number == number).values(lives_by=lives_by))


def settle(connection: Connection, numbers: Collection[int]) -> int:
    """Mark pending verdicts as settled; return how many were still pending."""
    pending = update(verdicts).where(_its.number.in_(sorted(numbers)), _its.is_pending)
    return connection.execute(pending.values(is_pending=False, is_try=False, lives_by="")).rowcount if numbers else 0


def add_refused(connection: Connection, holds: Iterable[Hold]) -> None:
    """Record refusals of gates, in the transaction that holds the days. Days tied to others are not recorded."""
    by_table: defaultdict[str, list[Hold]] = defaultdict(list)
    for hold in sorted(holds, key=lambda hold: hold.day):
        if isinstance(hold.refused, Attempt) and not hold.is_of_good_content:
            by_table[hold.table].append(hold)
    for table, of_it in by_table.items():
        newest = of_it[-1]
        reasons = {gate: why for hold in of_it for gate, why in (hold.failed or {hold.gate: hold.reason}).items()}
        assert isinstance(newest.refused, Attempt)
        verdict = TableVerdict(table=table, at=newest.created_at, run=newest.run, day=newest.day, failed=reasons)
        _add(connection, replace(verdict, attempt=newest.refused))


def add_published(connection: Connection, new: Iterable[PublicationRecord]) -> None:
    """Record the verdicts of publications about their tables: passed, published with warnings, or rolled back."""
    newest: dict[str, list[TableVerdict]] = {}
    for verdict in (verdict for record in new for verdict in _of_publication(record)):
        if verdict.table not in newest:
            newest[verdict.table] = _newest(connection, verdict.table)
        if verdict.failed or verdict.warned or _is_news(verdict, newest[verdict.table]):
            _add(connection, verdict)
            newest[verdict.table].append(verdict)


def _of_publication(record: PublicationRecord) -> Iterator[TableVerdict]:
    tables = dict.fromkeys(day.table for day in record.days if day.table.startswith(("silver.", "gold.")))
    for table in tables if record.kind in ("recompute", ROLL_BACK) else ():
        days = [day for day in record.days if day.table == table]
        newest = max(days, key=lambda day: (bool(day.warnings), day.day))
        verdict = TableVerdict(
            table=table,
            at=record.created_at,
            run=record.run,
            day=newest.day,
            attempt=Attempt(newest.fingerprint, newest.made_by),
            publication=record.publication,
        )
        if record.kind == ROLL_BACK:
            why = f"{record.publication} by {record.who}: {record.why}"
            # New input or code says nothing of what people rolled back.
            yield replace(verdict, attempt=Attempt(""), failed={ROLLED_BACK: why})
            continue
        warned = {each.gate: f"{table} on {day.day}: {each.found}" for day in days for each in day.warnings}
        yield replace(verdict, warned=warned) if warned else replace(verdict, day=None)


def _newest(connection: Connection, table: str) -> list[TableVerdict]:
    query = select(verdicts).where(verdicts.c.table == table, ~_has_come)
    query = query.order_by(verdicts.c.number.desc()).limit(_LOOKS_BACK)
    return [_verdict(row) for row in reversed(connection.execute(query).mappings().all())]


def _is_news(passed: TableVerdict, before: Sequence[TableVerdict]) -> bool:
    """Return whether a passed run can change anything: one before it failed or was warned of, or the date is new.

    Policies that count dates need a verdict of each, however many runs there were.
    """
    before = [each for each in before if not (each.is_pending and each.run == passed.run)]  # its own, to be settled
    if not before or (before[-1].run == passed.run and before[-1].publication):
        return False
    is_new_date = before[-1].at.date() != passed.at.date()
    return is_new_date or any(each.failed or each.warned or each.is_pending for each in before[-_LOOKS_BACK:])


def _add(connection: Connection, verdict: TableVerdict) -> int:
    newest: int | None = connection.execute(select(func.max(verdicts.c.number))).scalar()
    if newest is None:  # or the verdicts were lost with a damaged ledger, and its decisions kept
        kept = map(from_content, connection.execute(select(decisions.c.content).where(_ABOUT_CIRCUITS)).scalars())
        newest = max((decision.after for decision in kept if isinstance(decision, CircuitDecision)), default=0)
    row: dict[str, Any] = {name: getattr(verdict, name) for name in _PLAIN}
    row |= {"number": newest + 1, "fingerprint": verdict.attempt.fingerprint}
    row |= {"code_version": verdict.attempt.made_by.code, "configuration": verdict.attempt.made_by.configuration}
    row |= {"failed": dict(verdict.failed) or None, "warned": dict(verdict.warned) or None}
    connection.execute(insert(verdicts).values(row))
    return newest + 1


def _verdict(row: Mapping[Any, Any]) -> TableVerdict:
    plain = {name: row[name] for name in _PLAIN}
    attempt = Attempt(row["fingerprint"], Version(row["code_version"], row["configuration"]))
    return TableVerdict(attempt=attempt, failed=row["failed"] or {}, warned=row["warned"] or {}, **plain)
