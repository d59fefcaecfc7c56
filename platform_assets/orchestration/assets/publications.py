"""Report publications made outside of Dagster to Dagster, and correct its wrong states."""

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
from platform_assets.operations.lineage.held_days import HeldDay, held_days
from platform_assets.operations.plan_record import ROLLBACK_OF, RecordError, find_record, plan_of
from platform_assets.orchestration.assets.checks import delivery_events, good_day_events, good_days, published_events
from platform_assets.orchestration.assets.events import (
    Metadata,
    asset_key,
    day_event,
    markdown,
    plain,
    recorded_figures,
    warning_metadata,
)
from platform_assets.orchestration.assets.factory import daily_partitions
from platform_assets.orchestration.assets.pictures import with_charts
from platform_assets.orchestration.instance.events import Event, failed_days, is_for_all, report_anew
from platform_assets.quality.deliveries import delivery_checks
from platform_assets.records.history import COMPACTION, ERASURE, ROLL_BACK, DayRecord, PublicationRecord
from platform_assets.words import as_code, visible

_JUDGED_BEFORE = {
    ROLL_BACK: "Passed when the restored content was first published",
    ERASURE: "Kept nothing of the day back when it was published; rows were taken out of it since",
}
"""What checks say of days that no gate looked at again, by the kind of their publication."""

_KEPT_AS = "platform_assets.published_elsewhere"
"""The key under which Dagster's storage keeps how far publications have been reported."""

PUBLISH, PROVE = "publish", "prove"
"""The steps of a plan's run that publish, or put back, and show what."""

_HEALED = "The day is up to date: nothing holds it any more."


@dataclass(frozen=True, order=True)
class Cursor:
    """How far publications have been reported to Dagster.

    Args:
        until: last fully reported release; -1 before the first.
        table: in the next publication, the catalogue number of the partly reported table.
        day: the last reported day of that table.
    """

    until: int = -1
    table: int = -1
    day: date = date.min

    @classmethod
    def parse(cls, cursor: str | None) -> Self:
        """Parse a cursor from its text."""
        until, *within = (cursor or "-1").split()
        return cls(int(until), int(within[0]), date.fromisoformat(within[1])) if within else cls(int(until))

    def __str__(self) -> str:
        return f"{self.until}" if self.table < 0 else f"{self.until} {self.table} {self.day}"


@dataclass(frozen=True)
class Elsewhere:
    """A day that Dagster lacks, or the end of a publication.

    Args:
        cursor: position after reporting this.
        events: the day and each of its checks; none at the end of a publication.
    """

    cursor: Cursor
    events: tuple[Event, ...] = ()


@dataclass(frozen=True)
class Shown:
    """Result of a tick's report to Dagster.

    Args:
        cursor: position reached.
        failed: events that Dagster refused, each with its reason; the others are reported.
        more: whether there was no time for the rest.
    """

    cursor: Cursor
    days: int = 0
    failed: tuple[str, ...] = ()
    more: bool = False


def show_since_last(instance: dg.DagsterInstance, platform: Platform, within_s: float) -> Shown:
    """Report days published outside of Dagster since the last report, each day once.

    Dagster's instance stores the position, for the sensor, and for `up --read-only`, which runs none.

    Raises:
        Exception: Dagster's storage accepts nothing at all now.
    """
    kept = instance.daemon_cursor_storage
    since = Cursor.parse(kept.get_cursor_values({_KEPT_AS}).get(_KEPT_AS))
    shown = show(instance, published_elsewhere(instance, platform, since), since, within_s)
    if shown.cursor != since:
        kept.set_cursor_values({_KEPT_AS: str(shown.cursor)})
    return shown


