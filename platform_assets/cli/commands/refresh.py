"""`refresh`: recompute the days that are stale, and no others."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from platform_assets.cli.commands.refresh_view import outcome_of
from platform_assets.cli.console import EXIT_LOOK, UsageError, console, opened_platform, parse_days, print_json, say
from platform_assets.cli.growing_view import growing_lines
from platform_assets.cli.held_view import held_json, print_held
from platform_assets.cli.options import AsJson, Days
from platform_assets.cli.plan_view import bereft_lines, blocked_lines, estimate_line, intake_lines, plan_grid, plan_json
from platform_assets.cli.progress import telling
from platform_assets.cli.session import session_on_demand
from platform_assets.contracts import Catalogue
from platform_assets.engine.functions import refuse_wrong_functions
from platform_assets.engine.ingest.listing import landing_problem
from platform_assets.engine.meanwhile import PublishedMeanwhile, published_meanwhile
from platform_assets.engine.pending import Delivered, delivered
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import plan_steps
from platform_assets.engine.state.schema_changes import refuse_what_tables_cannot_take
from platform_assets.engine.state.scoped_plan import scoped_plan
from platform_assets.errors import PlatformError
from platform_assets.operations.lineage.held_days import HeldDay, held_days
from platform_assets.operations.stages.inspect import opened_stage, stage_basis, without_other_code
from platform_assets.operations.stages.store import checked_stage, stage_names
from platform_assets.planning.estimates import is_brief
from platform_assets.planning.key_scope import scope_of
from platform_assets.planning.plan import Plan
from platform_assets.planning.selection import Request
from platform_assets.records.history import Hold
from platform_assets.records.manifest import new_publication
from platform_assets.settings import Settings
from platform_assets.sources.landing import Problem
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.engine.refresh import RefreshResult


class NotReadyError(PlatformError):
    """Days were asked for that read a day never loaded."""


def refresh(
    context: typer.Context,
    tables: Annotated[
        list[str] | None, typer.Argument(help="These and what they are made from; all by default.")
    ] = None,
    days: Days = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the plan and start nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Recompute the days named, whatever their state.")] = False,
    stage: Annotated[
        str | None, typer.Option("--stage", metavar="NAME", help="Compute into this stage, which nobody sees yet.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", metavar="COLUMN=VALUE,…", help="Into a stage: only rows of these keys; the rest is carried over."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Take what was delivered and recompute every stale day, those included that wait for a person."""
    started = time.monotonic()
    with opened_platform() as platform:
        refuse_wrong_functions(platform.catalogue)
        request = _request(platform.catalogue, platform.settings, tables or [], days, force=force)
        if only:
            request = _only(platform.catalogue, request, only, stage)
        refuse_what_tables_cannot_take(platform, request)
        snapshot = _basis(platform, stage)
        landed = Delivered() if stage else delivered(platform)
        if request.keys is None:
            plan = plan_steps(platform, request, landed.intakes, snapshot)
        else:
            plan = scoped_plan(snapshot, request, request.keys)
        if request.tables and request.days is not None and not plan.intakes:
            _refuse_blocked(plan)
        root = None if stage else landing_problem(platform.settings, platform.catalogue)
        held = _left_alone(platform, snapshot.holds(), request, plan)
        scoped = {"only": request.keys.texts} if request.keys else {}
        if not as_json:
            if request.keys:
                say(
                    "[bold]only[/]",
                    f"rows of {request.keys}; the others are carried over, and estimates are of whole days",
                )
            _print_plan(plan, held, root, landed.growing)
        problems = [*([root] if root else []), *landed.growing]
        landing = {"landing": [asdict(problem) for problem in problems]} if problems else {}
        if explain or plan.is_empty:
            if as_json:
                print_json({"plan": plan_json(plan), "held": [held_json(day) for day in held]} | scoped | landing)
            if root or ((plan.blocked or held) and not explain):
                raise typer.Exit(EXIT_LOOK)
            return
        scoped_to = [f"only {request.keys}"] if request.keys else []
        why = " ".join(["refresh", *(tables or []), *([days] if days else []), *scoped_to])
        author = Author(run=f"refresh-{new_publication()}", why=why)
        result = _execute(context, platform, author, request, plan, stage)
        still = () if stage else held_days(platform, platform.ledger.holds())
        others = () if stage else _by_others(platform, snapshot.number, author, plan)
    held = tuple(day for day in still if request.has_table(day.hold.table) and request.has_day(day.hold.day))
    outcome = outcome_of(result, time.monotonic() - started, stage, others)
    anew = result.plan if result.plan is not plan else None
    if as_json:
        planned_anew = {"planned_anew": plan_json(anew)} if anew else {}
        shown = {"result": outcome.json(), "held": [held_json(day) for day in held]}
        print_json({"plan": plan_json(plan)} | planned_anew | shown | scoped | landing)
    else:
        if anew and (anew.days or plan.days):
            console.print(f"Planned anew on what was there then: {counted(anew.days, 'day')} to recompute.")
        outcome.print()
        print_held(held)
    if outcome.wants_a_look or held or root:
        raise typer.Exit(EXIT_LOOK)


