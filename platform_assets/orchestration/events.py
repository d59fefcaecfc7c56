"""What Dagster shows of a day."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import dagster as dg

from platform_assets.lakehouse.manifest import DayContent


def asset_key(table: str) -> dg.AssetKey:
    """`<layer>/<table>`."""
    return dg.AssetKey(table.split("."))


def day_metadata(content: DayContent, seconds: float) -> dict[str, dg.MetadataValue]:
    """Figures of one published day; `seconds` is its share of the step."""
    figures = {name: dg.MetadataValue.int(value) for name, value in content.figures.items()}
    return {
        "dagster/row_count": dg.MetadataValue.int(content.rows),
        "bytes": dg.MetadataValue.int(content.bytes),
        "files": dg.MetadataValue.int(len(content.files)),
        "digest": dg.MetadataValue.text(content.digest),
        "seconds": dg.MetadataValue.float(round(seconds, 3)),
        **figures,
    }


def materializations(table: str, published: Mapping[date, DayContent], seconds: float) -> list[dg.AssetMaterialization]:
    """One event per published day, its data version the digest."""
    share = seconds / max(len(published), 1)
    return [
        dg.AssetMaterialization(
            asset_key(table),
            partition=day.isoformat(),
            metadata=day_metadata(content, share),
            tags={"dagster/data_version": content.digest},
        )
        for day, content in sorted(published.items())
    ]
