"""Apply a backfill: stage it step by step, hold each against the gates, publish all of it at once, prove it.

What is applied is what was explained and, where that is asked for, approved. Whatever ends the process, the next call
goes on after the last batch of days.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from platform_assets.engine.platform import Author, Platform
from platform_assets.operations.backfill.publishing import publish
from platform_assets.operations.backfill.sitting import sitting_over
from platform_assets.operations.backfill.staging import stage_rollout
from platform_assets.operations.plan_record import BackfillRecord
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.progress import OnProgress, no_progress
from platform_assets.spark.session.on_demand import SparkOnDemand


def apply(
    platform: Platform,
    spark: SparkOnDemand,
    file: PlanFile,
    author: Author,
    progress: OnProgress = no_progress,
    report: Callable[[str], None] = lambda sentence: None,
    place: Path | None = None,
) -> BackfillRecord:
    """Stage what a plan comes to, step by step and each held against its gates, and publish it in one release.

    Args:
        platform: as it is now.
        spark: gives the session; not called where there is nothing to compute.
        file: the plan.
        author: who applies it.
        progress: told after every batch.
        report: told what happened, in sentences.
        place: where the plan was read, so that another file of its name does not take it over.

    Returns:
        What became of it: published. One that was published before and not proved yet, as its file asks for, is just
        given back.

    Raises:
        PlanFileError: another file began a plan of this name.
        BackfillError: something is in the way, an approval is missing, or it was applied before.
        StoppedError: a gate failed, the budget is used up, or somebody paused it; the next call goes on.
        LockTimeoutError: somebody else applies it.
    """
    with sitting_over(platform, spark, file, author, progress, place) as sitting:
        stage_rollout(sitting, report)
        publish(sitting, report)
    return sitting.record
