"""`stale`: which days are no longer what they would be now, and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date
from typing import Annotated

import typer

from platform_assets.cli.console import EXIT_LOOK, console, platform_to_look, print_json, say, selected
from platform_assets.cli.held_view import held_json, print_held
from platform_assets.cli.options import AsJson, Days
from platform_assets.cli.plan_view import (
    bereft_json,
    bereft_lines,
    blocked_json,
    blocked_lines,
    intake_lines,
    protected_lines,
    stale_grid,
    step_json,
    year_calendars,
)
from platform_assets.engine.pending import intakes
from platform_assets.engine.state.planner import Outlook, outlook
from platform_assets.operations.lineage.held_days import HeldDay, held_days
from platform_assets.planning.configuration import ContractChange, need_of
from platform_assets.planning.plan import PlannedStep
from platform_assets.planning.selection import Selection
from platform_assets.planning.windows import Calendar
from platform_assets.words import counted


def stale(
    table: Annotated[str | None, typer.Argument(help="Only this table.")] = None,
    days: Days = None,
    as_json: AsJson = False,
) -> None:
    """Show which days are stale and why, without starting Spark; exit code 1 if there are any, or held ones."""
    with platform_to_look() as platform:
        only = selected(None if table is None else platform.catalogue[table].name, days, platform.settings)
        plans = outlook(platform, intakes(platform))
        calendar = platform.calendar
        holds = [h for h in platform.ledger.holds() if only.has_table(h.table) and only.has_day(h.day)]
        planned = {(step.table, day) for step in plans.everything.steps for day in step.days}
        held = held_days(platform, [hold for hold in holds if (hold.table, hold.day) not in planned])
    steps = [shown for step in plans.everything.steps if (shown := _only(step, only))]
    protected = [shown for step in plans.everything.waiting if (shown := _only(step, only))]
    waits = _waits(plans)
    changes = {name: some for name, some in plans.changes.items() if only.has_table(name)}
    blocked = list(blocked_lines(plans.everything, only))
    bereft = list(bereft_lines(plans.everything, only))
    if as_json:
        print_json(
            {
                "tables": [step_json(step, waits[step.table]) for step in steps],
                "contract_changes": {
                    name: [{"change": c.what, "compatible": c.compatible, "needs": c.needs} for c in some]
                    for name, some in changes.items()
                },
                "cannot_be_computed": blocked_json(plans.everything, only),
                "held": [held_json(day) for day in held],
                "bereft": bereft_json(plans.everything, only),
                "protected": [step_json(step) for step in protected],
                "waiting_files": sum(intake.files for intake in plans.everything.intakes),
            }
        )
    else:
        _print(steps, waits, changes, intake_lines(plans.everything.intakes), blocked, bereft, held, calendar)
        for line in protected_lines(protected):
            say("[yellow]protected[/]", line)
    if (
        steps
        or protected
        or held
        or blocked
        or bereft
        or any(need_of(some) in ("all days", "another table") for some in changes.values())
    ):
        raise typer.Exit(EXIT_LOOK)


def _only(step: PlannedStep, only: Selection) -> PlannedStep | None:
    reasons = {day: why for day, why in step.reasons.items() if only.has_table(step.table) and only.has_day(day)}
    return replace(step, reasons=reasons) if reasons else None


def _waits(plans: Outlook) -> Mapping[str, Collection[date]]:
    """Days that a person's refresh would recompute and no other."""
    by_itself = {step.table: set(step.days) for step in plans.automatic.steps}
    return {
        step.table: [day for day in step.days if day not in by_itself.get(step.table, ())]
        for step in plans.everything.steps
    }


def _print(
    steps: list[PlannedStep],
    waits: Mapping[str, Collection[date]],
    changes: Mapping[str, tuple[ContractChange, ...]],
    files: list[str],
    blocked: list[str],
    bereft: list[str],
    held: Collection[HeldDay],
    calendar: Calendar,
) -> None:
    if steps:
        console.print(stale_grid(steps, waits))
    for text in year_calendars(steps, calendar, {day.hold.day for day in held}):
        console.print(text, highlight=False)
        console.print()
    if not (steps or held or blocked or bereft):
        console.print("[green]Nothing is stale.[/]")
    print_held(held)
    for line in blocked:
        say("[yellow]stale, cannot be computed[/]", line)
    for line in bereft:
        say("[yellow]out of date[/]", line)
    stuck = [table for table, some in changes.items() if need_of(some) == "another table"]
    for table, some in changes.items():
        # What one of them needs, all enter with.
        for change in (replace(one, needs=need_of(some)) if one.needs != "nothing" else one for one in some):
            colour = "red" if change.needs == "another table" else "yellow"
            say(f"[{colour}]contract changed[/]", f"{table}: {change}")
    for line in files:
        say("[yellow]waiting[/]", line)
    if waiting := sum(len(waits[step.table]) for step in steps):
        takes = (
            f"but not before {', '.join(stuck)} can follow: see above" if stuck else "`platform-assets refresh` does"
        )
        console.print(f"{counted(waiting, 'day')} of these for a person to take: {takes}.", soft_wrap=True)
    if (steps or files) and not stuck:
        console.print("`platform-assets refresh --explain` shows the plan, `refresh` executes it.", soft_wrap=True)
