"""Show plans and their days: tables and lines for people, plain values for programs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from platform_assets.planning.day_states import Blocked
from platform_assets.planning.plan import Estimate, Intake, Plan, PlannedStep
from platform_assets.planning.reasons import Reasons
from platform_assets.planning.selection import EVERYTHING, Selection
from platform_assets.planning.windows import ranges, which
from platform_assets.records.history import CIRCUIT
from platform_assets.report import Table, picked
from platform_assets.words import counted, size


def plan_table(plan: Plan) -> Table:
    """Show the steps of a plan in order, with the cost of each."""
    rows: list[tuple[str, ...]] = []
    for step in plan.steps:
        abouts = [_about(step.estimate), *[""] * len(step.by_reasons)]
        rows += [(*row, about) for row, about in zip(_rows(step), abouts, strict=False)]
    return _table("Days to recompute, in this order", rows, "about")


def stale_table(steps: Iterable[PlannedStep], waits: Mapping[str, Collection[date]]) -> Table:
    """Show stale days, a line for each table and reason."""
    rows = [row for step in steps for row in _rows(step, waits.get(step.table, ()))]
    return _table("Stale days, and days that they reach", rows)


def _rows(step: PlannedStep, waits: Collection[date] = ()) -> Iterator[tuple[str, ...]]:
    for reasons, days in step.by_reasons.items():
        for waiting, note in ((False, ""), (True, "; waits for a person")):
            if some := [day for day in days if (day in waits) is waiting]:
                yield step.table, f"{len(some):,}", ", ".join(reasons) + note, which(some)


def _table(title: str, rows: Sequence[Sequence[str]], *more: str) -> Table:
    columns = ("table", "days", "why", "which", *more)
    return Table(title, columns, rows, ("days",), [name for name in columns if name != "which"])


def intake_lines(intakes: Iterable[Intake]) -> list[str]:
    """Return what raw tables ingest first, as lines."""
    lines: list[str] = []
    for intake in intakes:
        if intake.files:
            lines.append(
                f"{intake.table}: {counted(intake.files, 'file')} ({size(intake.bytes)}) to "
                "take first; the days they touch are known then, and join the plan"
            )
        if intake.due:
            days = f"{counted(len(intake.due), 'day')} with rows that arrived far ahead ({which(intake.due)})"
            lines.append(f"{intake.table}: {days} to take first, since their day has come")
        if intake.quiet:
            lines.append(
                f"{intake.table}: {counted(len(intake.quiet), 'day')} to load as empty ({which(intake.quiet)})"
            )
    return lines


def estimate_line(plan: Plan) -> str:
    """Return the cost of all steps."""
    if plan.estimate is None:
        return "how long they take is not known before a day of each of these tables was computed, and not put back"
    return f"about {_about(plan.estimate)}"


def _about(estimate: Estimate | None) -> str:
    if estimate is None:
        return "not known yet"
    return f"{counted(estimate.rows, 'row')}, {size(estimate.bytes)}, {estimate.seconds:,.1f} s"


def step_json(step: PlannedStep, waits: Collection[date] = ()) -> dict[str, Any]:
    """Return a step as JSON: days as ranges with the same reasons, both ends included."""
    return {
        "table": step.table,
        "days": len(step.days),
        "ranges": [
            {"first": first, "last": last, "reasons": list(reasons), "waits_for_a_person": waiting}
            for reasons, days in step.by_reasons.items()
            for waiting in (False, True)
            for first, last in ranges([day for day in days if (day in waits) is waiting])
        ],
        "estimate": step.estimate,
    }


def protected_lines(steps: Iterable[PlannedStep]) -> Iterator[str]:
    """Return days that a person's refresh skips as protected, a line for each table and reason."""
    for step in steps:
        for reasons, days in step.by_reasons.items():
            because = f"stale through {' and '.join(reasons)}"
            yield f"{step.table} {which(days)}: {because}; a plan with `override_protected` computes them"


