"""What a backfill has staged, without what its changed plan no longer comes to."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from platform_assets.engine.platform import Platform
from platform_assets.operations.backfill.staged import stage_of
from platform_assets.operations.plan_record import STAGE, BackfillRecord
from platform_assets.operations.stages.stages import drop_stage, narrow_stage


def keep_what_is_asked_for(platform: Platform, before: BackfillRecord, now: BackfillRecord) -> None:
    """Take out of a stage what a plan no longer comes to; nobody approves, or holds against gates, what is left of it.

    Of other keys than before all of it goes: what was staged beside them was carried over, and is to be computed.

    Args:
        platform: as it is now.
        before: as the plan was begun.
        now: as it is begun anew.
    """
    if stage_of(platform, now.name) is None:
        return
    if before.file.only != now.file.only:
        drop_stage(platform, STAGE + now.name)
        return
    wanted: dict[str, Collection[date]] = {}
    for step in now.steps:
        for table, days in step.days.items():
            wanted[table] = {*wanted.get(table, ()), *days}
    narrow_stage(platform, STAGE + now.name, wanted)
