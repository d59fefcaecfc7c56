"""Sums of amounts of changed days, and differences of two releases, read from files without a JVM."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from platform_assets.contracts import DAY
from platform_assets.contracts.table import amounts
from platform_assets.engine.day_contents import is_kept_aside
from platform_assets.engine.platform import Platform
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.reading import row_reader, version_in
from platform_assets.lakehouse.releases import Release
from platform_assets.planning.selection import EVERYTHING, Selection
from platform_assets.records.history import DayRecord

if TYPE_CHECKING:
    import pyarrow as pa

Amount = int | Decimal
Sums = Mapping[str, Amount | None]
"""By column; None of one that the files do not have, as before it was added or renamed."""

MOST_BYTES = 256 * 2**20
"""Of files that are read for one answer; a person waits for it."""


class Shown(NamedTuple):
    """A day as a release shows it."""

    release: int
    bytes: int


@dataclass(frozen=True)
class AmountChanges:
    """Amounts of changed days.

    Args:
        by_day: sums before and after of each table's day, by column; None on a side without the day.
        unread: tables whose amounts are not shown, with the reason.
    """

    by_day: Mapping[tuple[str, date], tuple[Sums | None, Sums | None]] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)

    def of(self, table: str, days: Collection[date]) -> dict[str, tuple[Amount | None, Amount | None]]:
        """Return the amounts of differing days of a table, before and after; None if none of them exists."""
        sides = [
            [sums for day in days if (sums := self.by_day.get((table, day), (None, None))[side]) is not None]
            for side in (0, 1)
        ]
        names = dict.fromkeys(name for side in sides for sums in side for name in sums)
        totals = {name: (_total(name, sides[0]), _total(name, sides[1])) for name in names}
        return {name: pair for name, pair in totals.items() if pair[0] != pair[1]}


def amount_changes(
    platform: Platform, days: Mapping[tuple[str, date], tuple[Shown | None, Shown | None]]
) -> AmountChanges:
    """Sum the amounts of silver and gold days before and after, if their files exist and are not too large.

    Raw tables have every version of a row, so their sums would mean nothing.

    Args:
        days: records before and after, by table and day; None if the day does not exist.
    """
    by_table: defaultdict[str, dict[date, tuple[Shown | None, Shown | None]]] = defaultdict(dict)
    for (table, day), pair in sorted(days.items()):
        if table in platform.catalogue.names and platform.catalogue[table].inputs:
            by_table[table][day] = pair
    left = MOST_BYTES
    by_day: dict[tuple[str, date], tuple[Sums | None, Sums | None]] = {}
    unread: dict[str, str] = {}
    for table, pairs in by_table.items():
        names = amounts(platform.catalogue[table])
        size = sum(shown.bytes for pair in pairs.values() for shown in pair if shown)
        if not names:
            continue
        if size > left:
            unread[table] = f"{size / 2**20:,.0f} MiB would have to be read; name fewer tables or days to see them"
            continue
        left -= size
        try:
            before, after = (
                _sums(platform, table, names, {day: shown for day, pair in pairs.items() if (shown := pair[side])})
                for side in (0, 1)
            )
        except PlatformError as error:
            unread[table] = error.what
            continue
        by_day |= {(table, day): (before.get(day), after.get(day)) for day in pairs}
    return AmountChanges(by_day, unread)


def _sums(
    platform: Platform, table: str, names: Collection[str], shown: Mapping[date, Shown]
) -> dict[date, dict[str, Amount | None]]:
    """Return the sums of each day; all 0 for a day without rows."""
    sums: dict[date, dict[str, Amount | None]] = {}
    by_release: defaultdict[int, list[date]] = defaultdict(list)
    for day, at in shown.items():
        sums[day] = {}
        if at.bytes:
            by_release[at.release].append(day)
    for release, days in by_release.items():
        with row_reader(platform.lake, table, [DAY, *names], release, days) as batches:
            for batch in batches:
                if batch.num_rows:
                    of_day = sums[batch.column(DAY)[0].as_py()]  # a file has one
                    for name in names:
                        is_there = name in batch.schema.names
                        of_day[name] = (of_day.get(name) or 0) + _sum(batch.column(name)) if is_there else None
    return sums


def _sum(values: pa.Array) -> Amount:
    """Sum whole numbers as decimals: the sum of longs need not be a long."""
    import pyarrow as pa

    if not pa.types.is_integer(values.type):
        return values.sum().as_py() or 0
    return int(values.cast(pa.decimal128(38, 0)).sum().as_py() or 0)


def _total(name: str, sides: Collection[Sums]) -> Amount | None:
    there = [amount for sums in sides if (amount := sums.get(name, 0)) is not None]
    return sum(there) if there else None


@dataclass(frozen=True)
class DayDifference:
    """A day that two releases show differently.

    Args:
        before: what the first release shows; None without the day.
        after: what the second release shows.
        releases: releases between the two that published the day, oldest first.
    """

    table: str
    day: date
    before: DayRecord | None
    after: DayRecord | None
    releases: tuple[int, ...]

    @property
    def figures(self) -> dict[str, tuple[int | None, int | None]]:
        """Return gate figures that differ, before and after."""
        then = self.before.figures if self.before else {}
        now = self.after.figures if self.after else {}
        names = [name for name in {**then, **now} if not is_kept_aside(name) and then.get(name) != now.get(name)]
        return {name: (then.get(name), now.get(name)) for name in names}


def changed_days(
    platform: Platform,
    before: Release,
    after: Release,
    only: Selection = EVERYTHING,
) -> tuple[DayDifference, ...]:
    """Return the days whose content differs between two releases, by table and day.

    A day that was published again with the same content, or rolled back, does not differ. A day without rows that was
    loaded in between does, although the table has the same version.
    """
    both = before.versions | after.versions
    newer = max(before, after, key=lambda release: release.number)
    for table in sorted(only.tables - both.keys()):
        version_in(platform.lake, table, newer, platform.catalogue.names)
    # Days not published between the two are unchanged.
    published = platform.ledger.counts.published_between(*sorted((before.number, after.number)))
    return tuple(
        change
        for name in sorted(both.keys() & published.keys())
        if only.has_table(name)
        for change in _of_table(
            platform,
            name,
            before.number,
            after.number,
            published[name] if only.days is None else published[name].intersection(only.days),
        )
    )


def changed_amounts(
    platform: Platform, before: Release, after: Release, changes: Iterable[DayDifference]
) -> AmountChanges:
    """Return the amounts of the differences of two releases, read from the files of both."""

    def at(release: Release, record: DayRecord | None) -> Shown | None:
        return Shown(release.number, record.bytes) if record else None

    return amount_changes(
        platform,
        {(change.table, change.day): (at(before, change.before), at(after, change.after)) for change in changes},
    )


def _of_table(platform: Platform, table: str, before: int, after: int, days: Collection[date]) -> list[DayDifference]:
    then = platform.ledger.current_days(table, at=before, among=days)
    now = platform.ledger.current_days(table, at=after, among=days)
    differing = [day for day in sorted({*then, *now}) if _digest(then.get(day)) != _digest(now.get(day))]
    if not differing:
        return []
    first, last = sorted((before, after))
    history = platform.ledger.revisions(table, differing, at=last)
    return [
        DayDifference(
            table=table,
            day=day,
            before=then.get(day),
            after=now.get(day),
            releases=tuple(revision.release for revision in history[day] if revision.release > first),
        )
        for day in differing
    ]


def _digest(record: DayRecord | None) -> str | None:
    return record.digest if record else None
