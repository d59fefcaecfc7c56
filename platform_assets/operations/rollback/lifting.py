"""Lift rollbacks that last until then: the next refresh computes their days again."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes
from platform_assets.operations.rollback.selection import RollbackError
from platform_assets.planning.windows import which
from platform_assets.records.history import Hold
from platform_assets.records.manifest import new_publication


def lift_rollbacks(
    platform: Platform, table: str, days: Collection[date] | None, author: Author, *, dry_run: bool = False
) -> tuple[Hold, ...]:
    """Lift rollbacks of a table, all or those of some days; the manifest of a publication without days says so.

    Raises:
        RollbackError: a day is not held by such a rollback; nothing was lifted.
    """
    platform.settle()
    held = {hold.day: hold for hold in platform.ledger.holds(table) if hold.lasts and (not days or hold.day in days)}
    if not held or len(held) < len(days or ()):
        named = f" of {which(sorted(set(days) - held.keys()))}" if days else ""
        raise RollbackError(
            f"No rollback{named} of {table} lasts until it is lifted; nothing was lifted.",
            "`platform-assets status` shows the days that are held, and what ends each.",
        )
    if not dry_run:
        publish_changes(platform, new_publication(), "roll back", [], author, lifts={table: tuple(sorted(held))})
    return tuple(hold for _, hold in sorted(held.items()))
