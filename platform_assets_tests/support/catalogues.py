"""Small catalogues and where their days stand, as plain values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta

from platform_assets.contracts import Catalogue, Column, Contract, Domain, Input, LandingFiles, Span, Window
from platform_assets.planning.day_states import TableStates, day_states
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.planning.plan import Plan, make_plan
from platform_assets.planning.reasons import Past
from platform_assets.planning.selection import AUTOMATIC, Request
from platform_assets.planning.windows import Calendar, days_read
from platform_assets.records.code_version import Refused, Version
from platform_assets.records.history import DayMark, Hold

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
    holds: Collection[Hold] = (),
    made_by: Mapping[str, Mapping[date, Version]] | None = None,
) -> TableStates:
    """Every day of every table computed, after which some days of some tables changed.

    Args:
        catalogue: of the tables.
        changed: days that have other content than those computed from them read.
        lacking: days that were never loaded.
        holds: of days.
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
    by_table = {name: [hold for hold in holds if hold.table == name] for name in names}
    return TableStates(marks, by_table, CALENDAR, dict.fromkeys(names, NOW))


def hold(table: str, day: date, refused: Refused, gate: str = "volume") -> Hold:
    """A hold by a gate, or what `gate` says instead."""
    return Hold(table, day, refused, gate, "too few rows", "run", datetime(2017, 6, 1, tzinfo=UTC))


def planned(catalogue: Catalogue, tables: TableStates, request: Request = AUTOMATIC, past: Past | None = None) -> Plan:
    """The plan for what is known of tables."""
    states = {c.name: day_states(c, CALENDAR.days(), tables) for c in catalogue if c.inputs}
    return make_plan(catalogue, tables, states, past or Past(), request)


def days_of(plan: Plan) -> dict[str, set[date]]:
    """The days of each step."""
    return {step.table: set(step.days) for step in plan.steps}


def brute_force(catalogue: Catalogue, changed: Mapping[str, Iterable[date]]) -> dict[str, set[date]]:
    """Ask every day of every table whether it reads a changed one."""
    dirty = {name: set(days) for name, days in changed.items()}
    for contract in catalogue:
        for day in CALENDAR.days():
            for read in contract.inputs:
                if not dirty.get(read.table, set()).isdisjoint(days_read(read.window, day, CALENDAR)):
                    dirty.setdefault(contract.name, set()).add(day)
    return {name: days for name, days in dirty.items() if days and not name.startswith("raw.")}
