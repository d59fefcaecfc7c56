"""`demo`: load the sample year from landing files to gold, with late corrections, then correct one more day."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
from platform_assets.cli.console import UsageError, errors, opened_platform, parse_day
from platform_assets.cli.options import call_with
from platform_assets.cli.progress import telling
from platform_assets.cli.session import computing, dagster_home
from platform_assets.engine.late.queue import late_counts
from platform_assets.engine.pending import intakes
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import plan_steps
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.layout import located
from platform_assets.places import folder_of
from platform_assets.planning.rows_aside import LateCounts
from platform_assets.progress import OnProgress, meanwhile
from platform_assets.records.manifest import new_publication
from platform_assets.report import Note, Report, Table, picked
from platform_assets.settings import Settings, load_settings
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.domains.retail.sample import Rates, Simulation
    from platform_assets.spark.session.on_demand import SparkOnDemand

YEAR_DAYS = 366
SEED = 1
LATE_DAYS = 91
"""After so many days the last late row of the simulation has arrived."""

_NAME = "one correction"
_DAYS_IN = 15
_MARK = ".demo.json"
_SETTINGS = (
    "# Written by the demo, so that every command sees the same calendar and clock.\n"
    "calendar_last = {last}\n"
    "today = {today}\n"
)
_WRITTEN = re.compile(re.escape(_SETTINGS).replace(r"\{last\}", r"\S+").replace(r"\{today\}", r"\S+"))
_ELSEWHERE = "Run the demo in a folder and a state of its own: PLATFORM_STATE=/some/folder platform-assets demo."
DOMAIN = "platform_assets.domains.retail"
_INSIDE = "Run the demo with a state folder of its own, and without a lake, landing folder or ledger elsewhere."


def _land(
    until: str | None = None, seed: int = SEED, days: int | None = None, scale: int = 1, rate: Sequence[str] = ()
) -> Report:
    """Land the sample's files up to an arrival date, day by day. Existing files stay."""
    from platform_assets.domains.retail.sample import SampleError, Simulation
    from platform_assets.domains.retail.sample import land as land_files

    settings = load_settings()
    if DOMAIN not in settings.domains:
        raise UsageError(
            f"`demo --land` delivers the sample of {DOMAIN}, which is not among the domains of this platform.",
            f"Put files of your own into {settings.landing}/<folder of the source>/<date they arrive>/ instead.",
        )
    last = settings.calendar_last or settings.last_day()
    whole = (last - settings.calendar_first).days + 1
    try:
        simulation = Simulation(
            seed=seed, first=settings.calendar_first, days=days or whole, scale=scale, rates=_rates(rate)
        )
    except SampleError as error:
        raise UsageError(error.what, error.todo) from error
    newest = parse_day(until) if until else simulation.last_arrival
    with telling("landing") as progress:
        landed = land_files(simulation, settings.landing_folder, newest, progress)
    taken = f"Landed {counted(landed.files, 'file')} with {counted(landed.rows, 'row')} up to {landed.newest}."
    then = "Take them in with `platform-assets refresh`, or by materializing the raw tables in Dagster."
    nothing = f"Nothing to land: everything up to {landed.newest} is there already."
    data = picked(landed, "files rows newest", root=settings.landing_folder)
    return Report([taken, then] if landed.files else [nothing], data)


def _rates(given: Sequence[str]) -> Rates:
    from platform_assets.domains.retail.sample import Rates

    known = {rate.name for rate in fields(Rates)}
    values: dict[str, float] = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            values[name] = float(value)
        except ValueError:
            name = ""
        if name not in known:
            raise UsageError(
                f"{text!r} is not a rate.", f"Write <name>=<share>, with one of {', '.join(sorted(known))}."
            )
    return Rates(**values)


class DemoError(PlatformError):
    """The demo cannot continue; the steps after a failed one were not begun."""