def published_elsewhere(instance: dg.DagsterInstance, platform: Platform, since: Cursor) -> Iterator[Elsewhere]:
    """Yield unchanged days that no run of Dagster published, in order of releases."""
    newest = platform.current_release().number  # up to here the ledger has no gap; others may publish now
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
            return  # once it ends, it is known what is left to report
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
    """Report events to Dagster one after the other; a refused one does not stop the others.

    Raises:
        Exception: Dagster's storage accepts nothing at all now; nothing more was reported.
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
                check = f", {event.check_name}" if isinstance(event, dg.AssetCheckEvaluation) else ""
                why = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
                failed.append(f"{event.asset_key.to_user_string()} {event.partition}{check}: {why}")
        shown = Shown(part.cursor, shown.days + (len(failed) < len(part.events)), (*shown.failed, *failed))
    return shown


def come_since(
    instance: dg.DagsterInstance, platform: Platform, contract: Contract
) -> Iterator[dg.AssetMaterialization]:
    """Yield raw days whose rows were published before their partitions existed, once they count."""
    snapshot = LakeSnapshot.now(platform)
    loaded = snapshot.digests(contract.name)
    early = {
        day: record
        for day, record in snapshot.days(contract.name).items()
        if day in loaded and record.figures.get(AHEAD)
    }
    known = instance.get_materialized_partitions(asset_key(contract.name)) if early else ()
    for day, record in early.items():
        if day.isoformat() not in known:
            yield day_event(contract.name, day, record.digest, recorded_figures(record))


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
    """Return held days that Dagster does not show as failed, except those of a running run."""
    holds = platform.ledger.holds()
    if not holds:
        return ()
    partitions = daily_partitions(platform.settings)
    shown = {
        contract.name: set().union(*failed_days(instance, asset_key(contract.name), partitions))
        for contract in platform.catalogue
    }
    unshown = {
        (hold.table, hold.day)
        for hold in holds
        if hold.table in shown
        and (key := hold.day.isoformat()) not in shown[hold.table]
        and partitions.has_partition_key(key)
    }
    held = held_days(platform, [hold for hold in holds if (hold.table, hold.day) in unshown]) if unshown else ()
    runs = {run_id: instance.get_run_by_id(run_id) for run_id in {day.hold.run for day in held}}
    return tuple(day for day in held if (run := runs[day.hold.run]) is None or run.is_finished)


def healed_and_not_shown(instance: dg.DagsterInstance, platform: Platform, cursor: Cursor) -> Iterator[Elsewhere]:
    """Yield every up-to-date day that Dagster shows as failed.

    No publication is made if a day becomes right without a change, such as after a withdrawn bad delivery.

    Args:
        cursor: position of the report, which this does not change.
    """
    partitions = daily_partitions(platform.settings)
    for contract in platform.catalogue:
        failed, at_work = failed_days(instance, asset_key(contract.name), partitions)
        days = [day for day in platform.calendar.days() if day.isoformat() in failed - at_work]
        good = good_days(platform, contract, days) if days else {}
        for day, event in zip(sorted(good), good_day_events(contract, good), strict=True):
            yield Elsewhere(cursor, (event, *published_events(contract, good[day], _HEALED)))


def is_shown_by_its_run(instance: dg.DagsterInstance, platform: Platform, head: PublicationRecord) -> bool | None:
    """Return whether a run of Dagster made a publication and has shown its days; None while it may still do so."""
    if instance.has_run(head.run):
        return True
    of_plan = head.run.removeprefix(ROLLBACK_OF)
    plan = plan_of(of_plan)
    try:
        record = find_record(platform.lake, plan) if plan else None
    except RecordError:
        return False  # the plan's outcome is unknown; its days are there all the same
    if record is None or record.run != of_plan or not record.runs:
        return False
    runs = instance.get_runs(dg.RunsFilter(run_ids=list(record.runs)))
    if any(_has_shown(instance, run, head) for run in runs):
        return True
    return None if any(not run.is_finished for run in runs) else False


def _has_shown(instance: dg.DagsterInstance, run: dg.DagsterRun, head: PublicationRecord) -> bool:
    """Return whether a run of a plan published; or, for a rollback, whether the run's proof made it.

    That step fails after it has shown the rollback.
    """
    if not head.run.startswith(ROLLBACK_OF):
        steps = instance.get_run_step_stats(run.run_id, [PUBLISH])
        return any(step.status is not None and step.status.name == "SUCCESS" for step in steps)
    at = head.created_at.timestamp()
    times = [(step.start_time, step.end_time) for step in instance.get_run_step_stats(run.run_id, [PROVE])]
    return any(start is not None and end is not None and start <= at <= end for start, end in times)


def current_days(platform: Platform, published: PublicationRecord) -> Iterator[tuple[int, Contract, list[DayRecord]]]:
    """Yield for each table its number, and the days of a publication that only a compaction replaced since."""
    made: defaultdict[str, dict[date, DayRecord]] = defaultdict(dict)
    for record in published.days:
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
            if compacted or record.publication == published.publication:
                current.append(mine[day])
        yield number, contract, current


def published_metadata(
    platform: Platform, contract: Contract, records: Iterable[DayRecord], head: PublicationRecord, more: Metadata
) -> dict[date, Metadata]:
    """Return metadata of some days of a table, like a run of its asset, without what only the run knew."""
    by = more
    if (plan := plan_of(head.run)) is not None:
        by = {
            "plan": plain(plan),
            "plan hash": plain(head.run.rpartition("-")[2]),
            "publication": plain(head.publication),
            "release": dg.MetadataValue.int(head.release),
        } | more
    shown = {record.day: warning_metadata(record.warnings) | recorded_figures(record) | by for record in records}
    try:
        return with_charts(platform, contract, shown)
    except PlatformError as error:  # files are gone, say; the days are shown all the same
        left_out = plain(error.what)
        return {day: {**metadata, "without pictures": left_out} for day, metadata in shown.items()}
