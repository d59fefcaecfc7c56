"""Where the platform stands, as `status` tells it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date

from platform_assets.cli.console import console, say
from platform_assets.cli.engine_view import print_by_spark
from platform_assets.cli.files_view import growing_lines, print_left, refused_json
from platform_assets.cli.grids import new_grid
from platform_assets.cli.held_view import held_json, print_held
from platform_assets.cli.warned_view import print_warned_tables, warnings_json
from platform_assets.contracts.dead_letters import quarantine_table, refused_table
from platform_assets.engine.ingest.refused_files import RefusedFiles
from platform_assets.operations.lineage.held_days import HeldDay
from platform_assets.planning.windows import between, which
from platform_assets.quality.repairs import remedy
from platform_assets.records.history import DayRecord
from platform_assets.records.manifest import Arrival
from platform_assets.records.outbox import MessageState
from platform_assets.sources.landing import Problem
from platform_assets.words import counted

_SHOWN = 5
"""Files with many refused rows that are named."""


@dataclass(frozen=True)
class TableStatus:
    """Where a table stands.

    Args:
        newest: newest of `days`.
        days: loaded days, empty ones included, but not those on which nothing was expected and nothing came.
        missing: days of the calendar that are not loaded and should be.
        stale: days that would become something else, and can be computed; those that never were among them.
        held: days that are left alone, because they would come out as they were refused.
        blocked: days that should be computed, and wait for days that they read.
        rows: rows readers see.
        quarantined: rows of published days that broke a rule.
        refused: rows refused at parsing, for raw tables.
        outside: days with rows that the calendar does not have, for raw tables. Their rows are not counted: raw keeps
            each as often as it was delivered, and nobody computes which of them counts.
        days_outside: first and last of these days.
        awaited: the missing days of a raw table: what its source has not delivered yet.
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
    awaited: tuple[date, ...] = ()


@dataclass(frozen=True)
class Status:
    """All that `status` tells.

    Args:
        tables: each by itself.
        held: days that are left alone.
        warned: days that were published with warnings, the newest published first.
        refused: files.
        problems: what keeps files of the landing area, or all of it, from being taken.
        unread: folders of it that no table reads, each with the one that may be meant.
        pending: files that wait to be taken.
        late: rows that wait for a decision.
        ahead: rows that wait for their day.
        outbox: messages that wait to be delivered or were given up, by target.
        by_spark: tables that Spark computes though Sail was asked for, each with the reason.
        stopped: why circuits are open, a sentence each.
    """

    tables: Sequence[TableStatus]
    held: Sequence[HeldDay]
    warned: Sequence[DayRecord]
    refused: RefusedFiles
    problems: Sequence[Problem]
    unread: Mapping[str, str]
    pending: int
    late: int
    ahead: int
    outbox: Mapping[str, Mapping[MessageState, int]]
    by_spark: Mapping[str, str]
    stopped: Sequence[str]

    @property
    def is_new(self) -> bool:
        """Whether no table has a day yet."""
        return not any(table.days for table in self.tables)

    @property
    def given_up(self) -> int:
        """Messages that nobody took."""
        return sum(counts.get("given up", 0) for counts in self.outbox.values())

    @property
    def needs_a_look(self) -> bool:
        """Whether a person should do something."""
        incomplete = any(table.missing or table.stale for table in self.tables)
        found = (self.held, self.refused.there, self.problems, self.late, self.given_up, incomplete, self.stopped)
        return any(found)

    def json(self) -> dict[str, object]:
        """For programs."""
        return {
            "tables": [asdict(table) for table in self.tables],
            "held": [asdict(day.hold) | held_json(day) for day in self.held],
            "warnings": warnings_json(self.warned),
            "refused_files": refused_json(self.refused.there),
            "refused_files_gone": refused_json(self.refused.gone),
            "refused_files_repaired": [
                {"table": file.table, "path": file.path, "reason": file.reason, "by": other}
                for file, other in self.refused.repaired.items()
            ],
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
            "computed_by_spark": dict(self.by_spark),
            "stopped": list(self.stopped),
        }


def print_status(known: Status) -> None:
    """The tables, then what is to be looked at, files before rows."""
    if known.is_new:
        _print_beginning(known)
    for sentence in known.stopped:
        say("[red]stopped[/]", sentence)
    _print_tables(known)
    _print_files(known)
    _print_rows(known)
    _print_outbox(known)
    print_by_spark(known.by_spark)
    if known.pending and not known.is_new:
        console.print(
            f"{counted(known.pending, 'file', 'wait')} to be ingested: `platform-assets refresh` takes them.",
            soft_wrap=True,
        )


