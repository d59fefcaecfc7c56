"""`status`: days, files and rows per table; its sections show one thing whole; `stale` days, and why, is one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from platform_assets.cli.console import UsageError, platform_to_look, selected, selected_tables
from platform_assets.cli.held_view import (
    by_spark_parts,
    growing_lines,
    held_json,
    held_parts,
    left_parts,
    refused_json,
    warned_days_parts,
    warned_tables_parts,
    warnings_json,
)
from platform_assets.cli.options import AsJson, DaysOrDay, Limit, call_with
from platform_assets.contracts.rules import quarantine_table, refused_table
from platform_assets.engine.pending import intakes
from platform_assets.engine.state.planner import outlook
from platform_assets.operations.lineage.held_days import held_days
from platform_assets.operations.lineage.plan_report import (
    bereft_json,
    bereft_lines,
    blocked_json,
    blocked_lines,
    intake_lines,
    protected_lines,
    stale_table,
    step_json,
)
from platform_assets.operations.quarantine import Acknowledged
from platform_assets.operations.status import Status, look
from platform_assets.planning.configuration import need_of
from platform_assets.planning.plan import PlannedStep
from platform_assets.planning.reasons import REASONS, Reason, Reasons, leading, ordered
from platform_assets.planning.selection import Selection
from platform_assets.planning.windows import Calendar, day_range, which
from platform_assets.quality.deliveries import remedy
from platform_assets.records.manifest import Arrival
from platform_assets.report import Cell, Mark, Note, Part, Report, Table, Tone, picked, plain
from platform_assets.words import counted

_SHOWN = 5


_SECTIONS = {
    "stale": "status:stale",
    "warnings": "status:warned_days",
    "files": "status:files_left",
    "late": "kept_back:late_rows",
    "quarantine": "kept_back:rows_aside",
    "circuits": "breaker:circuits_shown",
    "stages": "release:stages",
    "backfills": "backfill:backfills",
    "recomputed": "backfill:recomputed",
    "releases": "release:releases",
    "decisions": "audit:decisions",
    "messages": "outbox:messages",
    "sources": "source:sources",
    "schema": "source:schema",
    "engines": "diff:engines",
}
"""The module and the function of each section."""


def status(
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SECTION] NAME", help="A section and names in it, or tables; all by default."),
    ] = None,
    days: DaysOrDay = None,
    rule: Annotated[str | None, typer.Option("--rule", help="quarantine: only this class of error.")] = None,
    arrival: Annotated[str | None, typer.Option("--arrival", help="quarantine --rows: of this file.")] = None,
    rows: Annotated[bool, typer.Option("--rows", help="quarantine: rows, with file, line and values.")] = False,
    pinned: Annotated[bool, typer.Option("--pinned", help="releases: only pinned ones.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="backfills NAME: follow it until it ends.")] = False,
    everything: Annotated[
        bool,
        typer.Option("--all", help="late, quarantine, messages, schema: also decided, delivered, declared."),
    ] = False,
    limit: Limit = None,
    metrics: Annotated[
        Path | None, typer.Option("--metrics", metavar="FILE", help="Only write metrics for Prometheus, as a textfile.")
    ] = None,
    as_json: AsJson = False,
) -> Report:
    """Show what is loaded, missing, stale, held and set aside; exit code 1 if something needs a look.

    A section shows one subject in full, and takes a name: stale, warnings, files, late, quarantine, circuits, stages,
    backfills, recomputed, releases, decisions, messages, sources, schema, engines.
    """
    first, names = (what or [""])[0], what or []
    given: dict[str, Any] = {"days": days, "rule": rule, "arrival": arrival, "rows": rows, "pinned": pinned}
    given |= {"watch": watch, "everything": everything, "limit": limit, "metrics": metrics}
    if first not in _SECTIONS:
        return call_with("status", _summary, given | {"names": names, "with_metrics": as_json})
    module, _, name = _SECTIONS[first].partition(":")
    section = getattr(import_module(f"platform_assets.cli.commands.{module}"), name)
    more = {"as_json": as_json} if "as_json" in signature(section).parameters else {}
    return call_with(f"status {first}", section, given | {"names": names[1:]} | more)


def _summary(names: Sequence[str] = (), metrics: Path | None = None, *, with_metrics: bool = False) -> Report:
    if metrics and names:
        raise UsageError("Metrics are of all tables.", "Leave the names out.")
    with platform_to_look() as platform:
        if metrics:
            from platform_assets.operations.metrics import write_metrics  # and its client, for no other option

            write_metrics(platform, metrics)
            return Report([f"Wrote the metrics to {metrics}."], {"metrics": metrics})
        only = selected_tables(platform, names)
        known = look(platform, with_metrics=with_metrics)
    if only:
        tables = [one for one in known.tables if one.table in only]
        known = replace(known, tables=tables, held=[one for one in known.held if one.hold.table in only])
    return Report(status_parts(known), status_json(known), known.needs_a_look)


def warned_days(names: Sequence[str] = ()) -> Report:
    """Show findings of published days, the newest published first."""
    with platform_to_look() as platform:
        tables = selected_tables(platform, names) or platform.catalogue.names
        warned = platform.ledger.warned(tables, at=platform.current_release().number)
        left = Acknowledged.now(platform).without(warned)
    return Report([*warned_days_parts(left), *_more(len(warned) - len(left))], warnings_json(warned))


def files_left(*, as_json: bool = False) -> Report:
    """Show each file that was refused or could not be ingested, with the reason."""
    with platform_to_look() as platform:
        known = look(platform, with_metrics=as_json)
    return Report(_files_parts(known), status_json(known), known.needs_a_look)


def status_json(known: Status) -> dict[str, object]:
    """Return the status as JSON."""
    refused = known.refused
    return picked(
        known,
        "tables landing pending_files late_rows rows_ahead computed_by_spark stopped metrics",
        held=[plain(day.hold) | held_json(day) for day in known.held],
        warnings=warnings_json(known.warned),
        refused_files=refused_json(refused.there),
        refused_files_gone=refused_json(refused.gone),
        refused_files_repaired=[picked(file, "table path reason", by=by) for file, by in refused.repaired.items()],
        files_with_many_refused=[picked(file, "path landed refused") for file in refused.in_large_part],
        unread_folders=list(known.unread),
        acknowledged=[picked(each, "finding until who reason") for each in known.acknowledgements],
        outbox={
            target: {"waiting": counts.get("waiting", 0), "given_up": counts.get("given up", 0)}
            for target, counts in known.outbox.items()
        },
    )


def status_parts(known: Status) -> Iterator[Part]:
    """Show the tables, then what needs a look, files before rows."""
    if known.is_new:
        where = "no file waits that can be taken: docs/first-table.md says where they go"
        wait = (
            f"{counted(known.pending_files, 'file', 'wait')}: run `platform-assets refresh`"
            if known.pending_files
            else where
        )
        yield Note("bold", "Nothing was loaded yet;", f"{wait}.")
    yield from (Note("red", "stopped", sentence) for sentence in known.stopped)
    yield from _tables_parts(known)
    yield from _of_files_parts(known)
    yield from _rows_parts(known)
    for target, counts in known.outbox.items():
        if given_up := counts.get("given up", 0):
            took = f"{counted(given_up, 'message')} to {target}, not delivered: platform-assets status messages"
            yield Note("red", "given up", took)
        if waiting := counts.get("waiting", 0):
            yield Note("", "to send", f"{target}: {counted(waiting, 'message', 'wait')} to be delivered")
    yield from by_spark_parts(known.computed_by_spark)
    if known.pending_files and not known.is_new:
        yield f"{counted(known.pending_files, 'file', 'wait')} to be ingested: `platform-assets refresh` takes them."


def _files_parts(known: Status) -> Iterator[Part]:
    for problem in known.landing:
        yield Note("yellow", f"not taken{' yet' if problem.is_growing else ''}", f"{problem.path} {problem.message}")
    yield from (Note("red", "refused", f"{file.path} {file.reason}") for file in known.refused.there)
    for made in known.acknowledgements:
        ends = f" until {made.until:%Y-%m-%d %H:%M} UTC" if made.until else ""
        yield Note("", "acknowledged", f"{made.finding}{ends} by {made.who}: {made.reason}")
    yield from (Note("yellow", "refused", _in_large_part(file)) for file in known.refused.in_large_part)
    yield from (Note("", "taken away", f"{file.path} {file.reason}") for file in known.refused.gone)
    for file, other in known.refused.repaired.items():
        why = file.reason or "was refused in large part"
        yield Note("", "repaired", f"{file.path} {why}; {other} was taken since")


def _tables_parts(known: Status) -> Iterator[Part]:
    counts = ("days", "missing", "held", "rows", "aside")
    names = ("table", "newest", *counts)
    rows = [
        (
            table.table,
            str(table.newest or "-"),
            f"{table.days:,}",
            _alarm(table.missing),
            _alarm(table.held),
            f"{table.rows:,}",
            f"{aside:,}" if (aside := table.quarantined + table.refused) else "",
        )
        for table in known.tables
    ]
    yield Table("Tables as readers see them", names, rows, counts, names)
    if shown_by := [
        dead_letters(table.table)
        for table in known.tables
        for dead_letters, rows in ((quarantine_table, table.quarantined), (refused_table, table.refused))
        if rows
    ]:
        more = f", and so on with {', '.join(shown_by[1:])}." if shown_by[1:] else "."
        yield (
            "aside: rows that readers of the table do not see: in quarantine, because they broke a rule, or refused, "
            f"because they could not be read. `platform-assets read {shown_by[0]}` shows them{more}"
        )
    yield from held_parts(known.held, in_short=True)
    for table in known.tables:
        if table.awaited and not known.is_new:
            yield Note("yellow", "not delivered yet", f"{table.table}: {which(table.awaited)}")
        if table.stale:
            yield Note(
                "yellow",
                "stale",
                f"{table.table}: {counted(table.stale, 'day')}; `status stale` says why",
            )
        if table.blocked and not known.is_new:
            why = f"{'a circuit is open, or ' if known.stopped else ''}days that they read are missing or held"
            waits = f"{counted(table.blocked, 'day')} cannot be computed: {why}"
            yield Note("yellow", "blocked", f"{table.table}: {waits}")


def _of_files_parts(known: Status) -> Iterator[Part]:
    refused = known.refused
    landing = known.acknowledged.without(problem for problem in known.landing if not problem.is_growing)
    yield from left_parts(landing, known.acknowledged.without(refused.there))
    yield from _more(len(known.acknowledgements))
    yield from (Note("yellow", "refused", _in_large_part(file)) for file in refused.in_large_part[:_SHOWN])
    if (more := len(refused.in_large_part) - _SHOWN) > 0:
        many = f"many rows of {counted(more, 'more file')}; `platform-assets status files` names them"
        yield Note("yellow", "refused", many)
    if refused.gone:
        gone = counted(len({file.path for file in refused.gone}), "refused file")
        away = f"{gone}, no longer in the landing area; `platform-assets status files` says which and why"
        yield Note("", "taken away", away)
    growing = growing_lines([problem for problem in known.landing if problem.is_growing])
    yield from (Note("yellow", "not taken yet", line) for line in growing)
    for folder, meant in known.unread.items():
        did = f"; did you mean {meant}?" if meant else ""
        no_table = f"{folder}: no table takes files from this folder of the landing area{did}"
        yield Note("yellow", "not read", no_table)


def _rows_parts(known: Status) -> Iterator[Part]:
    yield from warned_tables_parts(known.acknowledged.without(known.warned))
    if known.late_rows:
        yield Note(
            "yellow", "late", f"{counted(known.late_rows, 'row', 'wait')} for a decision: platform-assets status late"
        )
    if known.rows_ahead:
        yield Note(
            "", "ahead", f"{counted(known.rows_ahead, 'row', 'wait')} for the day to come: platform-assets status late"
        )
    for table in known.tables:
        if days_outside := table.days_outside:
            days = f"{counted(len(days_outside), 'day')} that the calendar does not have, {which(days_outside)}"
            yield Note("", "outside", f"{table.table} has rows of {days}")


def _more(acknowledged: int) -> Iterator[Part]:
    if acknowledged:
        yield Note("", "acknowledged", f"{counted(acknowledged, 'finding')}: `platform-assets status files` names them")


def _in_large_part(file: Arrival) -> str:
    rows = f"{file.refused:,} of its {counted(file.landed, 'row')} {'was' if file.refused == 1 else 'were'} refused"
    shown = f"`platform-assets read {refused_table(file.table)}` shows them"
    return f"{file.path}: {rows}: {shown}; {remedy([file], file.landed)}"


def _alarm(count: int) -> Cell:
    return Mark(f"{count:,}", "red") if count else "0"


_Mark = tuple[str, str]
_MARKS: Mapping[Reason, _Mark] = {
    "never computed": ("n", "cyan"),
    "gap": ("g", "cyan"),
    "new arrival": ("a", "green"),
    "correction": ("c", "bold red"),
    "moved key": ("m", "red"),
    "upstream content": ("u", "yellow"),
    "reference data": ("r", "magenta"),
    "code": ("p", "blue"),
    "configuration": ("k", "blue"),
    "asked for": ("x", "white"),
}
_HELD: _Mark = ("H", "bold red")
"""A capital letter, so that it differs from the reasons without colour."""


def stale(names: Sequence[str] = (), days: str | None = None) -> Report:
    """Show which days are stale and why, without starting Spark; it needs a look if any are stale or held."""
    with platform_to_look() as platform:
        only = selected(platform, names, days)
        plans = outlook(platform, intakes(platform))
        calendar = platform.calendar
        planned = {(step.table, day) for step in plans.everything.steps for day in step.days}
        holds = [hold for hold in platform.ledger.holds() if only.has_table(hold.table) and only.has_day(hold.day)]
        held = held_days(platform, [hold for hold in holds if (hold.table, hold.day) not in planned])
    steps = _chosen_steps(plans.everything.steps, only)
    protected = _chosen_steps(plans.everything.waiting, only)
    by_itself = {step.table: set(step.days) for step in plans.automatic.steps}
    waits = {  # for a person
        step.table: [day for day in step.days if day not in by_itself.get(step.table, ())]
        for step in plans.everything.steps
    }
    changes = {name: some for name, some in plans.changes.items() if only.has_table(name)}
    blocked, bereft = blocked_json(plans.everything, only), bereft_json(plans.everything, only)
    data = {
        "tables": [step_json(step, waits[step.table]) for step in steps],
        "contract_changes": {
            name: [picked(one, "compatible needs", change=one.what) for one in some] for name, some in changes.items()
        },
        "cannot_be_computed": blocked,
        "held": [held_json(day) for day in held],
        "bereft": bereft,
        "protected": [step_json(step) for step in protected],
        "waiting_files": sum(intake.files for intake in plans.everything.intakes),
    }
    needs = any(need_of(some) in ("all days", "another table") for some in changes.values())

    def parts() -> Iterator[Any]:
        plan = plans.everything
        if steps:
            yield stale_table(steps, waits)
        for text in year_calendars(steps, calendar, {day.hold.day for day in held}):
            yield from (text, "")
        if not (steps or held or blocked or bereft):
            yield Note("green", "Nothing is stale.")
        yield from held_parts(held)
        yield from (Note("yellow", "stale, cannot be computed", line) for line in blocked_lines(plan, only))
        yield from (Note("yellow", "out of date", line) for line in bereft_lines(plan, only))
        for table, some in changes.items():
            for one in some:  # what one of them needs, all enter with
                change = one if one.needs == "nothing" else replace(one, needs=need_of(some))
                tone: Tone = "red" if change.needs == "another table" else "yellow"
                yield Note(tone, "contract changed", f"{table}: {change}")
        stuck = [table for table, some in changes.items() if need_of(some) == "another table"]
        files = intake_lines(plan.intakes)
        yield from (Note("yellow", "waiting", line) for line in files)
        if waiting := sum(len(waits[step.table]) for step in steps):
            follow = f"but not before {', '.join(stuck)} can follow: see above"
            takes = follow if stuck else "`platform-assets refresh` does"
            yield f"{counted(waiting, 'day')} of these for a person to take: {takes}."
        if (steps or files) and not stuck:
            yield "`platform-assets refresh --explain` shows the plan, `refresh` executes it."
        yield from (Note("yellow", "protected", line) for line in protected_lines(protected))

    return Report(parts(), data, bool(steps or protected or held or blocked or bereft or needs))


def _chosen_steps(steps: Iterable[PlannedStep], only: Selection) -> list[PlannedStep]:
    """Return the steps restricted to the requested days; steps without such days are left out."""
    among = (
        replace(step, reasons={day: why for day, why in step.reasons.items() if only.has_day(day)})
        for step in steps
        if only.has_table(step.table)
    )
    return [step for step in among if step.reasons]


def year_calendars(steps: Iterable[PlannedStep], calendar: Calendar, held: Collection[date] = ()) -> list[Text]:
    """Draw each year with such days: a line per month, a letter per day for all tables, and a legend.

    A day that is held in any table gets that letter, even if it is also stale.
    """
    reasons: dict[date, Reasons] = {}
    for step in steps:
        for day, why in step.reasons.items():
            reasons[day] = ordered({*reasons.get(day, ()), *why})
    marks = {day: _MARKS[leading(why)] for day, why in reasons.items()} | dict.fromkeys(held, _HELD)
    shown = [_year(year, marks, calendar) for year in sorted({day.year for day in marks})]
    return [*shown, _legend(set(marks.values()))] if shown else []


def _year(year: int, marks: Mapping[date, _Mark], calendar: Calendar) -> Text:
    text = Text(f"{year}  " + "".join(str(n % 10) for n in range(1, 32)), style="dim")
    for month in range(1, 13):
        after = date(year + month // 12, month % 12 + 1, 1)
        days = [*day_range(date(year, month, 1), date.fromordinal(after.toordinal() - 1))]
        if not any(day in marks or day in calendar for day in days):
            continue
        text.append(f"\n{date(year, month, 1):%b}   ", style="not dim")
        for day in days:
            if day in marks:
                letter, colour = marks[day]
                text.append(letter, style=f"not dim {colour}")
            else:
                text.append("·" if day in calendar else " ")
    return text


def _legend(used: Collection[_Mark]) -> Text:
    text = Text()
    for name, (letter, colour) in [*((reason, _MARKS[reason]) for reason in REASONS), ("held", _HELD)]:
        if (letter, colour) in used:
            text.append(f"{letter} ", style=colour).append(f"{name}   ")
    return text.append("· nothing to do", style="dim")
