"""Show what was published without Dagster, and where Dagster shows a day otherwise than it is."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import Self

import dagster as dg
from dagster._core.storage.partition_status_cache import get_and_update_asset_status_cache_value

from platform_assets.contracts import Contract
from platform_assets.engine.day_contents import AHEAD
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.operations.lineage.held_days import HeldDay, held_days
from platform_assets.orchestration.assets.checks import delivery_events, published_events
from platform_assets.orchestration.assets.events import Metadata, asset_key, day_event, figures
from platform_assets.orchestration.assets.factory import daily_partitions
from platform_assets.orchestration.assets.outcomes import good_day_events, good_days
from platform_assets.orchestration.assets.published_days import current_days, is_shown_by_its_run, published_metadata
from platform_assets.orchestration.instance.runless import Event, is_for_all, report_anew
from platform_assets.orchestration.told_errors import markdown
from platform_assets.quality.deliveries import delivery_checks
from platform_assets.records.history import COMPACTION, ERASURE, ROLL_BACK, DayRecord, PublicationRecord
from platform_assets.visible import as_code, visible

_JUDGED_BEFORE = {
    ROLL_BACK: "Kept nothing back of what the day was when that was first published; it was put back",
    ERASURE: "Kept nothing of the day back when it was published; rows were taken out of it since",
}
"""What checks say of days that no gate looked at again, by the kind of their publication."""

_KEPT_AS = "platform_assets.published_elsewhere"
"""The key under which Dagster keeps how far it has been told, whoever told it."""

_HEALED = "The day is what it should be: nothing keeps it back any more."


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
    """Days that no run of Dagster published and that still are as they were published, in the order of releases."""
    newest = platform.current_release().number  # up to which the ledger has no gap; others may publish meanwhile
    indexed = {name: number for name, number in platform.ledger.indexed().items() if number <= newest}
    if since.until > newest:
        since = Cursor()  # another lake, or an older state of this one
    before = since.until
    for publication, release in indexed.items():
        if release <= since.until:
            continue
        head = platform.ledger.head(publication)
        shown = head is None or head.kind == COMPACTION or is_shown_by_its_run(instance, platform, head)
        if shown is None:
            return  # once it ends, it is known what is left to tell
        if head is not None and not shown:
            made = platform.ledger.publication(publication) or head
            by = {"published by": markdown(f"{_said(head)}, not by a run of Dagster ({visible(head.run)})")}
            for number, contract, records in current_days(platform, made):
                left = [record for record in records if Cursor(before, number, record.day) > since]
                metadata = published_metadata(platform, contract, left, head, by)
                for record in left:
                    events = tuple(_events(contract, record, metadata[record.day], made))
                    yield Elsewhere(Cursor(before, number, record.day), events)
        before = release
        yield Elsewhere(Cursor(before))


def show(instance: dg.DagsterInstance, elsewhere: Iterable[Elsewhere], since: Cursor, within_s: float) -> Shown:
    """Tell Dagster, one event after the other; what it refuses keeps no other from being told.

    Args:
        elsewhere: in the order of `published_elsewhere`.
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
    return f"{event.asset_key.to_user_string()} {event.partition}{check}"


def come_since(
    instance: dg.DagsterInstance, platform: Platform, contract: Contract
) -> Iterator[dg.AssetMaterialization]:
    """Raw days whose rows were published before they were partitions: Dagster is told once they count."""
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


def _said(head: PublicationRecord) -> str:
    who = head.who if head.who.isalnum() else as_code(head.who)
    return f"{who} ({as_code(head.why)})" if head.why else who


def _events(contract: Contract, record: DayRecord, shown: Metadata, head: PublicationRecord) -> Iterator[Event]:
    yield day_event(contract.name, record.day, record.digest, shown)
    came = [arrival for arrival in head.arrivals if arrival.table == contract.name and arrival.kind == "delivery"]
    if delivered := delivery_checks(contract, came, [record.day]):
        yield from delivery_events(contract, record.day, delivered[record.day])
        return
    judged = _JUDGED_BEFORE.get(head.kind, "Kept nothing of the day back when it was published")
    yield from published_events(contract, record, f"{judged}, by {_said(head)}, not by a run of Dagster.")


def held_and_not_shown(instance: dg.DagsterInstance, platform: Platform) -> tuple[HeldDay, ...]:
    """Held days that Dagster does not count among the failed ones, by table and day.

    One that a run holds which is still at work is left to that run.
    """
    holds = platform.ledger.holds()
    if not holds:
        return ()
    partitions = daily_partitions(platform.settings)
    shown = {contract.name: set().union(*_failed(instance, platform, contract)) for contract in platform.catalogue}
    unshown = [
        hold
        for hold in holds
        if hold.table in shown
        and (key := hold.day.isoformat()) not in shown[hold.table]
        and partitions.has_partition_key(key)
    ]
    days = {(hold.table, hold.day) for hold in unshown}
    held = held_days(platform, [hold for hold in holds if (hold.table, hold.day) in days]) if days else ()
    return tuple(day for day in held if _is_over(instance, day.hold.run))


def healed_and_not_shown(instance: dg.DagsterInstance, platform: Platform, told: Cursor) -> Iterator[Elsewhere]:
    """Of every day that Dagster counts among the failed ones, and that is what it should be, what says so.

    Nothing is published where a day became right as it is: what a bad delivery changed was taken out again.

    Args:
        told: how far Dagster is told of publications, which this does not change.
    """
    for contract in platform.catalogue:
        failed, at_work = _failed(instance, platform, contract)
        days = [day for day in platform.calendar.days() if day.isoformat() in failed - at_work]
        good = good_days(platform, contract, days) if days else {}
        for day, event in zip(sorted(good), good_day_events(contract, good), strict=True):
            yield Elsewhere(told, (event, *published_events(contract, good[day], _HEALED)))


def _failed(instance: dg.DagsterInstance, platform: Platform, contract: Contract) -> tuple[set[str], set[str]]:
    """Days that Dagster shows as failed, and those that it shows as being worked at."""
    partitions = daily_partitions(platform.settings)
    # What the pages of Dagster ask, too; it remembers what was, and looks only at what came since.
    now = get_and_update_asset_status_cache_value(instance, asset_key(contract.name), partitions)
    if now is None:
        return set(), set()
    failed = now.deserialize_failed_partition_subsets(partitions)
    at_work = now.deserialize_in_progress_partition_subsets(partitions)
    return set(failed.get_partition_keys()), set(at_work.get_partition_keys())


def _is_over(instance: dg.DagsterInstance, run_id: str) -> bool:
    run = instance.get_run_by_id(run_id)
    return run is None or run.is_finished
