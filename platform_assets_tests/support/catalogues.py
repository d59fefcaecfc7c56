"""Small catalogues and where their days stand, as plain values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date, timedelta

from platform_assets.contracts import Catalogue, Column, Contract, Domain, Input, LandingFiles, Span, Window
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.planning.plan import Plan, make_plan
from platform_assets.planning.reasons import Past
from platform_assets.planning.selection import AUTOMATIC, Request
from platform_assets.planning.standing import DayMark, Standing, stale
from platform_assets.planning.windows import Calendar, days_read
from platform_assets.records.code_version import Version

FIRST = date(2017, 1, 1)
CALENDAR = Calendar(FIRST, FIRST + timedelta(days=59))
KEY = Column("k", "long", "Key.", nullable=False)
AT = Column("at", "date", "When.", nullable=False)
NOW = Version("code", "configuration")
Days = Mapping[str, Collection[date]]


def nth(n: int) -> date:
    """A day of the calendar, from 0."""
    return FIRST + timedelta(days=n)


def nths(*numbers: int) -> tuple[date, ...]:
    """Days of the calendar."""
    return tuple(map(nth, numbers))


def chain(*windows: Window) -> Catalogue:
    """raw.t0 -> silver.t1 -> gold.t2 -> gold.t3 …, each through its window."""
    raw = Contract("raw.t0", "", "", (KEY, AT), ("k",), source=LandingFiles("t"), event_time="at")
    tables = [raw, Contract("silver.t1", "", "", (KEY,), ("k",), inputs=(Input("raw.t0", Span(0, 0)),))]
    for n, window in enumerate(windows, start=2):
        reads = (Input(tables[-1].name, window),)
        tables.append(Contract(f"gold.t{n}", "", "", (KEY,), ("k",), inputs=reads))
    return Catalogue.of([Domain("chain", tuple(tables), "nowhere")])


def computed(
    catalogue: Catalogue,
    *,
    changed: Days | None = None,
    lacking: Days | None = None,
    refused: Mapping[str, Collection[tuple[date, str]]] | None = None,
    made_by: Mapping[str, Mapping[date, Version]] | None = None,
) -> Standing:
    """Every day of every table computed, after which some days of some tables changed.

    Args:
        catalogue: of the tables.
        changed: days that have other content than those computed from them read.
        lacking: days that were never loaded.
        refused: held days with the fingerprints refused.
        made_by: by what days were computed, if not by what they would be today.
    """
    content = {name: {day: f"{name} {day}" for day in CALENDAR.days()} for name in catalogue.names}
    marks: dict[str, dict[date, DayMark]] = {}
    for contract in catalogue:
        recorded = fingerprints(contract, CALENDAR.days(), content, CALENDAR, {}) if contract.inputs else {}
        missing = (lacking or {}).get(contract.name, ())
        versions = (made_by or {}).get(contract.name, {})
        marks[contract.name] = {
            day: DayMark(
                day,
                release=1,
                digest=f"{digest} again" if day in (changed or {}).get(contract.name, ()) else digest,
                fingerprint=recorded.get(day, ""),
                rows=100,
                bytes=1000,
                code_version=versions.get(day, NOW).code if contract.inputs else "",
                configuration=versions.get(day, NOW).configuration if contract.inputs else "",
                seconds=0.1 if contract.inputs else 0.0,
            )
            for day, digest in content[contract.name].items()
            if day not in missing
        }
    names = [contract.name for contract in catalogue if contract.inputs]
    return Standing(marks, refused or {}, CALENDAR, dict.fromkeys(names, NOW))


def planned(catalogue: Catalogue, standing: Standing, request: Request = AUTOMATIC, past: Past | None = None) -> Plan:
    """The plan for a standing."""
    found = {c.name: stale(c, CALENDAR.days(), standing) for c in catalogue if c.inputs}
    return make_plan(catalogue, standing, found, past or Past(), request)


def days_of(plan: Plan) -> dict[str, set[date]]:
    """The days of each step."""
    return {step.table: set(step.days) for step in plan.steps}


def brute_force(catalogue: Catalogue, changed: Mapping[str, Iterable[date]]) -> dict[str, set[date]]:
    """Ask every day of every table whether it reads a changed one."""
    dirty = {name: set(days) for name, days in changed.items()}
    for contract in catalogue:
        for day in CALENDAR.days():
            for read in contract.inputs:
                start, end = days_read(read.window, day, CALENDAR)
                if any(start <= d <= end for d in dirty.get(read.table, ())):
                    dirty.setdefault(contract.name, set()).add(day)
    return {name: days for name, days in dirty.items() if days and not name.startswith("raw.")}
