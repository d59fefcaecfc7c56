"""Where a published day comes from, as a tree: what was read, who made it and with what, down to the files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import MappingProxyType

from rich.tree import Tree

from platform_assets.cli.console import escape
from platform_assets.contracts.dead_letters import quarantine_table
from platform_assets.operations.lineage.provenance import Origin
from platform_assets.planning.replays import REPLAY
from platform_assets.planning.undated_deletes import UNDATED
from platform_assets.planning.windows import which
from platform_assets.quality.set_aside import quarantined
from platform_assets.records.code_version import shown_commits
from platform_assets.records.history import ArrivalRecord, PublicationRecord
from platform_assets.words import counted

_SOFTWARE = {"platform": "platform-assets", "sail": "Sail", "spark": "Spark", "delta": "Delta"}
_SHOWN = 5
"""Files and publications that a list names."""


def origin_tree(origin: Origin, software: Mapping[str, str] = MappingProxyType({})) -> Tree:
    """A table, the days of it that were read, who made them and with what, and below it what they come from."""
    tree = Tree(_head(origin), guide_style="dim", highlight=False)
    if len(origin.days) == 1:
        [record] = origin.days.values()
        tree.add(f"{counted(record.rows, 'row')}, digest {record.digest}")
        if record.fingerprint:
            tree.add(f"fingerprint {record.fingerprint}")
            commit = f", commit {shown_commits(record.git_commit)}" if record.git_commit else ""
            configuration = record.configuration or "not recorded"
            tree.add(f"code version {record.code_version}, configuration {configuration}{commit}")
        if record.figures.get("keys_quarantined"):
            shown = f"`platform-assets read {quarantine_table(origin.table)}` shows them"
            tree.add(f"[yellow]{quarantined(record.figures)}[/]: {shown}")
        if "files_read" in record.figures:
            files, days = record.figures["files_read"], record.figures["days_read"]
            tree.add(f"read {counted(files, 'file')} of {counted(days, 'day')} of its inputs, as executed")
    elif origin.days:
        rows = sum(record.rows for record in origin.days.values())
        tree.add(f"{counted(rows, 'row')}, digests together {_together(origin)}")
    if origin.window:  # what was found of the day itself is said above
        _add_warnings(tree, origin)
    if software:
        tree.add(
            f"computed with {', '.join(f'{_SOFTWARE.get(name, name)} {version}' for name, version in software.items())}"
        )
    for head in origin.publications[:_SHOWN]:
        tree.add(_publication(head))
    if len(origin.publications) > _SHOWN:
        tree.add(f"and {counted(len(origin.publications) - _SHOWN, 'older publication')}")
    if origin.arrivals is None:
        tree.add("files: too many days to name them; ask for a single day of this table")
    for arrival in (origin.arrivals or ())[:_SHOWN]:
        tree.add(_file(arrival))
    if len(origin.arrivals or ()) > _SHOWN:
        tree.add(f"and {counted(len(origin.arrivals or ()) - _SHOWN, 'more file')}")
    for read in origin.inputs:
        tree.add(origin_tree(read))
    return tree


def _add_warnings(tree: Tree, origin: Origin) -> None:
    """What gates found of days that were read, and published all the same."""
    warned = {day: record.warnings for day, record in origin.days.items() if record.warnings}
    if len(origin.days) == 1:
        for warning in (each for warnings in warned.values() for each in warnings):
            tree.add(f"[yellow]warned[/] {escape(str(warning))}")
    elif warned:
        tree.add(f"[yellow]warned[/] of {counted(len(warned), 'day')} of these: {which(warned)}")


def _head(origin: Origin) -> str:
    days = f"{which(origin.days)} ({len(origin.days):,} days)" if len(origin.days) > 1 else which(origin.days)
    through = f" through {origin.window}" if origin.window else ""
    cut = f", cut by {counted(origin.before_calendar, 'day')} before the calendar" if origin.before_calendar else ""
    version = f", version {origin.version}" if origin.version >= 0 else ""
    return f"[bold]{origin.table}[/] {days or 'no day loaded'}{through}{cut}{version}"


def _publication(head: PublicationRecord) -> str:
    commit = f", commit {shown_commits(head.git_commit)}" if head.git_commit else ""
    return (
        f"{head.kind} {head.publication} ({head.created_at:%Y-%m-%d %H:%M} UTC, release {head.release}) by "
        f"{escape(head.who)}, run {escape(head.run)}: {escape(head.why)}{commit}"
    )


def _file(arrival: ArrivalRecord) -> str:
    if arrival.kind == "withdrawal":
        return f"[yellow]withdrawal[/] {escape(arrival.path)}: takes {escape(arrival.origin or '')} out again"
    taken = f"{counted(arrival.taken, 'row')} taken"
    if arrival.kind in ("approval", "due", "replay"):
        return f"[green]{arrival.kind}[/] {escape(arrival.path)}: {taken} from {escape(arrival.origin or '')}"
    parts = [f"{rows:,} {name}" for name, rows in (("refused", arrival.refused), ("erased", arrival.erased)) if rows]
    others = f" of {arrival.landed:,}, {', '.join(parts)}" if parts else ""
    replay = "".join(f"; {escape(note)}" for note in arrival.notes if note.startswith((REPLAY, UNDATED)))
    return f"[green]file[/] {escape(arrival.path)}: {taken}{others}, sha256 {arrival.sha256[:12]}{replay}"


def _together(origin: Origin) -> str:
    text = "|".join(f"{day}={record.digest}" for day, record in origin.days.items())
    return hashlib.sha256(text.encode()).hexdigest()[:16]
