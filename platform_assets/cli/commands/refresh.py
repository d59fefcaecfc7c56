"""`refresh`: recompute the days that are stale, and no others."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from platform_assets.cli.commands.refresh_plan import Ahead, left_json, look_ahead, refused_of
from platform_assets.cli.console import EXIT_LOOK, UsageError, console, opened_platform, parse_days, print_json, say
from platform_assets.cli.files_view import print_left_anew, refused_lines
from platform_assets.cli.held_view import DayWarning, held_json, print_held, print_warnings
from platform_assets.cli.options import AsJson, Days, Only, parse_keys
from platform_assets.cli.plan_view import (
    plan_json,
)
from platform_assets.cli.progress import telling
from platform_assets.cli.rollback_view import ended_json, print_ended
from platform_assets.cli.session import session_on_demand
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
from platform_assets.operations.plan_record import refuse_stage_of_a_plan
from platform_assets.planning.estimates import is_brief
from platform_assets.planning.key_scope import scope_of
from platform_assets.planning.plan import Plan
from platform_assets.planning.replays import REPLAY, UNDATED
from platform_assets.planning.selection import Request
from platform_assets.quality.deliveries import remedy
from platform_assets.records.history import ArrivalRecord
from platform_assets.records.manifest import Arrival, new_publication
from platform_assets.settings import Settings
from platform_assets.sources.landing import Problem
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.engine.meanwhile import PublishedMeanwhile
    from platform_assets.engine.refresh import RefreshResult


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
    only: Only = None,
    as_json: AsJson = False,
) -> None:
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
            ahead.print(platform, explain=explain)
        if explain or ahead.plan.is_empty:
            ahead.end(platform.settings.state, as_json=as_json, explain=explain)
            return
        keys = [f"only {request.keys}"] if request.keys else []
        why = " ".join(["refresh", *(tables or []), *([days] if days else []), *keys])
        author = Author(run=f"refresh-{new_publication()}", why=why)
        result = _execute(context, platform, author, ahead)
        after = _after(platform, ahead, author, result)
    outcome = outcome_of(result, time.monotonic() - started, stage, after.others)
    refused = tuple(file for file in after.refused if file.path not in outcome.refused_files)
    told = tuple(file for file in after.refused if file.path in outcome.refused_files)
    anew = result.plan if result.plan is not ahead.plan else None
    if as_json:
        planned_anew = {"planned_anew": plan_json(anew)} if anew else {}
        shown = {"result": outcome.json(), "held": [held_json(day) for day in after.held]}
        shown["rollbacks_ended"] = [ended_json(rollback) for rollback in after.ended]
        shown["still_stale"] = {table: list(days) for table, days in after.stale.items()}
        left = left_json(after.problems, ahead.landed.growing, refused)
        left |= {"stopped": list(result.stopped)} if result.stopped else {}
        print_json({"plan": plan_json(ahead.plan)} | planned_anew | shown | ahead.scope_json | left)
    else:
        if anew and (anew.days or ahead.plan.days):
            console.print(f"Planned anew once the files were taken: {counted(anew.days, 'day')} to recompute.")
        outcome.print({(day.hold.table, str(day.hold.day)) for day in after.held})
        for rollback in after.ended:
            print_ended(rollback)
        for sentence in result.stopped:
            say("[red]stopped[/]", sentence)
        print_held(after.held, in_short=True)
        print_left_anew(platform.settings.state, after.problems, refused, told)
        if after.stale:
            which = ", ".join(f"{counted(len(days), 'day')} of {table}" for table, days in after.stale.items())
            say("[yellow]still stale[/]", f"and not asked for: {which}; `platform-assets refresh` takes them")
    if outcome.wants_a_look or after.held or after.problems or refused or result.stopped:
        raise typer.Exit(EXIT_LOOK)


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


def _execute(context: typer.Context, platform: Platform, author: Author, ahead: Ahead) -> RefreshResult:
    """Only here Spark is imported and started."""
    plan = ahead.plan
    brief = is_brief(plan.estimate, sum(intake.bytes for intake in plan.intakes))
    with (
        telling(context, "refresh") as progress,
        session_on_demand(platform.settings, progress, brief=brief, at_once=True) as spark,
    ):
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


class Quarantined(NamedTuple):
    """What broke a rule in the days of a table that a refresh computed, and had not broken one before.

    Args:
        rows: that broke one.
        days: which have such rows.
    """

    rows: int
    days: int


@dataclass(frozen=True)
class Outcome:
    """What a refresh did, for people and programs.

    Args:
        published: days with new content, by table.
        unchanged: days that were computed and came out as they were, by table.
        struck: days by table that turned out to need nothing.
        why_struck: why not, in a few words.
        left: days that were not published, by table, with the reason.
        files: taken.
        refused_files: not one row of which was taken, with the reason.
        refused_in: files of which some rows were refused and others taken, by raw table.
        delivered_rows: of all files of which any were taken, by raw table.
        late_rows: that wait in a late queue since, by raw table.
        replays: what is to be said of files whose content came before, by path.
        undated: the same of files with deletes that have found no record yet.
        quarantined: of the days that it computed, by silver table.
        warnings: what gates newly found of days that were published all the same, by table, the newest day first.
        growing: files that were changed a moment ago.
        seconds: wall time.
        stage: that the days are in, and no release yet.
        others: what others published meanwhile of the days that were planned.
    """

    published: dict[str, int]
    unchanged: dict[str, int]
    struck: dict[str, int]
    why_struck: str
    left: list[tuple[str, str, str]]
    files: int
    refused_files: dict[str, str]
    refused_in: dict[str, list[Arrival]]
    delivered_rows: dict[str, int]
    late_rows: dict[str, int]
    replays: dict[str, str]
    undated: dict[str, str]
    quarantined: dict[str, Quarantined]
    warnings: tuple[DayWarning, ...]
    growing: int
    seconds: float
    stage: str | None = None
    others: tuple[PublishedMeanwhile, ...] = ()

    @property
    def refused_rows(self) -> dict[str, int]:
        """Of files of which others were taken, by raw table."""
        return {table: sum(file.refused for file in files) for table, files in self.refused_in.items()}

    @property
    def wants_a_look(self) -> bool:
        """Whether something was left that a person should look at."""
        return bool(self.left or self.refused_files or self.refused_in)

    def json(self) -> dict[str, Any]:
        """The document of `--json`."""
        return {
            "staged" if self.stage else "published": self.published,
            "unchanged": self.unchanged,
            "struck": self.struck,
            "left": [{"table": table, "day": day, "reason": reason} for table, day, reason in self.left],
            "files": self.files,
            "refused_files": [{"path": path, "reason": reason} for path, reason in self.refused_files.items()],
            "refused_rows": self.refused_rows,
            "late_rows": self.late_rows,
            "replays": [{"path": path, "note": note} for path, note in self.replays.items()],
            "deletes_without_record": [{"path": path, "note": note} for path, note in self.undated.items()],
            "quarantined": {table: found._asdict() for table, found in self.quarantined.items()},
            "warnings": [warning.json() for warning in self.warnings],
            "growing_files": self.growing,
            "published_meanwhile": [
                {
                    "table": other.table,
                    "days": other.days,
                    "publication": other.by.publication,
                    "release": other.by.release,
                    "run": other.by.run,
                    "who": other.by.who,
                    "why": other.by.why,
                }
                for other in self.others
            ],
            "seconds": round(self.seconds, 1),
        }

    def print(self, told: Collection[tuple[str, str]] = ()) -> None:
        """A line per table, and one per day that was not published; what was refused, and what is left for later.

        Args:
            told: days, each with its table, of which it is said elsewhere what keeps them.
        """
        for table, count in self.published.items():
            done = f"in the stage {self.stage}" if self.stage else "published"
            console.print(f"{table}: {counted(count, 'day')} {done}", highlight=False)
        for table, count in self.unchanged.items():
            console.print(
                f"{table}: {counted(count, 'day')} came out as before, readers see nothing new", highlight=False
            )
        for table, count in self.struck.items():
            console.print(f"{table}: {counted(count, 'day')} struck: {self.why_struck}", highlight=False)
        for other in self.others:
            say(
                "published meanwhile",
                f"{other.table}: {counted(other.days, 'day')} not by this run but by {other.by.run} of {other.by.who} "
                f"({other.by.why}), publication {other.by.publication}, release {other.by.release}",
            )
        for table, day, reason in (left for left in self.left if left[:2] not in told):
            say(f"[red]not {'staged' if self.stage else 'published'}[/]", f"{table} {day}: {reason}")
        for line in refused_lines(self.refused_files):
            say("[red]refused[/]", line)
        for table, rows in self.refused_rows.items():
            delivered = self.delivered_rows[table]
            say(
                "[red]refused[/]",
                f"{rows:,} of {counted(delivered, 'row')} delivered for {table}: `platform-assets read "
                f"{refused_table(table)}` shows them; {remedy(self.refused_in[table], delivered)}",
            )
        for table, rows in self.late_rows.items():
            came = f"{counted(rows, 'row')} delivered for {table} came too late, or too far ahead, and wait"
            history = "A history that is loaded for the first time is taken by `late approve FILE`."
            say("[yellow]late[/]", f"{came}: `platform-assets late list`. {history}")
        for line in refused_lines(self.replays):
            say("[yellow]sent again[/]", line)
        for line in refused_lines(self.undated):
            say("[yellow]deletes nothing yet[/]", line)
        for table, found in self.quarantined.items():
            broke = f"{counted(found.rows, 'row')} of {counted(found.days, 'day')} broke a rule"
            # Those of a stage are nowhere yet that anybody reads.
            shown = "" if self.stage else f": `platform-assets read {quarantine_table(table)}` shows them"
            say("[yellow]quarantined[/]", f"{table}: {broke}{shown}")
        print_warnings(self.warnings, self.stage)
        if self.stage:
            console.print(
                f"Nobody sees it yet: `stage compare {self.stage}`, `stage publish {self.stage} --reason …` or `stage "
                f"drop {self.stage}`. Done in {self.seconds:.1f} s.",
                highlight=False,
                soft_wrap=True,
            )
            return
        grows = f", {counted(self.growing, 'file')} may still grow and {'is' if self.growing == 1 else 'are'} left"
        left = f"{grows} for the next refresh" if self.growing else ""
        console.print(f"{counted(self.files, 'file')} taken{left}. Done in {self.seconds:.1f} s.", highlight=False)


def outcome_of(
    result: RefreshResult, seconds: float, stage: str | None, others: tuple[PublishedMeanwhile, ...] = ()
) -> Outcome:
    """What people and programs are told of a refresh.

    Args:
        seconds: wall time.
        stage: that the days are in; None if they were published.
        others: what others published meanwhile of the days that were planned.
    """
    published = {done.table: len(done.published) for done in result.ingests if done.published}
    published |= {done.table: new for done in result.steps if (new := len(done.published) - len(done.unchanged))}
    left = [
        (done.table, str(day), reason) for done in result.steps for day, reason in sorted(done.not_published.items())
    ]
    arrivals = [arrival for done in result.ingests for arrival in done.arrivals]
    refused_in: defaultdict[str, list[Arrival]] = defaultdict(list)
    delivered_rows, late_rows = Counter[str](), Counter[str]()
    for arrival in arrivals:
        if arrival.reason is None:
            if arrival.refused:
                refused_in[arrival.table].append(arrival)
            late_rows[arrival.table] += arrival.late
            delivered_rows[arrival.table] += arrival.landed
    return Outcome(
        published=published,
        unchanged={done.table: len(done.unchanged) for done in result.steps if done.unchanged},
        struck={table: len(days) for table, days in result.struck.items()},
        why_struck=result.why_struck,
        left=left,
        files=sum(arrival.reason is None for arrival in arrivals),
        refused_files={arrival.path: arrival.reason for arrival in arrivals if arrival.reason is not None},
        refused_in=dict(refused_in),
        delivered_rows=dict(delivered_rows),
        replays={arrival.path: note for arrival in arrivals for note in arrival.notes if note.startswith(REPLAY)},
        undated={arrival.path: note for arrival in arrivals for note in arrival.notes if note.startswith(UNDATED)},
        late_rows={table: rows for table, rows in late_rows.items() if rows},
        quarantined={
            done.table: Quarantined(sum(broken.values()), len(broken))
            for done in result.steps
            if (broken := done.newly_quarantined)
        },
        warnings=tuple(
            DayWarning(done.table, day, warned)
            for done in result.steps
            for day in sorted(done.published, reverse=True)
            for warned in done.newly_warned(day)
        ),
        growing=sum(len(done.growing) for done in result.ingests),
        seconds=seconds,
        stage=stage,
        others=others,
    )
