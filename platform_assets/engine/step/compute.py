"""Compute one batch of days of a silver or gold table, and judge it: staged, gated, not published yet."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import partial
from logging import getLogger
from typing import TypeVar, cast

from pyspark.errors import PySparkException

from platform_assets.contracts import Contract
from platform_assets.contracts.rules import quarantine_table
from platform_assets.engine.day_contents import (
    are_there,
    computed_with,
    most_together,
    replaced,
    staged_at,
)
from platform_assets.engine.moves import Tied, repeated_keys, tied_days
from platform_assets.engine.platform import Platform
from platform_assets.engine.publishing import discard_stage, new_stage
from platform_assets.engine.results import StepResult
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import Readiness, readiness
from platform_assets.engine.step.gating import judge
from platform_assets.engine.step.holds import failures_recorded, refused_before
from platform_assets.engine.step.inputs import in_columns_of, published_rows
from platform_assets.engine.step.proofs import NotRepeatableError
from platform_assets.engine.step.scoped import with_scope
from platform_assets.engine.step.staging import Staged, stage_days
from platform_assets.engine.step.work import Work
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.delta.schema import schema_at, types_in
from platform_assets.planning.steps import parts_of
from platform_assets.planning.windows import ranges, read_for_day, read_in_all, union_read
from platform_assets.quality.findings import Check, DayChecks, Finding, accepted_by_hand
from platform_assets.quality.gates import tie_finding
from platform_assets.records.code_version import Attempt, EngineName, TiedTo
from platform_assets.records.differences import DayChange, Digest
from platform_assets.records.history import DayRecord, Hold
from platform_assets.records.manifest import DayContent, TableChange
from platform_assets.settings import Settings
from platform_assets.spark.compare.in_files import at_hand, changes
from platform_assets.spark.compare.profiles import Profile
from platform_assets.spark.compare.row_diff import day_changes
from platform_assets.spark.sail.session import GONE, MEMORY, columns_for, sail_session, server_of, stop_sail
from platform_assets.spark.session.on_demand import SparkOnDemand, TimedSpark
from platform_assets.spark.tables.failures import TransformError, values_explained
from platform_assets.spark.tables.reading import in_ranges, no_rows
from platform_assets.spark.tables.schemas import DEAD_LETTERS, spark_schema
from platform_assets.spark.tables.staging import are_small, tasks_for


@dataclass(frozen=True)
class Computed:
    """A batch in its stage.

    Args:
        publication: publication whose folders it is in; empty if there was nothing to compute.
        changes: the good days of the table, then those of its quarantine.
        result: the outcome of every day; `published` are the days of the changes.
        over: holds of the other days, as known when these were computed; newer holds, as of a rollback, are left out.
        moves: whether records have moved between its days and others, so that it must be published over the release
            that it read, or not at all.
        put_off: days that must be computed with a day of a later batch, each with that day; left out of everything
            else.
        engine: engine for the batches to come.
    """

    publication: str
    changes: tuple[TableChange, ...]
    result: StepResult
    holds: tuple[Hold, ...] = ()
    over: tuple[Hold, ...] = ()
    moves: bool = False
    put_off: Mapping[date, date] = field(default_factory=dict)
    engine: EngineName = "spark"


def compute(
    work: Work, snapshot: LakeSnapshot, days: Collection[date], to_come: Collection[date], so_far: StepResult
) -> Computed:
    """Compute some days into a stage of their own and judge them by the gates.

    Days that fail are held, days that cannot be computed or need not be are left out; the result has each day's
    outcome. An error leaves nothing behind.
    """
    if work.engine == "sail":
        made = by_sail(
            work.platform.settings,
            lambda spark: _computed(replace(work, spark=spark), snapshot, days, to_come, so_far, is_final=False),
        )
        if made is None:  # nor will it do others: it is not waited for once more
            return _computed(work, snapshot, days, to_come, so_far)
        if not any(checks.blocking for checks in made.result.checks.values()):
            return replace(made, engine="sail")
        if made.publication:  # no day is held for what only Sail cannot do
            discard_stage(work.platform, made.publication, tuple(change.table for change in made.changes))
    return replace(_computed(work, snapshot, days, to_come, so_far), engine=work.engine)


def _computed(
    work: Work,
    snapshot: LakeSnapshot,
    days: Collection[date],
    to_come: Collection[date],
    so_far: StepResult,
    *,
    is_final: bool = True,
) -> Computed:
    """Compute and judge a batch; if another engine follows, a failure says nothing about the table."""
    started = time.monotonic()
    to_come = work.days.intersection(to_come)  # a day that is held or blocked keeps what it has
    platform, contract, spark = work.platform, work.contract, TimedSpark(work.spark)
    state = readiness(contract, days, snapshot, forced=work.forced, accept=work.accept)
    left_alone = StepResult(
        contract.name,
        held={day: (refused_before(hold),) for day, hold in state.held.items()},
        blocked=state.blocked,
        up_to_date=frozenset(state.up_to_date),
    )
    if not state.ready:
        return Computed("", (), left_alone)

    sizes = sizes_read(contract, state.ready, snapshot)
    parts = parts_of(sizes, platform.settings.part_bytes)
    before = [state.before[day].bytes for day in state.ready if day in state.before]
    with (
        failures_recorded(snapshot, contract.name, work.author.run, state.made_from, is_final=is_final),
        tasks_for(spark, parts, platform.settings.part_bytes) as given,
        new_stage(platform, (contract.name, quarantine_table(contract.name))) as (publication, folders),
    ):
        staged = stage_days(
            given,
            contract,
            state.ready,
            snapshot,
            *folders.values(),
            together=most_together(state.before, platform.version(contract.name)),
            adopted=work.adopted,
            scope=work.scope,
            made_from=state.made_from,
            parts=parts,
            small=are_small(len(state.ready), sizes.total(), before),
            to_come=to_come,
        )
        failpoint("gate.staged")
        checks, tied = _judged(work, staged, state, given, publication, so_far)
        done = [day for day in staged.days if day not in tied.blocked and day not in tied.put_off]
        good = tuple(day for day in done if not checks[day].blocking)
        changed = effects(given, staged, good, state.before)
        seconds = time.monotonic() - started - spark.waited
        changes = _changes(work, publication, good, staged, state, checks, seconds)
        failpoint("gate.decided")
        if not good:
            discard_stage(platform, publication, tuple(folders))
        for change in changes if good else ():
            _drop_unused(platform, publication, change)

    held = {day: blocking for day in done if (blocking := checks[day].blocking)}
    result = left_alone + StepResult(
        contract.name,
        published=dict(changes[0].days),
        held=held,
        blocked={day: tied.reason(contract, day) for day in tied.blocked},
        checks={day: checks[day] for day in done},
        changes=changed,
        notes=state.notes,
        read=read_in_all(staged.read),
        before={day: state.before[day] for day in changes[0].days if day in state.before},
    )
    over = tuple(hold for hold in state.known_holds if hold.day in done and hold.day not in held)
    holds = _holds(work, held, state, tied)
    return Computed(publication if good else "", changes, result, holds, over, tied.moves, tied.put_off)


def _judged(
    work: Work, staged: Staged, state: Readiness, spark: SparkOnDemand, publication: str, so_far: StepResult
) -> tuple[dict[date, DayChecks], Tied]:
    """Return the results of checks for staged days, and which of them only pass together with others."""
    contract, snapshot, to_come = staged.contract, staged.snapshot, staged.to_come
    earlier = {day: judged.rows for day, judged in so_far.checks.items()}
    accept = accepted_checks(state, staged, work.accept, work.looked_at)
    with values_explained(contract.name, staged.days):
        checks = judge(staged, state, spark, step_days=work.days, earlier=earlier, accept=accept)
    for day, finding in repeated_keys(snapshot, contract, publication, staged.days, to_come).items():
        checks[day] = checks[day].failing(finding)
    failpoint("gate.judged")
    failing = [day for day in staged.days if checks[day].blocking]
    tied = tied_days(contract, state, failing, snapshot, to_come=to_come)
    for day, root in tied.held.items():
        checks[day] = checks[day].failing(tie_finding(contract, day, root))
    return checks, tied


def _changes(
    work: Work,
    publication: str,
    days: Collection[date],
    staged: Staged,
    state: Readiness,
    checks: Mapping[date, DayChecks],
    seconds: float,
) -> tuple[TableChange, ...]:
    """Return the table's days and, for silver, days of its quarantine that have or had rows."""
    platform, contract, snapshot = work.platform, work.contract, staged.snapshot
    made = partial(
        TableChange,
        reads=snapshot.reads([read.table for read in contract.inputs]),
        code_version=platform.code_versions[contract.name],
        git_commit=platform.git_commits[contract.name],
        configuration=platform.configurations[contract.name].parts,
        seconds=seconds,
        software=computed_with(staged.software),
    )

    def contents(
        table: str, digests: Mapping[date, Digest], figures: Mapping[date, Mapping[str, int]]
    ) -> dict[date, DayContent]:
        """Return staged days of a table; a day with an unchanged digest keeps its files."""
        live = snapshot.released_files(table)
        before = platform.ledger.current_days(table, at=snapshot.number, among=digests)
        # Who asks for a day by force, or replaces columns, wants new files; and those of a day may be damaged.
        alike: set[date] = set() if work.replaces_schema else digests.keys() - work.forced
        kept = {
            day: live.get(day, ())
            for day in alike & before.keys()
            if before[day].digest == str(digests[day]) and are_there(platform.lake.table_path(table), live.get(day, ()))
        }
        now = {**staged_at(platform.lake, table, publication), **kept}
        return replaced(live, now, digests, state.made_from, figures)

    digests = {day: staged.digest(day) for day in days}
    figures = {day: staged.figures(day) | checks[day].figures | _read_figures(staged, day) for day in days}
    own = {
        day: content.model_copy(update={"warnings": checks[day].warnings})
        for day, content in contents(contract.name, digests, figures).items()
    }
    if work.scope is not None:
        own = with_scope(platform, contract, work.scope, own, state, staged.computed)
    schema = spark_schema(contract).json()
    changes = [made(table=contract.name, schema_string=schema, days=own, replaces_schema=work.replaces_schema)]
    dead = quarantine_table(contract.name)
    # What rules of before refused may be there still
    if contract.quarantine_rules or (contract.layer == "silver" and snapshot.has(dead)):
        bad = {day: staged.quarantined.get(day, Profile()).digest for day in days}
        letters = {day: content for day, content in contents(dead, bad, {}).items() if content.files or content.base}
        changes.append(made(table=dead, schema_string=DEAD_LETTERS.json(), days=letters))
    return tuple(changes)


