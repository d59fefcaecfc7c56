"""What a stage puts in place of days of a release: one value, for the step that reads it and the file that keeps it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date

from pydantic import BaseModel, ConfigDict

from platform_assets.records.history import Hold
from platform_assets.records.manifest import DayContent, TableChange


class StagedDays(BaseModel):
    """Days that lie over a release, and what gates said of them.

    Args:
        tables: the days, by table; of a table without days at most its columns.
        holds: days that failed a gate: they are not in `tables`.
        over: holds in the ledger that count no more, since every gate let the staged days through.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tables: Mapping[str, TableChange] = {}
    holds: tuple[Hold, ...] = ()
    over: tuple[Hold, ...] = ()

    @property
    def days(self) -> dict[str, tuple[date, ...]]:
        """The days that are to be published, by table."""
        return {table: tuple(sorted(change.days)) for table, change in self.tables.items() if change.days}

    def of(self, table: str) -> Mapping[date, DayContent]:
        """Return what lies there of one table."""
        return self.tables[table].days if table in self.tables else {}

    def with_days(
        self, changes: Iterable[TableChange], holds: Iterable[Hold] = (), over: Iterable[Hold] = ()
    ) -> StagedDays:
        """With what was computed besides; of days that were there already, what is new."""
        tables = dict(self.tables)
        for change in changes:
            tables[change.table] = _together(tables[change.table], change) if change.table in tables else change
        held = {(hold.table, hold.day): hold for hold in (*self.holds, *holds)}
        return StagedDays(tables=tables, holds=tuple(held.values()), over=tuple(dict.fromkeys((*self.over, *over))))

    def without(self, tables: Collection[str], days: Collection[date] | None = None) -> StagedDays:
        """Without some days of some tables, or all of them, and without what gates said of these."""

        def goes(table: str, day: date) -> bool:
            return table in tables and (days is None or day in days)

        left = {
            table: change.model_copy(update={"days": {d: c for d, c in change.days.items() if not goes(table, d)}})
            for table, change in self.tables.items()
        }
        return StagedDays(
            tables={table: change for table, change in left.items() if change.days or table not in tables},
            holds=tuple(hold for hold in self.holds if not goes(hold.table, hold.day)),
            over=tuple(hold for hold in self.over if not goes(hold.table, hold.day)),
        )


def _together(earlier: TableChange, later: TableChange) -> TableChange:
    """Return days of one table that were computed in two batches."""
    return later.model_copy(update={"days": {**earlier.days, **later.days}, "seconds": earlier.seconds + later.seconds})
