"""Events and metadata that Dagster shows for a published day and a table.

Only this module makes metadata from text, so that control characters are always made visible.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import date

import dagster as dg

from platform_assets.contracts import AllHistory, AsOf, Contract, MonthToDate, Offsets, Span, Window
from platform_assets.engine.day_contents import is_kept_aside
from platform_assets.engine.results import IngestResult, StepResult
from platform_assets.planning.windows import Calendar
from platform_assets.quality.findings import day_metrics
from platform_assets.records.differences import DayChange
from platform_assets.records.history import DayRecord
from platform_assets.records.manifest import Warned
from platform_assets.records.schema_drift import drift_in
from platform_assets.words import as_code, visible

Metadata = dict[str, dg.MetadataValue]

_STORY = ("warned", "changed", "why", "inputs")
"""What a person wants to know first."""

_READ = ("days_read", "files_read")
"""Figures about the work, not about the rows."""

_MAIL = re.compile(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}")
"""Addresses that Dagster takes for an owner."""

_RULES = {
    "quarantine": "Rows are set aside",
    "block": "A day is not published",
    "warn": "A day is published with a warning",
}


def asset_key(table: str) -> dg.AssetKey:
    """Return an asset key with one part, the table's name: in graphs and lists Dagster shows only a key's last part."""
    return dg.AssetKey([table])


def day_metadata(done: IngestResult | StepResult, calendar: Calendar) -> dict[date, Metadata]:
    """Return the metadata of every published day that is a partition. The days share the seconds of the step.

    Rows of other days may enter raw, and wait there for the calendar.
    """
    share = done.seconds / max(len(done.published), 1)
    notes = [note for arrival in getattr(done, "arrivals", ()) for note in arrival.notes if drift_in(note)]
    schema: Metadata = {"schema": listed(list(dict.fromkeys(notes)))} if notes else {}
    return {
        day: schema
        | warning_metadata(content.warnings)
        | (_history(done, day) if isinstance(done, StepResult) else {})
        | figures(content.rows, content.bytes, len(content.files), content.digest, content.figures, share)
        for day, content in sorted(done.published.items())
        if day in calendar
    }


def with_pictures(shown: Metadata, pictures: Metadata) -> Metadata:
    """Insert pictures after the change and its reason, before the figures: Dagster shows metadata in this order."""
    story = {name: value for name, value in shown.items() if name in _STORY}
    return story | pictures | {name: value for name, value in shown.items() if name not in _STORY}


def materializations(
    done: IngestResult | StepResult, metadata: Mapping[date, Metadata]
) -> dict[date, dg.AssetMaterialization]:
    """Return one event per published day that has metadata."""
    return {day: day_event(done.table, day, done.published[day].digest, shown) for day, shown in metadata.items()}


def day_event(table: str, day: date, digest: str, metadata: Metadata) -> dg.AssetMaterialization:
    """Return the event of a published day, with its digest as data version."""
    return dg.AssetMaterialization(
        asset_key(table), partition=day.isoformat(), metadata=metadata, tags={"dagster/data_version": digest}
    )


def warning_metadata(warnings: Collection[Warned]) -> Metadata:
    """List findings of gates about a published day: its partition is as green as any other."""
    return {"warned": listed([str(each) for each in warnings])} if warnings else {}


def figures(rows: int, size: int, files: int, digest: str, others: Mapping[str, int], seconds: float) -> Metadata:
    """Return the figures shown for every published day."""
    counted = {name: dg.MetadataValue.int(value) for name, value in others.items() if not is_kept_aside(name)}
    metrics = day_metrics(rows, others)
    measured = {name: dg.MetadataValue.float(value) for name, value in metrics.items() if name not in counted}
    read = {name: counted.pop(name) for name in _READ if name in counted}
    return {
        "dagster/row_count": dg.MetadataValue.int(rows),
        **counted,
        **measured,
        **read,
        "seconds": dg.MetadataValue.float(round(seconds, 3)),
        "bytes": dg.MetadataValue.int(size),
        "files": dg.MetadataValue.int(files),
        "digest": plain(digest),
    }


def recorded_figures(record: DayRecord) -> Metadata:
    """Return the figures of an earlier published day."""
    return figures(record.rows, record.bytes, record.files, record.digest, record.figures, record.seconds)


def _history(done: StepResult, day: date) -> Metadata:
    """Return the day's change, its reason, and its numbers of rows, which Dagster plots by day."""
    shown: Metadata = {}
    change = done.changes.get(day)
    if change is not None:
        shown["changed"] = markdown(describe_change(change))
    if reasons := done.reasons.get(day):
        shown["why"] = plain(", ".join(reasons))
    if notes := done.notes.get(day):
        shown["inputs"] = listed(notes)
    if change is not None:
        shown["rows_added"] = dg.MetadataValue.int(change.added)
        shown["rows_removed"] = dg.MetadataValue.int(change.removed)
        shown["rows_changed"] = dg.MetadataValue.int(change.changed)
    return shown


