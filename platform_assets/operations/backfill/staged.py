"""What a backfill has staged so far."""

from __future__ import annotations

from platform_assets.engine.platform import Platform
from platform_assets.engine.step.open_stage import OpenStage
from platform_assets.operations.plan_record import STAGE
from platform_assets.operations.stages.store import read_stage, stage_names


def stage_of(platform: Platform, name: str) -> OpenStage | None:
    """What a backfill has staged; None while there is nothing."""
    stage = STAGE + name
    return read_stage(platform.lake, stage) if stage in stage_names(platform.lake) else None