def demo(
    days: Annotated[int | None, typer.Option(min=1, help="Days of sales; all by default.")] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Delete the earlier demo with all that was delivered to it, and start over.")
    ] = False,
    land: Annotated[bool, typer.Option("--land", help="Only land files of the sample, by the options below.")] = False,
    until: Annotated[str | None, typer.Option(help="Newest arrival date to land, YYYY-MM-DD; all by default.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Another seed lets other lines go wrong.")] = None,
    scale: Annotated[int | None, typer.Option(min=1, help="Times as many lines a day.")] = None,
    rate: Annotated[list[str] | None, typer.Option(help="A share of lines, such as late=0.05; repeatable.")] = None,
) -> Report:
    """Load a real year of sales, then land its corrections and recompute exactly the days that they touch."""
    given = {"days": days, "fresh": fresh, "until": until, "seed": seed, "scale": scale, "rate": rate}
    return call_with("demo --land", _land, given) if land else call_with("demo", _demo, given)


def _demo(days: int = YEAR_DAYS, *, fresh: bool = False) -> Report:
    from platform_assets.domains.retail.sample import Simulation

    started = time.monotonic()
    settings = load_settings()
    if days > YEAR_DAYS:
        raise UsageError(f"The sample has {YEAR_DAYS} days of sales, not {days}.", "Name fewer --days.")
    if DOMAIN not in settings.domains:
        raise DemoError(f"The demo is one of {DOMAIN}, which is not among the domains of this platform.", _ELSEWHERE)
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
            phase, story = _correct(settings, simulation, spark, progress)
            phases.append(phase)
    if phases and phases[-1].failures:
        first, *more = phases[-1].failures
        raise DemoError(first, "What was published stays: run the same command again to go on from there.", more)
    with opened_platform(settings) as platform:
        summary, day = _summary(platform), story.day if story else _day_to_look_at(platform)
    seconds = time.monotonic() - started
    data = {"tables": summary, "phases": phases, "seconds": round(seconds, 1)}
    data |= {"correction": story_json(story)} if story else {}
    parts = _summary_parts(summary, phases, seconds, day, story)
    return Report(parts, data, bool(story and story.compared.surprises))


def _phase(
    settings: Settings,
    simulation: Simulation,
    name: str,
    today: date,
    spark: Callable[[], object],
    progress: OnProgress,
) -> Phase:
    """Land files up to a date and bring everything up to date through Dagster, whose runs use the existing session."""
    from platform_assets.domains.retail.sample import land

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
    """Run the assets of the whole calendar, or the job `refresh`, in this process; return what failed."""
    os.environ["DAGSTER_HOME"] = str(dagster_home(settings))
    with meanwhile(progress, "starting Dagster"):
        import dagster as dg

        from platform_assets.orchestration.build import build_definitions, materialize_range, run_job

        definitions = build_definitions(settings, progress)
    with dg.DagsterInstance.get() as instance:
        if whole:
            outcome = materialize_range(definitions, instance, *whole)
        else:
            outcome = run_job(definitions, instance, "refresh", {"platform/why": name})
    return outcome.failures


def _correct(
    settings: Settings, simulation: Simulation, spark: SparkOnDemand, progress: OnProgress
) -> tuple[Phase, Story | None]:
    """Land one file that corrects a few lines of one day; if it was ingested earlier, there is no story to show."""
    from platform_assets.domains.retail.sample import land_recount
    from platform_assets.engine.refresh import refresh

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
    """Result of one part of the demo: landed files, published days by table, messages of failed steps."""

    name: str
    files: int
    changed: dict[str, int]
    seconds: float
    failures: tuple[str, ...] = ()


