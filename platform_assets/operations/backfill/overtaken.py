"""What others published of the days of a backfill, or of what these read, since they were staged."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from platform_assets.engine.platform import Platform
from platform_assets.engine.step.open_stage import OpenStage
from platform_assets.lakehouse.releases import published
from platform_assets.planning.windows import union_reached, which
from platform_assets.records.history import PublicationRecord
from platform_assets.words import counted

_SHOWN = 3
"""Publications that are named."""


def overtaken(platform: Platform, before: OpenStage, now: OpenStage) -> str:
    """What was computed again since it was staged, and whose publications made it so; empty where nothing was.

    Args:
        platform: as it is now.
        before: what was staged.
        now: what is going to be published of it.
    """
    again = _again(platform, before, now)
    if not again:
        return ""
    days = sum(map(len, again.values()))
    tables = "; ".join(f"{table} {which(sorted(of_table))}" for table, of_table in again.items())
    since = list(_since(platform, before.release, again))
    by = ", and ".join(f"{one.who} in release {one.release} ({one.kind}: {one.why})" for one in since[:_SHOWN])
    more = f", and {len(since) - _SHOWN:,} more" if len(since) > _SHOWN else ""
    whose = f" by {by}{more}" if by else ""
    staged = f"overtaken since {'it was' if days == 1 else 'they were'} staged"
    return f"computed {counted(days, 'day')} again, {staged}{whose}: {tables}"


def _again(platform: Platform, before: OpenStage, now: OpenStage) -> dict[str, set[date]]:
    """The staged days that are others now, or are no more, by table; those that came with them included."""
    again: dict[str, set[date]] = {}
    for table in platform.catalogue.names:
        was, becomes = before.staged.of(table), now.staged.of(table)
        if days := {day for day in was.keys() | becomes.keys() if was.get(day) != becomes.get(day)}:
            again[table] = days
    return again


def _since(platform: Platform, release: int, again: dict[str, set[date]]) -> Iterator[PublicationRecord]:
    """What was published after a release of some days of tables, or of the days that these read, newest first."""
    for _, name in sorted(published(platform.lake, after=release), reverse=True):
        record = platform.ledger.publication(name)
        if record is not None and any(_reaches(platform, record, table, days) for table, days in again.items()):
            yield record


def _reaches(platform: Platform, record: PublicationRecord, table: str, days: set[date]) -> bool:
    changed: dict[str, set[date]] = {}
    for one in record.days:
        changed.setdefault(one.table, set()).add(platform.counted_on(one.table, one.day))
    if days & changed.get(table, set()):
        return True
    return any(
        first <= day <= last
        for read in platform.catalogue[table].inputs
        if read.table in changed
        for first, last in union_reached(read.window, changed[read.table], platform.calendar)
        for day in days
    )