def print_files(known: Status) -> None:
    """Each file that is not in a table as it was delivered, on a line of its own with the reason; nothing else."""
    for problem in known.problems:
        say(f"[yellow]not taken{' yet' if problem.is_growing else ''}[/]", f"{problem.path} {problem.message}")
    for file in known.refused.there:
        say("[red]refused[/]", f"{file.path} {file.reason}")
    for file in known.refused.in_large_part:
        say("[yellow]refused[/]", _in_large_part(file))
    for file in known.refused.gone:
        say("taken away", f"{file.path} {file.reason}")
    for file, other in known.refused.repaired.items():
        say("repaired", f"{file.path} {file.reason or 'was refused in large part'}; {other} was taken since")


def _print_beginning(known: Status) -> None:
    """What comes first, where nothing came yet."""
    if known.pending:
        wait = f"{counted(known.pending, 'file', 'wait')}: run `platform-assets refresh`"
    else:
        wait = "no file waits that can be taken: docs/first-table.md says where they go"
    console.print(f"[bold]Nothing was loaded yet;[/] {wait}.", highlight=False, soft_wrap=True)


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
    if shown_by := [name for table in known.tables for name in _set_aside(table)]:
        console.print(
            "aside: rows that readers of the table do not see: in quarantine, because they broke a rule, or refused, "
            f"because they could not be read. `platform-assets read {shown_by[0]}` shows them"
            + (f", and so on with {', '.join(shown_by[1:])}." if shown_by[1:] else "."),
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    print_held(known.held, in_short=True)
    for table in known.tables:
        if table.awaited and not known.is_new:
            say("[yellow]not delivered yet[/]", f"{table.table}: {which(table.awaited)}")
        if table.stale:
            say("[yellow]stale[/]", f"{table.table}: {counted(table.stale, 'day')}; platform-assets stale says why")
        if table.blocked and not known.is_new:
            waits = f"{counted(table.blocked, 'day')} cannot be computed: days that they read are missing or held"
            say("[yellow]blocked[/]", f"{table.table}: {waits}")


def _set_aside(table: TableStatus) -> Iterator[str]:
    """The tables that have what was set aside of one."""
    if table.quarantined:
        yield quarantine_table(table.table)
    if table.refused:
        yield refused_table(table.table)


def _print_files(known: Status) -> None:
    refused = known.refused
    print_left([problem for problem in known.problems if not problem.is_growing], refused.there)
    for file in refused.in_large_part[:_SHOWN]:
        say("[yellow]refused[/]", _in_large_part(file))
    if (more := len(refused.in_large_part) - _SHOWN) > 0:
        say(
            "[yellow]refused[/]",
            f"many rows of {counted(more, 'more file')}; `platform-assets status --files` names them",
        )
    if refused.gone:
        gone = counted(len({file.path for file in refused.gone}), "refused file")
        say("taken away", f"{gone}, no longer in the landing area; `platform-assets status --files` says which and why")
    for line in growing_lines([problem for problem in known.problems if problem.is_growing]):
        say("[yellow]not taken yet[/]", line)
    for folder, meant in known.unread.items():
        did = f"; did you mean {meant}?" if meant else ""
        say("[yellow]not read[/]", f"{folder}: no table takes files from this folder of the landing area{did}")


def _print_rows(known: Status) -> None:
    print_warned_tables(known.warned)
    if known.late:
        say("[yellow]late[/]", f"{counted(known.late, 'row', 'wait')} for a decision: platform-assets late list")
    if known.ahead:
        say("ahead", f"{counted(known.ahead, 'row', 'wait')} for the day to come: platform-assets late list")
    for table in known.tables:
        if table.days_outside:
            first, last = table.days_outside
            say(
                "outside",
                f"{table.table} has rows of {counted(table.outside, 'day')} that the calendar does not have, "
                f"{between(first, last)}",
            )


def _print_outbox(known: Status) -> None:
    for target, counts in known.outbox.items():
        if given_up := counts.get("given up", 0):
            messages = f"{counted(given_up, 'message')} to {target}, which nobody took: platform-assets outbox list"
            say("[red]given up[/]", messages)
        if waiting := counts.get("waiting", 0):
            say("to be told", f"{target}: {counted(waiting, 'message', 'wait')} to be delivered")


def _in_large_part(file: Arrival) -> str:
    rows = f"{file.refused:,} of its {counted(file.landed, 'row')} {'was' if file.refused == 1 else 'were'} refused"
    shown = f"`platform-assets read {refused_table(file.table)}` shows them"
    return f"{file.path}: {rows}: {shown}; {remedy([file], file.landed)}"


def _alarm(count: int) -> str:
    return f"[red]{count:,}[/]" if count else "0"
