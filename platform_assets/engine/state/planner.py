"""Find what to recompute and why, from the ledger and the lake's log, without a session.

The only rows read are those of reference data with new content (`engine.state.reference_data`), once for each content.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date

from platform_assets.contracts import AsOf, Contract
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot, ReleaseIndex
from platform_assets.engine.state.reference_data import contents_read, view_of
from platform_assets.engine.state.schema_changes import changes_of_contract, changing
from platform_assets.lakehouse.errors import BeyondWindowError
from platform_assets.lakehouse.releases import release
from platform_assets.ledger.errors import LedgerError
from platform_assets.planning.arrivals import comes_with
from platform_assets.planning.configuration import ContractChange
from platform_assets.planning.day_states import (
    Blocked,
    DayState,
    Held,
    Missing,
    Stale,
    States,
    TableStates,
    UpToDate,
    at_root,
    day_states,
    not_up_to_date,
    stale_through_data,
    unblocked,
)
from platform_assets.planning.fingerprints import View
from platform_assets.planning.last_look import Look, open_days, to_look_at
from platform_assets.planning.plan import Intake, LeftToDo, Plan, PlannedStep, estimate, left_to_do, make_plan
from platform_assets.planning.reasons import Past, Reasons, Revisions, ordered, through_data, through_version
from platform_assets.planning.selection import (
    AUTOMATIC,
    BY_PERSON,
    KeyScope,
    Request,
    ScopeError,
    refuse_protected,
    scope_of,
)
from platform_assets.planning.windows import day_range, days_in, ranges_read, union_read
from platform_assets.quality.findings import Check
from platform_assets.records.history import CIRCUIT, DayRecord, Hold


def table_states(snapshot: LakeSnapshot, tables: Collection[str] | None = None) -> TableStates:
    """Return the state of all tables, or of some, in a snapshot."""
    platform = snapshot.platform
    names = platform.catalogue.names if tables is None else tables
    contracts = [platform.catalogue[name] for name in names]
    holds: dict[str, list[Hold]] = {}
    for hold in snapshot.holds:
        if hold.table in names:
            holds.setdefault(hold.table, []).append(hold)
    marks = snapshot.marks_on_demand(names)
    contents = contents_read(contracts, snapshot)
    return TableStates(
        marks=marks,
        holds=holds,
        calendar=snapshot.calendar,
        views={table: view_of(table, snapshot, content) for table, content in contents.items()},
        versions={name: platform.version(name) for name in names if name in platform.code_versions},
        changing=changing(snapshot, contracts, marks),
        contents=contents,
        stopped={name: hold for name, hold in snapshot.stopped.items() if name in names},
    )


def states_around(
    snapshot: LakeSnapshot,
    contract: Contract,
    days: Collection[date],
    *,
    forced: Collection[date] = (),
    accept: Collection[str] = (),
) -> tuple[TableStates, dict[date, DayState]]:
    """Return the states of some days of one table, and the state of the table and its inputs."""
    tables = table_states(snapshot, {contract.name, *(read.table for read in contract.inputs)})
    return tables, day_states(contract, days, tables, forced=forced, accept=accept)


def at_root_now(snapshot: LakeSnapshot, state: Blocked) -> Blocked:
    """Return the state of a blocked day with what blocks its missing input, as far upstream as something does."""
    catalogue = snapshot.platform.catalogue
    return at_root(state, lambda table, day: states_around(snapshot, catalogue[table], [day])[1][day])


def look_at_all(snapshot: LakeSnapshot) -> tuple[TableStates, States]:
    """Return the state of all tables, and of every day of those with a transform.

    Days that are left out are up to date. The other days are cached, so that the next look covers these and later
    changes, not all history.
    """
    mark = begin_look(snapshot)
    tables, states = states_of_all(snapshot)
    keep_look(snapshot, tables, states, mark)
    return tables, states


def states_of_all(snapshot: LakeSnapshot) -> tuple[TableStates, States]:
    """Return the same without caching it."""
    catalogue, tables = snapshot.platform.catalogue, table_states(snapshot)
    look_at = to_look_at(catalogue, tables, snapshot.since) if snapshot.since else {}
    every_day = tables.calendar.days()
    return tables, {c.name: day_states(c, look_at.get(c.name, every_day), tables) for c in catalogue if c.inputs}


def begin_look(snapshot: LakeSnapshot) -> str:
    """Return the mark with which a look that begins now can be cached; empty if it cannot, as in a stage."""
    snapshot.forget_marks()
    if snapshot.since is not None:
        return snapshot.since.mark
    if not snapshot.is_staged and snapshot.calendar.last >= snapshot.calendar.first:
        with suppress(LedgerError):
            return snapshot.platform.ledger.looks.begin(snapshot.look_for, snapshot.number)
    return ""


def keep_look(snapshot: LakeSnapshot, tables: TableStates, states: States, mark: str) -> None:
    """Cache a look, if it is new. If that fails, the next plan only takes longer."""
    found = open_days(snapshot.platform.catalogue, tables, {table: not_up_to_date(of) for table, of in states.items()})
    look = Look(
        last=snapshot.calendar.last,
        today=snapshot.platform.settings.current_day(),
        open_days={table: days for table, days in found.items() if days},
        contents=tables.contents,
    )
    since = snapshot.since
    if mark and (since is None or since.published or since.look != look):
        with suppress(LedgerError):
            snapshot.platform.ledger.looks.keep(snapshot.look_for, snapshot.number, look, mark)


def plan_steps(
    platform: Platform,
    request: Request = AUTOMATIC,
    intakes: Collection[Intake] = (),
    snapshot: LakeSnapshot | None = None,
) -> Plan:
    """Return what a refresh of the request would do now; in a stage, over its staged days.

    Raises:
        ProtectedDaysError: protected days are requested.
    """
    snapshot = snapshot or LakeSnapshot.now(platform)
    tables, states = look_at_all(snapshot)
    plan = make_plan(platform.catalogue, tables, states, past_of(snapshot, tables, states), request, intakes)
    reasons = {step.table: {day: step.reasons[day] for day in step.days} for step in plan.steps}
    refuse_protected(platform.catalogue, _without(reasons, request.protected_too), tables.marks)
    return replace(plan, moment=snapshot.moment)


def refuse_protected_days(snapshot: LakeSnapshot, contract: Contract, days: Collection[date], *, forced: bool) -> None:
    """Refuse to compute protected days, unless their data changed."""
    if snapshot.platform.catalogue.protecting(contract.name):
        tables, states = states_around(snapshot, contract, days)
        by_version = {day for day, state in states.items() if isinstance(state, Stale) and not state.by_data}
        asked: dict[date, Reasons] = {day: ("asked for",) for day in days if forced or day in by_version}
        refuse_protected(snapshot.platform.catalogue, {contract.name: asked}, tables.marks)


def _without(reasons: Mapping[str, Mapping[date, Reasons]], days: Collection[date]) -> dict[str, dict[date, Reasons]]:
    return {table: {day: why for day, why in of.items() if day not in days} for table, of in reasons.items()}


@dataclass(frozen=True)
class Outlook:
    """Stale days now, and who recomputes them.

    Args:
        everything: days of a person's refresh.
        automatic: days of the next run of a sensor or schedule; the rest waits for a person.
        changes: changes of contracts since existing days were computed, by table.
    """

    everything: Plan
    automatic: Plan
    changes: Mapping[str, tuple[ContractChange, ...]]


def outlook(platform: Platform, intakes: Collection[Intake] = ()) -> Outlook:
    """Return the stale days of all tables."""
    snapshot = LakeSnapshot.now(platform)
    tables, states = look_at_all(snapshot)
    past = past_of(snapshot, tables, states)
    everything, automatic = (
        make_plan(platform.catalogue, tables, states, past, request, intakes) for request in (BY_PERSON, AUTOMATIC)
    )
    changes = {c.name: changes_of_contract(snapshot, c, tables.marks.get(c.name, {})) for c in platform.catalogue}
    return Outlook(everything, automatic, {table: changed for table, changed in changes.items() if changed})


def past_of(snapshot: LakeSnapshot, tables: TableStates, states: States) -> Past:
    """Return the inputs of days that are stale through data, and how these changed since."""
    read_at: dict[str, dict[date, dict[str, int]]] = {}
    oldest: dict[str, int] = {}
    near: dict[str, set[date]] = {}
    shown_by = ReleaseIndex(snapshot)
    for table, by_day in states.items():
        stale = stale_through_data({day: unblocked(state) for day, state in not_up_to_date(by_day).items()})
        computed = [day for day in stale if day in tables.marks.get(table, {})]
        if not computed:
            continue
        records = snapshot.days(table, computed)
        read_at[table] = {
            day: {name: shown_by(name, version) for name, version in record.reads.items()}
            for day, record in records.items()
        }
        for releases in read_at[table].values():
            for name, number in releases.items():
                oldest[name] = min(oldest.get(name, number), number)
        for read in snapshot.platform.catalogue[table].inputs:
            if not isinstance(read.window, AsOf):  # views say what changed there
                for span in union_read(read.window, computed, tables.calendar):
                    near.setdefault(read.table, set()).update(day_range(*span))
    revisions: dict[str, Revisions] = {}
    for name, number in oldest.items():
        marks, days = tables.marks.get(name, {}), sorted(near.get(name, ()))
        since = [day for day in days if (mark := marks.get(day)) and mark.release > number]
        revisions |= {name: snapshot.revisions(name, since)} if name in near else {}
    views = {name: _views_at(snapshot, tables, name, read_at) for name in tables.views}
    return Past(read_at, revisions, views)


def _views_at(
    snapshot: LakeSnapshot,
    tables: TableStates,
    table: str,
    read_at: Mapping[str, Mapping[date, Mapping[str, int]]],
) -> dict[int, View]:
    """Return which reference values were valid on each day at every release that a stale day read."""
    newest: dict[int, date] = {}
    for days in read_at.values():
        for day, releases in days.items():
            if (number := releases.get(table, -1)) != -1:
                newest[number] = max(newest.get(number, day), day)
    if not newest:
        return {}
    # What was not published since is valid as it was, up to the days that read it.
    last = snapshot.platform.ledger.looks.newest_release(table, max(newest.values()), at=snapshot.number)
    views: dict[int, View] = {}
    for number in sorted(newest):
        if last <= number and table not in snapshot.staged.tables:
            views[number] = tables.views[table]
            continue
        # If it cannot be looked up any more, it counts as nothing valid then, and so as a reason.
        with suppress(BeyondWindowError):
            views[number] = view_of(table, LakeSnapshot(snapshot.platform, release(snapshot.platform.lake, number)))
    return views


def reasons_now(
    snapshot: LakeSnapshot, contract: Contract, days: Collection[date], *, asked: Collection[date]
) -> dict[date, Reasons]:
    """Return why days of one table are to be computed; a day that is not stale was requested.

    Args:
        asked: days that were requested whatever their state.
    """
    tables, states = states_around(snapshot, contract, days)
    past = past_of(snapshot, tables, {contract.name: states})
    by_data = through_data(contract, stale_through_data(states), tables, past)
    by_version = through_version(states)
    reasons = {day: {*by_data.get(day, ()), *by_version.get(day, ())} for day in days}
    return {day: ordered({*why, "asked for"} if day in asked or not why else why) for day, why in reasons.items()}


def still_to_do(snapshot: LakeSnapshot, step: PlannedStep, request: Request) -> LeftToDo:
    """Return the remaining days of a step in the current state."""
    _, states = states_around(snapshot, snapshot.platform.catalogue[step.table], step.days)
    return left_to_do(step, states, request)


_WHOLE = "To compute it whole, leave out the keys."


def scoped_plan(snapshot: LakeSnapshot, request: Request, scope: KeyScope) -> Plan:
    """Plan the named days of the named tables and no others; their inputs stay as in the snapshot.

    Raises:
        ScopeError: tables or days are not named, or the other rows of a day cannot be copied.
        ProtectedDaysError: days are protected.
    """
    if not request.tables or not (request.days or request.by_table):
        raise ScopeError("Keys are computed of tables and days that are named.", "Name the table, and add --days.")
    steps: list[PlannedStep] = []
    for contract in snapshot.platform.catalogue:
        if contract.name not in request.tables:
            continue
        days = sorted(request.by_table.get(contract.name, ()) if request.by_table else request.days or ())
        if days:  # a job of a plan may be about some of its tables
            refuse_unsound(snapshot, contract.name, days, scope)
            refuse_protected_days(snapshot, contract, set(days) - request.protected_too, forced=True)
            reasons = reasons_now(snapshot, contract, days, asked=days)
            known = snapshot.marks([contract.name])[contract.name]
            steps.append(PlannedStep(contract.name, reasons, estimate(reasons, known)))
    return Plan(steps=tuple(steps), moment=snapshot.moment)


def refuse_unsound(snapshot: LakeSnapshot, table: str, days: Collection[date], scope: KeyScope) -> None:
    """Refuse days whose other rows cannot stay unchanged next to computed ones; starts no session."""
    contract = snapshot.platform.catalogue[table]
    scope_of(contract, scope.texts)
    tables, states = states_around(snapshot, contract, days, forced=days)
    now = snapshot.platform.version(table).configuration
    held = {hold.day for hold in snapshot.holds_of(table)}
    records, staged = snapshot.days(table, days), snapshot.staged.of(table)
    if table in tables.changing:
        raise ScopeError(f"{table} has other columns than its contract, which come with whole days.", _WHOLE)
    for day in sorted(days):
        state, record, over = states[day], records.get(day), staged.get(day)
        is_other = over is not None and (over.scope is None or over.scope.keys != scope.texts)
        unsound = {
            f"is in the stage already, with more than its {scope}": is_other,
            "reads a day that is missing or not good": isinstance(state, Blocked),
            "is held": day in held or isinstance(state, Held),
            "is no day of the calendar": not isinstance(state, Stale),
            "was never computed": record is None,
            "was computed under another contract than today's": record is not None and record.configuration != now,
        }
        if why := next((why for why, is_so in unsound.items() if is_so), ""):
            raise ScopeError(
                f"{table} {day} {why}, so its other rows cannot be copied.", f"Leave the day out. {_WHOLE}"
            )


HoldsByDay = Mapping[date, Hold]


@dataclass(frozen=True)
class Readiness:
    """State of some days of a table.

    Args:
        made_from: fingerprint that each of them would get.
        blocked: days that an input keeps from being computed, with the reason and what to do.
        held: days whose content was refused and would be the same again.
        notes: remarks for readers about the inputs of a ready day.
        holds: the newest hold of every held day of the table.
    """

    ready: tuple[date, ...] = ()
    made_from: Mapping[date, str] = field(default_factory=dict)
    blocked: dict[date, str] = field(default_factory=dict)
    held: dict[date, Hold] = field(default_factory=dict)
    up_to_date: tuple[date, ...] = ()
    notes: dict[date, tuple[str, ...]] = field(default_factory=dict)
    before: Mapping[date, DayRecord] = field(default_factory=dict)
    holds: HoldsByDay = field(default_factory=dict)
    known_holds: tuple[Hold, ...] = ()


def readiness(
    contract: Contract,
    days: Collection[date],
    snapshot: LakeSnapshot,
    *,
    forced: Collection[date] = (),
    accept: Collection[Check] = (),
) -> Readiness:
    """Return the state of some days of a silver or gold table.

    Args:
        forced: days that count neither as up to date nor as refused before.
        accept: checks whose findings are accepted; days that they refused are tried again.
    """
    platform = snapshot.platform
    tables, states = states_around(snapshot, contract, days, forced=forced, accept=accept)
    holds = snapshot.holds_of(contract.name)
    ready = {day: state.fingerprint for day, state in states.items() if isinstance(state, Stale)}
    return Readiness(
        ready=tuple(ready),
        made_from=ready,
        blocked={day: _why(snapshot, state) for day, state in states.items() if isinstance(state, Blocked)}
        | {day: _no_day(platform, day) for day, state in states.items() if isinstance(state, Missing)},
        held={day: state.hold for day, state in states.items() if isinstance(state, Held)},
        up_to_date=tuple(day for day, state in states.items() if isinstance(state, UpToDate)),
        notes={day: notes for day in ready if (notes := _notes(platform, contract, day, tables.held))},
        before=snapshot.days(contract.name),
        holds={hold.day: hold for hold in holds},
        known_holds=holds,
    )


def _why(snapshot: LakeSnapshot, state: Blocked) -> str:
    """Return why a day cannot be computed, and what to do, for a person."""
    state = at_root_now(snapshot, state)
    table, day = state.table, state.day
    if state.hold is not None and state.hold.gate == CIRCUIT:
        return f"{state.hold.reason}. {state.hold.overruled_by} says what ends that; readers keep what they have."
    if state.hold is not None:
        has = "its last good content stays" if state.is_there else "it has no content yet"
        if state.hold.lasts:
            return f"{table} is held on {day} and {has}: {state.hold.reason}. {state.hold.overruled_by} lifts that."
        return (
            f"{table} is held on {day} and {has}: {state.hold.reason}. "
            f"Correct its input or its code and recompute {table} for {day}; this day is then stale."
        )
    source = snapshot.platform.catalogue[table]
    if source.source is None:
        return f"{table} has never been loaded for {day}. Materialize {table} for {day} first."
    if snapshot.days(table, [day]):
        return (
            f"{table} has rows of {day} already, and comes whole with what arrives on "
            f"{comes_with(source, day)}: nothing that arrived then or later was taken yet. Wait for that delivery."
        )
    return f"{table} is not delivered yet for {day}. Deliver its rows, or declare the day closed for {day} first."


def _no_day(platform: Platform, day: date) -> str:
    calendar = platform.calendar
    return (
        f"{day} is no day here: the calendar goes from {calendar.first} to {calendar.last}. Wait until it has come, "
        "see that the clock of this machine is right, or correct `calendar_first` and `calendar_last`."
    )


def _notes(platform: Platform, contract: Contract, day: date, holds_on: Mapping[str, HoldsByDay]) -> tuple[str, ...]:
    """Return inputs that count with the last good content of held days."""
    notes: list[str] = []
    for read in contract.inputs:
        holds = holds_on.get(read.table, {})
        if held := days_in(sorted(holds), ranges_read(read.window, day, platform.calendar)):
            more = f" and {len(held) - 1:,} more" if len(held) > 1 else ""
            notes.append(
                f"reads {read.table} with its last good content of {held[0]}{more} (held: {holds[held[0]].reason})"
            )
    return tuple(notes)
