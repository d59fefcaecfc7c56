"""Named stages on disk, so that another process can continue one.

Staged rows are in folders of the tables, like those of every publication; `<lake>/_stages/<name>.json` says which days
they are. It is replaced whole after every batch of days, so a killed process loses one batch at most.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from pydantic import ValidationError

from platform_assets.contracts.rules import quarantine_table, with_quarantine
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot, OpenStage
from platform_assets.errors import did_you_mean
from platform_assets.lakehouse.errors import (
    BeyondWindowError,
    DamagedStageError,
    ErasedError,
    LakeError,
    StageError,
    UnknownStageError,
)
from platform_assets.lakehouse.horizon import require_whole
from platform_assets.lakehouse.layout import GIVEN_NAME, Lake
from platform_assets.lakehouse.releases import publication_of, release
from platform_assets.lakehouse.storage.location import Location
from platform_assets.operations.plan_record import dropped_by, filled_by, why_unreadable
from platform_assets.planning.configuration import Configuration
from platform_assets.planning.selection import ProtectedDaysError, protected_without_data
from platform_assets.planning.windows import which
from platform_assets.records.code_version import Version
from platform_assets.words import counted


def stage_names(lake: Lake) -> tuple[str, ...]:
    """Return the names of all open stages, sorted."""
    files = (name.rpartition(".") for name in lake.open_stages_path.names())
    return tuple(sorted(stem for stem, _, ending in files if ending == "json" and GIVEN_NAME.fullmatch(stem)))


def open_stages(lake: Lake) -> tuple[OpenStage, ...]:
    """Return all open stages, by name."""
    return tuple(read_stage(lake, name) for name in stage_names(lake))


def all_stages(lake: Lake) -> tuple[tuple[OpenStage, ...], dict[str, DamagedStageError]]:
    """Return all open stages by name, and the errors of unreadable stages by name."""
    stages: list[OpenStage] = []
    damaged: dict[str, DamagedStageError] = {}
    for name in stage_names(lake):
        try:
            stages.append(read_stage(lake, name))
        except DamagedStageError as error:
            damaged[name] = error
        except UnknownStageError:  # it was closed since its name was read
            continue
    return tuple(stages), damaged


def read_stage(lake: Lake, name: str) -> OpenStage:
    """Return the content of a stage."""
    try:
        if (content := _file(lake, name).read()) is None:
            raise unknown_stage(lake, name)
        return OpenStage.model_validate_json(content)
    except (OSError, ValidationError) as error:
        raise DamagedStageError(
            f"The stage {name} is damaged: {_file(lake, name)}: {why_unreadable(error)}.",
            f"Drop it with {dropped_by(lake, name)} and compute it again.",
        ) from None  # said in full: a trace in Dagster would hide it


def write_stage(lake: Lake, stage: OpenStage) -> None:
    """Write the state of a stage atomically."""
    _file(lake, stage.name).replace(stage.model_dump_json().encode())


def forget_stage(lake: Lake, name: str) -> None:
    """Close a stage. Its rows stay until they are deleted."""
    file = _file(lake, name)
    if not file.exists():
        raise unknown_stage(lake, name)
    file.remove()


def unknown_stage(lake: Lake, name: str) -> UnknownStageError:
    """Return the error for a name that no stage has."""
    names = stage_names(lake)
    opened = f"Open stages: {', '.join(names)}. " if names else "None is open. "
    todo = did_you_mean(name, names) or opened
    return UnknownStageError(f"There is no stage {name!r}.", f"{todo}{filled_by(lake, name)} opens one.")


def checked_stage(name: str) -> str:
    """Return the name of a stage, if it can be one."""
    if not GIVEN_NAME.fullmatch(name):
        raise LakeError(
            f"{name!r} cannot name a stage.",
            "Use up to 63 letters, digits, dots, hyphens and underscores, a letter first.",
        )
    return name


def _file(lake: Lake, name: str) -> Location:
    return lake.open_stages_path / f"{checked_stage(name)}.json"


def opened_stage(platform: Platform, name: str) -> OpenStage:
    """Return a stage that can be read: undamaged, and of this lake."""
    stage = read_stage(platform.lake, name)
    refuse_damaged(platform, stage)
    return stage


def refuse_damaged(platform: Platform, stage: OpenStage) -> None:
    """Refuse a stage that is damaged, or of another lake."""
    name = stage.name
    if publication_of(platform.lake, stage.release) != stage.publication:
        raise StageError(
            f"The stage {name} is based on release {stage.release} (publication {stage.publication}), which this lake "
            "does not have: it was restored from an older backup, or is another one.",
            f"Drop it with {dropped_by(platform.lake, name)} and compute it again.",
        )
    try:
        require_whole(platform.lake, stage.release)
    except (BeyondWindowError, ErasedError) as error:  # opened while an erasure looked for its rows
        raise StageError(
            f"The base release of the stage {name} is gone. {error.what}",
            f"Drop it with {dropped_by(platform.lake, name)} and compute it again.",
        ) from None
    for change in stage.staged.tables.values():
        folder = platform.lake.table_path(change.table)
        for day, content in change.days.items():
            for file in content.files:
                if (folder / file.path).size() != file.size:
                    raise DamagedStageError(
                        f"The stage {name} is damaged: the file {file.path} of {change.table} on {day} is not there as "
                        "it was staged.",
                        f"Drop it with {dropped_by(platform.lake, name)} and compute it again.",
                    )


def stage_basis(platform: Platform, stage: OpenStage) -> LakeSnapshot:
    """Return what a step in the stage reads, and what `read --stage` shows."""
    return LakeSnapshot(platform, release(platform.lake, stage.release), stage.staged, is_private=True)


def of_other_code(platform: Platform, stage: OpenStage) -> dict[str, tuple[date, ...]]:
    """Return staged days that today's code or configuration would compute differently, and days computed from them.

    By table, inputs first.
    """
    other = {table for table in stage.staged.tables if _differs(platform, stage, table)}
    days = stage.staged.days
    return {table: days[table] for table in platform.catalogue.with_dependants(other) if table in days}


def without_other_code(platform: Platform, stage: OpenStage) -> OpenStage:
    """Return the stage without the days of `of_other_code` and their gate findings, to continue with."""
    other = of_other_code(platform, stage)
    gone = {name for table in other for name in with_quarantine(table)}
    return stage.model_copy(
        update={
            "staged": stage.staged.without(gone),
            "reasons": {table: why for table, why in stage.reasons.items() if table not in gone},
        }
    )


def refuse_undeclared(platform: Platform, stage: OpenStage) -> None:
    """Refuse to publish a table that was dropped since its days were staged: its contract is unknown."""
    names = platform.catalogue.names
    declared = {*names, *map(quarantine_table, names)}
    for table, days in stage.staged.days.items():
        if table in declared:
            continue
        raise StageError(
            f"The stage {stage.name} holds {counted(len(days), 'day')} of {table}, which no domain here declares any "
            "more.",
            "Publish it with the domains it was computed with; or drop it with "
            f"{dropped_by(platform.lake, stage.name)}.",
        )


def refuse_protected_since(platform: Platform, stage: OpenStage, protected_too: Collection[date]) -> None:
    """Refuse days that were protected since they were staged, unless their data changed.

    A day that equals the published one shows readers nothing new.
    """
    reasons = {
        table: {day: stage.reasons.get(table, {}).get(day, ()) for day in days if day not in protected_too}
        for table, days in stage.staged.days.items()
        if table in platform.catalogue.names
    }
    anew = {
        table: [
            day for day in reasons[table] if day in marks and marks[day].digest != stage.staged.of(table)[day].digest
        ]
        for table, marks in LakeSnapshot.now(platform).marks(reasons).items()
    }
    for table, closed in protected_without_data(platform.catalogue, reasons, anew).items():
        raise ProtectedDaysError(
            f"The stage {stage.name} holds {counted(len(closed), 'day')} of {table} that "
            f"{'is' if len(closed) == 1 else 'are'} protected by now ({which(list(closed))}): "
            f"{next(iter(closed.values()))}.",
            f"Drop it with {dropped_by(platform.lake, stage.name)}. To change protected days, write a plan with "
            "`override_protected`: `platform-assets backfill new`.",
        )


def refuse_other_code(platform: Platform, stage: OpenStage) -> None:
    """Refuse staged days of other code: the proof belongs to that code."""
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