def describe_change(change: DayChange) -> str:
    """Compare a day's new content with its former one, as Markdown: rows, and changed sums."""
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


def describe_table(contract: Contract) -> str:
    """Describe a table as Markdown: the contract's words, its key, its windows, and how to see its rows."""
    per = " and ".join(filter(None, ("day", ", ".join(contract.key))))
    lines = [contract.description, "", f"- One row per {per}."]
    if contract.source is not None:
        lines.append(f"- Delivered as files in `{contract.source.folder}`, which are taken by themselves.")
    for read in contract.inputs:
        lines.append(f"- A day reads {read.table}: {describe_window(read.window)}.")
    for rule in contract.rules:
        lines.append(f"- {_RULES[rule.severity]} unless `{rule.name}` (`{rule.kind.text}`): {rule.description}")
        if rule.allowed is not None and rule.tolerance:
            refused = "; with more the day is not published" if rule.quarantines else ""
            lines[-1] += f" At most {rule.allowed} may break it{refused}."
    lines += ["", f"See rows: `platform-assets read {contract.name} --day DAY`; what a day was made from: "]
    lines[-1] += f"`platform-assets why {contract.name} DAY`"
    lines += ["", "Days that a command published are among the events here; *Runs* has only what Dagster started."]
    return visible("\n".join(lines), breaks=True)


def shown_owners(owner: str) -> list[str]:
    """Return owners for Dagster, which accepts mail addresses and teams, so any other name becomes a team."""
    named = owner.strip()
    team = named.removeprefix("team:")
    return [named if _MAIL.fullmatch(named) else f"team:{team}"] if team else []


def describe_window(window: Window) -> str:
    """Say which days of an input one day reads."""
    match window:
        case Span(before=0, after=0):
            return "the same day"
        case Span(before=before, after=0):
            return f"the same day and the {before} before it"
        case Span(before=before, after=after):
            return f"the same day, the {before} before it and the {after} after it"
        case Offsets(each, unit):
            return f"the days {', '.join(f'{n:+}' for n in each)} {unit} from it"
        case MonthToDate():
            return "from the first of the month to the day"
        case AsOf():
            return "what was valid on the day"
        case AllHistory():
            return "all days up to it"


def plain(shown: str) -> dg.MetadataValue:
    """Return a line of plain text."""
    return dg.MetadataValue.text(visible(shown))


def listed(items: Iterable[str], more: Iterable[str] = ()) -> dg.MetadataValue:
    """Return a list of foreign texts, each item as written; `more` is the platform's own."""
    return markdown("\n".join(f"- {line}" for line in (*map(as_code, items), *more)))


def markdown(written: str) -> dg.MetadataValue:
    """Return Markdown of the platform's own, in which foreign text was made code by `as_code`."""
    return dg.MetadataValue.md(visible(written, breaks=True))


def table_row(row: dict[str, str | int | float | bool | None]) -> dg.TableRecord:
    """Return a row of a table."""
    return dg.TableRecord({name: visible(value) if isinstance(value, str) else value for name, value in row.items()})
