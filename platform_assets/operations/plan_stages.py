"""The stages that plans fill: beneath all stages, so that whoever tells of one says how its plan is ended.

Those of `plan compare` are such, too: one is there while a plan is compared, or was left by a process that was killed.
"""

from __future__ import annotations

import json

from platform_assets.lakehouse.layout import GIVEN_NAME, Lake
from platform_assets.lakehouse.locks import comparison_holder
from platform_assets.operations.plan_record import OVER, STAGE, RecordError, find_record

_COMPARES = "compare-"
"""Before the name of a plan: the stage in which its sample is computed, and which is dropped."""
_LONGEST = 63
"""Characters of the name of a stage."""
_WHY = "plan compare "
"""Before the name of a plan: why such a stage is there, by which it is told from somebody's own of that name."""


def comparison_stage(plan: str) -> tuple[str, str]:
    """The stage in which a sample of a plan is computed, and why it is there."""
    return f"{_COMPARES}{plan}"[:_LONGEST], f"{_WHY}{plan}"


def is_of_a_comparison(stage: str, why: str) -> bool:
    """Whether a stage is the passing one of a comparison, by its name and what it says of itself."""
    return why.startswith(_WHY) and stage == comparison_stage(why.removeprefix(_WHY))[0]


def is_comparison(lake: Lake, stage: str) -> bool:
    """As `is_of_a_comparison`, of a stage that may not be there, or not be readable: that is nobody's comparison."""
    if not stage.startswith(_COMPARES) or not GIVEN_NAME.fullmatch(stage):
        return False
    try:
        said = json.loads((lake.open_stages_path / f"{stage}.json").read() or b"")
        return is_of_a_comparison(stage, str(said["why"]))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def becomes_of_comparison(lake: Lake, stage: str) -> str:
    """What becomes of the stage of a comparison, as a sentence."""
    if holder := comparison_holder(lake, stage):
        return f"{holder.capitalize()} compares a plan in it and drops it at its end."
    return (
        "Whoever compared a plan in it was killed: the next `platform-assets plan compare` or `maintenance run` drops "
        f"it, or `stage drop {stage}`."
    )


def is_stage_of_a_plan(lake: Lake, stage: str) -> bool:
    """Whether a plan that is not over fills a stage; by its name alone it may be anybody's.

    Raises:
        RecordError: what became of the plan cannot be read.
    """
    name = stage.removeprefix(STAGE)
    record = find_record(lake, name) if name != stage and GIVEN_NAME.fullmatch(name) else None
    return record is not None and record.state not in OVER


def ends_of(lake: Lake, stage: str) -> str:
    """What ends a stage that is in the way, as a remedy: of a plan's own, only what ends the plan.

    Raises:
        RecordError: what became of the plan cannot be read.
    """
    if is_stage_of_a_plan(lake, stage):
        return f"End its plan first: `platform-assets plan apply FILE`, or `plan cancel {stage.removeprefix(STAGE)}`."
    if is_comparison(lake, stage):
        return becomes_of_comparison(lake, stage)
    return f"Publish it or drop it first: `platform-assets stage publish {stage}`, or `stage drop {stage}`."


def dropped_by(lake: Lake, stage: str) -> str:
    """The command by which somebody gives a stage up: of a plan's own, that which gives up the plan."""
    if _is_surely_of_a_plan(lake, stage):
        return f"`platform-assets plan cancel {stage.removeprefix(STAGE)}`"
    return f"`platform-assets stage drop {stage}`"


def made_anew_by(lake: Lake, stage: str) -> str:
    """How a stage with which nobody can go on is dropped and made again, to be read after `with`."""
    again = "apply the plan again" if _is_surely_of_a_plan(lake, stage) else "compute it again"
    return f"{dropped_by(lake, stage)} and {again}"


def filled_by(lake: Lake, stage: str) -> str:
    """The command that computes days into a stage."""
    if _is_surely_of_a_plan(lake, stage):
        return "`platform-assets plan apply FILE`"
    if is_comparison(lake, stage):
        return "`platform-assets plan compare FILE`"
    return f"`platform-assets refresh --stage {stage}`"


def refuse_comparison_at_work(lake: Lake, stage: str) -> None:
    """Nobody drops what a process lays side by side at this moment.

    Raises:
        RecordError: one does.
    """
    if is_comparison(lake, stage) and comparison_holder(lake, stage):
        raise RecordError(
            f"In the stage {stage} somebody compares a plan now.",
            f"Wait for it, or end it. {becomes_of_comparison(lake, stage)}",
        )


def _is_surely_of_a_plan(lake: Lake, stage: str) -> bool:
    """For what is said of something else: a record that cannot be read asks for the stage to be dropped itself."""
    try:
        return is_stage_of_a_plan(lake, stage)
    except RecordError:
        return False


def refuse_stage_of_a_plan(lake: Lake, stage: str) -> None:
    """What a plan staged, the plan publishes: behind its gates, and with its approvals; and a comparison nobody.

    Raises:
        RecordError: the stage is one of a plan that is not over, or of a comparison.
    """
    if is_comparison(lake, stage):
        raise RecordError(
            f"The stage {stage} is one of `plan compare`, of which nothing is published.",
            becomes_of_comparison(lake, stage),
        )
    if is_stage_of_a_plan(lake, stage):
        name = stage.removeprefix(STAGE)
        raise RecordError(
            f"The stage {stage} is filled by the plan {name}.",
            f"`platform-assets plan apply FILE` publishes it behind its gates; `plan cancel {name}` drops it.",
        )
