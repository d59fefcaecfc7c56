"""What only the holder of the publish lock may put in its place, however long it was suspended on the way.

A lock can end without its holder. So what must not be written by whoever has lost it is written as a draft first, then
the lock is asked for, and then the draft gets its place. Whoever takes the lock next removes all drafts, and so finds
what was written, or has kept it from being written.
"""

from __future__ import annotations

from collections.abc import Callable
from secrets import token_hex

from platform_assets.lakehouse.errors import LockLostError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.storage.location import Location

_DRAFT = ".draft"


def put(lake: Lake, file: Location, content: bytes, still_held: Callable[[], None]) -> None:
    """Write a file of the lake, or replace it, if the publish lock is still held at that moment.

    Args:
        file: in the lake's own folder or below it.
        still_held: raises if the lock was lost.

    Raises:
        LockLostError: it was; the file is as it was.
    """
    draft = lake.deletions_path / f"{token_hex(8)}{_DRAFT}"
    if not file.replace_if_held(content, still_held, draft):
        raise LockLostError(
            f"Somebody else has taken the publish lock of {lake.root} meanwhile; {file.name} is as it was.",
            "Run it again: what is to be done is found anew.",
        )


def drop_drafts(lake: Lake) -> None:
    """Keep whoever has lost the publish lock from putting anything in its place; for whoever has just taken it."""
    for name in lake.deletions_path.names():
        if name.endswith(_DRAFT):
            (lake.deletions_path / name).remove(durable=False)
