"""Explain a plan file on the present platform, without a JVM and without changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from platform_assets.contracts import Contract
from platform_assets.contracts.columns import why_no_sum
from platform_assets.contracts.errors import unknown_table
from platform_assets.contracts.table import amounts
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import plan_steps, scoped_plan
from platform_assets.engine.state.schema_changes import refuse_what_tables_cannot_take
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.reading import rows_of_files
from platform_assets.operations.backfill.files import PlanFieldError
from platform_assets.operations.backfill.obstacles import obstacles, unmatched
from platform_assets.operations.backfill.standing import cores_of
from platform_assets.operations.plan_record import BackfillRecord, all_records
from platform_assets.planning.backfill.backfill import (
    Backfill,
    Consent,
    Experience,
    Narrowed,
    Obstacle,
    PastRun,
    approved_by,
    beyond_window,
    experience,
    gates_of,
    is_same,
    people,
    price,
    reasons_to_ask,
    timed,
)
from platform_assets.planning.backfill.days import in_rollout_order, reached_days, request_for, rollout_steps
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.plan import Plan
from platform_assets.planning.selection import (
    BY_PERSON,
    KeyScope,
    Request,
    ScopeError,
    nearest,
    protected_in,
    scope_of,
    value_of,
)
from platform_assets.planning.windows import which
from platform_assets.records.decisions import PlanDecision
from platform_assets.records.history import Timing

if TYPE_CHECKING:
    import pyarrow.dataset as ds

_LOOKED_AT = 12
"""Days of a table whose keys are counted: a column of each is read."""
_MOST = 20
"""Newest runs to estimate from: old machines and old code say little."""


def refuse_unknown_tables(platform: Platform, file: PlanFile) -> None:
    """Refuse a plan with tables that the platform does not have."""
    named: list[tuple[str, tuple[int | str, ...]]] = [(name, ("tables", at)) for at, name in enumerate(file.tables)]
    named += [(gate.table, ("gates", at, "table")) for at, gate in enumerate(file.gates)]
    named += [(name, ("code", name)) for name in file.code or {}]
    for name, field in named:
        if name not in platform.catalogue.names:
            error = unknown_table(name, platform.catalogue.names)
            raise PlanFieldError(error.what, error.todo, field) from error
    for number, gate in enumerate(file.gates):
        columns = platform.catalogue[gate.table].column_names
        if gate.column is not None and gate.column not in columns:
            raise PlanFieldError(
                f"{gate.table} has no column {gate.column!r}.",
                f"Name one of {', '.join(columns)}.",
                ("gates", number, "column"),
            )
        if (
            gate.metric == "sum"
            and gate.column
            and (why := why_no_sum(platform.catalogue[gate.table].column(gate.column)))
        ):
            summed = ", ".join(amounts(platform.catalogue[gate.table]))
            raise PlanFieldError(
                f"{gate.table}.{gate.column} cannot be summed: {why}.",
                f"{f'Name one that can, as {summed}, or use' if summed else 'Use'} another metric, as rows or nulls.",
                ("gates", number, "column"),
            )


def refuse_other_code(platform: Platform, file: PlanFile) -> None:
    """Refuse a plan for other code than the present one, before anything is computed."""
    for table, said in (file.code or {}).items():
        here = platform.version(table).code
        if here != said:
            raise PlanFieldError(
                f"{table} is computed by the code {here} here, and not by {said}.",
                "Check out the code that the plan is about; or write the version that is here, and have that reviewed.",
                ("code", table),
            )


def scope_in(platform: Platform, file: PlanFile) -> KeyScope | None:
    """Return the keys of a plan, checked against its tables' contracts; None if it covers all keys."""
    if file.only is None:
        return None
    scopes = {_of_table(platform.catalogue[table], file) for table in file.tables}
    if len(scopes) > 1:
        raise PlanFieldError(
            "these tables have other types for the same column.", "Write a plan for each.", ("tables",)
        )
    return scopes.pop()


def unmatched_keys(platform: Platform, file: PlanFile) -> tuple[Obstacle, ...]:
    """Return warnings about the keys of a plan before it is written: values that occur in no row."""
    refuse_unknown_tables(platform, file)
    scope = scope_in(platform, file)
    if scope is None:
        return ()
    snapshot = LakeSnapshot.now(platform)
    named = file.days.named_days()
    found = (
        _counted(snapshot, scope, table, sorted(snapshot.files(table) if named is None else named, reverse=True))
        for table in file.tables
    )
    return tuple(unmatched(found))


