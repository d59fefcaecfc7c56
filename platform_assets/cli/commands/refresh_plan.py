"""What a refresh is about to do, and what it leaves alone: looked up once, for people and for programs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import typer

from platform_assets.cli.console import EXIT_LOOK, console, print_json, say
from platform_assets.cli.files_view import growing_lines, print_by_spark, print_left_anew, refused_json
from platform_assets.cli.held_view import held_json, print_held
from platform_assets.cli.plan_view import (
    bereft_lines,
    blocked_lines,
    estimate_line,
    intake_lines,
    plan_grid,
    plan_json,
    protected_lines,
)
from platform_assets.cli.rollback_view import ended_json, may_end_lines, print_ended
from platform_assets.engine.admissions import not_by_sail
from platform_assets.engine.ingest.aside import refused_files
from platform_assets.engine.pending import Delivered, delivered, due_tries
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import plan_steps, scoped_plan
from platform_assets.engine.state.schema_changes import refuse_what_tables_cannot_take
from platform_assets.errors import PlatformError
from platform_assets.operations.lineage.ended_rollbacks import (
    EndedRollback,
    ending_rollbacks,
    standing_rollbacks,
)
from platform_assets.operations.lineage.held_days import HeldDay, held_days
from platform_assets.operations.stages.store import (
    checked_stage,
    opened_stage,
    stage_basis,
    stage_names,
    without_other_code,
)
from platform_assets.planning.plan import Plan
from platform_assets.planning.selection import Request, wanted_days
from platform_assets.records.history import ArrivalRecord, Hold
from platform_assets.sources.landing import Problem
from platform_assets.words import counted


@dataclass(frozen=True)
class Ahead:
    """What lies ahead of a refresh.

    Args:
        request: what is asked for.
        stage: that is computed into; None to publish.
        plan: that is shown, and executed.
        release: over which it was made.
        raw: tables that it takes deliveries for.
        stood: holds of before.
        held: days of the request that the plan does not try again.
        ending: rollbacks that the plan ends.
        landed: what lies in the landing area.
        left: files that wait there and that a stage does not take.
        refused: files that lie there refused.
        stopped: of each open circuit that stops something of the request, why.
    """

    request: Request
    stage: str | None
    plan: Plan
    release: int
    raw: frozenset[str]
    stood: tuple[Hold, ...]
    held: tuple[HeldDay, ...]
    ending: tuple[EndedRollback, ...]
    landed: Delivered
    left: int
    refused: tuple[ArrivalRecord, ...]
    stopped: tuple[str, ...] = ()

    @property
    def scope_json(self) -> dict[str, Any]:
        """Keys of which alone rows are computed, if so."""
        return {"only": self.request.keys.texts} if self.request.keys else {}

    def print(self, platform: Platform, *, explain: bool) -> None:
        """What it is going to do; of days that it publishes, what is held is told once it is done."""
        for sentence in self.stopped:
            say("[red]stopped[/]", sentence)
        for table, tried in self.plan.tries.items():
            say("[bold]try[/]", f"{table} {tried.day}, computed and judged without publishing it: its circuit is open")
        if self.request.keys:
            which = f"rows of {self.request.keys}; the others are carried over, and estimates are of whole days"
            say("[bold]only[/]", which)
        is_told_now = explain or self.plan.is_empty or self.stage
        is_complete = not (self.landed.problems or self.refused)
        _print_plan(self.plan, self.held if is_told_now else (), self.landed, self.left, is_complete=is_complete)
        print_by_spark(not_by_sail(platform, [step.table for step in self.plan.steps]))
        if explain and not self.stage:
            _print_rollbacks(platform, self.plan, self.ending)

    def end(self, state: Path, *, as_json: bool, explain: bool) -> None:
        """Where nothing is computed: what there is to tell besides.

        Args:
            explain: whether nothing was to be started.

        Raises:
            typer.Exit: something needs a look.
        """
        if as_json:
            ends = {"rollbacks_ending": [ended_json(rollback) for rollback in self.ending]}
            left = left_json(self.landed.problems, self.landed.growing, self.refused)
            held = [held_json(day) for day in self.held]
            stops = {"stopped": list(self.stopped)} if self.stopped else {}
            print_json({"plan": plan_json(self.plan), "held": held} | ends | self.scope_json | left | stops)
        else:
            print_left_anew(state, self.landed.problems, self.refused)
        left_out = self.refused or self.plan.blocked or self.held or self.stopped
        if self.landed.problems or (left_out and not explain):
            raise typer.Exit(EXIT_LOOK)


def look_ahead(platform: Platform, request: Request, stage: str | None) -> Ahead:
    """Plan what is asked for.

    Raises:
        NotReadyError: days are named that read a day never loaded.
        PlatformError: a table cannot take what is computed for it, or there is no such stage to go on with.
    """
    now = LakeSnapshot.now(platform)
    refuse_what_tables_cannot_take(now, request)
    snapshot = _basis(now, stage)
    raw, holds = _raw_tables(platform, request), snapshot.holds
    there = delivered(platform, raw)
    landed = Delivered() if stage else there
    refused = () if stage else refused_of(platform, raw)
    wanted = [name for name, days in wanted_days(platform.catalogue, request, now.calendar).items() if days]
    stops = {table: hold for table, hold in now.stopped.items() if table in wanted}
    if request.keys is None:
        intakes = [intake for intake in landed.intakes if intake.table not in stops]
        plan = plan_steps(platform, request, intakes, snapshot)
        plan = plan if stage else replace(plan, tries=due_tries(platform, wanted))
    else:
        plan = scoped_plan(snapshot, request, request.keys)
    if request.tables and request.days is not None and not plan.intakes:
        _refuse_blocked(plan)
    steps = {step.table: step.days for step in plan.steps}
    return Ahead(
        request=request,
        stage=stage,
        plan=plan,
        release=snapshot.number,
        raw=raw,
        stood=() if stage else holds,
        held=_left_alone(platform, holds, request, plan),
        ending=() if stage else ending_rollbacks(platform, steps),
        landed=landed,
        left=sum(intake.files for intake in there.intakes) if stage else 0,
        refused=refused,
        stopped=tuple(dict.fromkeys(hold.reason for hold in stops.values())),
    )


class NotReadyError(PlatformError):
    """Days were asked for that read a day never loaded."""


def refused_of(platform: Platform, raw: Collection[str]) -> tuple[ArrivalRecord, ...]:
    """Files of some tables that lie there refused, and wait to be repaired or taken away."""
    return tuple(file for file in refused_files(platform).there if file.table in raw)


def left_json(
    problems: Sequence[Problem], growing: Sequence[Problem], refused: Sequence[ArrivalRecord]
) -> dict[str, Any]:
    """What lies in the landing area and is in no table; nothing of what there is none of."""
    landing = [asdict(problem) for problem in (*problems, *growing)]
    there = {"landing": landing, "refused_files": refused_json(refused)}
    return {name: files for name, files in there.items() if files}


def _basis(now: LakeSnapshot, stage: str | None) -> LakeSnapshot:
    """Return what the plan looks at: the release, or the stage as it can be gone on with."""
    platform = now.platform
    if stage is None or checked_stage(stage) not in stage_names(platform.lake):
        return now
    return stage_basis(platform, without_other_code(platform, opened_stage(platform, stage)))


def _raw_tables(platform: Platform, request: Request) -> frozenset[str]:
    """Those that a refresh of what is asked for takes deliveries for."""
    wanted = wanted_days(platform.catalogue, request, platform.calendar)
    return frozenset(contract.name for contract in platform.catalogue if contract.source and wanted.get(contract.name))


def _refuse_blocked(plan: Plan) -> None:
    """Days named one by one are wanted: that they read what was never loaded is no plan."""
    if line := next(blocked_lines(plan, are_there=False), None):
        raise NotReadyError(
            f"Cannot be computed: {line}.", "Deliver its rows, or declare the day closed, or leave it out of --days."
        )


def _left_alone(platform: Platform, holds: Collection[Hold], request: Request, plan: Plan) -> tuple[HeldDay, ...]:
    """Held days of the request that the plan does not try again."""
    planned = {(step.table, day) for step in plan.steps for day in step.days}
    asked = [hold for hold in holds if request.has_table(hold.table) and request.has_day(hold.day)]
    return held_days(platform, [hold for hold in asked if (hold.table, hold.day) not in planned])


def _print_rollbacks(platform: Platform, plan: Plan, ending: Collection[EndedRollback]) -> None:
    """Which rollbacks the plan ends, or may."""
    for rollback in ending:
        print_ended(rollback)
    if plan.intakes:
        known = {(rollback.table, rollback.rollback.publication) for rollback in ending}
        made = platform.catalogue.with_dependants([intake.table for intake in plan.intakes])
        standing = [
            rollback
            for rollback in standing_rollbacks(platform, made)
            if (rollback.table, rollback.rollback.publication) not in known
        ]
        for line in may_end_lines(platform.catalogue, plan.intakes, standing):
            say("[yellow]look[/]", line)


def _print_plan(plan: Plan, held: Collection[HeldDay], landed: Delivered, left: int, *, is_complete: bool) -> None:
    """What a refresh is going to do.

    Args:
        left: files that a stage does not take.
        is_complete: whether everything that is in the landing area was taken or is about to be.
    """
    print_held(held, in_short=True)
    for line in growing_lines(landed.growing):
        say("[yellow]not taken yet[/]", line)
    for line in blocked_lines(plan):
        say("[yellow]cannot be computed[/]", line)
    for line in bereft_lines(plan):
        say("[yellow]out of date[/]", line)
    for line in intake_lines(plan.intakes):
        say("[bold]take[/]", line)
    for line in protected_lines(plan.waiting):
        say("[yellow]protected[/]", line)
    if left:
        waits = counted(left, "file", "wait")
        say("[yellow]not taken[/]", f"{waits}, and a stage takes none: `platform-assets refresh` does, without --stage")
    if plan.steps:
        console.print(plan_grid(plan))
        console.print(f"{counted(plan.days, 'day')} in all: {estimate_line(plan)}", highlight=False, soft_wrap=True)
    elif not (held or plan.intakes or plan.blocked or plan.bereft):
        if left:
            console.print("No day is stale.")
        elif not is_complete:
            console.print("No day is stale, and no file waits that can be taken.")
        elif landed.growing:
            console.print("[green]Nothing to do yet:[/] no day is stale and no other file waits.")
        else:
            console.print("[green]Nothing to do:[/] no day is stale and no file waits.")
