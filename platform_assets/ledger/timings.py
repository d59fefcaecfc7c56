"""How long recomputations took, by which the next ones are priced."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import func, select

from platform_assets.ledger.database import Database
from platform_assets.ledger.schema import days, publications
from platform_assets.records.history import Timing


class Timings:
    """What days took, publication by publication.

    Args:
        database: with the ledger's tables.
    """

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