def _drop_unused(platform: Platform, publication: str, change: TableChange) -> None:
    """Remove staged files of a table to which none of its days refers."""
    used = {file.path for content in change.days.values() for file in content.files}
    staged = {file.path for files in staged_at(platform.lake, change.table, publication).values() for file in files}
    if staged and not staged & used:
        discard_stage(platform, publication, [change.table])
        return
    for path in staged - used:
        file = platform.lake.table_path(change.table) / path
        file.remove(durable=False)
        file.parent.tidy()


def _read_figures(staged: Staged, day: date) -> dict[str, int]:
    if not staged.tells_reads:
        return {}
    read = read_for_day(staged.contract, day, staged.platform.calendar, staged.read)
    return {"days_read": read.days, "files_read": read.files}


def _holds(work: Work, held: Mapping[date, tuple[Finding, ...]], state: Readiness, tied: Tied) -> tuple[Hold, ...]:
    table, run, now = work.contract.name, work.author.run, datetime.now(UTC)
    if work.scope is not None:  # what all of such a day would become, no gate has seen
        return ()
    version = work.platform.version(table)
    holds: list[Hold] = []
    for day, findings in held.items():
        first = findings[0]
        failed: dict[str, str] = {}
        for finding in findings:
            failed.setdefault(finding.check, finding.message)
        refused = TiedTo(tied.held[day]) if day in tied.held else Attempt(state.made_from[day], version)
        holds.append(Hold(table, day, refused, first.check, first.message, run, now, failed))
    return tuple(holds)


