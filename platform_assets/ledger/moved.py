"""The note that stands in the place of a SQLite ledger that was moved elsewhere."""

from __future__ import annotations

from pathlib import Path

from platform_assets.ledger.errors import LedgerMovedError

MOVED = b"ledger of platform-assets, moved"
"""How it begins."""


def moved_to(file: Path) -> str:
    """Where and when a ledger was moved, as the note in its place has it; empty where there is none."""
    try:
        with file.open("rb") as content:
            begins = content.read(1024)
    except OSError:  # which SQLite will meet, too, and tell
        return ""
    return begins.removeprefix(MOVED).decode("utf-8", "backslashreplace").strip() if begins.startswith(MOVED) else ""


def moved_error(file: Path, where: str) -> LedgerMovedError:
    """What whoever still has the old setting is told.

    Args:
        where: as `moved_to` says it.
    """
    return LedgerMovedError(
        f"The ledger {file} was moved {where}.", "Set PLATFORM_LEDGER_URL to that database, here as well."
    )
