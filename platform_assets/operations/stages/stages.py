"""Work on a named stage: compute days into it, publish it, drop it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from types import MappingProxyType

from platform_assets.contracts.rules import with_quarantine
from platform_assets.engine.circuits import in_order, refuse_stopped
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import discard_stage
from platform_assets.engine.refresh import RefreshResult, fill, planned
from platform_assets.engine.snapshot import LakeSnapshot, OpenStage
from platform_assets.engine.state.planner import table_states
from platform_assets.engine.state.schema_changes import refuse_what_tables_cannot_take
from platform_assets.engine.step.analysis import analysed
from platform_assets.engine.step.holds import announced_settled
from platform_assets.engine.step.scoped import refuse_scoped
from platform_assets.engine.step.stage import Stage
from platform_assets.engine.step.work import LookedAt
from platform_assets.lakehouse.errors import DamagedStageError, StageError
from platform_assets.lakehouse.locks import open_stage_lock
from platform_assets.lakehouse.releases import newest_release, publication_of, published
from platform_assets.operations.plan_record import filled_by
from platform_assets.operations.stages.store import (
    checked_stage,
    forget_stage,
    read_stage,
    refuse_damaged,
    refuse_other_code,
    refuse_protected_since,
    refuse_undeclared,
    stage_names,
    without_other_code,
    write_stage,
)
from platform_assets.planning.day_states import (
    UpToDate,
    day_states,
    fingerprint_of,
    stale_through_data,
    unblocked,
)
from platform_assets.planning.plan import Plan
from platform_assets.planning.selection import BY_PERSON, Request
from platform_assets.planning.steps import Step
from platform_assets.progress import OnProgress, no_progress
from platform_assets.records.history import Hold
from platform_assets.spark.session.on_demand import SparkOnDemand

Look = Callable[[OpenStage, Mapping[str, Mapping[date, str]]], None]
"""Shown a stage as it will be published, and days that failed when they were computed again; raises to refuse."""


@dataclass(frozen=True)
class StagePublished:
    """Result of publishing a stage.

    Args:
        release: the new release; None if no day was good.
        again: days among these, by table, that were computed again because others had published them or their inputs
            since they were staged.
        not_published: days among these that failed when they were computed again, with the reason, by table.
    """

    release: int | None
    days: Mapping[str, tuple[date, ...]]
    again: Mapping[str, tuple[date, ...]] = field(default_factory=dict)
    not_published: Mapping[str, Mapping[date, str]] = field(default_factory=dict)


def refresh_stage(
    platform: Platform,
    spark: SparkOnDemand,
    author: Author,
    name: str,
    progress: OnProgress = no_progress,
    request: Request = BY_PERSON,
    plan: Plan | None = None,
    looked_at: LookedAt = MappingProxyType({}),
    *,
    is_plans: bool = False,
) -> RefreshResult:
    """Compute into a stage the days that are stale over its content; open it over the current release if needed.

    Nothing is ingested: raw tables belong to everyone. If it is killed, the next call finds what it had computed.

    Args:
        plan: plan of the request, as a person has seen it; made again if the stage has changed since.
        looked_at: days whose settled figures a person has accepted.
        is_plans: whether it is published when it is done, so that circuits stop and count it.

    Raises:
        StageError: nothing was ever published, so there is no release to build on.
        ContractError: a table on disk has other columns than its contract; nothing was done.
        ScopeError: only some keys are requested, and the other rows of a day cannot be copied.
    """
    platform.sync()
    refuse_what_tables_cannot_take(LakeSnapshot.now(platform), request)
    with open_stage_lock(platform.lake, checked_stage(name)):
        before = _found(platform, name) or _new(platform, author, name)
        write_stage(platform.lake, before)
        stage = Stage(platform, author, before, _keep(platform, before), is_private=not is_plans)
        plan = planned(stage, request, plan)
        spark = analysed(platform, [step.table for step in plan.steps], spark, author.run if is_plans else "")

        def refused() -> list[Hold]:
            """Return what gates refused of a plan. The stage keeps it; settled figures wait for an approval."""
            new = [hold for hold in stage.staged.holds if is_plans and hold not in before.staged.holds]
            return [hold for hold in new if hold.failed.keys() - {"settled"}]

        with announced_settled(platform, refused):
            steps, struck = fill(stage, plan, spark, progress, request, looked_at)
            if holds := refused():
                with in_order(platform):
                    platform.ledger.verdicts.refuse(holds)
    return RefreshResult((), steps, struck, plan=plan)


def publish_stage(
    platform: Platform,
    spark: SparkOnDemand,
    author: Author,
    name: str,
    progress: OnProgress = no_progress,
    look: Look | None = None,
    protected_too: Collection[date] = (),
) -> StagePublished:
    """Publish all days of a stage at once, and close it.

    Days published by others since, and days whose inputs changed, are computed again first; only that starts the
    session. If killed at any moment, or refused by `look`, the stage is unchanged.

    Args:
        look: called with the days to publish if they differ from the staged ones.
        protected_too: protected days that are published although protected, as a plan file explains.

    Raises:
        StageError: it holds nothing, or days of other code, or of a table that no domain declares.
        ProtectedDaysError: days were protected since they were staged.
        OvertakenError: others kept publishing.
        ScopeError: days whose other rows were copied would be different now.
    """
    platform.sync()
    with open_stage_lock(platform.lake, checked_stage(name)):
        before = read_stage(platform.lake, name)
        if (number := _shown_as(platform, before)) is not None:
            forget_stage(platform.lake, name)
            return StagePublished(number, before.staged.days)
        refuse_damaged(platform, before)
        refuse_undeclared(platform, before)
        refuse_other_code(platform, before)
        refuse_protected_since(platform, before, protected_too)
        if not before.staged.days and not before.staged.holds:
            raise StageError(f"The stage {name} holds no day.", f"Compute some with {filled_by(platform.lake, name)}.")
        refuse_stopped(platform, "recompute", before.staged.days)  # or days that are computed again are left out
        stage = Stage(platform, replace(author, decides="stage"), before, _keep_published(platform, before, look))
        with announced_settled(platform):
            _settle_within(stage, spark, progress)
            number = stage.publish(spark, progress)
        forget_stage(platform.lake, name)
    return StagePublished(
        number,
        stage.staged.days,
        {table: tuple(sorted(days)) for table, days in stage.again.items() if days},
        {table: result.not_published for table, result in stage.results.items() if result.not_published},
    )


def drop_stage(platform: Platform, name: str) -> OpenStage | None:
    """Close a stage and delete its files.

    Returns:
        What it was; None where that could not be read: `maintenance` then finds the rows it leaves.
    """
    with open_stage_lock(platform.lake, checked_stage(name)):
        try:
            stage = read_stage(platform.lake, name)
        except DamagedStageError:
            stage = None
        forget_stage(platform.lake, name)
        for publication, tables in stage.folders.items() if stage else ():
            discard_stage(platform, publication, tables)
    return stage


def narrow_stage(platform: Platform, name: str, wanted: Mapping[str, Collection[date]]) -> None:
    """Remove unwanted days from a stage. Days that read them are computed again later.

    Args:
        wanted: days that stay, by table; their quarantined rows stay with them.
    """
    with open_stage_lock(platform.lake, checked_stage(name)):
        before = read_stage(platform.lake, name)
        staged, reasons = before.staged, dict(before.reasons)
        for table in {*staged.tables, *(hold.table for hold in staged.holds)} & set(platform.catalogue.names):
            there = {*staged.of(table), *(hold.day for hold in staged.holds if hold.table == table)}
            gone = there.difference(wanted.get(table, ()))
            staged = staged.without(with_quarantine(table), gone)
            reasons[table] = {day: why for day, why in reasons.get(table, {}).items() if day not in gone}
        write_stage(platform.lake, before.model_copy(update={"staged": staged, "reasons": reasons}))


def _new(platform: Platform, author: Author, name: str) -> OpenStage:
    number = newest_release(platform.lake)
    publication = publication_of(platform.lake, number)
    if publication is None:
        raise StageError(
            f"Nothing was published yet, so the stage {name} has no release to be based on.",
            "Run `platform-assets refresh` first.",
        )
    moment = datetime.now(UTC)
    return OpenStage(
        name=name,
        release=number,
        publication=publication,
        opened_at=moment,
        changed_at=moment,
        who=author.who,
        why=author.why,
    )


def _keep(platform: Platform, before: OpenStage) -> Callable[[Stage, str], None]:
    """Return the function that writes the state of an opened stage."""

    def keep(stage: Stage, publishing: str) -> None:
        """Replace the stage's document, with the name of its publication while there is one."""
        write_stage(platform.lake, _now(platform, before, stage, publishing))

    return keep