def _summary(platform: Platform) -> list[dict[str, Any]]:
    """Return figures of every table from the ledger; raw rows are refused at parsing, others break a rule."""
    summaries: list[dict[str, Any]] = []
    late, snapshot, refused = late_counts(platform), LakeSnapshot.now(platform), platform.ledger.refused_rows()
    for contract in platform.catalogue:
        days = platform.ledger.current_days(contract.name).values()
        quarantined = sum(day.figures.get("quarantined", 0) for day in days)
        waits = late.get(contract.name, LateCounts())
        summary = {
            "table": contract.name,
            "days": len(snapshot.digests(contract.name)),
            "rows": sum(day.delivered for day in days),
            "set_aside": refused.get(contract.name, 0) if contract.source else quarantined,
            "late": waits.waiting,
            "ahead": waits.ahead,
        }
        summaries.append(summary)
    return summaries


def _day_to_look_at(platform: Platform) -> date | None:
    """Return a day with rows from the middle of the loaded days as an example; None if there is none."""
    days = sorted(day for day, record in platform.ledger.current_days(SALES).items() if record.rows)
    return days[min(len(days), _DAYS_IN) - 1] if days else None


def _summary_parts(
    tables: Sequence[dict[str, Any]], phases: Sequence[Phase], seconds: float, day: date | None, story: Story | None
) -> Iterator[Any]:
    """Show the whole demo at a glance, with commands about the example day, if there is one."""
    rows = []
    for one in tables:
        aside = f"{one['set_aside']:,}" if one["set_aside"] else ""
        rows.append((one["table"], f"{one['days']:,}", f"{one['rows']:,}", aside))
    counts = ("days", "rows", "aside")
    yield Table("The platform now", ("table", *counts), rows, right=counts, whole=("table",))
    for phase in (phase for phase in phases if phase.files or phase.changed):
        done = f"{counted(phase.files, 'file')} landed, {counted(sum(phase.changed.values()), 'day')} of tables written"
        yield Note("bold", f"{phase.name}:", f"{done}, {phase.seconds:.1f} s")
    if not any(count for phase in phases for count in phase.changed.values()):
        yield Note("green", "Nothing to do:", "every file was taken before and no day is stale.")
    if late := sum(summary["late"] for summary in tables):
        yield f"{counted(late, 'row')} came too late to be taken unasked: platform-assets status late"
    if ahead := sum(summary["ahead"] for summary in tables):
        yield f"{counted(ahead, 'row', 'wait')} for the day to come: platform-assets status late"
    if story:
        yield from story_parts(story)
    yield ""
    yield f"Done in {seconds:.1f} s. Where to look next, each after `uv run platform-assets`:"
    of_a_day = (
        (f"why {SALES} {day}", "what a day was computed from, back to the files"),
        (f"read {SALES} --day {day}", "rows as readers see them"),
    )
    for command, shows in (
        *([(f"diff {story.before} {story.after}", "what the correction changed")] if story else ()),
        *(of_a_day if day else ()),
        ("status", "what is loaded, missing, stale, held, set aside"),
        ("status stale", "which days are stale, and why"),
        ("read quarantine.transactions", "rows that broke a rule, and why"),
        ("up", "the Dagster UI, on loopback"),
    ):
        yield f"  {command} ({shows})"


