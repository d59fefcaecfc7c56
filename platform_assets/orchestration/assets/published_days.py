"""Days of a publication as Dagster shows them, whoever made it, and whether its own run has shown them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date
from functools import cache

import dagster as dg
from dagster._core.execution.stats import StepEventStatus

from platform_assets.contracts import Contract
from platform_assets.engine.platform import Platform
from platform_assets.errors import PlatformError
from platform_assets.operations.plan_record import ROLLBACK_OF, RecordError, find_record, plan_of
from platform_assets.orchestration.assets.events import Metadata, figures, warned
from platform_assets.orchestration.assets.pictures import illustrated
from platform_assets.orchestration.told_errors import plain
from platform_assets.records.history import COMPACTION, DayRecord, PublicationRecord

PUBLISH, PROVE = "publish", "prove"
"""The steps of a plan's run that publish, or put back, and show what."""


def is_shown_by_its_run(instance: dg.DagsterInstance, platform: Platform, head: PublicationRecord) -> bool | None:
    """Whether a run of Dagster made a publication and has shown its days; None while one may still do so."""
    if instance.has_run(head.run):
        return True
    of_plan = head.run.removeprefix(ROLLBACK_OF)
    plan = plan_of(of_plan)
    try:
        record = find_record(platform.lake, plan) if plan else None
    except RecordError:
        return False  # what became of the plan nobody knows; its days are there all the same
    if record is None or record.run != of_plan or not record.runs:
        return False
    has_shown = _has_published if head.run == of_plan else _has_put_back
    runs = instance.get_runs(dg.RunsFilter(run_ids=list(record.runs)))
    if any(has_shown(instance, run, head) for run in runs):
        return True
    return None if any(not run.is_finished for run in runs) else False


def _has_published(instance: dg.DagsterInstance, run: dg.DagsterRun, _: PublicationRecord) -> bool:
    return any(step.status is StepEventStatus.SUCCESS for step in instance.get_run_step_stats(run.run_id, [PUBLISH]))


def _has_put_back(instance: dg.DagsterInstance, run: dg.DagsterRun, head: PublicationRecord) -> bool:
    """Whether the rollback was made while the run proved; the step fails then, after it has shown it."""
    at = head.created_at.timestamp()
    return any(
        step.start_time is not None and step.end_time is not None and step.start_time <= at <= step.end_time
        for step in instance.get_run_step_stats(run.run_id, [PROVE])
    )


def current_days(platform: Platform, published: PublicationRecord) -> Iterator[tuple[int, Contract, list[DayRecord]]]:
    """Partitions that a publication made and nothing replaced since but a compaction, of tables that are assets.

    By table, each with its number in the catalogue, in that order, and of a table the oldest first.
    """
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
    """What is shown of some days of a table: as after a run of its asset, but for what only that knew.

    Args:
        head: of the publication that made them; of a plan, it is named.
    """
    by = _plan(head) | more
    shown = {
        record.day: warned(record.warnings)
        | figures(record.rows, record.bytes, record.files, record.digest, record.figures, record.seconds)
        | by
        for record in records
    }
    try:
        return illustrated(platform, contract, shown)
    except PlatformError as error:  # files are gone, say; the days are shown all the same
        left_out = plain(error.what)
        return {day: {**metadata, "without pictures": left_out} for day, metadata in shown.items()}


def _plan(head: PublicationRecord) -> Metadata:
    plan = plan_of(head.run)
    if plan is None:
        return {}
    return {
        "plan": plain(plan),
        "plan hash": plain(head.run.rpartition("-")[2]),
        "publication": plain(head.publication),
        "release": dg.MetadataValue.int(head.release),
    }
