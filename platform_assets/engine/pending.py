"""What waits to be done: arrivals not taken, stale days. Reads listings and the ledger, never rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

from platform_assets.contracts import Contract, Span
from platform_assets.engine.ingest.listing import landing_problem, list_arrivals, quiet_days
from platform_assets.engine.late.queue import days_due
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import Basis
from platform_assets.engine.state.planner import past_of, stale_days, standing_of
from platform_assets.planning.loaded import empty_days, missing_days
from platform_assets.planning.plan import Intake, Plan, make_plan
from platform_assets.planning.standing import Stale
from platform_assets.planning.steps import newest_to_take
from platform_assets.records.history import hold_of_each_day
from platform_assets.sources.landing import LandedFile, Problem

_T = TypeVar("_T")


@dataclass(frozen=True)
class Waiting:
    """What a refresh would find to do, and what it would leave.

    Args:
        files: to be taken, by raw table.
        until: newest arrival date to take, so that the run is no larger than it may be; None takes everything.
        left: files of newer arrival dates, for the next run.
        growing: files somebody still writes.
        problems: what lies in the landing area and cannot be taken.
        quiet: days to load as empty because nothing was to be expected, by raw table.
        due: days that have come and of which rows wait that arrived further ahead than was taken, by raw table.
        stale: days that can be recomputed at once, and the fingerprints they would get, by table.
        plan: what a refresh would recompute, why, and which days wait for a person.
        missing: ended days without anything that could be taken, though something was to be expected, by raw table.
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


def waiting(platform: Platform, most_files: int) -> Waiting:
    """Look at everything that waits, without starting Spark.

    Args:
        platform: what to look at.
        most_files: that one refresh should take, oldest arrival dates first.
    """
    basis = Basis.now(platform)
    standing = standing_of(basis)
    every_stale_day = stale_days(platform, standing)
    plan = make_plan(platform.catalogue, standing, every_stale_day, past_of(basis, standing, every_stale_day))
    touched = [contract for contract in platform.catalogue if contract.name not in plan.by_people]
    listings = {contract: list_arrivals(platform, contract) for contract in touched if contract.source}
    pending = [file for listing in listings.values() for file in listing.pending]
    until = newest_to_take(Counter(file.arrival_date for file in pending), most_files)
    files: dict[str, tuple[LandedFile, ...]] = {}
    quiet: dict[str, tuple[date, ...]] = {}
    missing: dict[str, tuple[date, ...]] = {}
    for contract, listing in listings.items():
        waits = {file.arrival_date for file in listing.pending}
        have, come = basis.days(contract.name), basis.delivered(contract.name)
        taken = listing.delivered - waits
        files[contract.name] = tuple(f for f in listing.pending if until is None or f.arrival_date <= until)
        quiet[contract.name] = empty_days(contract, have, taken, come, until)
        missing[contract.name] = missing_days(contract, have, waits, empty_days(contract, have, taken, come), come)
    return Waiting(
        files=_without_empty(files),
        until=until,
        left=len(pending) - sum(map(len, files.values())),
        growing=tuple(problem for listing in listings.values() for problem in listing.growing),
        problems=(
            *filter(None, [landing_problem(platform.settings, platform.catalogue)]),
            *(problem for listing in listings.values() for problem in listing.problems),
        ),
        quiet=_without_empty(quiet),
        due=_without_empty({contract.name: days_due(platform, contract) for contract in listings}),
        stale=_recomputable(platform, touched, every_stale_day),
        plan=plan,
        missing=_without_empty(missing),
    )


def intakes(platform: Platform) -> tuple[Intake, ...]:
    """What waits for every raw table: files, rows whose day has come, and days on which nothing had to come."""
    basis = Basis.now(platform)
    found: list[Intake] = []
    for contract in platform.catalogue:
        if contract.source is not None:
            listing = list_arrivals(platform, contract)
            waits = {file.arrival_date for file in listing.pending}
            quiet = quiet_days(basis, contract, listing.delivered - waits)
            size = sum(file.size for file in listing.pending)
            found.append(Intake(contract.name, len(listing.pending), size, quiet, days_due(platform, contract)))
    return tuple(intake for intake in found if intake.files or intake.quiet or intake.due)


def _recomputable(platform: Platform, tables: Iterable[Contract], every_stale_day: Stale) -> dict[str, dict[date, str]]:
    """Stale days, without those that wait for the hold of a day they read to be lifted."""
    held = {day for day, hold in hold_of_each_day(platform.ledger.holds()).items() if not hold.is_of_good_content}
    found: dict[str, dict[date, str]] = {}
    for contract in tables:
        if days := every_stale_day.get(contract.name):
            same_day = [read.table for read in contract.inputs if read.window == Span(0, 0)]
            free = {day: mark for day, mark in days.items() if not held & {(table, day) for table in same_day}}
            if free:
                found[contract.name] = free
    return found


def _without_empty(by_table: Mapping[str, tuple[_T, ...]]) -> dict[str, tuple[_T, ...]]:
    return {table: found for table, found in by_table.items() if found}