def is_half_removed(settings: Settings) -> bool:
    """Return whether `demo --fresh` was killed while it removed the demo."""
    try:
        return bool(json.loads((settings.state / _MARK).read_bytes())["is_being_removed"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def demo_clock(settings: Settings, last: date) -> date | None:
    """Return how far an earlier demo of this installation got; refuse another length, or a clock set elsewhere."""
    for name in ("PLATFORM_CALENDAR_LAST", "PLATFORM_TODAY"):
        if os.environ.get(name):
            raise UsageError(f"{name} is set, and the demo keeps a calendar of its own.", f"Unset {name} for it.")
    if not _is_demo(settings) or not clock_file(settings).is_file():
        return None
    if settings.calendar_last != last:
        days = (settings.calendar_last - settings.calendar_first).days + 1 if settings.calendar_last else 0
        raise UsageError(
            f"This installation holds a demo of {days} days.",
            f"Run `demo --days {days}` to go on with it, or `demo --fresh` to remove it and start over.",
        )
    return settings.today


def begin_demo(settings: Settings) -> None:
    """Mark an empty installation as a demo; refuse one with deliveries, or whose ledger belongs to another lake."""
    from platform_assets.ledger.ledger import Ledger

    if not _is_demo(settings):
        if delivered := next(_deliveries(settings.landing_folder), None):
            raise DemoError(f"{delivered} was not put there by a demo.", _ELSEWHERE)
        files = _ledger_files(settings)
        if not files or files[0].exists():
            with Ledger.open(settings.ledger_url.get_secret_value()) as ledger:
                if ledger.indexed():
                    raise DemoError("The ledger has publications of another lake.", _ELSEWHERE)
    _mark(settings, is_being_removed=False)


def set_clock(settings: Settings, last: date, today: date) -> Settings:
    """Write the demo's calendar and clock for every command, and return the resulting settings."""
    (located(settings.state) / "settings.toml").replace(_SETTINGS.format(last=last, today=today).encode())
    return load_settings()


def clock_file(settings: Settings) -> Path:
    """Return the settings file that the demo writes."""
    return settings.state / "settings.toml"


def remove_demo(settings: Settings) -> None:
    """Remove landing area, lake, ledger and Dagster's storage of a demo; continue a removal that was killed.

    Refuse an installation that is not a demo, or a part of it outside the state folder.
    """
    if not _is_demo(settings):
        return
    ledger, dagster = _ledger_files(settings), settings.state / "dagster"
    if not ledger:
        raise DemoError("The ledger is on a server, so the demo does not remove it.", _INSIDE)
    for place in (settings.lake, settings.landing, str(dagster), str(ledger[0])):
        folder = folder_of(place)
        if folder is None or settings.state.resolve() not in folder.resolve().parents:
            raise DemoError(
                f"{place} is outside the state folder {settings.state}, so the demo does not remove it.", _INSIDE
            )
    _mark(settings, is_being_removed=True)
    # The ledger first: a lake without one gets it anew, and a ledger without its lake is refused.
    for path in (*ledger, settings.lake_folder, settings.landing_folder, dagster, clock_file(settings)):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    (settings.state / _MARK).unlink()
    errors.print("Removed the earlier demo.")  # standard output is for the JSON of the demo


def _mark(settings: Settings, *, is_being_removed: bool) -> None:
    settings.state.mkdir(parents=True, exist_ok=True)
    (located(settings.state) / _MARK).replace(json.dumps({"is_being_removed": is_being_removed}).encode())


def _is_demo(settings: Settings) -> bool:
    """Return whether the demo marked this installation; refuse one that is in real use."""
    marked, clock = (settings.state / _MARK).is_file(), clock_file(settings)
    if clock.is_file() and not _WRITTEN.fullmatch(clock.read_text(encoding="utf-8", errors="replace")):
        raise DemoError(f"{clock} was not written by a demo, so this installation is in real use.", _ELSEWHERE)
    if not marked and clock.is_file():
        raise DemoError(f"No demo marked {settings.state} as its own, so this installation is in real use.", _ELSEWHERE)
    if not marked and next(iter(located(settings.lake).names()), None):
        raise DemoError(f"{settings.lake} already holds a lake that is not a demo's.", _ELSEWHERE)
    return marked


def _deliveries(landing: Path) -> Iterator[Path]:
    files = (path for path in sorted(landing.rglob("*")) if path.is_file())
    return (path for path in files if not any(part.startswith(".") for part in path.relative_to(landing).parts))


def _ledger_files(settings: Settings) -> tuple[Path, ...]:
    """Return the ledger's file and SQLite's files next to it; none for a server."""
    from platform_assets.ledger.connection import parse_url, sqlite_file

    file = sqlite_file(parse_url(settings.ledger_url.get_secret_value()))
    return tuple(Path(f"{file}{ending}") for ending in ("", "-wal", "-shm", "-journal")) if file else ()
