"""What a backfill made of each day: before and after, as the ledger has it, or its stage while it is not published."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from platform_assets.engine.platform import Platform
from platform_assets.operations.backfill.figures import kept_figures
from platform_assets.operations.backfill.staged import stage_of
from platform_assets.operations.lineage.amount_changes import AmountChanges, Shown, amount_changes
from platform_assets.operations.plan_record import BackfillRecord
from platform_assets.planning.backfill.verdicts import Figures, difference_percent
from platform_assets.records.history import DayRecord


@dataclass(frozen=True)
class DayChange:
    """One day of one table; every pair is before and after.

    Args:
        table: of the day.
        day: the day.
        rows: number of rows; None before where the day was never computed.
        bytes: of its files; None likewise.
        digests: of its whole content; empty likewise.
        figures: that the gates of the plan looked at; None where there were none.
    """

    table: str
    day: date
    rows: tuple[int | None, int]
    bytes: tuple[int | None, int]
    digests: tuple[str, str]
    figures: Figures | None = None

    @property
    def is_new(self) -> bool:
        """Whether it was never computed before."""
        return not self.digests[0]

    @property
    def is_equal(self) -> bool:
        """Whether it came out as it was."""
        return self.digests[0] == self.digests[1]

    def percent(self, column: str = "") -> Decimal:
        """How far the sum of a column, or the number of rows, is from what it was."""
        if column and self.figures:
            before, after = self.figures.sums.get(column, (0, 0))
            return difference_percent(Decimal(str(before)), Decimal(str(after)))
        return difference_percent(Decimal(self.rows[0] or 0), Decimal(self.rows[1]))


def day_changes(platform: Platform, record: BackfillRecord) -> tuple[DayChange, ...]:
    """Before and after of every day that a backfill published or has staged, by table and day."""
    figures = {(one.table, one.day): one for one in kept_figures(platform.lake, record.name)}
    after = sorted(_after(platform, record), key=lambda one: (one.table, one.day))
    before = _before(platform, record, after)
    changes = []
    for day in after:
        was = before.get((day.table, day.day))
        changes.append(
            DayChange(
                day.table,
                day.day,
                (was.rows if was else None, day.rows),
                (was.bytes if was else None, day.bytes),
                (was.digest if was else "", day.digest),
                figures.get((day.table, day.day)),
            )
        )
    return tuple(changes)


def changed_amounts(platform: Platform, record: BackfillRecord, changes: Iterable[DayChange]) -> AmountChanges:
    """What the days of a backfill come to, before and after; nothing while it is not published.

    Args:
        platform: as it is now.
        record: of the backfill.
        changes: of its days.
    """
    if record.release is None:
        return AmountChanges()
    before, after = record.release - 1, record.release
    return amount_changes(
        platform,
        {
            (one.table, one.day): (
                None if one.is_new else Shown(before, one.bytes[0] or 0),
                Shown(after, one.bytes[1]),
            )
            for one in changes
            if not one.is_equal
        },
    )


@dataclass(frozen=True)
class _After:
    table: str
    day: date
    rows: int
    bytes: int
    digest: str


def _after(platform: Platform, record: BackfillRecord) -> Iterator[_After]:
    published = platform.ledger.publication(record.publication) if record.publication else None
    if published:
        for day in published.days:
            yield _After(day.table, day.day, day.rows, day.bytes, day.digest)
    elif stage := stage_of(platform, record.name):
        for table, change in stage.staged.tables.items():
            for its_day, content in change.days.items():
                yield _After(table, its_day, content.rows, content.bytes, content.digest)


def _before(platform: Platform, record: BackfillRecord, days: Iterable[_After]) -> dict[tuple[str, date], DayRecord]:
    """What these days were before the publication of a backfill; what they are, while it has none."""
    among: dict[str, list[date]] = {}
    for day in days:
        among.setdefault(day.table, []).append(day.day)
    found = {}
    for table, of_table in among.items():
        for its_day, records in platform.ledger.histories(table, of_table).items():
            was = before_publication(records, record.publication)
            if was and was.digest:
                found[table, its_day] = was
    return found


def before_publication(records: Sequence[DayRecord], publication: str | None) -> DayRecord | None:
    """What a day was before a publication made something of it; what it is, where there is none yet.

    Args:
        records: all that it has ever been, newest first: by releases, since names go by the clocks of machines, and by
            when work was begun.
        publication: its name.
    """
    names = [one.publication for one in records]
    older = records[names.index(publication) + 1 :] if publication in names else records
    return older[0] if older else None
