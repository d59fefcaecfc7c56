"""What the steps of a plan's run have in common: the plan that is named, how it is told, which days it shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import dagster as dg
from pydantic import Field

from platform_assets.engine.platform import Author, Platform
from platform_assets.lakehouse.errors import DamagedStageError, LockTimeoutError, StageError
from platform_assets.lakehouse.locks import plan_lock
from platform_assets.operations.backfill.files import plan_at, plan_in, read_plan
from platform_assets.operations.backfill.namesakes import refuse_namesake
from platform_assets.operations.backfill.pages import record_markdown
from platform_assets.operations.backfill.sitting import BackfillError, StoppedError
from platform_assets.operations.plan_record import BackfillRecord, RecordError, find_record, write_record
from platform_assets.orchestration.assets.checks import newest_materializations, published_events
from platform_assets.orchestration.assets.events import Metadata, day_event
from platform_assets.orchestration.assets.published_days import current_days, published_metadata
from platform_assets.orchestration.told_errors import RefusedError, listed, markdown, mistakes_told
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.progress import OnProgress, Progress

PLAN_TAG = "platform/plan"
"""Of a run: the plan that it explains or applies."""
HASH_TAG = "platform/plan_hash"
"""Of a run: what the plan comes to, as it is approved."""

_GO_ON = (
    "To apply it again here, re-execute this run or launch `plan_apply` with the same plan; what is staged is not "
    "computed again."
)
_MOST_DAYS = 200
"""Days that the page of a run names one by one."""


class PlanConfig(dg.Config):
    """Which plan."""

    plan: str = Field(description="A file in the folder of plans (PLATFORM_PLANS), with or without its ending.")


class ApplyConfig(PlanConfig):
    """Which plan, and who applies it."""

    by: str = Field(default="", description="Who applies it, for its record; Dagster's own user by default.")


def place_of(platform: Platform, config: PlanConfig) -> Path:
    """Where the plan lies that was named at the launch.

    Raises:
        PlanFileError: there is none.
    """
    return plan_in(platform.settings.plans, config.plan)


def named_plan(platform: Platform, config: PlanConfig) -> PlanFile:
    """The plan that was named at the launch.

    Raises:
        ToldError: there is none, or the file has mistakes: each with its line and field.
    """
    with mistakes_told():
        return read_plan(place_of(platform, config))


@contextmanager
def launched_plan(platform: Platform, config: PlanConfig) -> Iterator[PlanFile]:
    """As `named_plan`, to find out whether it can be done: a field that the tables contradict is told with its line.

    Raises:
        ToldError: as `named_plan`, and in place of every expected error within.
    """
    with mistakes_told(), plan_at(place_of(platform, config)) as file:
        refuse_namesake(platform.lake, file, place_of(platform, config))
        yield file


def author_of(context: dg.OpExecutionContext, config: ApplyConfig, file: PlanFile) -> Author:
    """Who applies a plan, by which run."""
    author = Author(run=context.run_id, why=file.reason)
    return replace(author, who=config.by.strip()) if config.by.strip() else author


def tag(context: dg.OpExecutionContext, name: str, hash: str) -> None:
    """Have the run found by its plan."""
    context.instance.add_run_tags(context.run_id, {PLAN_TAG: name, HASH_TAG: hash})


def published_before(context: dg.OpExecutionContext, platform: Platform, file: PlanFile) -> BackfillRecord | None:
    """The record of a plan that was published by the run of which this one is another try; None of any other.

    The record names this run then, too: it shows what the other has not shown.
    """
    parent = context.run.parent_run_id
    if parent is None:
        return None
    with plan_lock(platform.lake, file.name):
        record = find_record(platform.lake, file.name)
        if record is None or record.state != "published" or parent not in record.runs:
            return None
        record = record.worked_on_by(context.run_id)
        write_record(platform.lake, record)
        return record


@contextmanager
def stops_told(shown: Metadata, said: Sequence[str] = ()) -> Iterator[None]:
    """Within it, a plan that cannot begin or stands still fails its step with what it says, and with the evidence.

    Raises:
        RefusedError: in place of a `BackfillError`, where somebody else works on it, or where its stage or its record
            cannot be gone on with; what these are damaged by is in the words, and a trace would hide them.
    """
    try:
        yield
    except (BackfillError, DamagedStageError, LockTimeoutError, RecordError, StageError) as error:
        evidence = {"evidence": listed(error.lines)} | gates(said)
        description = f"{error}\n  {_GO_ON}" if isinstance(error, StoppedError) else str(error)
        raise RefusedError(description, shown | evidence) from None


def gates(said: Sequence[str]) -> Metadata:
    """What the gates said, a line each."""
    return {"gates": listed(said)} if said else {}


def page_of(platform: Platform, record: BackfillRecord) -> Metadata:
    """The record of a plan, as the page of a run shows it."""
    return {"record": markdown("\n".join(record_markdown(platform, record, _MOST_DAYS)))}


def show_published(
    context: dg.OpExecutionContext, platform: Platform, publication: str, by: str, progress: OnProgress
) -> None:
    """Show the days of a publication as materialized by this run, and their checks, passed or warned.

    Args:
        context: of a step that names no assets.
    """
    head = platform.ledger.publication(publication)
    assert head is not None, publication
    for _, contract, records in current_days(platform, head):
        if not records:
            continue
        progress(Progress("recording", f"{contract.name} in Dagster"))
        metadata = published_metadata(platform, contract, records, head, {})
        for record in records:
            context.log_event(day_event(contract.name, record.day, record.digest, metadata[record.day]))
        newest = newest_materializations(context.instance, contract, metadata)
        for record in records:
            judged = f"Kept nothing of the day back when it was published, by {by}."
            for shown in published_events(contract, record, judged, newest.get(record.day.isoformat())):
                context.log_event(cast("Any", shown))  # taken, as in assets, though it is not declared so
