"""List waiting work: arrivals not ingested, stale days. Reads listings and the ledger, never rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from platform_assets.contracts import Catalogue, Contract
from platform_assets.engine.circuits import circuits
from platform_assets.engine.late.queue import days_due
from platform_assets.engine.platform import Platform
from platform_assets.engine.readings import unread_by_table
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import look_at_all, past_of, states_around
from platform_assets.planning.arrivals import empty_days, missing_days
from platform_assets.planning.circuit import CircuitState, Try
from platform_assets.planning.day_states import Stale, TableStates, UpToDate, stale_through_data
from platform_assets.planning.plan import Intake, Plan, make_plan
from platform_assets.planning.steps import newest_to_take
from platform_assets.planning.windows import days_later
from platform_assets.records.code_version import Attempt, Version
from platform_assets.sources.landing import Hashes, Known, LandedFile, Listing, Problem
from platform_assets.sources.limits import Limits
from platform_assets.sources.listing import landing_area, list_landing

if TYPE_CHECKING:
    from platform_assets.settings import Settings


def landing_problem(settings: Settings, catalogue: Catalogue) -> Problem | None:
    """Return the problem of the landing root itself; with one, nothing is ingested.

    Only the default root may be missing: the first delivery creates it.
    """
    return landing_area(settings).problem() if any(contract.source for contract in catalogue) else None


def unread_folders(settings: Settings, catalogue: Catalogue) -> dict[str, str]:
    """Return folders of the landing area that belong to no table, each with the folder that was perhaps meant.

    Returns:
        By path below the landing root; hidden folders are ignored, and the list may be empty.
    """
    sources = [contract.source.folder for contract in catalogue if contract.source]
    above = {parent.as_posix() for source in sources for parent in PurePosixPath(source).parents}
    area = landing_area(settings)
    unread: dict[str, str] = {}
    for folder in sorted(above):
        for name in area.folders(folder):
            path = PurePosixPath(folder, name).as_posix()
            if path not in {*sources, *above}:
                unread[path] = next(iter(get_close_matches(path, sources, 1)), "")
    return unread


def each_once(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return problems of several tables, each once: tables may share a folder."""
    return tuple({problem.path: problem for problem in problems}.values())


def list_arrivals(
    platform: Platform, contract: Contract, until: date | None = None, *, among: Collection[str] | None = None
) -> Listing:
    """Return deliveries for a raw table that are not ingested yet, up to today or an earlier arrival date."""
    assert contract.source is not None
    known = {
        path: Known(size, modified_ns, sha256, is_refused)
        for path, size, modified_ns, sha256, is_refused in platform.ledger.known_files(contract.name)
    }
    settings = platform.settings
    today = settings.current_day()
    listing = list_landing(
        landing_area(settings),
        contract.source,
        known,
        until=today if until is None else min(today, until),
        settle_s=settings.settle_s,
        limits=Limits.of(settings),
        hashes=Hashes.in_state(settings.state),
        among=among,
    )
    return replace(listing, problems=tuple(_with_what_counts(problem, contract) for problem in listing.problems))


def landed_files(
    platform: Platform, contract: Contract, paths: Collection[str], *, with_others: bool = False
) -> tuple[dict[str, LandedFile], dict[str, str]]:
    """Return files in the landing area, also ingested ones, and problems of the rest, by path.

    Args:
        with_others: whether all other files of the table are returned too.
    """
    assert contract.source is not None
    settings = platform.settings
    listing = list_landing(
        landing_area(settings),
        contract.source,
        {},
        until=settings.current_day(),
        settle_s=settings.settle_s,
        limits=Limits.of(settings),
        among=None if with_others else paths,
    )
    there = {file.path: file for file in listing.pending}
    wrong = {problem.path: problem.message for problem in (*listing.problems, *listing.growing)}
    gone = f"is not among the files of {contract.source.folder} any more"
    return there, {path: wrong.get(path, gone) for path in paths if path not in there}


def _with_what_counts(problem: Problem, contract: Contract) -> Problem:
    """Add to a replaced file how to deliver its correction so that it counts."""
    if not problem.is_replaced:
        return problem
    todo = "deliver a correction with a later arrival date, since of each key the newest arrival counts"
    if contract.versioned_by:
        todo = f"{problem.todo}; of each key the row with the newest `{', '.join(contract.versioned_by)}` counts"
    return replace(problem, todo=todo)


