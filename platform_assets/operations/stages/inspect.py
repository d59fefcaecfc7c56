"""Stages that people opened by name, as commands look at them: what each shows, and whether it can be gone on with."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from platform_assets.contracts.dead_letters import quarantine_table, with_quarantine
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.step.open_stage import OpenStage
from platform_assets.lakehouse.errors import BeyondWindowError, DamagedStageError, ErasedError, StageError
from platform_assets.lakehouse.horizon import require_whole
from platform_assets.lakehouse.releases import publication_of, release
from platform_assets.operations.plan_stages import dropped_by, filled_by, made_anew_by
from platform_assets.operations.stages.store import read_stage
from platform_assets.planning.configuration import Configuration
from platform_assets.planning.selection import ProtectedDaysError, protected_without_data
from platform_assets.planning.windows import which
from platform_assets.records.code_version import Version
from platform_assets.words import counted


def opened_stage(platform: Platform, name: str) -> OpenStage:
    """A stage that can be looked at: whole, and of this lake.

    Raises:
        UnknownStageError: there is none of this name.
        DamagedStageError: what is written of it cannot be read, or files of it are gone.
        StageError: the release that it lies over is not in this lake, or not any more.
    """
    stage = read_stage(platform.lake, name)
    refuse_damaged(platform, stage)
    return stage


def refuse_damaged(platform: Platform, stage: OpenStage) -> None:
    """As `opened_stage`, of a stage that was read.

    Raises:
        DamagedStageError: files of it are gone.
        StageError: the release that it lies over is not in this lake, or not any more.
    """
    name = stage.name
    if publication_of(platform.lake, stage.release) != stage.publication:
        raise StageError(
            f"The stage {name} lies over release {stage.release} (publication {stage.publication}), which this lake "
            "does not have: it was restored from an older backup, or is another one.",
            f"Drop it with {made_anew_by(platform.lake, name)}.",
        )
    try:
        require_whole(platform.lake, stage.release)
    except (BeyondWindowError, ErasedError) as error:  # it was opened while somebody looked for the rows to erase
        raise StageError(
            f"The stage {name} lies over a release that is gone. {error.what}",
            f"Drop it with {made_anew_by(platform.lake, name)}.",
        ) from None
    for change in stage.staged.tables.values():
        folder = platform.lake.table_path(change.table)
        for day, content in change.days.items():
            for file in content.files:
                if (folder / file.path).size() != file.size:
                    raise DamagedStageError(
                        f"The stage {name} is damaged: the file {file.path} of {change.table} on {day} is not there as "
                        "it was staged.",
                        f"Drop it with {made_anew_by(platform.lake, name)}; nothing of it was published.",
                    )


def stage_basis(platform: Platform, stage: OpenStage) -> LakeSnapshot:
    """What a step in the stage reads, and what `stage read` shows."""
    return LakeSnapshot(platform, release(platform.lake, stage.release), stage.staged)


def of_other_code(platform: Platform, stage: OpenStage) -> dict[str, tuple[date, ...]]:
    """The staged days that today's code or configuration would make differently, and those made from them.

    By table, inputs first.
    """
    other = {table for table in stage.staged.tables if _differs(platform, stage, table)}
    days = stage.staged.days
    return {table: days[table] for table in platform.catalogue.with_dependants(other) if table in days}


def without_other_code(platform: Platform, stage: OpenStage) -> OpenStage:
    """The stage as it can be gone on with: without the days of `of_other_code`, and what gates said of them."""
    other = of_other_code(platform, stage)
    gone = {name for table in other for name in with_quarantine(table)}
    return stage.model_copy(
        update={
            "staged": stage.staged.without(gone),
            "reasons": {table: why for table, why in stage.reasons.items() if table not in gone},
        }
    )


def undeclared_days(platform: Platform, stage: OpenStage) -> dict[str, tuple[date, ...]]:
    """The staged days of tables that no domain declares any more, so that nothing is known of what they promise."""
    names = platform.catalogue.names
    declared = {*names, *map(quarantine_table, names)}
    return {table: days for table, days in stage.staged.days.items() if table not in declared}


def refuse_undeclared(platform: Platform, stage: OpenStage) -> None:
    """Readers are not shown a table that was dropped since its days were staged.

    Raises:
        StageError: naming the first of such.
    """
    for table, days in undeclared_days(platform, stage).items():
        raise StageError(
            f"The stage {stage.name} holds {counted(len(days), 'day')} of {table}, which no domain here declares any "
            "more.",
            "Publish it with the domains it was computed with; or drop it with "
            f"{dropped_by(platform.lake, stage.name)}.",
        )


def refuse_protected_since(platform: Platform, stage: OpenStage, protected_too: Collection[date]) -> None:
    """Readers are not shown days anew that were protected since they were staged, unless data of theirs asked for it.

    One that came out as readers have it shows them nothing new.

    Args:
        protected_too: protected days that are published all the same, as a plan file says why.

    Raises:
        ProtectedDaysError: naming the first table of such.
    """
    reasons = {
        table: {day: stage.reasons.get(table, {}).get(day, ()) for day in days if day not in protected_too}
        for table, days in stage.staged.days.items()
        if table in platform.catalogue.names
    }
    anew = {
        table: [day for day in reasons[table] if day in marks and marks[day].digest != _digest(stage, table, day)]
        for table, marks in LakeSnapshot.now(platform).marks(reasons).items()
    }
    for table, closed in protected_without_data(platform.catalogue, reasons, anew).items():
        raise ProtectedDaysError(
            f"The stage {stage.name} holds {counted(len(closed), 'day')} of {table} that "
            f"{'is' if len(closed) == 1 else 'are'} protected by now ({which(list(closed))}): "
            f"{next(iter(closed.values()))}.",
            f"Drop it with {dropped_by(platform.lake, stage.name)}. To change protected days, write a plan with "
            "`override_protected`: `platform-assets plan new`.",
        )


def _digest(stage: OpenStage, table: str, day: date) -> str:
    return stage.staged.of(table)[day].digest


def refuse_other_code(platform: Platform, stage: OpenStage) -> None:
    """What was proved of the days of a stage was proved of the code that made them.

    Raises:
        StageError: it is not the code that is here.
    """
    if other := of_other_code(platform, stage):
        table = next(iter(other))
        raise StageError(
            f"The stage {stage.name} holds days of {table} that other code or another contract made.",
            f"Publish it with the code it was computed with; or compute them again with "
            f"{filled_by(platform.lake, stage.name)}; or drop it with {dropped_by(platform.lake, stage.name)}.",
        )


def _differs(platform: Platform, stage: OpenStage, table: str) -> bool:
    if table not in platform.code_versions:
        return False
    change = stage.staged.tables[table]
    # Also of days whose rest was carried over: what of them was computed here, is by this.
    made_by = Version(change.code_version, Configuration(change.configuration).hash if change.configuration else "")
    return bool(change.days) and made_by.differs(platform.version(table)) != (False, False)