def accepted_checks(
    state: Readiness, staged: Staged, accept: Collection[Check], looked_at: Mapping[date, str]
) -> dict[date, frozenset[Check]]:
    """Return the checks whose findings no longer count, by day.

    An accepted day stays accepted if the same input gives the same rows again, by force or by other code: holding it
    again would help no one.

    Args:
        looked_at: fingerprint of each day that this person has looked at.
    """
    accepted: dict[date, frozenset[Check]] = {}
    for day in staged.days:
        there, made_from = state.before.get(day), state.made_from[day]
        is_same = there and (there.fingerprint, there.digest) == (made_from, str(staged.digest(day)))
        before = [cast("Check", name) for name in accepted_by_hand(there.figures)] if there and is_same else []
        accepted[day] = frozenset([*(accept if looked_at.get(day) == made_from else ()), *before])
    return accepted


def effects(
    spark: SparkOnDemand, staged: Staged, days: Collection[date], before: Mapping[date, DayRecord]
) -> dict[date, DayChange]:
    """Compare staged days with their former content.

    Only days that had rows and whose digest changed are compared, all of them at once: a first load costs nothing. Rows
    of a table that had another key cannot be compared.
    """
    differing = [
        day for day in days if day in before and before[day].rows and before[day].digest != str(staged.digest(day))
    ]
    if not differing:
        return {}
    session, contract, spans, snapshot = spark(), staged.contract, ranges(differing), staged.snapshot
    path, schema = snapshot.platform.lake.table_path(contract.name), spark_schema(contract)
    types = types_in(schema_at(path, snapshot.release.versions[contract.name]))
    if not set(contract.key) <= types.keys():
        return {}
    is_alike = types == types_in(schema.json())
    if is_alike and staged.few:
        live, now = snapshot.files(contract.name), staged.few.files
        before_few = at_hand(session, path, {day: live[day] for day in differing if day in live})
        after_few = replace(staged.few, files={day: now[day] for day in differing if day in now})
        if before_few and (found := changes(before_few, after_few, contract)) is not None:
            return found
    until_now = published_rows(session, contract, snapshot, spans)
    until_now = until_now if is_alike else in_columns_of(contract, until_now)
    rows = no_rows(session, schema) if staged.rows is None else staged.all_rows.where(in_ranges(spans))
    return day_changes(until_now, rows, contract)