def _basis(platform: Platform, stage: str | None) -> LakeSnapshot:
    """What the plan looks at: the release, or the stage as it can be gone on with."""
    if stage is None or checked_stage(stage) not in stage_names(platform.lake):
        return LakeSnapshot.now(platform)
    return stage_basis(platform, without_other_code(platform, opened_stage(platform, stage)))


def _request(catalogue: Catalogue, settings: Settings, tables: list[str], days: str | None, *, force: bool) -> Request:
    for name in tables:
        if not catalogue[name].inputs:
            raise UsageError(
                f"{name} has no transform: it holds what was delivered.",
                "Name a silver or gold table; what is delivered for the tables it is made from is taken first.",
            )
    return Request(
        tables=frozenset(tables),
        days=None if days is None else parse_days(days, settings),
        by_person=True,
        force=force,
    )


def _only(catalogue: Catalogue, request: Request, only: Sequence[str], stage: str | None) -> Request:
    """The same, of certain keys alone."""
    if stage is None or not request.tables or not request.days:
        raise UsageError(
            "--only computes rows of some keys into a stage, of tables and days that are named.",
            "Add --stage NAME, the table and --days; look at it with `platform-assets stage compare NAME`.",
        )
    asked: dict[str, list[str]] = {}
    for part in only:
        name, equals, values = part.partition("=")
        if not equals or not all(value.strip() for value in values.split(",")):
            raise UsageError(f"{part!r} is not COLUMN=VALUE,….", "Write --only store_id=330,337.")
        asked.setdefault(name.strip(), []).extend(value.strip() for value in values.split(","))
    scopes = {scope_of(catalogue[name], asked) for name in sorted(request.tables)}
    if len(scopes) > 1:
        raise UsageError("These tables have other types for the same column.", "Name one table at a time.")
    return replace(request, force=True, keys=scopes.pop())


def _refuse_blocked(plan: Plan) -> None:
    """Days named one by one are wanted: that they read what was never loaded is no plan."""
    if line := next(blocked_lines(plan, are_there=False), None):
        raise NotReadyError(
            f"Cannot be computed: {line}.", "Deliver its rows, or declare the day closed, or leave it out of --days."
        )


def _execute(
    context: typer.Context, platform: Platform, author: Author, request: Request, plan: Plan, stage: str | None
) -> RefreshResult:
    """Only here Spark is imported and started."""
    brief = is_brief(plan.estimate, sum(intake.bytes for intake in plan.intakes))
    with (
        telling(context, "refresh") as progress,
        session_on_demand(platform.settings, progress, brief=brief, at_once=True) as spark,
    ):
        from platform_assets.engine.refresh import refresh as refresh_tables
        from platform_assets.operations.stages.stages import refresh_stage  # while Java starts

        if stage is not None:
            return refresh_stage(platform, spark, author, stage, progress, request, plan)
        return refresh_tables(platform, spark, author, progress, request=request, plan=plan)


def _by_others(platform: Platform, since: int, author: Author, plan: Plan) -> tuple[PublishedMeanwhile, ...]:
    """What others did meanwhile of the plan that a person was shown."""
    platform.sync()
    planned: dict[str, Collection[date] | None] = {intake.table: None for intake in plan.intakes}
    planned |= {step.table: step.days for step in plan.steps}
    return published_meanwhile(platform, since, author.run, planned)


def _left_alone(platform: Platform, holds: Collection[Hold], request: Request, plan: Plan) -> tuple[HeldDay, ...]:
    """Held days of the request that the plan does not try again."""
    planned = {(step.table, day) for step in plan.steps for day in step.days}
    asked = [hold for hold in holds if request.has_table(hold.table) and request.has_day(hold.day)]
    return held_days(platform, [hold for hold in asked if (hold.table, hold.day) not in planned])


def _print_plan(plan: Plan, held: Collection[HeldDay], root: Problem | None, growing: Sequence[Problem]) -> None:
    print_held(held)
    if root:
        say("[yellow]not taken[/]", f"{root.path} {root.message}")
    for line in growing_lines(growing):
        say("[yellow]not taken yet[/]", line)
    for line in blocked_lines(plan):
        say("[yellow]cannot be computed[/]", line)
    for line in bereft_lines(plan):
        say("[yellow]out of date[/]", line)
    for line in intake_lines(plan.intakes):
        say("[bold]take[/]", line)
    if plan.steps:
        console.print(plan_grid(plan))
        console.print(f"{counted(plan.days, 'day')} in all: {estimate_line(plan)}", highlight=False)
    elif root:
        console.print("No day is stale; whether files wait cannot be seen.")
    elif not (held or plan.intakes or plan.blocked or plan.bereft):
        if growing:
            console.print("[green]Nothing to do yet:[/] no day is stale and no other file waits.")
        else:
            console.print("[green]Nothing to do:[/] no day is stale and no file waits.")
