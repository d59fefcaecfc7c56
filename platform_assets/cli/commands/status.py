"""`status`: what is loaded, missing, stale, held and set aside, per table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date

import typer

from platform_assets.cli.console import EXIT_LOOK, alike, console, platform_to_look, print_json, say
from platform_assets.cli.grids import new_grid
from platform_assets.cli.growing_view import growing_lines
from platform_assets.cli.held_view import held_json, print_held
from platform_assets.cli.options import AsJson
from platform_assets.contracts import Contract
from platform_assets.contracts.dead_letters import quarantine_table, refused_table
from platform_assets.engine.ingest.listing import (
    RefusedFiles,
    each_once,
    landing_problem,
    list_arrivals,
    refused_files,
    unread_folders,
)
from platform_assets.engine.late.queue import late_counts
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import all_states, table_states
from platform_assets.operations.lineage.held_days import HeldDay, held_days
from platform_assets.planning.day_states import Blocked, DayState, Held, Stale
from platform_assets.planning.loaded import delays
from platform_assets.planning.table_states import TableStates, missing_days
from platform_assets.planning.windows import days_later
from platform_assets.quality.set_aside import much_quarantined
from platform_assets.records.history import ArrivalRecord, DayFigures
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


def table_status(
    platform: Platform,
    contract: Contract,
    days: Mapping[date, DayFigures],
    tables: TableStates,
    states: Mapping[date, DayState],
    refused: int = 0,
) -> TableStatus:
    """Where one table stands.

    Args:
        platform: with its contracts and calendar.
        days: what was counted of its days, also of those that nobody computes from yet.
        tables: what is known of all of them.
        states: of its days; none of a raw table, whose days are there or are not.
        refused: rows of it that were refused at parsing.
    """
    loaded = tables.marks.get(contract.name, {})
    delay = delays(platform.catalogue)[contract.name]
    due = {day for day in tables.calendar.days() if days_later(day, delay) <= platform.settings.current_day()}
    blocked = {day: state for day, state in states.items() if isinstance(state, Blocked)}
    outside = [day for day in days if day not in platform.calendar] if contract.source else []
    return TableStatus(
        table=contract.name,
        newest=max(loaded, default=None),
        days=len(loaded),
        missing=len(due.intersection(missing_days(contract.name, tables))),
        stale=sum(isinstance(state, Stale) for state in states.values()),
        held=sum(isinstance(state, Held) for state in states.values()),
        blocked=sum(day in due for day, state in blocked.items() if state.otherwise or day not in loaded),
        rows=sum(day.delivered for day in days.values()),
        quarantined=sum(day.figures.get("quarantined", 0) for day in days.values()),
        refused=refused,
        outside=sum(days[day].delivered for day in outside),
        days_outside=(min(outside), max(outside)) if outside else None,
        days_quarantined=tuple(day for day in sorted(days) if much_quarantined(contract, days[day].figures)),
    )


def status(as_json: AsJson = False) -> None:
    """Show what is loaded, missing, stale, held and set aside; exit code 1 if something needs a look."""
    with platform_to_look() as platform:
        held = held_days(platform, platform.ledger.holds())
        snapshot = LakeSnapshot.now(platform)
        known = table_states(snapshot)
        states = all_states(platform, known)
        refused_rows = platform.ledger.refused_rows()
        figures = platform.ledger.figures(platform.catalogue.names, at=snapshot.number)
        tables = [
            table_status(
                platform,
                contract,
                figures[contract.name],
                known,
                states.get(contract.name, {}),
                refused_rows.get(contract.name, 0),
            )
            for contract in platform.catalogue
        ]
        refused = refused_files(platform)
        counts = late_counts(platform).values()
        late, ahead = sum(count.waiting for count in counts), sum(count.ahead for count in counts)
        listings = [list_arrivals(platform, contract) for contract in platform.catalogue if contract.source]
        root = landing_problem(platform.settings, platform.catalogue)
        unread = unread_folders(platform.settings, platform.catalogue)
    problems = [root] if root else []
    problems += each_once(problem for listing in listings for problem in (*listing.problems, *listing.growing))
    pending = sum(len(listing.pending) for listing in listings)
    if as_json:
        print_json(
            {
                "tables": [asdict(table) for table in tables],
                "held": [asdict(day.hold) | held_json(day) for day in held],
                "refused_files": _refused_json(refused.there),
                "refused_files_gone": _refused_json(refused.gone),
                "files_with_many_refused": [
                    {"path": file.path, "landed": file.landed, "refused": file.refused}
                    for file in refused.in_large_part
                ],
                "landing": [asdict(problem) for problem in problems],
                "unread_folders": list(unread),
                "pending_files": pending,
                "late_rows": late,
                "rows_ahead": ahead,
            }
        )
    else:
        _print(tables, held, refused, problems, unread, pending, late, ahead)
    if held or refused.there or problems or late or any(table.missing or table.stale for table in tables):
        raise typer.Exit(EXIT_LOOK)


def _print(
    tables: list[TableStatus],
    held: Sequence[HeldDay],
    refused: RefusedFiles,
    problems: list[Problem],
    unread: Mapping[str, str],
    pending: int,
    late: int,
    ahead: int,
) -> None:
    counts = ("days", "missing", "held", "rows", "aside")
    names = ("table", "newest", *counts)
    grid = new_grid("Tables as readers see them", names, right=counts, whole=names)
    for table in tables:
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
    print_held(held)
    for table in tables:
        if table.stale:
            say("[yellow]stale[/]", f"{table.table}: {counted(table.stale, 'day')}; platform-assets stale says why")
        if table.blocked:
            waits = f"{counted(table.blocked, 'day')} cannot be computed: days that they read are missing or held"
            say("[yellow]blocked[/]", f"{table.table}: {waits}")
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
    for table in tables:
        if table.days_quarantined:
            days, first = counted(len(table.days_quarantined), "day"), table.days_quarantined[0]
            shown = f"`read {quarantine_table(table.table)} --day {first}` shows them, `why {table.table} {first}` more"
            say("[yellow]quarantined[/]", f"{table.table}: many rows of {days}, first {first}: {shown}")
    for line in alike((problem.path, problem.message) for problem in problems if not problem.is_growing):
        say("[yellow]not taken[/]", line)
    for line in growing_lines([problem for problem in problems if problem.is_growing]):
        say("[yellow]not taken yet[/]", line)
    for folder, meant in unread.items():
        did = f"; did you mean {meant}?" if meant else ""
        say("[yellow]not read[/]", f"{folder}: no table takes files from this folder of the landing area{did}")
    if late:
        say("[yellow]late[/]", f"{counted(late, 'row', 'wait')} for a decision: platform-assets late list")
    if ahead:
        say("ahead", f"{counted(ahead, 'row', 'wait')} for the day to come: platform-assets late list")
    for table in tables:
        if table.days_outside:
            first, last = table.days_outside
            which = f"{first}" if first == last else f"from {first} to {last}"
            say(
                "outside",
                f"{table.table} has {counted(table.outside, 'row')} of days that the calendar does not have, {which}",
            )
    if pending:
        console.print(f"{counted(pending, 'file', 'wait')} to be ingested: `platform-assets refresh` takes them.")


def _refused_json(files: Sequence[ArrivalRecord]) -> list[dict[str, str | None]]:
    return [{"table": file.table, "path": file.path, "reason": file.reason} for file in files]


def _alarm(count: int) -> str:
    return f"[red]{count:,}[/]" if count else "0"