_log = getLogger(__name__)
_T = TypeVar("_T")
_ENDS_WITHIN_S = 2.0
"""Between the moment in which it does not answer any more and the one in which the process is gone."""


def by_sail(settings: Settings, work: Callable[[SparkOnDemand], _T]) -> _T | None:
    """Return the result of work on Sail; None if Sail cannot do it, lacks memory, or is gone.

    No transform is refused for that, and no command ends: Spark does the work.
    """
    session = sail_session(settings)
    server = server_of(session)
    try:
        with columns_for("sail"):
            return work(lambda: session)
    except (PySparkException, TransformError, NotRepeatableError) as error:
        why = "had too little memory" if MEMORY.search(str(error)) else server.ended_within(_ENDS_WITHIN_S)
        if why or GONE.search(str(error)):
            _log.warning(
                "Sail %s, so Spark computes these days and the rest of the table; PLATFORM_SAIL_MEMORY (%s now) "
                "gives more.",
                why or "does not answer any more",
                settings.sail_memory,
            )
            stop_sail()  # Spark needs what it holds
        return None


def sizes_read(contract: Contract, days: Collection[date], snapshot: LakeSnapshot) -> Counter[date]:
    """Return the bytes of each day that a step reads, from the logs."""
    sizes = Counter[date]()
    for read in contract.inputs:
        spans = union_read(read.window, days, snapshot.calendar)
        for day, files in snapshot.files(read.table).items():
            if any(first <= day <= last for first, last in spans):
                sizes[day] += sum(file.size for file in files)
    return sizes
