"""What Dagster shows of a published day."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import dagster as dg

from platform_assets.compute.differences import DayChange
from platform_assets.engine.results import IngestResult, StepResult
from platform_assets.lakehouse.manifest import DayContent

Metadata = dict[str, dg.MetadataValue]


def asset_key(table: str) -> dg.AssetKey:
    """`<layer>/<table>`."""
    return dg.AssetKey(table.split("."))


def day_metadata(done: IngestResult | StepResult) -> dict[date, Metadata]:
    """Figures of every published day; the seconds of the step are shared out among its days."""
    share = done.seconds / max(len(done.published), 1)
    return {
        day: _figures(content, share) | (_history(done, day) if isinstance(done, StepResult) else {})
        for day, content in sorted(done.published.items())
    }


def materializations(
    done: IngestResult | StepResult, metadata: Mapping[date, Metadata]
) -> dict[date, dg.AssetMaterialization]:
    """One event per published day, its data version the digest."""
    return {
        day: dg.AssetMaterialization(
            asset_key(done.table),
            partition=day.isoformat(),
            metadata=metadata[day],
            tags={"dagster/data_version": content.digest},
        )
        for day, content in sorted(done.published.items())
    }


def _figures(content: DayContent, seconds: float) -> Metadata:
    figures = {name: dg.MetadataValue.int(value) for name, value in content.figures.items()}
    return {
        "dagster/row_count": dg.MetadataValue.int(content.rows),
        "bytes": dg.MetadataValue.int(content.bytes),
        "files": dg.MetadataValue.int(len(content.files)),
        "digest": dg.MetadataValue.text(content.digest),
        "seconds": dg.MetadataValue.float(round(seconds, 3)),
        **figures,
    }


def _history(done: StepResult, day: date) -> Metadata:
    shown: Metadata = {}
    if (change := done.changes.get(day)) is not None:
        shown["changed"] = dg.MetadataValue.md(describe_change(change))
    if notes := done.notes.get(day):
        shown["inputs"] = dg.MetadataValue.md("\n".join(f"- {note}" for note in notes))
    if reasons := done.reasons.get(day):
        shown["why"] = dg.MetadataValue.text(", ".join(reasons))
    return shown


def describe_change(change: DayChange) -> str:
    """A day's new content against the one before, as Markdown: rows, and the sums that moved."""
    lines = [f"**{change.added:,}** rows added, **{change.removed:,}** removed, **{change.changed:,}** changed."]
    moved = [name for name, before in change.sums_before.items() if before != change.sums_after[name]]
    if moved:
        lines += ["", "| sum of | before | after | difference |", "| --- | ---: | ---: | ---: |"]
        for name in moved:
            before, after = change.sums_before[name], change.sums_after[name]
            lines.append(f"| {name} | {before:,} | {after:,} | {after - before:+,} |")
    elif change.sums_before:
        lines += ["", "No sum moved."]
    return "\n".join(lines)
