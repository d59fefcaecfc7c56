"""`refresh`: recompute the days that are stale, and no others."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from platform_assets.cli.changes_view import ended_json, ended_note
from platform_assets.cli.commands.refresh_plan import Ahead, left_json, look_ahead, refused_of
from platform_assets.cli.console import UsageError, opened_platform, parse_days, print_parts
from platform_assets.cli.files_view import left_anew_parts, refused_lines
from platform_assets.cli.held_view import DayWarning, held_json, held_parts, warnings_parts
from platform_assets.cli.options import AsJson, Days, Only, parse_keys
from platform_assets.cli.session import computing
from platform_assets.contracts import Catalogue
from platform_assets.contracts.dead_letters import quarantine_table, refused_table
from platform_assets.engine.functions import refuse_wrong_functions
from platform_assets.engine.ingest.listing import each_once
from platform_assets.engine.meanwhile import PublishedMeanwhile, published_meanwhile
from platform_assets.engine.pending import Delivered
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.state.planner import outlook
from platform_assets.operations.lineage.ended_rollbacks import (
    EndedRollback,
    ended_rollbacks,
)
from platform_assets.operations.lineage.held_days import HeldDay, held_days
from platform_assets.operations.lineage.plan_report import kept_lines, plan_json
from platform_assets.operations.plan_record import refuse_stage_of_a_plan
from platform_assets.planning.estimates import is_brief
from platform_assets.planning.key_scope import scope_of
from platform_assets.planning.plan import Plan
from platform_assets.planning.replays import REPLAY, UNDATED
from platform_assets.planning.selection import Request
from platform_assets.quality.deliveries import remedy
from platform_assets.records.history import ArrivalRecord
from platform_assets.records.manifest import Arrival, new_publication
from platform_assets.report import Note, Part, Report, picked
from platform_assets.settings import Settings
from platform_assets.sources.landing import Problem
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.engine.meanwhile import PublishedMeanwhile
    from platform_assets.engine.refresh import RefreshResult


def refresh(
    tables: Annotated[
        list[str] | None, typer.Argument(help="These and what they are made from; all by default.")
    ] = None,
    days: Days = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the plan and start nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Recompute the days named, whatever their state.")] = False,
    stage: Annotated[
        str | None, typer.Option("--stage", metavar="NAME", help="Compute into this stage, which nobody sees yet.")
    ] = None,
    only: Only = None,
    as_json: AsJson = False,
) -> Report:
    """Take what was delivered and recompute every stale day, those included that wait for a person."""
    started = time.monotonic()
    with opened_platform() as platform:
        refuse_wrong_functions(platform.catalogue)
        if stage and not explain:
            refuse_stage_of_a_plan(platform.lake, stage)
        request = _request(platform.catalogue, platform.settings, tables or [], days, force=force)
        if only:
            request = _only(platform.catalogue, request, only, stage)
        ahead = look_ahead(platform, request, stage)
        if not as_json:
            print_parts(ahead.parts(platform, explain=explain))
        if explain or ahead.plan.is_empty:
            return ahead.report(platform.settings.state, explain=explain)
        keys = [f"only {request.keys}"] if request.keys else []
        why = " ".join(["refresh", *(tables or []), *([days] if days else []), *keys])
        author = Author(run=f"refresh-{new_publication()}", why=why)
        result = _execute(platform, author, ahead)
        after = _after(platform, ahead, author, result)
    told = {(day.hold.table, str(day.hold.day)) for day in after.held}
    outcome = refresh_report(result, time.monotonic() - started, stage, after.others, told)
    refused_now = {arrival.path for done in result.ingests for arrival in done.arrivals if arrival.reason is not None}
    refused = tuple(file for file in after.refused if file.path not in refused_now)
    anew = result.plan if result.plan is not ahead.plan else None
    data = {
        "plan": plan_json(ahead.plan),
        **({"planned_anew": plan_json(anew)} if anew else {}),
        "result": outcome.data,
        "held": [held_json(day) for day in after.held],
        "rollbacks_ended": [ended_json(rollback) for rollback in after.ended],
        "still_stale": after.stale,
        **ahead.scope_json,
        **left_json(ahead.landed, after.problems, refused),
        **({"stopped": result.stopped} if result.stopped else {}),
    }

    def parts() -> Iterator[Part]:
        if anew and (anew.days or ahead.plan.days):
            yield f"Planned anew once the files were taken: {counted(anew.days, 'day')} to recompute."
        yield from outcome.parts
        yield from map(ended_note, after.ended)
        yield from (Note("red", "stopped", sentence) for sentence in result.stopped if sentence not in ahead.stopped)
        yield from held_parts(after.held, in_short=True)
        files = tuple(file for file in after.refused if file.path in refused_now)
        yield from left_anew_parts(platform.settings.state, after.problems, refused, files)
        if after.stale:
            which = ", ".join(f"{counted(len(days), 'day')} of {table}" for table, days in after.stale.items())
            yield Note("yellow", "still stale", f"and not asked for: {which}; `platform-assets refresh` takes them")

    needs = outcome.needs_a_look or after.held or after.problems or refused or result.stopped
    return Report(parts(), data, bool(needs))


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
    asked = parse_keys(only)
    scopes = {scope_of(catalogue[name], asked) for name in sorted(request.tables)}
    if len(scopes) > 1:
        raise UsageError("These tables have other types for the same column.", "Name one table at a time.")
    return replace(request, force=True, keys=scopes.pop())


def _execute(platform: Platform, author: Author, ahead: Ahead) -> RefreshResult:
    """Only here Spark is imported and started."""
    plan = ahead.plan
    brief = is_brief(plan.estimate, sum(intake.bytes for intake in plan.intakes))
    with computing(platform.settings, "refresh", brief=brief, at_once=True) as (spark, progress):
        from platform_assets.engine.refresh import refresh as refresh_tables
        from platform_assets.operations.stages.stages import refresh_stage  # while Java starts

        if ahead.stage is not None:
            return refresh_stage(platform, spark, author, ahead.stage, progress, ahead.request, plan)
        return refresh_tables(platform, spark, author, progress, request=ahead.request, plan=plan)


class _After(NamedTuple):
    """What there is to tell of a refresh besides what it did.

    Args:
        held: days of the request, whoever held them.
        others: what others published meanwhile of the plan that a person was shown.
        ended: rollbacks.
        refused: files that lie there refused.
        problems: what was left in the landing area.
        stale: days that nobody asked for and that are stale, by table.
    """

    held: tuple[HeldDay, ...] = ()
    others: tuple[PublishedMeanwhile, ...] = ()
    ended: tuple[EndedRollback, ...] = ()
    refused: tuple[ArrivalRecord, ...] = ()
    problems: tuple[Problem, ...] = ()
    stale: Mapping[str, Collection[date]] = MappingProxyType({})


def _after(platform: Platform, ahead: Ahead, author: Author, result: RefreshResult) -> _After:
    if ahead.stage is not None:
        return _After()
    request = ahead.request
    held = held_days(platform, platform.ledger.holds())
    return _After(
        held=tuple(day for day in held if request.has_table(day.hold.table) and request.has_day(day.hold.day)),
        others=_by_others(platform, ahead.release, author, ahead.plan),
        ended=ended_rollbacks(platform, ahead.stood),
        refused=refused_of(platform, ahead.raw),
        problems=_not_taken(ahead.landed, result),
        stale=not_asked_for(platform, request) if request.tables or request.days is not None else {},
    )


def not_asked_for(platform: Platform, request: Request) -> dict[str, list[date]]:
    """Days that are stale besides, as those whose window reaches into days that were asked for, by table."""
    steps = outlook(platform).everything.steps  # which, unlike a plan to execute, refuses nothing
    left = {s.table: [d for d in s.days if not (request.has_table(s.table) and request.has_day(d))] for s in steps}
    return {table: days for table, days in left.items() if days}


def _by_others(platform: Platform, since: int, author: Author, plan: Plan) -> tuple[PublishedMeanwhile, ...]:
    """What others did meanwhile of the plan that a person was shown."""
    platform.sync()
    planned: dict[str, Collection[date] | None] = {intake.table: None for intake in plan.intakes}
    planned |= {step.table: step.days for step in plan.steps}
    return published_meanwhile(platform, since, author.run, planned)


def _not_taken(landed: Delivered, result: RefreshResult) -> tuple[Problem, ...]:
    """What a refresh left in the landing area; of the root itself, no table says that nothing can be taken from it."""
    told = {problem.path for problem in landed.problems}
    met = each_once(problem for done in result.ingests for problem in done.problems)
    return (*landed.problems, *(problem for problem in met if problem.path not in told))


def refresh_report(
    result: RefreshResult,
    seconds: float,
    stage: str | None,
    others: Sequence[PublishedMeanwhile] = (),
    told: Collection[tuple[str, str]] = (),
) -> Report:
    """Say what a refresh did.

    Args:
        seconds: wall time.
        stage: that the days are in; None if they were published.
        others: what others published meanwhile of the days that were planned.
        told: days, each with its table, of which it is said elsewhere what keeps them.
    """
    arrivals = [arrival for done in result.ingests for arrival in done.arrivals]
    taken = [arrival for arrival in arrivals if arrival.reason is None]
    published = {done.table: len(done.published) for done in result.ingests if done.published}
    published |= {done.table: new for done in result.steps if (new := len(done.published) - len(done.unchanged))}
    left = [(done.table, day, why) for done in result.steps for day, why in sorted(done.not_published.items())]
    refused_files = {arrival.path: arrival.reason for arrival in arrivals if arrival.reason is not None}
    replays, undated = (
        {arrival.path: note for arrival in arrivals for note in arrival.notes if note.startswith(kind)}
        for kind in (REPLAY, UNDATED)
    )
    broken = {done.table: broken for done in result.steps if (broken := done.newly_quarantined)}
    warnings = [
        DayWarning(done.table, day, warned)
        for done in result.steps
        for day in sorted(done.published, reverse=True)
        for warned in done.newly_warned(day)
    ]
    data: dict[str, Any] = {
        "staged" if stage else "published": published,
        "unchanged": {done.table: len(done.unchanged) for done in result.steps if done.unchanged},
        "struck": {table: len(days) for table, days in result.struck.items()},
        "left": [{"table": table, "day": str(day), "reason": why} for table, day, why in left],
        "files": len(taken),
        "refused_files": [{"path": path, "reason": why} for path, why in refused_files.items()],
        "refused_rows": _rows(taken, "refused"),
        "late_rows": _rows(taken, "late"),
        "replays": [{"path": path, "note": note} for path, note in replays.items()],
        "deletes_without_record": [{"path": path, "note": note} for path, note in undated.items()],
        "quarantined": {name: {"rows": sum(days.values()), "days": len(days)} for name, days in broken.items()},
        "warnings": [warning.json() for warning in warnings],
        "growing_files": sum(len(done.growing) for done in result.ingests),
        "published_meanwhile": [
            picked(other, "table days") | picked(other.by, "publication release run who why") for other in others
        ],
        "seconds": round(seconds, 1),
    }

    def parts() -> Iterator[Part]:
        for table, count in published.items():
            yield f"{table}: {counted(count, 'day')} {f'in the stage {stage}' if stage else 'published'}"
        for table, count in data["unchanged"].items():
            yield f"{table}: {counted(count, 'day')} came out as before, readers see nothing new"
        for table, count in data["struck"].items():
            yield f"{table}: {counted(count, 'day')} struck: {result.why_struck}"
        for other in others:
            by = f"{other.by.run} of {other.by.who} ({other.by.why}), publication {other.by.publication}"
            theirs = f"{other.table}: {counted(other.days, 'day')} not by this run but by {by}"
            yield Note("", "published meanwhile", f"{theirs}, release {other.by.release}")
        untold = [(table, day, why) for table, day, why in left if (table, str(day)) not in told]
        for line in kept_lines(untold, result.stopped):
            yield Note("red", f"not {'staged' if stage else 'published'}", line)
        yield from (Note("red", "refused", line) for line in refused_lines(refused_files))
        for table, rows in data["refused_rows"].items():
            files = [file for file in taken if file.table == table]
            delivered = sum(file.landed for file in files)
            shown = f"`platform-assets read {refused_table(table)}` shows them"
            todo = remedy([file for file in files if file.refused], delivered)
            of = f"{rows:,} of {counted(delivered, 'row')} delivered for {table}"
            yield Note("red", "refused", f"{of}: {shown}; {todo}")
        for table, rows in data["late_rows"].items():
            came = f"{counted(rows, 'row')} delivered for {table} came too late, or too far ahead, and wait"
            history = "A history that is loaded for the first time is taken by `late approve FILE`."
            yield Note("yellow", "late", f"{came}: `platform-assets late list`. {history}")
        yield from (Note("yellow", "sent again", line) for line in refused_lines(replays))
        yield from (Note("yellow", "deletes nothing yet", line) for line in refused_lines(undated))
        for table, days in broken.items():
            broke = f"{counted(sum(days.values()), 'row')} of {counted(len(days), 'day')} broke a rule"
            # Those of a stage are nowhere yet that anybody reads.
            shown = "" if stage else f": `platform-assets read {quarantine_table(table)}` shows them"
            yield Note("yellow", "quarantined", f"{table}: {broke}{shown}")
        yield from warnings_parts(warnings, stage)
        if stage:
            then = f"`stage compare {stage}`, `stage publish {stage} --reason …` or `stage drop {stage}`"
            yield f"Nobody sees it yet: {then}. Done in {seconds:.1f} s."
            return
        grows = data["growing_files"]
        stay = f", {counted(grows, 'file')} may still grow and {'is' if grows == 1 else 'are'} left"
        grow = f"{stay} for the next refresh" if grows else ""
        yield f"{counted(len(taken), 'file')} taken{grow}. Done in {seconds:.1f} s."

    return Report(parts(), data, bool(left or refused_files or data["refused_rows"]))


def _rows(files: Iterable[Arrival], kind: str) -> dict[str, int]:
    """Return how many rows of files were refused, or came late, by raw table."""
    counts = Counter[str]()
    for file in files:
        counts[file.table] += getattr(file, kind)
    return {table: rows for table, rows in counts.items() if rows}
