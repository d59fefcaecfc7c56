"""Places of a lake as paths, for tests that look at files, or damage them, as another tool would."""

from __future__ import annotations

from pathlib import Path

from platform_assets.lakehouse.storage.location import Location


def on_disk(location: Location) -> Path:
    """Where something lies on this machine's disk."""
    return Path(str(location))
