"""`status stale`: days whose result would change if they were recomputed now, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from rich.text import Text

from platform_assets.cli.console import platform_to_look, selected
from platform_assets.cli.held_view import held_json, held_parts
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
from platform_assets.planning.configuration import need_of
from platform_assets.planning.plan import PlannedStep
from platform_assets.planning.reasons import REASONS, Reason, Reasons, leading, ordered
from platform_assets.planning.selection import Selection
from platform_assets.planning.windows import Calendar, day_range
from platform_assets.report import Note, Report, Tone, picked
from platform_assets.words import counted

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
    """Show which days are stale and why, without starting Spark; it needs a look if there are any, or held ones."""
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
    """Return steps with the days that were asked for; those without one are left out."""
    among = (
        replace(step, reasons={day: why for day, why in step.reasons.items() if only.has_day(day)})
        for step in steps
        if only.has_table(step.table)
    )
    return [step for step in among if step.reasons]


def year_calendars(steps: Iterable[PlannedStep], calendar: Calendar, held: Collection[date] = ()) -> list[Text]:
    """Draw every year that has such a day: a line a month, a letter a day for all tables, and what the letters mean.

    A day that is held in any table has that mark, even if more is to be done.
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
