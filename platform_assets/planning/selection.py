"""Which tables and days a person names, and what is to be brought up to date of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date

from platform_assets.contracts import Catalogue
from platform_assets.planning.key_scope import KeyScope
from platform_assets.planning.windows import Calendar, day_range, union_read


@dataclass(frozen=True)
class Selection:
    """Tables and days that somebody names.

    Args:
        tables: only these; all by default.
        days: only these; all by default.
    """

    tables: frozenset[str] = frozenset()
    days: frozenset[date] | None = None

    def has_table(self, table: str) -> bool:
        """Whether a table is among them."""
        return not self.tables or table in self.tables

    def has_day(self, day: date | None) -> bool:
        """Whether a day is among them; where any is, so is what lies on none."""
        return self.days is None or day in self.days


EVERYTHING = Selection()
"""What whoever names nothing means."""


@dataclass(frozen=True)
class Request(Selection):
    """A selection that is to be brought up to date with all that it is made from, and how far.

    Args:
        tables: as of every selection.
        days: as of every selection.
        by_person: days stale only through code or configuration are taken as well.
        force: the days asked for are recomputed whatever their state.
        by_table: days of each table, in place of `days`; of those not in `tables` only what is stale or reached.
        protected_too: protected days that are computed all the same, as a plan file says why.
        keys: only rows of these keys are, of the tables and days named alone; all of them by default.
    """

    by_person: bool = False
    force: bool = False
    by_table: Mapping[str, frozenset[date]] = field(default_factory=dict, hash=False)
    protected_too: frozenset[date] = frozenset()
    keys: KeyScope | None = None

    def asked(self, table: str, wanted: Collection[date]) -> frozenset[date]:
        """The days of a table that were asked for by name: the table's, the days', or by force all."""
        if self.by_table:
            return self.by_table.get(table, frozenset()).intersection(wanted) if table in self.tables else frozenset()
        named = table in self.tables or (not self.tables and (self.days is not None or self.force))
        if not named:
            return frozenset()
        return frozenset(wanted) if self.days is None else self.days.intersection(wanted)

    def leaves(self, table: str, day: date) -> bool:
        """Whether a day that is stale by code alone stays so: days of a table are named, and it is none of them."""
        return bool(self.by_table) and table in self.tables and day not in self.by_table.get(table, ())


AUTOMATIC = Request()
"""What sensors and schedules ask for: everything that is stale through data."""

BY_PERSON = Request(by_person=True)
"""What a person asks for who names nothing: everything that is stale."""


def wanted_days(catalogue: Catalogue, request: Request, calendar: Calendar) -> dict[str, frozenset[date]]:
    """The days asked for, and those of other tables that they are made from, through every window."""
    every = frozenset(calendar.days())
    if request.by_table:
        wanted = {name: set(every & days) for name, days in request.by_table.items()}
    elif not request.tables and request.days is None:
        return dict.fromkeys(catalogue.names, every)
    else:
        days = every if request.days is None else every & request.days
        wanted = {name: set(days) for name in request.tables or catalogue.names}
    for contract in reversed(catalogue.tables):
        for read in contract.inputs:
            for span in union_read(read.window, wanted.get(contract.name, ()), calendar):
                wanted.setdefault(read.table, set()).update(day_range(*span))
    return {table: frozenset(of_table) for table, of_table in wanted.items()}
