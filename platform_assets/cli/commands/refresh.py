"""`refresh`: recompute the days that are stale, and no others."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.changes_view import ended_json, ended_note, rollbacks_parts
from platform_assets.cli.console import UsageError, computed_tables, opened_platform, parse_days, print_parts
from platform_assets.cli.held_view import (
    DayWarning,
    by_spark_parts,
    growing_lines,
    held_json,
    held_parts,
    left_anew_parts,
    refused_json,
    refused_lines,
    warnings_parts,
)
from platform_assets.cli.options import AsJson, Days, Only, parse_keys
from platform_assets.cli.session import computing
from platform_assets.contracts import Catalogue
from platform_assets.contracts.rules import quarantine_table, refused_table
from platform_assets.engine.admissions import not_by_sail
from platform_assets.engine.ingest.aside import refused_files
from platform_assets.engine.pending import Delivered, delivered, due_tries, each_once
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.readings import pull_each
from platform_assets.engine.results import PublishedMeanwhile, published_meanwhile
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import outlook, plan_steps, scoped_plan
from platform_assets.engine.state.schema_changes import refuse_what_tables_cannot_take
from platform_assets.engine.user_code import refuse_wrong_functions
from platform_assets.errors import PlatformError
from platform_assets.operations.lineage.day_history import (
    EndedRollback,
    ended_rollbacks,
    ending_rollbacks,
    standing_rollbacks,
)
from platform_assets.operations.lineage.held_days import HeldDay, held_days
from platform_assets.operations.lineage.plan_report import (
    bereft_lines,
    blocked_lines,
    estimate_line,
    intake_lines,
    kept_lines,
    plan_json,
    plan_table,
    protected_lines,
)
from platform_assets.operations.quarantine import Acknowledged
from platform_assets.planning.arrivals import REPLAY, UNDATED
from platform_assets.planning.plan import Plan, is_brief
from platform_assets.planning.selection import Request, scope_of, wanted_days
from platform_assets.planning.windows import which
from platform_assets.quality.deliveries import remedy
from platform_assets.records.history import ArrivalRecord, Hold
from platform_assets.records.manifest import Arrival, new_publication
from platform_assets.report import Note, Part, Report, picked
from platform_assets.sources.landing import Problem
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.engine.refresh import RefreshResult


def refresh(
    tables: Annotated[list[str] | None, typer.Argument(help="These tables and their inputs; all by default.")] = None,
    days: Days = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the plan and start nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Recompute the named days, whatever their state.")] = False,
    stage: Annotated[
        str | None, typer.Option("--stage", metavar="NAME", help="Compute into this stage, which readers do not see.")
    ] = None,
    only: Only = None,
    as_json: AsJson = False,
) -> Report:
    """Ingest what was delivered and recompute every stale day, also those that wait for a person."""
    started = time.monotonic()
    with opened_platform() as platform:
        refuse_wrong_functions(platform.catalogue)
        if stage and not explain:
            from platform_assets.operations.plan_record import refuse_stage_of_a_plan  # takes longer than most plans

            refuse_stage_of_a_plan(platform.lake, stage)
        request = _request(platform, tables or [], days, force=force)
        if only:
            request = _only(platform.catalogue, request, only, stage)
        takes = request.takes and not (stage or explain)
        not_read = _read_sources(platform, request) if takes else ()
        ahead = look_ahead(platform, request, stage)
        if not_read:
            landed = replace(ahead.landed, problems=each_once((*not_read, *ahead.landed.problems)))
            ahead = replace(ahead, landed=landed)
        if not as_json:
            print_parts(ahead.parts(platform, explain=explain))
        if explain or ahead.plan.is_empty:
            return ahead.report(platform.settings.state, explain=explain)
        keys = [f"only {request.keys}"] if request.keys else []
        why = " ".join(["refresh", *(tables or []), *([days] if days else []), *keys])
        author = Author(run=f"refresh-{new_publication()}", why=why)
        result = _execute(platform, author, ahead)
        return _done(platform, ahead, author, result, time.monotonic() - started)


def _read_sources(platform: Platform, request: Request) -> tuple[Problem, ...]:
    """Read new rows of the request's sources before planning; return sources that could not be read."""
    now = LakeSnapshot.now(platform)
    days = wanted_days(platform.catalogue, request, now.calendar)
    tables = [
        contract for contract in platform.catalogue if days.get(contract.name) and contract.name not in now.stopped
    ]
    return pull_each(platform, tables)


