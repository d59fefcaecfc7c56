"""What is to be recomputed and why, from the ledger and the lake's log: no session is started.

The only rows read are those of reference data whose content is new (`engine.state.reference_data`), once for each
content.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cache

from platform_assets.contracts import Contract
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import Basis
from platform_assets.engine.state.reference_data import view_of, views_read
from platform_assets.engine.state.schema_changes import changes_of_contract, changing
from platform_assets.lakehouse.errors import BeyondWindowError
from platform_assets.lakehouse.releases import release
from platform_assets.planning.configuration import ContractChange
from platform_assets.planning.fingerprints import View, parse_attempt, refused_now
from platform_assets.planning.plan import Intake, Plan, PlannedStep, left_to_do, make_plan
from platform_assets.planning.reasons import Past, Reasons, ordered, through_data, through_version
from platform_assets.planning.rollback import tried_otherwise
from platform_assets.planning.selection import AUTOMATIC, BY_PERSON, Request
from platform_assets.planning.standing import DayMark, Marks, Stale, Standing, stale
from platform_assets.planning.ties import Tie
from platform_assets.records.code_version import Version


def standing_of(basis: Basis, tables: Collection[str] | None = None) -> Standing:
    """Where the days of all tables, or of some, stand."""
    platform = basis.platform
    names = platform.catalogue.names if tables is None else tables
    refused: dict[str, set[tuple[date, str]]] = {}
    by_people: dict[tuple[str, date], list[str]] = {}
    tied: dict[str, set[Tie]] = {}
    for hold in basis.holds():
        if hold.tied_to is not None:
            tied.setdefault(hold.table, set()).add((hold.day, hold.tied_to))
        elif hold.table in platform.code_versions:
            mark = refused_now(hold.refused, platform.version(hold.table))
            if hold.is_of_good_content:
                by_people.setdefault((hold.table, hold.day), []).append(hold.refused)
                mark, _ = parse_attempt(hold.refused)
            refused.setdefault(hold.table, set()).add((hold.day, mark))
    marks = basis.marks(names)
    return Standing(
        marks=marks,
        refused=refused,
        tried_otherwise=_tried_otherwise(platform, by_people, marks),
        calendar=platform.calendar,
        views=views_read([platform.catalogue[name] for name in names], basis),
        tied=tied,
        versions={name: platform.version(name) for name in names if name in platform.code_versions},
        changing=changing(basis, [platform.catalogue[name] for name in names], marks),
    )


def stale_days(platform: Platform, standing: Standing) -> Stale:
    """Every day that is stale through data, by table."""
    every_day = standing.calendar.days()
    found = {c.name: stale(c, every_day, standing) for c in platform.catalogue if c.inputs}
    return {table: days for table, days in found.items() if days}


def plan_steps(
    platform: Platform, request: Request = AUTOMATIC, intakes: Collection[Intake] = (), basis: Basis | None = None
) -> Plan:
    """What a refresh of what is asked for would do now; in a stage, on what the stage shows."""
    basis = basis or Basis.now(platform)
    standing = standing_of(basis)
    found = stale_days(platform, standing)
    return make_plan(platform.catalogue, standing, found, past_of(basis, standing, found), request, intakes)


@dataclass(frozen=True)
class Outlook:
    """What is stale now, and who takes it.

    Args:
        everything: what a person's refresh would do.
        automatic: what the next run of a sensor or schedule would do; what is missing here waits for a person.
        changes: of contracts, since days were computed that are still there, by table.
    """

    everything: Plan
    automatic: Plan
    changes: Mapping[str, tuple[ContractChange, ...]]


def outlook(platform: Platform, intakes: Collection[Intake] = ()) -> Outlook:
    """What is stale now in all tables."""
    basis = Basis.now(platform)
    standing = standing_of(basis)
    found = stale_days(platform, standing)
    past = past_of(basis, standing, found)
    everything, automatic = (
        make_plan(platform.catalogue, standing, found, past, request, intakes) for request in (BY_PERSON, AUTOMATIC)
    )
    changes = {c.name: changes_of_contract(basis, c, standing.marks.get(c.name, {})) for c in platform.catalogue}
    return Outlook(everything, automatic, {table: found for table, found in changes.items() if found})


def past_of(basis: Basis, standing: Standing, found: Mapping[str, Collection[date]]) -> Past:
    """What stale days were made from, and what became of that since."""
    read_at: dict[str, dict[date, dict[str, int]]] = {}
    oldest: dict[str, int] = {}
    shown_by = ReleaseIndex(basis.platform)
    for table, days in found.items():
        computed = [day for day in days if day in standing.marks.get(table, {})]
        if not computed:
            continue
        records = basis.days(table, computed)
        read_at[table] = {
            day: {name: shown_by(name, version) for name, version in record.reads.items()}
            for day, record in records.items()
        }
        for releases in read_at[table].values():
            for name, number in releases.items():
                oldest[name] = min(oldest.get(name, number), number)
    revisions = {
        name: basis.revisions(name, _published_after(standing.marks.get(name, {}), number))
        for name, number in oldest.items()
    }
    views = {name: _views_at(basis, name, read_at) for name in standing.views}
    return Past(read_at, revisions, views)


def _views_at(basis: Basis, table: str, read_at: Mapping[str, Mapping[date, Mapping[str, int]]]) -> dict[int, View]:
    """What was valid on which day of a table at every release at which a stale day read it."""
    numbers = {releases.get(table, -1) for days in read_at.values() for releases in days.values()} - {-1}
    found: dict[int, View] = {}
    for number in sorted(numbers):
        # What nobody can look up any more is as if nothing had been valid then, and so a reason.
        with suppress(BeyondWindowError):
            found[number] = view_of(table, Basis(basis.platform, release(basis.platform.lake, number)))
    return found


def reasons_now(
    basis: Basis, contract: Contract, days: Collection[date], *, asked: Collection[date]
) -> dict[date, Reasons]:
    """Why days of one table are to be computed; a day that is not stale was asked for.

    Args:
        basis: what to look at.
        contract: of the table.
        days: of it.
        asked: those of them that were asked for whatever their state.
    """
    standing = standing_of(basis, {contract.name, *(read.table for read in contract.inputs)})
    found = stale(contract, days, standing)
    past = past_of(basis, standing, {contract.name: found})
    by_data = through_data(contract, found, standing, past)
    by_version = through_version(contract, days, standing)
    reasons = {day: {*by_data.get(day, ()), *by_version.get(day, ())} for day in days}
    return {day: ordered({*why, "asked for"} if day in asked or not why else why) for day, why in reasons.items()}


def still_to_do(basis: Basis, step: PlannedStep, request: Request) -> tuple[tuple[date, ...], tuple[date, ...]]:
    """As `left_to_do`, on what is there by now."""
    contract = basis.platform.catalogue[step.table]
    standing = standing_of(basis, {contract.name, *(read.table for read in contract.inputs)})
    return left_to_do(contract, step, standing, request)


class ReleaseIndex:
    """Which release last showed a version of a table; versions only grow, so few releases have to be looked at."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._newest = platform.current_release()
        self._versions = cache(lambda number: release(platform.lake, number).versions)
        self._found: dict[tuple[str, int], int] = {}

    @property
    def newest(self) -> int:
        """The number of the current release."""
        return self._newest.number

    def version(self, table: str) -> int:
        """The version of a table that is shown now; -1 for one that was never published."""
        return self._newest.versions.get(table, -1)

    def __call__(self, table: str, version: int) -> int:
        """The number of the newest release that shows the version; -1 for a table that was not there."""
        if version < 0:
            return -1
        if version >= self._newest.versions.get(table, -1):
            return self._newest.number
        if (table, version) not in self._found:
            low, high = 0, self._newest.number
            while high - low > 1:
                middle = (low + high) // 2
                if self._versions(middle).get(table, -1) <= version:
                    low = middle
                else:
                    high = middle
            self._found[table, version] = low
        return self._found[table, version]


def _tried_otherwise(
    platform: Platform, refused: Mapping[tuple[str, date], Collection[str]], marks: Marks
) -> dict[str, dict[date, tuple[bool, bool]]]:
    """Days of which people refused what other code or another configuration made, and which are not today's already."""
    found: dict[str, dict[date, tuple[bool, bool]]] = {}
    for (table, day), all_of_it in refused.items():
        now, there = platform.version(table), marks.get(table, {}).get(day)
        done = there and any(_is_of(there, one, now) for one in all_of_it)
        if not done and any(differs := tried_otherwise(all_of_it, now)):
            found.setdefault(table, {})[day] = differs
    return found


def _is_of(there: DayMark, refused: str, version: Version) -> bool:
    """Whether a day was made by a version from the input that was refused in another way."""
    made_by = (there.code_version, there.configuration)
    return there.fingerprint == parse_attempt(refused)[0] and made_by == (version.code, version.configuration)


def _published_after(marks: Mapping[date, DayMark], number: int) -> list[date]:
    return [day for day, mark in marks.items() if mark.release > number]
