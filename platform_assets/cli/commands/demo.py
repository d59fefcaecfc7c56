"""`demo`: the sample year from landing files to gold, its late corrections, and one more that shows what it takes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.commands.demo_state import begin_demo, demo_clock, is_half_removed, remove_demo, set_clock
from platform_assets.cli.commands.demo_story import (
    SALES,
    Story,
    compare,
    net_sales,
    reasons,
    shown_at,
    stale_days,
    story_json,
    story_parts,
)
from platform_assets.cli.console import opened_platform
from platform_assets.cli.dagster_storage import dagster_home
from platform_assets.cli.session import computing
from platform_assets.engine.late.queue import late_counts
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.errors import PlatformError
from platform_assets.planning.late_queue import LateCounts
from platform_assets.progress import OnProgress, meanwhile
from platform_assets.records.manifest import new_publication
from platform_assets.report import Note, Report, Table
from platform_assets.settings import Settings, load_settings
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.domains.retail.sample import Simulation
    from platform_assets.spark.session.on_demand import SparkOnDemand

YEAR_DAYS = 366
SEED = 1
LATE_DAYS = 91
"""After so many days the last late row of the simulation has arrived."""

_NAME = "one correction"

_DAYS_IN = 15


class DemoFailedError(PlatformError):
    """A step of the demo failed, and what comes after it was not begun."""


def demo(
    days: Annotated[int, typer.Option(min=1, max=YEAR_DAYS, help="Days of sales to build.")] = YEAR_DAYS,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Delete the earlier demo with all that was delivered to it, and start over.")
    ] = False,
) -> Report:
    """Land a real year of sales, build it, then land its corrections and mend exactly the days they touch."""
    from platform_assets.domains.retail.sample import Simulation

    started = time.monotonic()
    settings = load_settings()
    simulation = Simulation(seed=SEED, first=settings.calendar_first, days=days)
    last = simulation.last
    if fresh or is_half_removed(settings):
        remove_demo(settings)
        settings = load_settings()
    seen_until = demo_clock(settings, last)
    if seen_until is None:
        begin_demo(settings)
    phases: list[Phase] = []
    story: Story | None = None
    # One session for all of them, which starts while the first files land.
    with computing(settings, "demo", at_once=seen_until is None) as (spark, progress):
        for name, today in (("first load", last), ("late corrections", last + timedelta(days=LATE_DAYS))):
            if seen_until is None or today >= seen_until:
                settings = set_clock(settings, last, today)
                phases.append(_phase(settings, simulation, name, today, spark, progress))
                if phases[-1].failures:
                    break
        else:
            settings = set_clock(settings, last, last + timedelta(days=LATE_DAYS + 1))
            phase, story = correct(settings, simulation, spark, progress)
            phases.append(phase)
    if phases and phases[-1].failures:
        first, *more = phases[-1].failures
        raise DemoFailedError(first, "What was published stays: run the same command again to go on from there.", more)
    with opened_platform(settings) as platform:
        summary, day = summarise(platform), story.day if story else day_to_look_at(platform)
    seconds = time.monotonic() - started
    data = {"tables": summary, "phases": phases, "seconds": round(seconds, 1)}
    data |= {"correction": story_json(story)} if story else {}
    parts = summary_parts(summary, phases, seconds, day, story)
    return Report(parts, data, bool(story and story.compared.surprises))


def _phase(
    settings: Settings,
    simulation: Simulation,
    name: str,
    today: date,
    spark: Callable[[], object],
    progress: OnProgress,
) -> Phase:
    """Land up to a date and bring everything up to date through Dagster, whose runs find the session that is there."""
    from platform_assets.domains.retail.sample import land
    from platform_assets.engine.pending import intakes
    from platform_assets.engine.state.planner import plan_steps

    started = time.monotonic()
    failures: tuple[str, ...] = ()
    landed = land(simulation, settings.landing_folder, today, progress)
    since = new_publication()
    with meanwhile(progress, "planning"), opened_platform(settings) as platform:
        empty = not any(platform.ledger.current_days(table) for table in platform.catalogue.names)
        idle = not empty and plan_steps(platform, intakes=intakes(platform)).is_empty
    if not idle:
        spark()
        failures = _run(settings, name, (simulation.first, simulation.last) if empty else None, progress)
    with opened_platform(settings) as platform:
        changed = {
            table: sum(record.publication > since for record in platform.ledger.current_days(table).values())
            for table in platform.catalogue.names
        }
    return Phase(name, landed.files, changed, time.monotonic() - started, failures)


def _run(settings: Settings, name: str, whole: tuple[date, date] | None, progress: OnProgress) -> tuple[str, ...]:
    """One Dagster run in this process: the assets of the whole calendar, or the job that refreshes.

    Returns:
        What failed.
    """
    os.environ["DAGSTER_HOME"] = str(dagster_home(settings))
    with meanwhile(progress, "starting Dagster"):
        import dagster as dg

        from platform_assets.orchestration.build import build_definitions
        from platform_assets.orchestration.in_process import materialize_range, run_job

        definitions = build_definitions(settings, progress)
    with dg.DagsterInstance.get() as instance:
        if whole:
            outcome = materialize_range(definitions, instance, *whole)
        else:
            outcome = run_job(definitions, instance, "refresh", {"platform/why": name})
    return outcome.failures


def correct(
    settings: Settings, simulation: Simulation, spark: SparkOnDemand, progress: OnProgress
) -> tuple[Phase, Story | None]:
    """Land one file that corrects a few lines of one day, and bring everything up to date.

    Returns:
        What was done, and what there is to tell of the file: nothing where it was taken before.
    """
    from platform_assets.domains.retail.sample import land_recount
    from platform_assets.engine.pending import intakes
    from platform_assets.engine.platform import Author
    from platform_assets.engine.refresh import refresh
    from platform_assets.engine.state.planner import plan_steps

    started = time.monotonic()
    recount = land_recount(simulation, settings.landing_folder)
    with opened_platform(settings) as platform:
        if recount is None or plan_steps(platform, intakes=intakes(platform)).is_empty:
            return Phase(_NAME, 0, {}, time.monotonic() - started), None
        before = platform.current_release().number
        result = refresh(platform, spark, Author(f"refresh-{new_publication()}", _NAME), progress)
        failures = tuple(
            f"{step.table} {day}: {why}" for step in result.steps for day, why in sorted(step.not_published.items())
        )
        took = time.monotonic() - started
        if recount.path not in {arrival.path for done in result.ingests for arrival in done.arrivals}:
            changed = {table: len(days) for table, days in stale_days(result).items()}
            return Phase(_NAME, 0, changed, took, failures), None
        with meanwhile(progress, "comparing all days with before"):
            after = platform.current_release().number
            compared = compare(shown_at(platform, before), shown_at(platform, after), stale_days(result))
            net = net_sales(platform, recount.day, before), net_sales(platform, recount.day, after)
        why = {table: why for table, why in reasons(platform, result).items() if table in compared.rewritten}
    changed = {table: len(days) for table, days in compared.rewritten.items()}
    story = Story(recount.path, recount.day, recount.store, before, after, why, compared, net)
    return Phase(_NAME, 1, changed, took, failures), story


@dataclass(frozen=True)
class Phase:
    """What one part of the demo did.

    Args:
        name: shown in the summary.
        files: landed in it.
        changed: published days by table.
        seconds: wall time.
        failures: what the steps said that failed.
    """

    name: str
    files: int
    changed: dict[str, int]
    seconds: float
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableSummary:
    """One table after the demo.

    Args:
        days: loaded days, empty ones included.
        rows: rows readers see.
        set_aside: rows refused at parsing (raw) or quarantined by a rule (silver).
        late: rows that wait in the late queue for a decision (raw).
        ahead: rows that wait there for their day (raw).
    """

    table: str
    days: int
    rows: int
    set_aside: int
    late: int
    ahead: int


def summarise(platform: Platform) -> list[TableSummary]:
    """Figures of every table, from the ledger."""
    summaries: list[TableSummary] = []
    late, snapshot, refused = late_counts(platform), LakeSnapshot.now(platform), platform.ledger.refused_rows()
    for contract in platform.catalogue:
        days = platform.ledger.current_days(contract.name).values()
        aside = sum(day.figures.get("quarantined", 0) for day in days)
        if contract.source is not None:
            aside = refused.get(contract.name, 0)
        rows = sum(day.delivered for day in days)
        loaded = len(snapshot.digests(contract.name))
        waits = late.get(contract.name, LateCounts())
        summaries.append(TableSummary(contract.name, loaded, rows, aside, waits.waiting, waits.ahead))
    return summaries


def day_to_look_at(platform: Platform) -> date | None:
    """A day that is there and has rows, some way into the year where so much was built; None if there is none."""
    days = sorted(day for day, record in platform.ledger.current_days(SALES).items() if record.rows)
    return days[min(len(days), _DAYS_IN) - 1] if days else None


def summary_parts(
    tables: Sequence[TableSummary],
    phases: Sequence[Phase],
    seconds: float,
    day: date | None = None,
    story: Story | None = None,
) -> Iterator[Any]:
    """The whole demo at a glance.

    Args:
        seconds: that all of it took.
        day: to name in commands that show one; they are left out without.
    """
    rows = [
        (one.table, f"{one.days:,}", f"{one.rows:,}", f"{one.set_aside:,}" if one.set_aside else "") for one in tables
    ]
    counts = ("days", "rows", "aside")
    yield Table("The platform now", ("table", *counts), rows, right=counts, whole=("table",))
    for phase in (phase for phase in phases if phase.files or phase.changed):
        done = f"{counted(phase.files, 'file')} landed, {counted(sum(phase.changed.values()), 'day')} of tables written"
        yield Note("bold", f"{phase.name}:", f"{done}, {phase.seconds:.1f} s")
    if not any(count for phase in phases for count in phase.changed.values()):
        yield Note("green", "Nothing to do:", "every file was taken before and no day is stale.")
    if late := sum(summary.late for summary in tables):
        yield f"{counted(late, 'row')} came too late to be taken unasked: platform-assets late list"
    if ahead := sum(summary.ahead for summary in tables):
        yield f"{counted(ahead, 'row', 'wait')} for the day to come: platform-assets late list"
    if story:
        yield from story_parts(story)
    yield ""
    yield f"Done in {seconds:.1f} s. Where to look next, each after `uv run platform-assets`:"
    of_a_day = (
        (f"why {SALES} {day}", "what a day was made from, back to the files"),
        (f"read {SALES} --day {day}", "rows as readers see them"),
    )
    for command, shows in (
        *([(f"release diff {story.before} {story.after}", "what the correction changed")] if story else ()),
        *(of_a_day if day else ()),
        ("status", "what is loaded, missing, stale, held, set aside"),
        ("stale", "which days are no longer what they would be now, and why"),
        ("read quarantine.transactions", "rows that broke a rule, and why"),
        ("up", "the Dagster UI, on loopback"),
    ):
        yield f"  {command} ({shows})"