def _keep_published(platform: Platform, before: OpenStage, look: Look | None) -> Callable[[Stage, str], None]:
    """Return the writer for a stage that is being published: recomputed days replace all of it at once."""

    def keep(stage: Stage, publishing: str) -> None:
        if not publishing:  # days that others overtook are taken out first, and come back one batch after the other
            write_stage(platform.lake, before.model_copy(update={"folders": dict(stage.folders)}))
            return
        now = _now(platform, before, stage, publishing)
        if look is not None and now.staged != before.staged:
            look(now, {table: result.not_published for table, result in stage.results.items() if result.not_published})
        write_stage(platform.lake, now)

    return keep


def _now(platform: Platform, before: OpenStage, stage: Stage, publishing: str) -> OpenStage:
    return before.model_copy(
        update={
            "release": stage.release.number,
            "publication": publication_of(platform.lake, stage.release.number),
            "changed_at": datetime.now(UTC),
            "staged": stage.staged,
            "reasons": {table: result.reasons for table, result in stage.results.items()},
            "folders": dict(stage.folders),
            "published_as": publishing,
        }
    )


def _found(platform: Platform, name: str) -> OpenStage | None:
    """Return a stage that can continue; None if there is none, or it is over."""
    if name not in stage_names(platform.lake):
        return None
    stage = read_stage(platform.lake, name)
    if _shown_as(platform, stage) is not None:
        forget_stage(platform.lake, name)
        return None
    refuse_damaged(platform, stage)
    return without_other_code(platform, stage)


