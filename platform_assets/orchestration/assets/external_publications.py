"""Days that were published without Dagster, or before they were partitions, told to it so that its pages stay true."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from typing import Self

import dagster as dg

from platform_assets.contracts import Contract
from platform_assets.engine.day_contents import AHEAD
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.errors import PlatformError
from platform_assets.orchestration.assets.checks import passed_events
from platform_assets.orchestration.assets.events import Metadata, asset_key, day_event, figures
from platform_assets.orchestration.assets.pictures import illustrated
from platform_assets.orchestration.instance.runless import Event, is_for_all, report_anew
from platform_assets.orchestration.shown import markdown, plain
from platform_assets.records.history import COMPACTION, DayRecord, PublicationRecord
from platform_assets.visible import as_code, visible

_KEPT_AS = "platform_assets.published_elsewhere"
"""The key under which Dagster keeps how far it has been told, whoever told it."""


@dataclass(frozen=True, order=True)
class Cursor:
    """How far Dagster has been told.

    Args:
        until: a release: it and all before it are told; -1 before anything is.
        table: of the publication after it, the number in the catalogue of the table that is told in part.
        day: of that table, the last that is told.
    """

    until: int = -1
    table: int = -1
    day: date = date.min

    @classmethod
    def parse(cls, cursor: str | None) -> Self:
        """As `str` wrote it."""
        until, *within = (cursor or "-1").split()
        return cls(int(until), int(within[0]), date.fromisoformat(within[1])) if within else cls(int(until))

    def __str__(self) -> str:
        return f"{self.until}" if self.table < 0 else f"{self.until} {self.table} {self.day}"


@dataclass(frozen=True)
class Elsewhere:
    """A day that Dagster has not been told of, or the end of a publication.

    Args:
        told: how far Dagster is told once it knows this.
        events: the day and each of its checks; none at the end of a publication.
    """

    told: Cursor
    events: tuple[Event, ...] = ()


@dataclass(frozen=True)
class Shown:
    """What a tick told Dagster.

    Args:
        told: how far that is.
        days: how many over all tables.
        failed: what Dagster refused, each with its reason; the others are told all the same.
        more: whether there was no time for the rest.
    """

    told: Cursor
    days: int = 0
    failed: tuple[str, ...] = ()
    more: bool = False


def show_since_last(instance: dg.DagsterInstance, platform: Platform, within_s: float) -> Shown:
    """Show Dagster what was published without it since it was last told, each day once.

    How far that is belongs to the instance: its sensor tells it every half minute, and so does who opens its pages
    while no daemon runs.

    Args:
        instance: to tell.
        platform: what to look at.
        within_s: seconds after which the rest is left for the next time.

    Raises:
        Exception: Dagster's storage takes nothing at all now.
    """
    kept = instance.daemon_cursor_storage
    since = Cursor.parse(kept.get_cursor_values({_KEPT_AS}).get(_KEPT_AS))
    shown = show(instance, published_elsewhere(instance, platform, since), since, within_s)
    if shown.told != since:
        kept.set_cursor_values({_KEPT_AS: str(shown.told)})
    return shown


def published_elsewhere(instance: dg.DagsterInstance, platform: Platform, since: Cursor) -> Iterator[Elsewhere]:
    """Days that no run of Dagster published and that still are as they were published, in the order of releases.

    Args:
        instance: tells its own runs from others.
        platform: what to look at.
        since: how far Dagster has been told.
    """
    newest = platform.current_release().number  # up to which the ledger has no gap; others may publish meanwhile
    indexed = {name: number for name, number in platform.ledger.indexed().items() if number <= newest}
    if since.until > newest:
        since = Cursor()  # another lake, or an older state of this one
    before = since.until
    for publication, release in indexed.items():
        if release <= since.until:
            continue
        head = platform.ledger.head(publication)
        if head is not None and head.kind != COMPACTION and not instance.has_run(head.run):
            for number, contract, records in _current(platform, publication):
                left = [record for record in records if Cursor(before, number, record.day) > since]
                metadata = _metadata(platform, contract, left, head)
                for record in left:
                    events = tuple(_events(contract, record, metadata[record.day], head))
                    yield Elsewhere(Cursor(before, number, record.day), events)
        before = release
        yield Elsewhere(Cursor(before))


def show(instance: dg.DagsterInstance, elsewhere: Iterable[Elsewhere], since: Cursor, within_s: float) -> Shown:
    """Tell Dagster, one event after the other; what it refuses keeps no other from being told.

    Args:
        instance: to tell.
        elsewhere: in the order of `published_elsewhere`.
        since: how far it has been told.
        within_s: seconds after which the rest is left.

    Raises:
        Exception: Dagster's storage takes nothing at all now; nothing more was told.
    """
    stop = time.monotonic() + within_s
    shown = Shown(since)
    for part in elsewhere:
        if shown.days and time.monotonic() > stop:
            return replace(shown, more=True)
        failed: list[str] = []
        for event in part.events:
            try:
                report_anew(instance, event)
            except Exception as error:
                if is_for_all(error):
                    raise
                failed.append(f"{_named(event)}: {type(error).__name__}: {str(error).partition(chr(10))[0]}")
        shown = Shown(part.told, shown.days + (len(failed) < len(part.events)), (*shown.failed, *failed))
    return shown


def _named(event: Event) -> str:
    check = f", {event.check_name}" if isinstance(event, dg.AssetCheckEvaluation) else ""
    return f"{'.'.join(event.asset_key.path)} {event.partition}{check}"


def come_since(
    instance: dg.DagsterInstance, platform: Platform, contract: Contract
) -> Iterator[dg.AssetMaterialization]:
    """Raw days whose rows were published before they were partitions: Dagster is told once they count.

    Args:
        instance: knows of which days it was told.
        platform: what to look at.
        contract: of a raw table.
    """
    snapshot = LakeSnapshot.now(platform)
    loaded = snapshot.digests(contract.name)
    early = {
        day: record
        for day, record in snapshot.days(contract.name).items()
        if day in loaded and record.figures.get(AHEAD)
    }
    told = instance.get_materialized_partitions(asset_key(contract.name)) if early else ()
    for day, record in early.items():
        if day.isoformat() not in told:
            shown = figures(record.rows, record.bytes, record.files, record.digest, record.figures, record.seconds)
            yield day_event(contract.name, day, record.digest, shown)


def _current(platform: Platform, publication: str) -> Iterator[tuple[int, Contract, list[DayRecord]]]:
    """Partitions that a publication made and nothing replaced since but a compaction, of tables that are assets.

    By table, each with its number in the catalogue, in that order, and of a table the oldest first.
    """
    published = platform.ledger.publication(publication)
    made: defaultdict[str, dict[date, DayRecord]] = defaultdict(dict)
    for record in published.days if published else ():
        if record.day in platform.calendar:
            made[record.table][record.day] = record
    head = cache(platform.ledger.head)
    for number, contract in enumerate(platform.catalogue):
        mine = made.get(contract.name, {})
        now = platform.ledger.current_days(contract.name, among=mine) if mine else {}
        current: list[DayRecord] = []
        for day, record in now.items():
            by = head(record.publication)
            compacted = by is not None and by.kind == COMPACTION and record.digest == mine[day].digest
            if compacted or record.publication == publication:
                current.append(mine[day])
        yield number, contract, current


def _metadata(
    platform: Platform, contract: Contract, records: Iterable[DayRecord], head: PublicationRecord
) -> dict[date, Metadata]:
    """What is shown of some days of a table: as after a run, but for what only the run knew."""
    shown: dict[date, Metadata] = {}
    for record in records:
        counted = figures(record.rows, record.bytes, record.files, record.digest, record.figures, record.seconds)
        by = markdown(f"{_said(head)}, not by a run of Dagster ({visible(head.run)})")
        shown[record.day] = {**counted, "published by": by}
    try:
        return illustrated(platform, contract, shown)
    except PlatformError as error:  # files are gone, say; the days are shown all the same
        left_out = plain(error.what)
        return {day: {**metadata, "without pictures": left_out} for day, metadata in shown.items()}


def _said(head: PublicationRecord) -> str:
    who = head.who if head.who.isalnum() else as_code(head.who)
    return f"{who} by {as_code(head.why)}" if head.why else who


def _events(contract: Contract, record: DayRecord, shown: Metadata, head: PublicationRecord) -> Iterator[Event]:
    yield day_event(contract.name, record.day, record.digest, shown)
    judged = f"Kept nothing of the day back when it was published, by {_said(head)}, not by a run of Dagster."
    yield from passed_events(contract, record.day, judged)
