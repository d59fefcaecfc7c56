"""Stages that people opened by name: what lies in each, on disk, so that another process can go on with it.

The staged rows lie in folders of the tables, as those of every publication do; `<lake>/_stages/<name>.json` says which
days they are. It is replaced whole after every batch of days, so a killed process loses one batch at most.
"""

from __future__ import annotations

from pydantic import ValidationError

from platform_assets.engine.step.open_stage import OpenStage
from platform_assets.errors import did_you_mean
from platform_assets.lakehouse.errors import DamagedStageError, LakeError, UnknownStageError
from platform_assets.lakehouse.layout import GIVEN_NAME, Lake
from platform_assets.lakehouse.storage.location import Location
from platform_assets.operations.plan_stages import filled_by, made_anew_by


def stage_names(lake: Lake) -> tuple[str, ...]:
    """The names of all open stages, sorted."""
    files = (name.rpartition(".") for name in lake.open_stages_path.names())
    return tuple(sorted(stem for stem, _, ending in files if ending == "json" and GIVEN_NAME.fullmatch(stem)))


def open_stages(lake: Lake) -> tuple[OpenStage, ...]:
    """All open stages, by name.

    Raises:
        DamagedStageError: what is written of one cannot be read.
    """
    return tuple(read_stage(lake, name) for name in stage_names(lake))


def all_stages(lake: Lake) -> tuple[tuple[OpenStage, ...], dict[str, DamagedStageError]]:
    """All open stages, by name, and what is wrong with those of which what is written cannot be read, by name."""
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
    """What lies in a stage.

    Raises:
        UnknownStageError: there is none of this name.
        DamagedStageError: what is written of it cannot be read.
    """
    try:
        content = _file(lake, name).read()
    except OSError as error:
        raise DamagedStageError(
            f"The stage {name} cannot be read: {_file(lake, name)}: {error.strerror or error}.",
            f"Make it readable to this user, or drop it with {made_anew_by(lake, name)}; nothing of it was published.",
        ) from None  # said in full: a trace in Dagster would hide it
    if content is None:
        raise unknown_stage(lake, name)
    try:
        return OpenStage.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise DamagedStageError(
            f"The stage {name} is damaged: {_file(lake, name)}, {where}: {first['msg']}.",
            f"Drop it with {made_anew_by(lake, name)}; nothing of it was published.",
        ) from None  # said in full: a trace in Dagster would hide it


def write_stage(lake: Lake, stage: OpenStage) -> None:
    """Keep what lies in a stage, whole or not at all."""
    _file(lake, stage.name).replace(stage.model_dump_json().encode())


def forget_stage(lake: Lake, name: str) -> None:
    """Close a stage; its rows stay until somebody discards them."""
    file = _file(lake, name)
    if not file.exists():
        raise unknown_stage(lake, name)
    file.remove()


def unknown_stage(lake: Lake, name: str) -> UnknownStageError:
    """For a name that no stage has."""
    names = stage_names(lake)
    opened = f"Open stages: {', '.join(names)}. " if names else "None is open. "
    todo = did_you_mean(name, names) or opened
    return UnknownStageError(f"There is no stage {name!r}.", f"{todo}{filled_by(lake, name)} opens one.")


def staged_publications(lake: Lake) -> frozenset[str]:
    """Whose folders open stages need.

    Raises:
        DamagedStageError: what is written of one cannot be read.
    """
    return frozenset(publication for stage in open_stages(lake) for publication in stage.folders)


def checked_stage(name: str) -> str:
    """The name of a stage, if it can be one.

    Raises:
        LakeError: it cannot.
    """
    if not GIVEN_NAME.fullmatch(name):
        raise LakeError(
            f"{name!r} cannot name a stage.",
            "Use up to 63 letters, digits, dots, hyphens and underscores, a letter first.",
        )
    return name


def _file(lake: Lake, name: str) -> Location:
    return lake.open_stages_path / f"{checked_stage(name)}.json"
