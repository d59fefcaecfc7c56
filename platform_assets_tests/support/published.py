"""What a lake says of itself, wherever it lies: read from its manifests alone."""

from __future__ import annotations

from collections.abc import Mapping

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import manifest_of, published

Digests = Mapping[str, Mapping[str, str]]
"""Of every day, by table."""


def digests_of(place: str) -> Digests:
    """The digest of every day, as its newest manifest says."""
    lake, newest = Lake.at(place), dict[str, dict[str, str]]()
    for _, publication in published(lake):
        for change in manifest_of(lake, publication).tables:
            newest.setdefault(change.table, {}).update(
                {str(day): content.digest for day, content in change.days.items()}
            )
    return newest
