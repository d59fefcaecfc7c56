"""The passing stages of `plan compare`: one process at a time in each, and what a killed one left is dropped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.errors import LockTimeoutError, StageError
from platform_assets.lakehouse.locks import comparison_holder, comparison_lock
from platform_assets.operations.plan_stages import comparison_stage, ends_of, is_of_a_comparison
from platform_assets.operations.stages.stages import drop_stage
from platform_assets.operations.stages.store import all_stages, read_stage, stage_names


@contextmanager
def comparison(platform: Platform, plan: str) -> Iterator[None]:
    """Be the only one who compares a plan; the stage for it is there only meanwhile.

    What killed processes left is dropped first, of other plans, too, so that nothing of it waits for the same plan to
    be compared once more. The lock is held until the end: days are laid side by side long after they were staged.

    Raises:
        StageError: somebody has a stage of this name, which is no comparison's.
        DamagedStageError: there is such a stage, and it cannot be read.
        LockTimeoutError: somebody else compares the plan.
    """
    name, _ = comparison_stage(plan)
    with comparison_lock(platform.lake, name):
        if name in stage_names(platform.lake):
            stage = read_stage(platform.lake, name)
            if not is_of_a_comparison(name, stage.why):
                raise StageError(
                    f"The stage {name} is there already, and not of a comparison.", ends_of(platform.lake, name)
                )
            drop_stage(platform, name)
        drop_left(platform)
        try:
            yield
        finally:
            if name in stage_names(platform.lake):
                drop_stage(platform, name)


def left_comparisons(platform: Platform) -> tuple[str, ...]:
    """The stages of comparisons that nobody makes any more, sorted."""
    stages, _ = all_stages(platform.lake)
    ours = (stage.name for stage in stages if is_of_a_comparison(stage.name, stage.why))
    return tuple(name for name in ours if not comparison_holder(platform.lake, name))


def drop_left(platform: Platform) -> tuple[str, ...]:
    """Drop the stages of comparisons whose processes were killed; returns which."""
    dropped = []
    for name in left_comparisons(platform):
        with suppress(LockTimeoutError), comparison_lock(platform.lake, name, 0):
            if name in stage_names(platform.lake):
                drop_stage(platform, name)
                dropped.append(name)
    return tuple(dropped)