def _of_table(contract: Contract, file: PlanFile) -> KeyScope:
    for column, texts in (file.only or {}).items():
        try:
            scope_of(contract, {column: texts})
        except ScopeError as error:
            raise PlanFieldError(error.what, error.todo, ("only", column)) from error
    return scope_of(contract, file.only or {})


def _counted(snapshot: LakeSnapshot, scope: KeyScope, table: str, days: Sequence[date]) -> Narrowed:
    import pyarrow as pa
    import pyarrow.dataset as ds

    files = snapshot.files(table)
    there = {day: files[day] for day in [day for day in days if files.get(day)][:_LOOKED_AT]}
    if not there:
        return Narrowed(table, 0, 0, 0)
    rows = rows_of_files(snapshot.platform.lake.table_path(table), there)
    contract, theirs = snapshot.platform.catalogue[table], ds.scalar(True)
    absent: dict[tuple[str, str], tuple[str, ...]] = {}
    for name, texts in scope.keys:
        values = pa.array([value_of(text, contract.column(name).type) for text in texts], rows.schema.field(name).type)
        theirs = theirs & ds.field(name).isin(values)
        absent |= {(name, text): near for text, near in _absent(rows, name, texts).items()}
    return Narrowed(table, len(there), rows.count_rows(filter=theirs), rows.count_rows(), absent)