def quiet_days(
    snapshot: LakeSnapshot, contract: Contract, delivered: Collection[date], until: date | None = None
) -> tuple[date, ...]:
    """Return days to load as empty: nothing was expected, or an arrival came without rows.

    Args:
        until: newest arrival date to look at; files of later dates may wait.
    """
    have = snapshot.delivered_days(contract.name)
    return empty_days(contract, have, delivered, snapshot.delivered(contract.name), until)


_T = TypeVar("_T")


@dataclass(frozen=True)
class Waiting:
    """What a refresh would do, and what it would leave.

    Args:
        until: newest arrival date to ingest, which bounds the run; None ingests everything.
        left: files of newer arrival dates, for the next run.
        quiet: days to load as empty because no rows were expected, by raw table.
        due: days that have come and have waiting rows, by raw table.
        stale: days that can be recomputed at once, and the fingerprints they would get, by table.
        plan: what a refresh would recompute, why, which days wait for a person, and which circuits it would try.
        missing: ended days without a delivery although one was expected, by raw table.
        unread: how far sources with new rows were read, by raw table.
    """

    files: Mapping[str, tuple[LandedFile, ...]]
    until: date | None
    left: int
    growing: tuple[Problem, ...]
    problems: tuple[Problem, ...]
    quiet: Mapping[str, tuple[date, ...]]
    due: Mapping[str, tuple[date, ...]]
    stale: Mapping[str, Mapping[date, str]]
    plan: Plan
    missing: Mapping[str, tuple[date, ...]]
    unread: Mapping[str, str] = field(default_factory=dict)


def waiting(platform: Platform, most_files: int) -> Waiting:
    """Find everything that waits, without starting Spark."""
    snapshot = LakeSnapshot.now(platform)
    tables, states = look_at_all(snapshot)
    plan = make_plan(platform.catalogue, tables, states, past_of(snapshot, tables, states))
    plan = replace(plan, tries=due_tries(platform))
    left = {*plan.by_people, *tables.stopped}
    touched = [contract for contract in platform.catalogue if contract.name not in left]
    listings = {contract: list_arrivals(platform, contract) for contract in touched if contract.source}
    unread, not_read = unread_by_table(platform, touched)
    pending = [file for listing in listings.values() for file in listing.pending]
    until = newest_to_take(Counter(file.arrival_date for file in pending), most_files)
    files: dict[str, tuple[LandedFile, ...]] = {}
    quiet: dict[str, tuple[date, ...]] = {}
    missing: dict[str, tuple[date, ...]] = {}
    for contract, listing in listings.items():
        waits = {file.arrival_date for file in listing.pending}
        have, come = snapshot.delivered_days(contract.name), snapshot.delivered(contract.name)
        taken = listing.delivered - waits
        files[contract.name] = tuple(f for f in listing.pending if until is None or f.arrival_date <= until)
        quiet[contract.name] = empty_days(contract, have, taken, come, until)
        missing[contract.name] = missing_days(contract, have, waits, empty_days(contract, have, taken, come), come)
    return Waiting(
        files=_without_empty(files),
        until=until,
        left=len(pending) - sum(map(len, files.values())),
        growing=each_once(problem for listing in listings.values() for problem in listing.growing),
        problems=(
            *filter(None, [landing_problem(platform.settings, platform.catalogue)]),
            *each_once((*not_read, *(problem for listing in listings.values() for problem in listing.problems))),
        ),
        quiet=_without_empty(quiet),
        due=_without_empty({contract.name: days_due(snapshot, contract) for contract in listings}),
        stale={c.name: days for c in touched if (days := stale_through_data(states.get(c.name, {})))},
        plan=plan,
        missing=_without_empty(missing),
        unread=unread,
    )


def due_tries(platform: Platform, tables: Collection[str] | None = None) -> dict[str, Try]:
    """Return the due tries of open circuits, by table.

    A try is due after the wait, or at once when the day has other input or code. If an input of that day is held or
    missing, or the day was rolled back, the newest stale day is tried after the wait.
    """
    states = circuits(platform, tables).items()
    opened = {table: state for table, state in states if state.state in ("open", "half-open")}
    if not opened:  # as before nearly every step: the release need not be read
        return {}
    snapshot = LakeSnapshot(platform, platform.current_release(), is_private=True)
    days = {table: _day_to_try(snapshot, platform.catalogue[table], state) for table, state in opened.items()}
    return {table: Try(day, opened[table].next_try, opened[table].follows) for table, day in days.items() if day}