def blocked_lines(plan: Plan, only: Selection = EVERYTHING, *, are_there: bool | None = None) -> Iterator[str]:
    """Return days that should be recomputed and cannot: the reason for both.

    One line for each cause, with the affected days of every table.

    Args:
        only: restriction to tables and days.
        are_there: only those blocked by a day with content, or without; all by default.
    """
    lines: dict[str, list[str]] = {}
    for table in (table for table in plan.blocked if only.has_table(table)):
        causes: dict[tuple[bool, Reasons], dict[date, Blocked]] = {}
        for day, (state, reasons) in sorted(plan.blocked[table].items()):
            if are_there in (None, state.is_there) and only.has_day(day):
                causes.setdefault((state.is_there, reasons), {})[day] = state
        for (_, reasons), some in causes.items():
            first = next(iter(some.values()))
            lines.setdefault(cause(first), []).append(f"{_days_of(table, some)} ({', '.join(reasons)})")
    yield from (f"{'; '.join(abouts)}: {why}" for why, abouts in lines.items())


def kept_lines(left: Iterable[tuple[str, date, str]], stops: Collection[str] = ()) -> Iterator[str]:
    """Say why days were not published, one line for each reason.

    Args:
        stops: reasons of open circuits. All days that one of them stopped share a line.
    """
    lines: dict[str, dict[str, list[date]]] = {}
    for table, day, why in left:
        by = next((stop for stop in stops if why.startswith(stop)), why)
        lines.setdefault(by, {}).setdefault(table, []).append(day)
    for why, tables in lines.items():
        yield f"{'; '.join(_days_of(table, days) for table, days in tables.items())}: {why}"


def _days_of(table: str, days: Collection[date]) -> str:
    return f"{table} {which(days)}{f', {len(days):,} days' if len(days) > 1 else ''}"


def cause(state: Blocked) -> str:
    """Return why a day cannot be computed."""
    if state.hold is not None and state.hold.gate == CIRCUIT:
        return state.hold.reason
    if state.hold is not None:
        return f"{state.table} is held on {state.day}: {state.hold.reason}"
    if state.table.startswith("raw."):
        return f"{state.table} is not delivered yet for {state.day}"
    return f"{state.table} has never been loaded for {state.day}"


def blocked_json(plan: Plan, only: Selection = EVERYTHING) -> list[dict[str, Any]]:
    """Return blocked days as JSON, day by day."""
    return [
        {"table": table, "day": day, "reasons": list(reasons), "reads": state.table}
        | ({"held": state.day} if state.is_there else {"never_loaded": state.day})
        for table, blocked in plan.blocked.items()
        for day, (state, reasons) in sorted(blocked.items())
        if only.has_table(table) and only.has_day(day)
    ]


def bereft_lines(plan: Plan, only: Selection = EVERYTHING) -> Iterator[str]:
    """Return days whose inputs are gone, so that nothing can update them, one line for each table."""
    for table, lost in plan.bereft.items():
        shown = {day: blocked for day, blocked in lost.items() if only.has_day(day)}
        if shown and only.has_table(table):
            gone = next(iter(shown.values()))
            yield (
                f"{table} {which(shown)}: made from more than is there; {gone.table} has nothing of {gone.day}. "
                f"Compute that day, or roll back {table} too"
            )


def bereft_json(plan: Plan, only: Selection = EVERYTHING) -> list[dict[str, Any]]:
    """Return such days as JSON, day by day."""
    return [
        {"table": table, "day": day, "reads": blocked.table, "gone": blocked.day}
        for table, lost in plan.bereft.items()
        for day, blocked in lost.items()
        if only.has_table(table) and only.has_day(day)
    ]


def plan_json(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON."""
    return {
        "intakes": [
            picked(one, "table files bytes", due_days=list(one.due), quiet_days=list(one.quiet)) for one in plan.intakes
        ],
        "steps": [step_json(step) for step in plan.steps],
        "days": plan.days,
        "estimate": plan.estimate,
        "cannot_be_computed": blocked_json(plan),
        "bereft": bereft_json(plan),
        "tries": {table: tried.day for table, tried in plan.tries.items()},
    }
