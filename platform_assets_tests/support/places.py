"""Places of a lake as paths, for tests that look at files, or damage them, as another tool would."""

from __future__ import annotations

from pathlib import Path

from platform_assets.lakehouse.storage.location import Location

STORED: dict[str, Path] = {}
"""The folders in which object stores of tests keep their buckets, by the buckets' URLs."""


def on_disk(location: Location) -> Path:
    """Where something lies on this machine's disk."""
    for bucket, folder in STORED.items():
        if str(location).startswith(f"{bucket}/"):
            return folder / str(location).removeprefix(f"{bucket}/")
    return Path(str(location))