def _day_to_try(snapshot: LakeSnapshot, contract: Contract, state: CircuitState) -> date | None:
    failing = {verdict.day: verdict for verdict in state.failing if verdict.day and verdict.day in snapshot.calendar}
    if not failing:
        return None
    states = states_around(snapshot, contract, failing)[1]
    # A day that is good by now would pass, and say nothing of the others.
    day = max([each for each in failing if not isinstance(states[each], UpToDate)] or failing)
    tables, forced = states_around(snapshot, contract, [day], forced=[day])
    now, failed = forced.get(day), failing[day].attempt
    is_half_open = state.state == "half-open"
    if isinstance(now, Stale):
        attempt = Attempt(now.fingerprint, snapshot.platform.version(contract.name))
        if not _was_put_back(tables, contract.name, day, attempt):
            is_other = bool(failed.fingerprint) and failed != attempt
            return day if is_other or is_half_open else None
    if not is_half_open:
        return None
    others = states_around(snapshot, contract, snapshot.calendar.days())[1]
    return max((other for other, its in others.items() if isinstance(its, Stale)), default=None)


def _was_put_back(tables: TableStates, table: str, day: date, attempt: Attempt) -> bool:
    """Return whether a day was rolled back to exactly the content that an attempt would produce."""
    mark = tables.marks.get(table, {}).get(day)
    if mark is None or Attempt(mark.fingerprint, Version(mark.code_version, mark.configuration)) != attempt:
        return False
    return any(hold.day == day and hold.is_of_good_content for hold in tables.holds.get(table, ()))


@dataclass(frozen=True)
class Delivered:
    """What a person's refresh finds in the landing area.

    Args:
        intakes: deliveries to ingest, by raw table.
        growing: files that are still being written.
        problems: files that cannot be ingested.
        missing: days up to today that a source has not delivered yet, by raw table; nothing for a table without any
            delivery.
    """

    intakes: tuple[Intake, ...] = ()
    growing: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()
    missing: Mapping[str, tuple[date, ...]] = field(default_factory=dict)


def intakes(platform: Platform) -> tuple[Intake, ...]:
    """Return waiting work of every raw table: files, rows whose day has come, and days without an expected delivery."""
    return delivered(platform).intakes


def delivered(platform: Platform, among: Collection[str] | None = None) -> Delivered:
    """Return waiting work of raw tables, as `intakes`, files that still grow, and files that cannot be ingested."""
    snapshot = LakeSnapshot.now(platform)
    all_intakes: list[Intake] = []
    missing: dict[str, tuple[date, ...]] = {}
    growing: list[Problem] = []
    problems: list[Problem] = []
    for contract in platform.catalogue:
        if contract.source is not None and (among is None or contract.name in among):
            listing = list_arrivals(platform, contract)
            waits = {file.arrival_date for file in listing.pending}
            quiet = quiet_days(snapshot, contract, listing.delivered - waits)
            have, come = snapshot.delivered_days(contract.name), snapshot.delivered(contract.name)
            awaited = replace(come, today=days_later(come.today, 1))  # what should come today is not there yet, too
            missing[contract.name] = missing_days(contract, have, waits, quiet, awaited) if come.newest else ()
            size = sum(file.size for file in listing.pending)
            all_intakes.append(Intake(contract.name, len(listing.pending), size, quiet, days_due(snapshot, contract)))
            growing += listing.growing
            problems += listing.problems
    takes = tuple(intake for intake in all_intakes if intake.files or intake.quiet or intake.due)
    root = landing_problem(platform.settings, platform.catalogue)
    left = (*([root] if root else []), *each_once(problems))
    return Delivered(takes, each_once(growing), left, _without_empty(missing))


def _without_empty(by_table: Mapping[str, tuple[_T, ...]]) -> dict[str, tuple[_T, ...]]:
    return {table: entries for table, entries in by_table.items() if entries}