def _shown_as(platform: Platform, stage: OpenStage) -> int | None:
    """Return the release of a stage whose publisher died before closing it; None for an unpublished one."""
    if not stage.published_as:
        return None
    platform.settle()  # else the next publisher would finish what a dead process began, and publish it once more
    since = published(platform.lake, after=stage.release)
    return next((number for number, publication in since if publication == stage.published_as), None)


def _settle_within(stage: Stage, spark: SparkOnDemand, progress: OnProgress) -> None:
    """Compute staged days again that read an older version of other staged days."""
    catalogue, names = stage.platform.catalogue, stage.platform.catalogue.names
    asked = {name for name in names if catalogue[name].inputs and name in stage.staged.tables}
    known = {*asked, *(read.table for name in asked for read in catalogue[name].inputs)}
    tables = None  # known of all of them at once, until something is computed
    for contract in catalogue:
        if contract.name in asked:
            tables = tables or table_states(stage.snapshot, known)
            states = day_states(contract, stage.staged.of(contract.name), tables)
            now = {day: unblocked(state) for day, state in states.items()}
            scoped = {day: found.scope for day, found in stage.staged.of(contract.name).items() if found.scope}
            other = [
                day
                for day, scope in scoped.items()
                if not isinstance(now[day], UpToDate) and fingerprint_of(now[day]) != scope.made_from
            ]
            refuse_scoped(stage.staged, {contract.name: other})
            if days := stale_through_data(now).keys() - scoped.keys():
                stage.step(spark, Step(contract.name, tuple(sorted(days))), progress)
                tables = None