def _absent(rows: ds.Dataset, column: str, asked: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return values that occur in no row, each with the nearest existing values; without near ones, the first."""
    there: set[str] = set()
    for batch in rows.to_batches(columns=[column]):  # one at a time: days may be large, and values few
        there.update(str(value) for value in batch.column(0).unique().to_pylist() if value is not None)
    return {text: nearest(text, there) for text in asked if text not in there}


def experience_of(platform: Platform, tables: Collection[str]) -> Experience:
    """Return the cost of parts of a backfill of some tables, from earlier measurements."""
    timings = platform.ledger.counts.timings(platform.catalogue.names)
    by_publication: defaultdict[str, dict[str, Timing]] = defaultdict(dict)
    for timing in timings:
        by_publication[timing.publication][timing.table] = timing
    records, _ = all_records(
        platform.lake
    )  # `status backfills` names one that is damaged; another plan can do without it
    published = [record for record in records if record.publication in by_publication and record.starts]
    newest = sorted(published, key=lambda record: record.publication, reverse=True)[:_MOST]
    return experience([_run(record, by_publication[record.publication]) for record in newest], timings, tables)


def _run(record: BackfillRecord, made: Mapping[str, Timing]) -> PastRun:
    steps = [made.keys() & step.days.keys() for step in record.steps]
    days = {table: made[table].days for table in set().union(*steps)}
    return PastRun(record.seconds, record.starts, sum(map(bool, steps)), sum(map(len, steps)), days)


def explain(platform: Platform, file: PlanFile) -> Backfill:
    """Return which days of which tables a plan computes, in which order, at what price, and its obstacles."""
    refuse_unknown_tables(platform, file)
    refuse_other_code(platform, file)
    snapshot = LakeSnapshot.now(platform)
    marks = snapshot.marks(platform.catalogue.names)
    days = _days(snapshot, file)
    scope = scope_in(platform, file)
    named: dict[str, Collection[date]] = dict.fromkeys(file.tables, days)
    if file.policy == "fill_gaps":
        named = {table: days.difference(marks.get(table, ())) for table in named}
    if file.downstream:
        named = {**reached_days(platform.catalogue, named, platform.calendar)}
    by_table = {table: frozenset(of_table) for table, of_table in named.items()}
    # Obstacles name the protected days.
    request = request_for(file, by_table, scope, frozenset(platform.calendar.days()))
    refuse_what_tables_cannot_take(snapshot, request)
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
    not_computed = {name: days - set(planned.get(name, ())) - plan.blocked.get(name, {}).keys() for name in file.tables}
    known = experience_of(platform, planned)
    plan = replace(plan, steps=timed(plan.steps, steps, known, marks))
    reading = platform.catalogue.with_dependants(planned)
    backfill = Backfill(
        file=file,
        days=order,
        release=snapshot.number,
        request=request,
        plan=plan,
        steps=steps,
        up_to_date={name: tuple(sorted(left)) for name, left in not_computed.items() if left},
        versions={name: platform.version(name) for name in planned},
        gates={name: gates_of(platform.catalogue[name]) for name in planned},
        price=price(plan.steps, steps, known, cores or 0, file.budget),
        narrowed=tuple(_counted(snapshot, scope, table, order) for table in file.tables) if scope else (),
        protected=protected_in(platform.catalogue, planned, marks),
        put_back=_put_back(snapshot, planned),
        exposed=tuple(name for name in reading if name not in planned and name not in request.by_table),
        notifies=platform.catalogue.exposures_of(planned),
    )
    found = sorted(obstacles(platform, backfill, cores), key=lambda obstacle: not obstacle.blocks)
    return replace(backfill, obstacles=tuple(found), consent=_consent(platform, backfill))


def _consent(platform: Platform, backfill: Backfill) -> Consent:
    file, planned = backfill.file, {step.table: step.days for step in backfill.plan.steps}
    beyond = beyond_window(platform.catalogue, planned, platform.calendar.last)
    because = reasons_to_ask(file, backfill.plan.days, backfill.price, beyond)
    decided = platform.ledger.decisions(PlanDecision, as_far_as_readable=True)
    return Consent(file.approvals.people if because else 0, because, approved_by(file, backfill.hash, decided))


def _planned(snapshot: LakeSnapshot, request: Request) -> Plan:
    if not request.by_table:
        return Plan(moment=snapshot.moment)
    if request.keys is None:
        return plan_steps(snapshot.platform, request, snapshot=snapshot)
    try:
        return scoped_plan(snapshot, request, request.keys)
    except ScopeError as error:
        raise PlanFieldError(error.what, error.todo, ("only",)) from error


def _days(snapshot: LakeSnapshot, file: PlanFile) -> frozenset[date]:
    platform, days = snapshot.platform, file.days.named_days()
    if file.days.stale:
        overridden = file.override_protected.named_days() if file.override_protected else frozenset()
        everything = plan_steps(platform, replace(BY_PERSON, protected_too=overridden), snapshot=snapshot)
        stale = frozenset(day for name in file.tables for day in everything.stale.get(name, ()))
        return stale - set(file.days.without)
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
    """Return the place of a day in a plan file."""
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
                "`platform-assets status releases` lists them.",
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
            f"no row of the arrival {touched.arrival!r} was ingested.",
            "Write its path below the landing folder, as `why` shows it.",
            ("days", "touched_by", "arrival"),
        )
    return frozenset(days)


def _put_back(snapshot: LakeSnapshot, planned: Mapping[str, Collection[date]]) -> dict[str, dict[date, str]]:
    """Return rolled-back days that the plan computes again, with the reason of the rollback."""
    found: dict[str, dict[date, str]] = {}
    for hold in snapshot.holds:
        if hold.is_of_good_content and hold.day in planned.get(hold.table, ()):
            found.setdefault(hold.table, {})[hold.day] = hold.reason
    return found


def approve(platform: Platform, file: PlanFile, hash: str, author: Author) -> Backfill:
    """Record an approval of a backfill as it was explained.

    Args:
        hash: the hash that `explain` showed to the approver.
    """
    backfill = explain(platform, file)
    if backfill.hash != hash:
        raise PlatformError(
            f"The plan {file.name} is {backfill.hash} now, not {hash}: its file, its days or their code changed.",
            "Look at it again with `platform-assets backfill explain`, and approve that.",
        )
    if is_same(author.who, file.owner):
        raise PlatformError(
            f"{author.who} owns the plan {file.name}, and owners cannot approve their own plans.",
            "Ask another person: `platform-assets backfill approve … --by NAME`.",
        )
    if backfill.blocking:
        first = backfill.blocking[0]
        raise PlatformError(f"The plan {file.name} cannot begin: {first.sentence}", first.todo)
    platform.ledger.decide(PlanDecision("approval of a plan", file.name, hash, **author.signature(datetime.now(UTC))))
    given = people([*backfill.consent.given, author.who])
    return replace(backfill, consent=replace(backfill.consent, given=given))
