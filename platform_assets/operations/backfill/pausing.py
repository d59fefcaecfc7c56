"""Somebody wants a backfill to stand still: `<lake>/_plans/<name>.pause`, looked for between batches of days."""

from __future__ import annotations

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.storage.location import Location
from platform_assets.operations.plan_record import OVER, RecordError, read_record


def is_paused(lake: Lake, name: str) -> bool:
    """Whether somebody wants a backfill to stand still."""
    return _pause(lake, name).exists()


def pause(lake: Lake, name: str, why: str) -> None:
    """Have a backfill stand still after the batch of days at which it works.

    Raises:
        RecordError: it was never begun, or is over.
    """
    _refuse_over(lake, name)
    _pause(lake, name).replace(why.encode())


def unpause(lake: Lake, name: str) -> None:
    """Let a backfill be gone on with.

    Raises:
        RecordError: it was never begun, or is over.
    """
    _refuse_over(lake, name)
    forget_pause(lake, name)


def forget_pause(lake: Lake, name: str) -> None:
    """Nobody wants a backfill to stand still that is over, or that begins."""
    if is_paused(lake, name):
        _pause(lake, name).remove()


def _refuse_over(lake: Lake, name: str) -> None:
    record = read_record(lake, name)
    if record.state in OVER:
        raise RecordError(
            f"The plan {name} is {record.state}: there is nothing of it to pause or to go on with.",
            "`platform-assets plan apply FILE` begins it anew."
            if record.state == "cancelled"
            else f"`platform-assets plan status {name}` shows what became of it.",
        )


def _pause(lake: Lake, name: str) -> Location:
    return lake.plans_path / f"{name}.pause"
