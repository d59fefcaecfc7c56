"""Verdicts about batches of tables, from which their circuits follow.

A verdict of what was published is written with its place in the index, one of what was not by whoever computed it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, case, func, insert, select, update

from platform_assets.ledger.database import Database
from platform_assets.ledger.decisions import entries
from platform_assets.ledger.schema import days, decisions, publications, verdicts
from platform_assets.planning.circuit import ROLLED_BACK, TableVerdict
from platform_assets.records.code_version import Version
from platform_assets.records.decisions import CircuitDecision, beginning, from_content
from platform_assets.records.history import ROLL_BACK, Hold, PublicationRecord
from platform_assets.records.refused import Attempt

_NEWEST = 10_000
"""Verdicts of a table that are read, besides tries: a hundred for each of the runs or dates of the longest policy. What
is older is left out whole: failures would look nearer without the passes between them."""

_LOOKS_BACK = 100
"""Runs that a contract can look back. A run that passed is written down only after one of these that did not."""

_its = verdicts.c
_has_come = _its.failed.is_(None) & _its.warned.is_(None) & ~_its.is_pending & ~_its.is_try & (_its.publication == "")
"""The place that was kept for a verdict which has come since, and has a row of its own."""

_PLAIN = ("number", "table", "at", "run", "day", "publication", "is_try", "is_pending")


class Verdicts:
    """Verdicts of the tables, and people's decisions about their circuits."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, tables: Collection[str]) -> dict[str, tuple[TableVerdict, ...]]:
        """Return the newest verdicts of some tables, by number; nothing of tables without any."""
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
        """Return what people decided about circuits, oldest first."""
        begins = decisions.c.content.startswith(beginning("circuit"), autoescape=True)
        found = (from_content(entry.content) for entry in entries(self._database, begins))
        return tuple(decision for decision in found if isinstance(decision, CircuitDecision))

    def newest(self) -> int:
        """Return the number of the newest verdict; 0 where there is none."""
        number: int | None = self._database.rows(select(func.max(verdicts.c.number).label("newest")))[0]["newest"]
        return number or 0

    def publications_of(self, run: str, table: str) -> tuple[str, ...]:
        """Return the publications in which a run computed days of a table, oldest first."""
        query = select(publications.c.publication).distinct().join_from(publications, days)
        query = query.where(publications.c.run == run, publications.c.kind == "recompute", days.c.table == table)
        return tuple(sorted(row["publication"] for row in self._database.rows(query)))

    def add(self, verdict: TableVerdict) -> int:
        """Write down a verdict and return its number."""
        with self._database.writing() as connection:
            return _add(connection, verdict)

    def settle(self, number: int) -> None:
        """Write down that a pending verdict has come; what failed is a verdict of its own. 0 is none."""
        if not number:
            return
        with self._database.writing() as connection:
            connection.execute(update(verdicts).where(verdicts.c.number == number).values(is_pending=False))


def add_refused(connection: Connection, holds: Iterable[Hold]) -> None:
    """Write down what gates refused, in the transaction that holds the days. Days tied to others say nothing."""
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
    """Write down what publications say of their tables: passed, published with warnings, or rolled back.

    Args:
        connection: to the ledger, in the transaction that indexes them.
        new: publications that are indexed for the first time, oldest first.
    """
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
    """Return whether a run that passed can change anything: a run before it failed or was warned of."""
    is_same = bool(before) and before[-1].run == passed.run and before[-1].publication
    return not is_same and any(each.failed or each.warned or each.is_pending for each in before[-_LOOKS_BACK:])


def _add(connection: Connection, verdict: TableVerdict) -> int:
    newest: int = connection.execute(select(func.max(verdicts.c.number))).scalar() or 0
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