def _done(platform: Platform, ahead: Ahead, author: Author, result: RefreshResult, seconds: float) -> Report:
    """Report what a refresh did; after publishing also what is left, and what other processes published meanwhile."""
    request, published = ahead.request, ahead.stage is None
    held = held_days(platform, _asked_holds(platform.ledger.holds(), request)) if published else ()
    others = _by_others(platform, ahead.release, author, ahead.plan) if published else ()
    ended = ended_rollbacks(platform, ahead.stood)
    there = _files_refused(platform, ahead.raw) if published else ()
    met = (problem for done in result.ingests for problem in done.problems)
    problems = Acknowledged.now(platform).without(each_once((*ahead.landed.problems, *met))) if published else ()
    is_part = request.tables or request.days is not None
    stale = not_asked_for(platform, request) if published and is_part else {}
    known = {(day.hold.table, str(day.hold.day)) for day in held}
    outcome = refresh_report(result, seconds, ahead.stage, others, known)
    refused_now = {arrival.path for done in result.ingests for arrival in done.arrivals if arrival.reason is not None}
    refused = tuple(file for file in there if file.path not in refused_now)
    anew = result.plan if result.plan is not ahead.plan else None
    data = {
        "plan": plan_json(ahead.plan),
        **({"planned_anew": plan_json(anew)} if anew else {}),
        "result": outcome.data,
        "held": [held_json(day) for day in held],
        "rollbacks_ended": [ended_json(rollback) for rollback in ended],
        "still_stale": stale,
        **({"only": request.keys.texts} if request.keys else {}),
        **_left_json(ahead.landed, problems, refused),
        **({"stopped": result.stopped} if result.stopped else {}),
    }

    def parts() -> Iterator[Part]:
        if anew and (anew.days or ahead.plan.days):
            yield f"Planned again after the files were ingested: {counted(anew.days, 'day')} to recompute."
        yield from outcome.parts
        yield from map(ended_note, ended)
        yield from (Note("red", "stopped", sentence) for sentence in result.stopped if sentence not in ahead.stopped)
        yield from held_parts(held, in_short=True)
        files = tuple(file for file in there if file.path in refused_now)
        yield from left_anew_parts(platform.settings.state, problems, refused, files)
        if stale:
            named = ", ".join(f"{counted(len(days), 'day')} of {table}" for table, days in stale.items())
            yield Note("yellow", "still stale", f"and not asked for: {named}; `platform-assets refresh` takes them")

    return Report(parts(), data, bool(outcome.needs_a_look or held or problems or refused or result.stopped))


def _request(platform: Platform, names: list[str], days: str | None, *, force: bool) -> Request:
    tables = computed_tables(platform, names)
    for name in tables:
        if not platform.catalogue[name].inputs:
            raise UsageError(
                f"{name} has no transform: it holds deliveries.",
                "Name a silver or gold table; deliveries for its inputs are taken first.",
            )
    chosen = None if days is None else parse_days(days, platform.settings)
    return Request(tables=frozenset(tables), days=chosen, by_person=True, force=force)


def _only(catalogue: Catalogue, request: Request, only: Sequence[str], stage: str | None) -> Request:
    """Restrict a request to certain keys."""
    if stage is None or not request.tables or not request.days:
        raise UsageError(
            "--only computes rows of some keys into a stage, of tables and days that are named.",
            "Add --stage NAME, the table and --days; look at it with `platform-assets diff stage:NAME`.",
        )
    asked = parse_keys(only)
    scopes = {scope_of(catalogue[name], asked) for name in sorted(request.tables)}
    if len(scopes) > 1:
        raise UsageError("These tables have other types for the same column.", "Name one table at a time.")
    return replace(request, force=True, keys=scopes.pop())


def _execute(platform: Platform, author: Author, ahead: Ahead) -> RefreshResult:
    plan = ahead.plan
    brief = is_brief(plan.estimate, sum(intake.bytes for intake in plan.intakes))
    with computing(platform.settings, "refresh", brief=brief, at_once=True) as (spark, progress):
        from platform_assets.engine.refresh import refresh as refresh_tables
        from platform_assets.operations.stages.stages import refresh_stage  # while Java starts

        if ahead.stage is not None:
            return refresh_stage(platform, spark, author, ahead.stage, progress, ahead.request, plan)
        return refresh_tables(platform, spark, author, progress, request=ahead.request, plan=plan)


