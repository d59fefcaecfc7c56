"""What a rollback comes to: the amounts of its days as they were before it and as they are put back."""

from __future__ import annotations

from platform_assets.engine.platform import Platform
from platform_assets.operations.lineage.amount_changes import AmountChanges, Shown, amount_changes
from platform_assets.operations.rollback.rollback import Rollback


def rolled_back_amounts(platform: Platform, done: Rollback) -> AmountChanges:
    """Amounts before and after a rollback, whether it was done or would be.

    Each day is put back as the release showed it that its publication of before had made.
    """
    undone = platform.current_release().number if done.release is None else done.release - 1
    release_of = platform.ledger.indexed()
    return amount_changes(
        platform,
        {
            day: (Shown(undone, record.bytes), Shown(release_of[back.publication], back.bytes) if back else None)
            for day, (record, back) in done.records.items()
        },
    )
