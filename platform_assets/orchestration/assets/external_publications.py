"""Days that were published without Dagster, or before they were partitions, told to it so that its pages stay true."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache

import dagster as dg

from platform_assets.contracts import Contract
from platform_assets.engine.day_contents import AHEAD
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.orchestration.assets.checks import checks_of
from platform_assets.orchestration.assets.events import asset_key, day_event, figures
from platform_assets.records.history import COMPACTION, DayRecord, PublicationRecord

Event = dg.AssetMaterialization | dg.AssetCheckEvaluation


@dataclass(frozen=True)
class Elsewhere:
    """What Dagster has not been told of.

    Args:
        events: one for every day and one for each of its checks.
        days: how many days that are.
        until: the release up to which everything is told now.
        more: whether later releases are still to be looked at.
    """

    events: tuple[Event, ...]
    days: int
    until: int
    more: bool


def published_elsewhere(
    instance: dg.DagsterInstance, platform: Platform, since: int, *, most_events: int = 1_000
) -> Elsewhere:
    """Days that no run of Dagster published and that still are as they were published.

    Args:
        instance: tells its own runs from others.
        platform: what to look at.
        since: a release, what it and those before it show has been told; -1 before anything was.
        most_events: to stop after, at the end of a publication.
    """
    newest = platform.current_release().number  # up to which the ledger has no gap; others may publish meanwhile
    indexed = {name: number for name, number in platform.ledger.indexed().items() if number <= newest}
    until = since if since <= newest else -1  # another lake, or an older state of this one
    events: list[Event] = []
    days = 0
    for publication, release in indexed.items():
        if release <= until:
            continue
        if len(events) >= most_events:
            return Elsewhere(tuple(events), days, until, more=True)
        head = platform.ledger.head(publication)
        if head is not None and head.kind != COMPACTION and not instance.has_run(head.run):
            for contract, record in _current(platform, publication):
                events += _events(contract, record, head)
                days += 1
        until = release
    return Elsewhere(tuple(events), days, until, more=False)


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


def _current(platform: Platform, publication: str) -> Iterator[tuple[Contract, DayRecord]]:
    """Partitions that a publication made and nothing replaced since but a compaction, of tables that are assets."""
    published = platform.ledger.publication(publication)
    made: defaultdict[str, dict[date, DayRecord]] = defaultdict(dict)
    for record in published.days if published else ():
        if record.day in platform.calendar:
            made[record.table][record.day] = record
    head = cache(platform.ledger.head)
    for contract in platform.catalogue:
        mine = made.get(contract.name, {})
        now = platform.ledger.current_days(contract.name, among=mine) if mine else {}
        for day, record in now.items():
            by = head(record.publication)
            compacted = by is not None and by.kind == COMPACTION and record.digest == mine[day].digest
            if compacted or record.publication == publication:
                yield contract, mine[day]


def _events(contract: Contract, record: DayRecord, head: PublicationRecord) -> Iterator[Event]:
    said = f"{head.who} by `{head.why}`" if head.why else head.who
    shown = figures(record.rows, record.bytes, record.files, record.digest, record.figures, record.seconds)
    shown["published by"] = dg.MetadataValue.md(f"{said}, not by a run of Dagster ({head.run})")
    yield day_event(contract.name, record.day, record.digest, shown)
    for name in checks_of(contract):
        yield dg.AssetCheckEvaluation(
            asset_key=asset_key(contract.name),
            check_name=name,
            passed=True,
            description=f"Kept nothing of the day back when it was published, by {said}, not by a run of Dagster.",
            partition=record.day.isoformat(),
        )
