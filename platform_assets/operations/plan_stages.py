"""The stages that plans fill: beneath all stages, so that whoever tells of one says how its plan is ended."""

from __future__ import annotations

from platform_assets.lakehouse.layout import GIVEN_NAME, Lake
from platform_assets.operations.plan_record import OVER, STAGE, RecordError, find_record


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
    return f"`platform-assets refresh --stage {stage}`"


def _is_surely_of_a_plan(lake: Lake, stage: str) -> bool:
    """For what is said of something else: a record that cannot be read asks for the stage to be dropped itself."""
    try:
        return is_stage_of_a_plan(lake, stage)
    except RecordError:
        return False


def refuse_stage_of_a_plan(lake: Lake, stage: str) -> None:
    """What a plan staged, the plan publishes: behind its gates, and with its approvals.

    Raises:
        RecordError: the stage is one of a plan that is not over.
    """
    if is_stage_of_a_plan(lake, stage):
        name = stage.removeprefix(STAGE)
        raise RecordError(
            f"The stage {stage} is filled by the plan {name}.",
            f"`platform-assets plan apply FILE` publishes it behind its gates; `plan cancel {name}` drops it.",
        )
