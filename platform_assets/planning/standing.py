"""What planning knows of every table's days, and which of them are no longer what they would be now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import NamedTuple

from platform_assets.contracts import Catalogue, Contract
from platform_assets.planning.configuration import Need
from platform_assets.planning.fingerprints import Digests, Views, fingerprints
from platform_assets.planning.ties import Tie, still_refused
from platform_assets.planning.windows import Calendar
from platform_assets.records.code_version import Version


class DayMark(NamedTuple):
    """What is asked about every day of every table.

    Args:
        day: event date.
        release: the number of the release that made the day what it is.
        digest: of the whole content.
        fingerprint: what the day was made from; empty for raw days.
        rows: of the whole content.
        bytes: of the whole content.
        code_version: of the transform; empty for raw days.
        configuration: of the contract; empty where nobody recorded it.
        seconds: the day's share of the time its table took.
    """

    day: date
    release: int = 0
    digest: str = ""
    fingerprint: str = ""
    rows: int = 0
    bytes: int = 0
    code_version: str = ""
    configuration: str = ""
    seconds: float = 0.0


Marks = Mapping[str, Mapping[date, DayMark]]
"""The mark of every loaded day, by table."""

Stale = Mapping[str, Mapping[date, str]]
"""Days stale through data, with the fingerprint each would get now, by table."""


@dataclass(frozen=True)
class Standing:
    """Where every table's days stand at a release.

    Args:
        marks: every loaded day, by table.
        refused: days that are held, each with a fingerprint that must not be published, by table. No fingerprint where
            other code or another configuration than today's was refused; of what a person put back always the
            fingerprint, since code alone undoes no rollback.
        calendar: the days that exist.
        versions: by what each table with a transform is computed today; without it, nothing is stale through that.
        views: of every table that is read as of a day.
        tied: days that are held only because another one is, with that day, by table.
        changing: tables that have other columns, or days of another key, than their contract says today, and what each
            needs to follow it.
        tried_otherwise: of days that a person put back, whether other code, and another configuration, than today's had
            made what was refused, by table: they wait for a person like all that is stale through these.
    """

    marks: Marks
    refused: Mapping[str, Collection[tuple[date, str]]]
    calendar: Calendar
    versions: Mapping[str, Version] = field(default_factory=dict)
    views: Views = field(default_factory=dict)
    tied: Mapping[str, Collection[Tie]] = field(default_factory=dict)
    changing: Mapping[str, Need] = field(default_factory=dict)
    tried_otherwise: Mapping[str, Mapping[date, tuple[bool, bool]]] = field(default_factory=dict)

    @cached_property
    def digests(self) -> Digests:
        """Content of every loaded day, by table."""
        return {table: {day: mark.digest for day, mark in marks.items()} for table, marks in self.marks.items()}


def stale(contract: Contract, days: Collection[date], standing: Standing) -> dict[date, str]:
    """The days that would be made from something else now, and the fingerprint each would get.

    A day is left out while an input of it was never loaded, and while it would get a fingerprint that is refused: only
    other input, or other code, makes another attempt worth its while. A held day whose inputs are again as they were
    when it was last right counts as well, because that lifts its hold.
    """
    refused, tied = standing.refused.get(contract.name, ()), standing.tied.get(contract.name, ())
    asked = {*days, *(root for _, root in tied)}
    now = fingerprints(contract, asked, standing.digests, standing.calendar, standing.views)
    have = standing.marks.get(contract.name, {})
    held = {day for day, _ in (*refused, *tied)}
    left_alone = still_refused(refused, tied, now)
    return {
        day: mark
        for day in days
        if (mark := now.get(day)) is not None
        and (day not in have or have[day].fingerprint != mark or day in held)
        and day not in left_alone
    }


def unchanged(contract: Contract, days: Collection[date], standing: Standing) -> tuple[date, ...]:
    """The days that would be made from exactly what they were made from, oldest first."""
    now = fingerprints(contract, days, standing.digests, standing.calendar, standing.views)
    have = standing.marks.get(contract.name, {})
    return tuple(day for day in sorted(now) if day in have and have[day].fingerprint == now[day])


def outdated(contract: Contract, days: Collection[date], standing: Standing) -> dict[date, tuple[bool, bool]]:
    """The days computed, or put back because of what was computed, by other code or configuration than today's."""
    if (version := standing.versions.get(contract.name)) is None:
        return {}
    have = standing.marks.get(contract.name, {})
    # Few versions made all the days: compare each once.
    differs = {
        made: Version(*made).differs(version) for made in {(m.code_version, m.configuration) for m in have.values()}
    }
    found = {day: differs[have[day].code_version, have[day].configuration] for day in days if day in have}
    for day, (other_code, other_configuration) in standing.tried_otherwise.get(contract.name, {}).items():
        if day in days:
            code, its_configuration = found.get(day, (False, False))
            found[day] = (code or other_code, its_configuration or other_configuration)
    if contract.name in standing.changing:  # whatever is on record of its days, none has today's columns
        found = {day: (other_code, True) for day, (other_code, _) in found.items()}
    return {day: which for day, which in found.items() if any(which)}


def left_to_people(catalogue: Catalogue, standing: Standing) -> frozenset[str]:
    """Tables that no run of a sensor or schedule touches: those that have to follow their contract, and their readers.

    What reads such a table would read other columns than it was written for. Raw tables take added columns by
    themselves, with the next delivery.
    """
    own = {name for name, need in standing.changing.items() if catalogue[name].inputs or need != "any days"}
    return frozenset(own | {c.name for c in catalogue if any(read.table in own for read in c.inputs)})
