"""What is recomputed where only rows of some keys are wanted, and the days of which the rest cannot be carried over."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import reasons_now, refuse_protected_days, states_around
from platform_assets.planning.day_states import Blocked, Held, Stale
from platform_assets.planning.estimates import estimate
from platform_assets.planning.key_scope import KeyScope, ScopeError, scope_of
from platform_assets.planning.plan import Plan, PlannedStep
from platform_assets.planning.selection import Request

_WHOLE = "Compute it whole: leave out the keys."


def scoped_plan(snapshot: LakeSnapshot, request: Request, scope: KeyScope) -> Plan:
    """The days that a person names, of the tables named and no others: what they read is taken as the snapshot has it.

    Raises:
        ScopeError: tables or days are not named, or the rest of a day cannot be carried over.
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
    """Refuse days whose other rows cannot stay beside those that are computed; starts no session.

    Raises:
        ScopeError: naming the table, the day and what keeps it.
    """
    contract = snapshot.platform.catalogue[table]
    scope_of(contract, scope.texts)
    tables, states = states_around(snapshot, contract, days, forced=days)
    now = snapshot.platform.version(table).configuration
    held = {hold.day for hold in snapshot.holds(table)}
    records, staged = snapshot.days(table, days), snapshot.staged.of(table)
    if table in tables.changing:
        raise ScopeError(f"{table} has other columns than its contract, which come with whole days.", _WHOLE)
    for day in sorted(days):
        state, record = states[day], records.get(day)
        if day in staged:
            over = staged[day].scope
            if over is None or over.keys != scope.texts:
                raise ScopeError(
                    f"The stage holds {table} of {day} already, and not just its {scope}.",
                    "Publish the stage first, or take another one; all keys at once can be named, too.",
                )
        if isinstance(state, Blocked):
            why = f"reads {state.table} of {state.day}, which is not there or not good"
            raise ScopeError(f"{table} of {day} {why}.", "Leave the day out, or have that corrected first.")
        if isinstance(state, Held):  # forced all the same, so a rollback that lasts
            raise ScopeError(f"{table} of {day} is held: {state.hold.reason}.", f"{state.hold.overruled_by} lifts it.")
        if not isinstance(state, Stale):
            raise ScopeError(f"{day} is no day that is there.", "Name days of the calendar.")
        if record is None:
            raise ScopeError(f"{table} of {day} was never computed, so there is nothing to carry over.", _WHOLE)
        if day in held:
            raise ScopeError(f"{table} of {day} is held: nobody found all of it to be right.", _WHOLE)
        if record.configuration != now:
            raise ScopeError(f"{table} of {day} was made under another contract than today's.", _WHOLE)
