"""Maintenance: one task of it at a time, as the command line and Dagster's job have it done."""

from __future__ import annotations

from platform_assets.engine.platform import Author, Platform
from platform_assets.operations.maintenance.compaction import compact
from platform_assets.operations.maintenance.maintenance import Maintenance, delete_unneeded, sum_up
from platform_assets.operations.stages.comparisons import drop_left
from platform_assets.planning.retention import Task
from platform_assets.progress import OnProgress, meanwhile, no_progress
from platform_assets.spark.session.on_demand import SparkOnDemand


def maintain(
    platform: Platform,
    spark: SparkOnDemand,
    task: Task,
    author: Author,
    progress: OnProgress = no_progress,
) -> Maintenance:
    """Do one task; killed at any moment, the next one goes on with what is left.

    Args:
        spark: gives the session; called only where there is something to compact.
        task: which.
        author: on whose behalf.
        progress: told after every batch.

    Raises:
        PlatformError: a table was changed by something else than a publication, or the publish lock is not free.
    """
    match task:
        case "compaction":
            return compact(platform, spark, author, progress)
        case "checkpoints":
            with meanwhile(progress, "summing up logs"):
                return Maintenance(checkpoints=sum_up(platform))
        case "stages" | "deletion":
            with meanwhile(progress, "deleting what nobody needs"):
                if task == "stages":
                    drop_left(platform)  # which would keep the release beneath it, and its files, for ever
                return Maintenance(deletions=delete_unneeded(platform, task))
