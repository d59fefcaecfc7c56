"""What days come to, asked for no more than that: totals of tables, and which days other releases made.

Also how long recomputations took, by which the next ones are priced.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from datetime import date

from sqlalchemy import BigInteger, ColumnElement, cast, func, literal, select

from platform_assets.ledger.database import Database
from platform_assets.ledger.queries import is_current, refused_by_date
from platform_assets.ledger.schema import days, publications
from platform_assets.records.history import DayTotals, Timing


class Counts:
    """Answers that take a row for each table, or for each day that changed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def totals(self, tables: Collection[str], *, at: int) -> dict[str, DayTotals]:
        """Add up what `Ledger.current_days` has of all days of each table."""
        rows = cast(func.sum(days.c.rows), BigInteger)  # PostgreSQL's sum of such is a decimal
        delivered = rows - _total("tombstones", "withdrawals")
        query = select(
            days.c.table, func.count(), func.max(days.c.day), delivered, _total("quarantined"), _total("ahead")
        )
        query = query.join_from(days, publications).where(days.c.table.in_(sorted(tables)))
        query = query.where(is_current(at), publications.c.release <= at).group_by(days.c.table)
        with self._database.reading() as connection:
            counted = {row[0]: DayTotals(*row[1:]) for row in connection.execute(query).all()}
        return {table: counted.get(table, DayTotals()) for table in tables}

    def refused(self, table: str, *, since: date) -> dict[date, tuple[int, int]]:
        """Count the rows that were refused at parsing and all that were delivered, by arrival date from one on."""
        with self._database.reading() as connection:
            rows = connection.execute(refused_by_date(table, since)).all()
        return {on: (refused, landed) for on, refused, landed in rows}

    def published_between(self, first: int, last: int) -> dict[str, set[date]]:
        """Return the days that releases after one made, up to another, by table."""
        query = select(days.c.table, days.c.day).distinct().join_from(publications, days)
        by_table: defaultdict[str, set[date]] = defaultdict(set)
        for row in self._database.rows(query.where(publications.c.release.between(first + 1, last))):
            by_table[row["table"]].add(row["day"])
        return dict(by_table)


def _total(*names: str) -> ColumnElement[int]:
    """Return the sum of figures of days."""
    counted = (func.coalesce(days.c.figures[name].as_integer(), 0) for name in names)
    return cast(func.sum(sum(counted, literal(0))), BigInteger)


class Timings:
    """What days took, publication by publication."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, tables: Collection[str]) -> tuple[Timing, ...]:
        """Every recomputation of some tables that took its time, oldest first; also those replaced since."""
        seconds = func.sum(days.c.seconds)
        query = select(
            days.c.table, func.count().label("days"), seconds.label("seconds"), publications.c.run, days.c.publication
        ).join_from(days, publications)
        query = query.where(days.c.table.in_(sorted(tables)), publications.c.kind == "recompute")
        query = query.group_by(days.c.table, days.c.publication, publications.c.run).having(seconds > 0)
        return tuple(Timing(**row) for row in self._database.rows(query.order_by(days.c.publication)))
