"""Where the platform stands, as `status` tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date

from platform_assets.cli.console import alike, console, say
from platform_assets.cli.grids import new_grid
from platform_assets.cli.growing_view import growing_lines
from platform_assets.cli.held_view import held_json, print_held
from platform_assets.contracts.dead_letters import quarantine_table, refused_table
from platform_assets.engine.ingest.listing import RefusedFiles
from platform_assets.operations.lineage.held_days import HeldDay
from platform_assets.records.history import ArrivalRecord
from platform_assets.records.outbox import MessageState
from platform_assets.sources.landing import Problem
from platform_assets.words import counted

_SHOWN = 5
"""Files with many refused rows that are named."""


@dataclass(frozen=True)
class TableStatus:
    """Where a table stands.

    Args:
        newest: newest loaded day.
        days: loaded days, empty ones included.
        missing: days of the calendar that are not loaded and should be.
        stale: days that would become something else, and can be computed; those that never were among them.
        held: days that are left alone, because they would come out as they were refused.
        blocked: days that should be computed, and wait for days that they read.
        rows: rows readers see.
        quarantined: rows of published days that broke a rule.
        days_quarantined: published days of which more is in quarantine than the contract leaves unsaid.
        refused: rows refused at parsing, for raw tables.
        outside: rows on days outside the calendar, for raw tables.
        days_outside: first and last of these days.
    """

    table: str
    newest: date | None
    days: int
    missing: int
    stale: int
    held: int
    blocked: int
    rows: int
    quarantined: int
    refused: int
    outside: int = 0
    days_outside: tuple[date, date] | None = None
    days_quarantined: tuple[date, ...] = ()


@dataclass(frozen=True)
class Status:
    """All that `status` tells.

    Args:
        tables: each by itself.
        held: days that are left alone.
        refused: files.
        problems: what keeps files of the landing area, or all of it, from being taken.
        unread: folders of it that no table reads, each with the one that may be meant.
        pending: files that wait to be taken.
        late: rows that wait for a decision.
        ahead: rows that wait for their day.
        outbox: messages that wait to be delivered or were given up, by target.
    """

    tables: Sequence[TableStatus]
    held: Sequence[HeldDay]
    refused: RefusedFiles
    problems: Sequence[Problem]
    unread: Mapping[str, str]
    pending: int
    late: int
    ahead: int
    outbox: Mapping[str, Mapping[MessageState, int]]

    @property
    def given_up(self) -> int:
        """Messages that nobody took."""
        return sum(counts.get("given up", 0) for counts in self.outbox.values())

    @property
    def needs_a_look(self) -> bool:
        """Whether a person should do something."""
        incomplete = any(table.missing or table.stale for table in self.tables)
        found = (self.held, self.refused.there, self.problems, self.late, self.given_up, incomplete)
        return any(found)

    def json(self) -> dict[str, object]:
        """For programs."""
        return {
            "tables": [asdict(table) for table in self.tables],
            "held": [asdict(day.hold) | held_json(day) for day in self.held],
            "refused_files": _refused_json(self.refused.there),
            "refused_files_gone": _refused_json(self.refused.gone),
            "files_with_many_refused": [
                {"path": file.path, "landed": file.landed, "refused": file.refused}
                for file in self.refused.in_large_part
            ],
            "landing": [asdict(problem) for problem in self.problems],
            "unread_folders": list(self.unread),
            "pending_files": self.pending,
            "late_rows": self.late,
            "rows_ahead": self.ahead,
            "outbox": {
                target: {"waiting": counts.get("waiting", 0), "given_up": counts.get("given up", 0)}
                for target, counts in self.outbox.items()
            },
        }


def print_status(known: Status) -> None:
    """The tables, then what is to be looked at, files before rows."""
    _print_tables(known)
    _print_files(known)
    _print_rows(known)
    _print_outbox(known)
    if known.pending:
        console.print(f"{counted(known.pending, 'file', 'wait')} to be ingested: `platform-assets refresh` takes them.")


def _print_tables(known: Status) -> None:
    counts = ("days", "missing", "held", "rows", "aside")
    names = ("table", "newest", *counts)
    grid = new_grid("Tables as readers see them", names, right=counts, whole=names)
    for table in known.tables:
        grid.add_row(
            table.table,
            str(table.newest or "-"),
            f"{table.days:,}",
            _alarm(table.missing),
            _alarm(table.held),
            f"{table.rows:,}",
            f"{aside:,}" if (aside := table.quarantined + table.refused) else "",
        )
    console.print(grid)
    print_held(known.held)
    for table in known.tables:
        if table.stale:
            say("[yellow]stale[/]", f"{table.table}: {counted(table.stale, 'day')}; platform-assets stale says why")
        if table.blocked:
            waits = f"{counted(table.blocked, 'day')} cannot be computed: days that they read are missing or held"
            say("[yellow]blocked[/]", f"{table.table}: {waits}")


def _print_files(known: Status) -> None:
    refused = known.refused
    for line in alike((file.path, file.reason or "") for file in refused.there):
        say("[red]refused[/]", line)
    for file in refused.in_large_part[:_SHOWN]:
        rows = f"{file.refused:,} of its {counted(file.landed, 'row')} were refused"
        say("[yellow]refused[/]", f"{file.path}: {rows}: `read {refused_table(file.table)}` shows them")
    if (more := len(refused.in_large_part) - _SHOWN) > 0:
        say("[yellow]refused[/]", f"many rows of {counted(more, 'more file')}; --json names them")
    if refused.gone:
        gone = counted(len({file.path for file in refused.gone}), "refused file")
        say("taken away", f"{gone}, no longer in the landing area; platform-assets status --json says which and why")
    for line in alike((problem.path, problem.message) for problem in known.problems if not problem.is_growing):
        say("[yellow]not taken[/]", line)
    for line in growing_lines([problem for problem in known.problems if problem.is_growing]):
        say("[yellow]not taken yet[/]", line)
    for folder, meant in known.unread.items():
        did = f"; did you mean {meant}?" if meant else ""
        say("[yellow]not read[/]", f"{folder}: no table takes files from this folder of the landing area{did}")


def _print_rows(known: Status) -> None:
    for table in known.tables:
        if table.days_quarantined:
            days, first = counted(len(table.days_quarantined), "day"), table.days_quarantined[0]
            shown = f"`read {quarantine_table(table.table)} --day {first}` shows them, `why {table.table} {first}` more"
            say("[yellow]quarantined[/]", f"{table.table}: many rows of {days}, first {first}: {shown}")
    if known.late:
        say("[yellow]late[/]", f"{counted(known.late, 'row', 'wait')} for a decision: platform-assets late list")
    if known.ahead:
        say("ahead", f"{counted(known.ahead, 'row', 'wait')} for the day to come: platform-assets late list")
    for table in known.tables:
        if table.days_outside:
            first, last = table.days_outside
            which = f"{first}" if first == last else f"from {first} to {last}"
            say(
                "outside",
                f"{table.table} has {counted(table.outside, 'row')} of days that the calendar does not have, {which}",
            )


def _print_outbox(known: Status) -> None:
    for target, counts in known.outbox.items():
        if given_up := counts.get("given up", 0):
            messages = f"{counted(given_up, 'message')} to {target}, which nobody took: platform-assets outbox list"
            say("[red]given up[/]", messages)
        if waiting := counts.get("waiting", 0):
            say("to be told", f"{target}: {counted(waiting, 'message', 'wait')} to be delivered")


def _refused_json(files: Sequence[ArrivalRecord]) -> list[dict[str, str | None]]:
    return [{"table": file.table, "path": file.path, "reason": file.reason} for file in files]


def _alarm(count: int) -> str:
    return f"[red]{count:,}[/]" if count else "0"