def not_asked_for(platform: Platform, request: Request) -> dict[str, list[date]]:
    """Return stale days outside the request, such as days whose window reaches into the requested days, by table."""
    steps = outlook(platform).everything.steps  # unlike a plan to execute, it refuses nothing
    left = {s.table: [d for d in s.days if not (request.has_table(s.table) and request.has_day(d))] for s in steps}
    return {table: days for table, days in left.items() if days}


def _by_others(platform: Platform, since: int, author: Author, plan: Plan) -> tuple[PublishedMeanwhile, ...]:
    platform.sync()
    planned: dict[str, Collection[date] | None] = {intake.table: None for intake in plan.intakes}
    planned |= {step.table: step.days for step in plan.steps}
    return published_meanwhile(platform, since, author.run, planned)


def refresh_report(
    result: RefreshResult,
    seconds: float,
    stage: str | None,
    others: Sequence[PublishedMeanwhile] = (),
    kept_elsewhere: Collection[tuple[str, str]] = (),
) -> Report:
    """Report what a refresh did.

    Args:
        stage: stage that holds the days; None if they were published.
        others: planned days that other processes published meanwhile.
        kept_elsewhere: days, each with its table, whose reasons other parts show.
    """
    arrivals = [arrival for done in result.ingests for arrival in done.arrivals]
    taken = [arrival for arrival in arrivals if arrival.reason is None]
    published = {done.table: len(done.published) for done in result.ingests if done.published}
    published |= {done.table: new for done in result.steps if (new := len(done.published) - len(done.unchanged))}
    left = [(done.table, day, why) for done in result.steps for day, why in sorted(done.not_published.items())]
    refused = {arrival.path: arrival.reason for arrival in arrivals if arrival.reason is not None}
    replays, undated = (
        {arrival.path: note for arrival in arrivals for note in arrival.notes if note.startswith(kind)}
        for kind in (REPLAY, UNDATED)
    )
    broken = {done.table: broken.values() for done in result.steps if (broken := done.newly_quarantined)}
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
        "refused_files": [{"path": path, "reason": why} for path, why in refused.items()],
        "refused_rows": _rows(taken, "refused"),
        "late_rows": _rows(taken, "late"),
        "replays": [{"path": path, "note": note} for path, note in replays.items()],
        "deletes_without_record": [{"path": path, "note": note} for path, note in undated.items()],
        "quarantined": {table: {"rows": sum(rows), "days": len(rows)} for table, rows in broken.items()},
        "warnings": [warning.json() for warning in warnings],
        "growing_files": sum(len(done.growing) for done in result.ingests),
        "published_meanwhile": [
            picked(other, "table days") | picked(other.by, "publication release run who why") for other in others
        ],
        "seconds": round(seconds, 1),
    }
    kept = [(table, day, why) for table, day, why in left if (table, str(day)) not in kept_elsewhere]

    def parts() -> Iterator[Part]:
        yield from _days_parts(data, result, stage)
        for line in kept_lines(kept, result.stopped):
            yield Note("red", f"not {'staged' if stage else 'published'}", line)
        yield from (Note("red", "refused", line) for line in refused_lines(refused))
        yield from _rows_parts(data, taken)
        yield from (Note("yellow", "sent again", line) for line in refused_lines(replays))
        yield from (Note("yellow", "deletes nothing yet", line) for line in refused_lines(undated))
        for table, broke in data["quarantined"].items():
            what = f"{counted(broke['rows'], 'row')} of {counted(broke['days'], 'day')} broke a rule"
            # Holds of a stage's days concern no reader yet.
            shown = "" if stage else f": `platform-assets read {quarantine_table(table)}` shows them"
            yield Note("yellow", "quarantined", f"{table}: {what}{shown}")
        yield from warnings_parts(warnings, stage)
        if stage:
            then = f"`diff stage:{stage}`, `publish {stage} --reason …` or `undo stage:{stage}`"
            yield f"Readers do not see it yet: {then}. Done in {seconds:.1f} s."
            return
        grows = data["growing_files"]
        stay = f", {counted(grows, 'file')} may still grow and {'is' if grows == 1 else 'are'} left"
        grow = f"{stay} for the next refresh" if grows else ""
        yield f"{counted(len(taken), 'file')} taken{grow}. Done in {seconds:.1f} s."

    return Report(parts(), data, bool(left or refused or data["refused_rows"]))


