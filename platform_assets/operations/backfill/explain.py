"""What a plan file comes to on the platform as it is: without a JVM, and without changing anything."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date

from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import plan_steps
from platform_assets.engine.state.schema_changes import refuse_what_tables_cannot_take
from platform_assets.engine.state.scoped_plan import scoped_plan
from platform_assets.operations.backfill.files import PlanFieldError
from platform_assets.operations.backfill.named_tables import refuse_other_code, refuse_unknown_tables
from platform_assets.operations.backfill.narrowing import narrowed, scope_in
from platform_assets.operations.backfill.obstacles import obstacles
from platform_assets.operations.backfill.past import experience_of
from platform_assets.planning.backfill.backfill import Backfill, gates_of
from platform_assets.planning.backfill.consent import beyond_window, consent, reasons_to_ask
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.backfill.price import price, timed
from platform_assets.planning.backfill.request import backfill_request
from platform_assets.planning.backfill.rollout import in_rollout_order, rollout_steps
from platform_assets.planning.key_scope import ScopeError
from platform_assets.planning.plan import Plan
from platform_assets.planning.protected_days import protected_in
from platform_assets.planning.selection import BY_PERSON, Request
from platform_assets.planning.windows import which
from platform_assets.records.decisions import PlanDecision

_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,.*)?\])?")


def explain(platform: Platform, file: PlanFile) -> Backfill:
    """Work out which days of which tables a plan file comes to, in which order, at what price, and what is in the way.

    Args:
        platform: as it is now.
        file: the plan.

    Raises:
        PlanFieldError: it names tables, days, arrivals or publications that are not there, no day, more than its cap,
            or other code than is here; or rows of its keys cannot be computed apart from the rest of their days.
        ContractError: a table cannot follow its contract with these days.
    """
    refuse_unknown_tables(platform, file)
    refuse_other_code(platform, file)
    snapshot = LakeSnapshot.now(platform)
    marks = snapshot.marks(platform.catalogue.names)
    if file.days.stale:
        overridden = file.override_protected.named() if file.override_protected else frozenset()
        everything = plan_steps(platform, replace(BY_PERSON, protected_too=overridden), snapshot=snapshot)
        days = frozenset(day for name in file.tables for day in everything.stale.get(name, ())) - set(file.days.without)
    else:
        days = _named_days(platform, file)
    scope = scope_in(platform, file)
    request = backfill_request(file, days, platform.catalogue, platform.calendar, marks, scope)
    refuse_what_tables_cannot_take(platform, request)
    plan = _planned(snapshot, request)
    if plan.days > file.cap_days:
        raise PlanFieldError(
            f"the plan {file.name} comes to {plan.days:,} days of tables, more than its cap_days of {file.cap_days:,}.",
            "Name fewer days or tables, or raise cap_days.",
            ("cap_days",),
        )
    volumes = {day: mark.rows for name in file.tables for day, mark in marks.get(name, {}).items()}
    order = in_rollout_order(days, volumes)
    steps = rollout_steps(plan, days, file.tables, file.rollout, platform.catalogue, platform.calendar, volumes)
    cores = cores_of(platform)
    planned = {step.table: step.days for step in plan.steps}
    known = experience_of(platform, planned)
    plan = replace(plan, steps=timed(plan.steps, steps, known, marks))
    cost = price(plan.steps, steps, known, cores or 0, file.budget)
    backfill = Backfill(
        file=file,
        days=order,
        release=snapshot.number,
        request=request,
        plan=plan,
        steps=steps,
        up_to_date=_up_to_date(file, days, plan),
        versions={step.table: platform.version(step.table) for step in plan.steps},
        gates={step.table: gates_of(platform.catalogue[step.table]) for step in plan.steps},
        price=cost,
        narrowed=narrowed(snapshot, scope, file.tables, order) if scope else (),
        protected=protected_in(platform.catalogue, planned, marks),
        put_back=_put_back(snapshot, planned),
        exposed=_exposed(platform, request.by_table, plan),
        told=platform.catalogue.told_of(planned),
    )
    beyond = beyond_window(platform.catalogue, planned, platform.calendar.last)
    because = reasons_to_ask(file, plan.days, cost, beyond)
    decided = platform.ledger.decisions(PlanDecision, as_far_as_readable=True)
    found = sorted(obstacles(platform, backfill, cores), key=lambda obstacle: not obstacle.blocks)
    return replace(backfill, obstacles=tuple(found), consent=consent(file, because, backfill.hash, decided))


def cores_of(platform: Platform) -> int | None:
    """How many cores Spark computes with, as far as the settings say so."""
    if platform.settings.spark_remote is None and (local := _LOCAL.fullmatch(platform.settings.spark_master)):
        return (os.cpu_count() or 1) if local[1] == "*" else int(local[1] or 1)
    return None


def _planned(snapshot: LakeSnapshot, request: Request) -> Plan:
    if not request.by_table:
        return Plan(moment=snapshot.moment)
    if request.keys is None:
        return plan_steps(snapshot.platform, request, snapshot=snapshot)
    try:
        return scoped_plan(snapshot, request, request.keys)
    except ScopeError as error:
        raise PlanFieldError(error.what, error.todo, ("only",)) from error


def _named_days(platform: Platform, file: PlanFile) -> frozenset[date]:
    days = file.days.named()
    if days is None:
        days = _touched(platform, file) - set(file.days.without)
    calendar = platform.calendar
    if outside := sorted(day for day in days if day not in calendar):
        raise PlanFieldError(
            f"{which(outside)} {'is' if len(outside) == 1 else 'are'} outside the calendar, from {calendar.first} to "
            f"{calendar.last}.",
            "Leave them out.",
            _place_of(file, outside[0]),
        )
    if not days:
        raise PlanFieldError(f"the plan {file.name} names no day.", "Correct its `days`.", ("days",))
    return days


def _place_of(file: PlanFile, day: date) -> tuple[int | str, ...]:
    """Where a plan says a day."""
    if file.days.list is not None and day in file.days.list:
        return ("days", "list", file.days.list.index(day))
    return ("days", "range") if file.days.range is not None else ("days",)


def _touched(platform: Platform, file: PlanFile) -> frozenset[date]:
    touched = file.days.touched_by
    assert touched is not None
    ledger = platform.ledger
    if touched.publication is not None:
        record = ledger.publication(touched.publication)
        if record is None:
            raise PlanFieldError(
                f"the publication {touched.publication!r} is in no release.",
                "`platform-assets releases` lists them.",
                ("days", "touched_by", "publication"),
            )
        return frozenset(day.day for day in record.days)
    assert touched.arrival is not None
    found = [ledger.arrival(contract.name, touched.arrival) for contract in platform.catalogue if contract.source]
    records = [record for record in found if record is not None and record.taken]
    days = {
        day.day
        for record in records
        if (published := ledger.publication(record.publication)) is not None
        for day in published.days
        if day.table == record.table
    }
    if not days:
        raise PlanFieldError(
            f"the arrival {touched.arrival!r} is none of which a row was taken.",
            "Write its path below the landing folder, as `why` shows it.",
            ("days", "touched_by", "arrival"),
        )
    return frozenset(days)


def _up_to_date(file: PlanFile, days: frozenset[date], plan: Plan) -> dict[str, tuple[date, ...]]:
    planned = {step.table: set(step.days) for step in plan.steps}
    left = {
        name: tuple(sorted(days - planned.get(name, set()) - plan.blocked.get(name, {}).keys())) for name in file.tables
    }
    return {name: kept for name, kept in left.items() if kept}


def _put_back(snapshot: LakeSnapshot, planned: Mapping[str, Collection[date]]) -> dict[str, dict[date, str]]:
    """What a person rolled back and the plan makes again, with the reason of that."""
    found: dict[str, dict[date, str]] = {}
    for hold in snapshot.holds():
        if hold.is_of_good_content and hold.day in planned.get(hold.table, ()):
            found.setdefault(hold.table, {})[hold.day] = hold.reason
    return found


def _exposed(platform: Platform, asked: Mapping[str, frozenset[date]], plan: Plan) -> tuple[str, ...]:
    """Tables outside of what is asked for that read, also through others, what is computed."""
    computed = {step.table for step in plan.steps}
    return tuple(name for name in platform.catalogue.with_dependants(computed) if name not in computed | asked.keys())
