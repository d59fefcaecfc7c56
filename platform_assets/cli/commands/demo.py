"""`demo`: the sample year from landing files to gold, its late corrections, and one more that shows what it takes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import date, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from platform_assets.cli.commands.demo_state import begin_demo, demo_clock, is_half_removed, remove_demo, set_clock
from platform_assets.cli.commands.demo_story import Story, compare, net_sales, reasons, shown_at, stale_days, story_json
from platform_assets.cli.commands.summary import Phase, day_to_look_at, print_summary, summarise
from platform_assets.cli.console import EXIT_LOOK, opened_platform, print_json
from platform_assets.cli.dagster_storage import dagster_home
from platform_assets.cli.options import AsJson
from platform_assets.cli.progress import telling
from platform_assets.cli.session import session_on_demand
from platform_assets.errors import PlatformError
from platform_assets.progress import OnProgress, meanwhile
from platform_assets.records.manifest import new_publication
from platform_assets.settings import Settings, load_settings

if TYPE_CHECKING:
    from platform_assets.domains.retail.sample import Simulation
    from platform_assets.spark.session.on_demand import SparkOnDemand

YEAR_DAYS = 366
SEED = 1
LATE_DAYS = 91
"""After so many days the last late row of the simulation has arrived."""

_NAME = "one correction"


class DemoFailedError(PlatformError):
    """A step of the demo failed, and what comes after it was not begun."""


def demo(
    context: typer.Context,
    days: Annotated[int, typer.Option(min=1, max=YEAR_DAYS, help="Days of sales to build.")] = YEAR_DAYS,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Delete the earlier demo with all that was delivered to it, and start over.")
    ] = False,
    as_json: AsJson = False,
) -> None:
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
    with (
        telling(context, "demo") as progress,
        session_on_demand(settings, progress, at_once=seen_until is None) as spark,
    ):
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
    if as_json:
        phases_json = [asdict(phase) for phase in phases]
        told = {"correction": story_json(story)} if story else {}
        tables = [asdict(table) for table in summary]
        print_json({"tables": tables, "phases": phases_json, "seconds": round(seconds, 1)} | told)
    else:
        print_summary(summary, phases, seconds, day, story)
    if story and story.compared.surprises:
        raise typer.Exit(EXIT_LOOK)


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