def _days_parts(data: Mapping[str, Any], result: RefreshResult, stage: str | None) -> Iterator[Part]:
    became = f"in the stage {stage}" if stage else "published"
    for name, what in (
        ("staged" if stage else "published", became),
        ("unchanged", "came out as before, readers see nothing new"),
        ("struck", f"struck: {result.why_struck}"),
    ):
        yield from (f"{table}: {counted(count, 'day')} {what}" for table, count in data[name].items())
    for other in data["published_meanwhile"]:
        days = f"{other['table']}: {counted(other['days'], 'day')} not by this run but by"
        by = "{run} of {who} ({why}), publication {publication}, release {release}".format(**other)
        yield Note("", "published by others", f"{days} {by}")


def _rows_parts(data: Mapping[str, Any], taken: Sequence[Arrival]) -> Iterator[Part]:
    """Show refused or waiting rows of ingested files."""
    for table, rows in data["refused_rows"].items():
        files = [file for file in taken if file.table == table]
        delivered = sum(file.landed for file in files)
        shown = f"`platform-assets read {refused_table(table)}` shows them"
        todo = remedy([file for file in files if file.refused], delivered)
        of = f"{rows:,} of {counted(delivered, 'row')} delivered for {table}"
        yield Note("red", "refused", f"{of}: {shown}; {todo}")
    for table, rows in data["late_rows"].items():
        came = f"{counted(rows, 'row')} delivered for {table} came too late, or too far ahead, and wait"
        history = "A history that is loaded for the first time is taken by `late approve FILE --reason …`."
        yield Note("yellow", "late", f"{came}: `platform-assets status late`. {history}")


def _rows(files: Iterable[Arrival], kind: str) -> dict[str, int]:
    """Return how many rows of files were refused or late, by raw table."""
    counts = Counter[str]()
    for file in files:
        counts[file.table] += getattr(file, kind)
    return {table: rows for table, rows in counts.items() if rows}


