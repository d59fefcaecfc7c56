"""Which tables and days a person names, and what is to be brought up to date of them.

Also which days are protected from that, and which days stand for all others where some are tried or verified.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date

from platform_assets.contracts import Catalogue
from platform_assets.contracts.calendar import why_protected
from platform_assets.errors import PlatformError
from platform_assets.planning.key_scope import KeyScope
from platform_assets.planning.reasons import Reasons
from platform_assets.planning.windows import Calendar, day_range, union_read, which
from platform_assets.words import counted


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
        """Return whether a table is among them."""
        return not self.tables or table in self.tables

    def has_day(self, day: date | None) -> bool:
        """Return whether a day is among them; where any is, so is what lies on none."""
        return self.days is None or day in self.days


EVERYTHING = Selection()
"""What whoever names nothing means."""


@dataclass(frozen=True)
class Request(Selection):
    """A selection that is to be brought up to date with all that it is made from, and how far.

    Args:
        by_person: days stale only through code or configuration are taken as well.
        force: the days asked for are recomputed whatever their state.
        by_table: days of each table, in place of `days`; of those not in `tables` only what is stale or reached.
        protected_too: protected days that are computed all the same, as a plan file says why.
        keys: only rows of these keys are, of the tables and days named alone; all of them by default.
        takes: whether raw tables first take what was delivered for them.
    """

    by_person: bool = False
    force: bool = False
    by_table: Mapping[str, frozenset[date]] = field(default_factory=dict, hash=False)
    protected_too: frozenset[date] = frozenset()
    keys: KeyScope | None = None
    takes: bool = True

    def asked(self, table: str, wanted: Collection[date]) -> frozenset[date]:
        """Return the days of a table that were asked for by name: the table's, the days', or by force all."""
        if self.by_table:
            return self.by_table.get(table, frozenset()).intersection(wanted) if table in self.tables else frozenset()
        named = table in self.tables or (not self.tables and (self.days is not None or self.force))
        if not named:
            return frozenset()
        return frozenset(wanted) if self.days is None else self.days.intersection(wanted)

    def leaves(self, table: str, day: date) -> bool:
        """Return whether a day that is stale by code alone stays so: days of a table are named, and not this one."""
        return bool(self.by_table) and table in self.tables and day not in self.by_table.get(table, ())


AUTOMATIC = Request()
"""What sensors and schedules ask for: everything that is stale through data."""

BY_PERSON = Request(by_person=True)
"""What a person asks for who names nothing: everything that is stale."""


def wanted_days(catalogue: Catalogue, request: Request, calendar: Calendar) -> dict[str, frozenset[date]]:
    """Return the days asked for, and those of other tables that they are made from, through every window."""
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


def days_to_probe(rows: Mapping[date, int], together: int) -> tuple[date, ...]:
    """Return the days most likely to show what a transform should not do; none where they could show nothing new.

    One with days on both sides, because it tells both who looks back and who looks ahead; among those the one with most
    rows, because it has most ties. Without such a day all that there are: each tells only who looks at the other.

    A day that was computed alone tells nothing of neighbours, nor few days together of those farther apart. So as many
    days as never before have something new to show.

    Args:
        together: most days with rows that the transform has made together before.
    """
    ordered = [day for day in sorted(rows) if rows[day]]
    # A neighbour that comes out empty may have been looked at all the same.
    if together >= max(len(ordered), min(len(rows), 2)):
        return ()
    inner = ordered[1:-1]
    return (max(inner, key=lambda day: (rows[day], day)),) if inner else tuple(ordered)


@dataclass(frozen=True)
class Draw:
    """How days are drawn that are verified in place of all.

    Args:
        most: how many besides the newest; fewer where there are not so many.
        seed: the same one draws the same days.
    """

    most: int = 3
    seed: int = 0

    def of(self, days: Collection[date]) -> tuple[date, ...]:
        """Return the newest of some days and others drawn at random, oldest first."""
        ordered = sorted(days)
        older, newest = ordered[:-1], ordered[-1:]
        drawn = random.Random(self.seed).sample(older, min(self.most, len(older)))  # noqa: S311
        return (*sorted(drawn), *newest)


_NOT_DATA = {"code", "configuration"}


class ProtectedDaysError(PlatformError):
    """Protected days were to be computed without a plan that says why."""


def protected_in(
    catalogue: Catalogue, planned: Mapping[str, Collection[date]], known: Mapping[str, Collection[date]]
) -> dict[str, dict[date, str]]:
    """Return the days of a plan that are protected and have content, each with the reason of that, by table."""
    protected = {table: _protected(catalogue, table, days, known) for table, days in planned.items()}
    return {table: days for table, days in protected.items() if days}


def protected_without_data(
    catalogue: Catalogue, reasons: Mapping[str, Mapping[date, Reasons]], known: Mapping[str, Collection[date]]
) -> dict[str, dict[date, str]]:
    """Return protected days for which no data of theirs asks, with those that nobody knows a reason for."""
    without_data = {
        table: [day for day, why in of_table.items() if "asked for" in why or _NOT_DATA.issuperset(why)]
        for table, of_table in reasons.items()
    }
    return protected_in(catalogue, without_data, known)


def refuse_protected(
    catalogue: Catalogue, reasons: Mapping[str, Mapping[date, Reasons]], known: Mapping[str, Collection[date]]
) -> None:
    """Refuse to compute protected days that have content, and for which no data of theirs asks.

    Args:
        reasons: why days are to be computed, by table.

    Raises:
        ProtectedDaysError: naming the first table.
    """
    for table, days in protected_without_data(catalogue, reasons, known).items():
        raise ProtectedDaysError(
            f"{counted(len(days), 'day')} of {table} ({which(list(days))}) cannot be computed so: they are protected, "
            f"because {next(iter(days.values()))}.",
            "Leave them out, or write a plan with `override_protected`: `platform-assets plan new`.",
        )


def _protected(
    catalogue: Catalogue, table: str, days: Collection[date], known: Mapping[str, Collection[date]]
) -> dict[date, str]:
    periods, there = catalogue.protecting(table), known.get(table, ())
    return (
        {day: why for day in sorted(days) if day in there and (why := why_protected(periods, day))} if periods else {}
    )
