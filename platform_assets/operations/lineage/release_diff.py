"""What differs between two releases: days by digest, amounts, and the publications that did it. No JVM."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date

from platform_assets.engine.day_contents import is_kept_aside
from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.reading import version_in
from platform_assets.lakehouse.releases import Release
from platform_assets.operations.lineage.amount_changes import AmountChanges, Shown, amount_changes
from platform_assets.planning.selection import EVERYTHING, Selection
from platform_assets.records.history import DayRecord


@dataclass(frozen=True)
class DayDifference:
    """A day that two releases show differently.

    Args:
        table: `<layer>.<table>`.
        day: event date.
        before: what the first release shows; None for a day it does not have.
        after: what the second one shows.
        releases: numbers of those between the two that made something of the day, oldest first.
    """

    table: str
    day: date
    before: DayRecord | None
    after: DayRecord | None
    releases: tuple[int, ...]

    @property
    def figures(self) -> dict[str, tuple[int | None, int | None]]:
        """Counts that the gates looked at and that differ, before and after."""
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
    """The days whose content differs between two releases, by table and day.

    A day that was published again with the same content, or put back, does not differ. A day without rows that was
    loaded meanwhile does, though the table has the same version.

    Args:
        before: any release, usually the older one.
        after: any other.
        only: of the tables and days.

    Raises:
        UnknownTableError: nobody declares or ever published such a table.
        NeverPublishedError: neither release has it.
    """
    both = before.versions | after.versions
    newer = max(before, after, key=lambda release: release.number)
    for table in sorted(only.tables - both.keys()):
        version_in(platform.lake, table, newer, platform.catalogue.names)
    # Whatever was not published between the two is what it was.
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
    """What the differences of two releases come to, read from the files of both."""

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