@dataclass(frozen=True)
class Ahead:
    """What a refresh will do and what it leaves alone, computed once for people and programs.

    Args:
        release: the plan's base.
        raw: raw tables whose deliveries it ingests.
        stood: holds from before; none for a stage.
        held: days of the request that the plan does not try again.
        left: waiting files that a stage does not ingest.
        stopped: reason of each open circuit that stops part of the request.
        stopped_files: waiting files of stopped tables.
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
    stopped_files: int = 0

    def parts(self, platform: Platform, *, explain: bool) -> Iterator[Part]:
        """Describe what will be done. Holds of the published days are shown at the end."""
        plan = self.plan
        yield from (Note("red", "stopped", sentence) for sentence in self.stopped)
        for table, tried in plan.tries.items():
            what = f"{table} {tried.day}, computed and judged without publishing it: its circuit is open"
            yield Note("bold", "try", what)
        if self.request.keys:
            alone = f"rows of {self.request.keys}; the others are carried over, and estimates are of whole days"
            yield Note("bold", "only", alone)
        held = self.held if explain or plan.is_empty or self.stage else ()
        yield from held_parts(held, in_short=True)
        yield from (Note("yellow", "not taken yet", line) for line in growing_lines(self.landed.growing))
        for table, days in self.landed.missing.items():
            yield Note("yellow", "not delivered yet", f"{table}: {which(days)}; days that read these wait")
        yield from (Note("yellow", "cannot be computed", line) for line in blocked_lines(plan))
        yield from (Note("yellow", "out of date", line) for line in bereft_lines(plan))
        yield from (Note("bold", "take", line) for line in intake_lines(plan.intakes))
        yield from (Note("yellow", "protected", line) for line in protected_lines(plan.waiting))
        if self.left:
            todo = "and a stage takes none: `platform-assets refresh` does, without --stage"
            yield Note("yellow", "not taken", f"{counted(self.left, 'file', 'wait')}, {todo}")
        if self.stopped_files:
            wait = counted(self.stopped_files, "file", "wait")
            yield Note("yellow", "not taken", f"{wait} for tables that cannot be published now")
        if plan.steps:
            yield plan_table(plan)
            yield f"{counted(plan.days, 'day')} in all: {estimate_line(plan)}"
        elif not (held or plan.intakes or plan.blocked or plan.bereft):
            yield self._nothing()
        yield from by_spark_parts(not_by_sail(platform, [step.table for step in plan.steps]))
        if explain and not self.stage:
            made = platform.catalogue.with_dependants([intake.table for intake in plan.intakes])
            standing = standing_rollbacks(platform, made) if plan.intakes else ()
            yield from rollbacks_parts(platform.catalogue, plan.intakes, self.ending, standing)

    def _nothing(self) -> Part:
        if self.stopped:
            return "Nothing that can be published is stale."
        if self.left:
            return "No day is stale."
        if self.landed.problems or self.refused:
            return "No day is stale, and no file waits that can be taken."
        if self.landed.growing:
            return Note("green", "Nothing to do yet:", "no day is stale and no other file waits.")
        return Note("green", "Nothing to do:", "no day is stale and no file waits.")

    def report(self, state: Path, *, explain: bool) -> Report:
        """Report everything if nothing is to be computed."""
        data = {
            "plan": plan_json(self.plan),
            "held": [held_json(day) for day in self.held],
            "rollbacks_ending": [ended_json(rollback) for rollback in self.ending],
            **({"only": self.request.keys.texts} if self.request.keys else {}),
            **_left_json(self.landed, self.landed.problems, self.refused),
            **({"stopped": self.stopped} if self.stopped else {}),
        }
        left_out = self.refused or self.plan.blocked or self.held or self.stopped
        needs = self.landed.problems or (left_out and not explain)
        return Report(left_anew_parts(state, self.landed.problems, self.refused), data, bool(needs))


def look_ahead(platform: Platform, request: Request, stage: str | None) -> Ahead:
    """Plan the request; refuse named days whose inputs were never loaded, and what a table or stage cannot do."""
    now = LakeSnapshot.now(platform)
    refuse_what_tables_cannot_take(now, request)
    snapshot = _basis(now, stage)
    days, holds = wanted_days(platform.catalogue, request, now.calendar), snapshot.holds
    raw = frozenset(contract.name for contract in platform.catalogue if contract.source and days.get(contract.name))
    there = delivered(platform, raw)
    landed = Delivered() if stage else replace(there, problems=Acknowledged.now(platform).without(there.problems))
    refused = () if stage else _files_refused(platform, raw)
    wanted = [name for name, some in days.items() if some]
    stops = {table: hold for table, hold in snapshot.stopped.items() if table in wanted}
    if request.keys is None:
        intakes = [intake for intake in landed.intakes if intake.table not in stops]
        plan = plan_steps(platform, request, intakes, snapshot)
        plan = plan if stage else replace(plan, tries=due_tries(platform, wanted))
    else:
        plan = scoped_plan(snapshot, request, request.keys)
    is_named = request.tables and request.days is not None and not plan.intakes
    if is_named and (line := next(blocked_lines(plan, are_there=False), None)):
        todo = "Deliver its rows, or declare the day closed, or leave it out of --days."
        raise PlatformError(f"Cannot be computed: {line}.", todo)
    steps = {step.table: step.days for step in plan.steps}
    planned = {(table, day) for table, some in steps.items() for day in some}
    left_alone = [hold for hold in _asked_holds(holds, request) if (hold.table, hold.day) not in planned]
    return Ahead(
        request=request,
        stage=stage,
        plan=plan,
        release=snapshot.number,
        raw=raw,
        stood=() if stage else holds,
        held=held_days(platform, left_alone),
        ending=() if stage else ending_rollbacks(platform, steps),
        landed=landed,
        left=sum(intake.files for intake in there.intakes) if stage else 0,
        refused=refused,
        stopped=tuple(dict.fromkeys(hold.reason for hold in stops.values())),
        stopped_files=sum(intake.files for intake in landed.intakes if intake.table in stops),
    )


def _files_refused(platform: Platform, raw: Collection[str]) -> tuple[ArrivalRecord, ...]:
    """Return refused files of some tables that are still in the landing area and not acknowledged."""
    return Acknowledged.now(platform).without(file for file in refused_files(platform).there if file.table in raw)


def _left_json(landed: Delivered, problems: Sequence[Problem], refused: Sequence[ArrivalRecord]) -> dict[str, Any]:
    """Return files that are in no table, and missing deliveries, without empty lists."""
    there = {
        "landing": [*problems, *landed.growing],
        "refused_files": refused_json(refused),
        "not_delivered": landed.missing,
    }
    return {name: files for name, files in there.items() if files}


def _basis(now: LakeSnapshot, stage: str | None) -> LakeSnapshot:
    """Return the plan's base: the release, or the stage if it can be continued."""
    if stage is None:
        return now
    from platform_assets.operations.stages import store  # imports what plans need

    if store.checked_stage(stage) not in store.stage_names(now.platform.lake):
        return replace(now, is_private=True)
    opened = store.without_other_code(now.platform, store.opened_stage(now.platform, stage))
    return store.stage_basis(now.platform, opened)


def _asked_holds(holds: Iterable[Hold], request: Request) -> list[Hold]:
    return [hold for hold in holds if request.has_table(hold.table) and request.has_day(hold.day)]
