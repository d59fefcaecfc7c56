"""Recompute days of silver and gold tables: stage, gate, publish, remember."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from typing import cast

from pyspark.sql import SparkSession

from platform_assets.compute.dead_letters import quarantine_table
from platform_assets.compute.failures import full_disk_explained
from platform_assets.compute.profiles import Profile
from platform_assets.compute.schemas import DEAD_LETTERS, spark_schema
from platform_assets.contracts import Contract
from platform_assets.engine.changes import replaced
from platform_assets.engine.effects import effects
from platform_assets.engine.judging import judge
from platform_assets.engine.planner import reasons_now, refuse_what_tables_cannot_take
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes, stage_folders, without
from platform_assets.engine.readiness import Readiness, readiness
from platform_assets.engine.results import Progress, StepResult, no_progress
from platform_assets.engine.staging import Staged, stage_days
from platform_assets.engine.ties import tied_days, ties_among
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.manifest import TableChange, new_publication
from platform_assets.lakehouse.publish import Conflict
from platform_assets.lakehouse.releases import Release, current_release
from platform_assets.lakehouse.stages import discard
from platform_assets.ledger.records import Hold
from platform_assets.planning.fingerprints import attempt
from platform_assets.planning.reads import read_for_day, read_in_all
from platform_assets.planning.steps import Step, batches
from platform_assets.quality.findings import ACCEPTABLE, Check, DayChecks, Finding
from platform_assets.quality.gates import tie_finding

ATTEMPTS = 3
"""How often days that another run published meanwhile are computed again before the conflict is passed on."""


class AcceptError(PlatformError):
    """Somebody wanted to accept what cannot be true."""


def recompute_step(
    platform: Platform,
    spark: Callable[[], SparkSession],
    step: Step,
    author: Author,
    progress: Progress = no_progress,
    *,
    force: bool = False,
    accept: Collection[Check] = (),
) -> StepResult:
    """Recompute days of one silver or gold table, in batches of which each is one publication.

    Days that fail a gate are held and keep their last good content; days whose inputs were never loaded, or are held
    on the same day, are blocked; days that are what they would become, or would come out as they were refused, are
    left alone. None of them keeps the others from being published.

    Args:
        platform: what to work with.
        spark: gives the session; not called where nothing is to be computed, or no input day has rows.
        step: table and days.
        author: on whose behalf.
        progress: told after every batch.
        force: compute days whatever their state.
        accept: checks, of `ACCEPTABLE`, whose findings a person has looked at and found to be true: they are shown,
            and keep no day from being published. Their number is published with the day, as `accepted_<check>`.

    Raises:
        AcceptError: a check is none of those that can be accepted.
        ContractError: the table on disk has other columns than its contract.
        TransformError: the transform does not return what the contract declares.
        UndeclaredReadError: the transform read something that its contract does not declare.
        NotRepeatableError: the transform is new, and does not always give the same.
        Conflict: others kept publishing the same days.
    """
    if refused := set(accept) - ACCEPTABLE:
        raise AcceptError(
            f"What the check {min(refused)!r} finds cannot be accepted.", f"Name {' or '.join(sorted(ACCEPTABLE))}."
        )
    contract = platform.catalogue[step.table]
    refuse_what_tables_cannot_take(platform, [step.table])
    release = current_release(platform.lake)
    to_compute = readiness(platform, contract, step.days, release, force=force, accept=accept)
    work = _Work(platform, spark, contract, frozenset(to_compute.ready), author, force, frozenset(accept))
    reasons = reasons_now(platform, contract, to_compute.ready, asked=force)
    result = StepResult(step.table)
    to_come = set(step.days)
    for batch in batches(step.days, platform.settings.batch_days, ties_among(platform, contract, to_compute, release)):
        started = time.monotonic()
        days: Collection[date] = batch
        to_come.difference_update(batch)
        for turn in range(1, ATTEMPTS + 1):
            with full_disk_explained(step.table):
                done, days = _recompute_batch(work, days, to_come, result, last=turn == ATTEMPTS)
            result += done
            if not days:
                break
        result += StepResult(step.table, seconds=time.monotonic() - started)
        progress(step.table, result.days, len(step.days))
    return replace(result, reasons={day: reasons[day] for day in result.published if day in reasons})


@dataclass(frozen=True)
class _Work:
    """What all batches of a step have in common, `step_days` being those it computes; see `recompute_step`."""

    platform: Platform
    spark: Callable[[], SparkSession]
    contract: Contract
    step_days: Collection[date]
    author: Author
    force: bool
    accept: frozenset[Check]


def _recompute_batch(
    work: _Work, days: Collection[date], to_come: Collection[date], so_far: StepResult, *, last: bool
) -> tuple[StepResult, tuple[date, ...]]:
    """What was done, and the days to compute again because of a conflict; `to_come` is left for later batches."""
    started = time.monotonic()
    platform, contract = work.platform, work.contract
    release = current_release(platform.lake)
    state = readiness(platform, contract, days, release, force=work.force, accept=work.accept)
    left_alone = StepResult(
        contract.name,
        held={day: (_refused_before(hold),) for day, hold in state.held.items()},
        blocked=state.blocked,
        up_to_date=frozenset(state.up_to_date),
    )
    if not state.ready:
        return left_alone, ()

    dead = quarantine_table(contract)
    with stage_folders(platform, (contract.name, dead)) as (publication, folders):
        new_code = not _has_rows_by(state, platform.code_versions[contract.name])
        own, letters = folders[contract.name], folders[dead]
        staged = stage_days(platform, work.spark, contract, state.ready, release, own, letters, new_code=new_code)
        earlier = {day: found.rows for day, found in so_far.checks.items()}
        checks = judge(platform, contract, state, staged, step_days=work.step_days, earlier=earlier, accept=work.accept)
        failing = [day for day in state.ready if checks[day].blocking]
        tied = tied_days(platform, contract, state, failing, release, to_come=to_come)
        for day, root in tied.held.items():
            checks[day] = checks[day].failing(tie_finding(contract, day, root))
        good = tuple(day for day in state.ready if not checks[day].blocking and day not in tied.blocked)
        changed = effects(platform, work.spark, contract, release, staged, good, state.before)
        seconds = time.monotonic() - started
        changes = _changes(platform, contract, release, publication, good, staged, state, checks, seconds)
        again: tuple[date, ...] = ()
        try:
            if good:
                publish_changes(platform, publication, "recompute", changes, work.author)
            else:
                for table in folders:
                    discard(platform.lake, table, publication, platform.lock_url)
        except Conflict as conflict:
            if last:
                raise
            again = tuple(day for day in good if day in conflict.days)
            if rest := without(changes, again):
                publish_changes(platform, new_publication(), "recompute", rest, work.author)

    done = [day for day in state.ready if day not in again and day not in tied.blocked]
    held = {day: found for day in done if (found := checks[day].blocking)}
    version = platform.version(contract.name)
    refused = {day: attempt(state.made_from[day], version) for day in held}
    _remember(work, held, refused | {day: f"with {root}" for day, root in tied.held.items()})
    platform.ledger.lift(contract.name, [day for day in done if day not in held])
    return left_alone + StepResult(
        contract.name,
        published={day: content for day, content in changes[0].days.items() if day not in again},
        held=held,
        blocked={day: tied.reason(contract, day) for day in tied.blocked},
        checks={day: checks[day] for day in done},
        changes={day: found for day, found in changed.items() if day not in again},
        notes={day: found for day, found in state.notes.items() if day not in again},
        read=read_in_all(staged.read),
    ), again


def _changes(
    platform: Platform,
    contract: Contract,
    release: Release,
    publication: str,
    days: Collection[date],
    staged: Staged,
    state: Readiness,
    checks: Mapping[date, DayChecks],
    seconds: float,
) -> Sequence[TableChange]:
    """The table's days and, for silver, those of its quarantine that have or had rows."""
    made = partial(
        TableChange,
        reads={read.table: release.versions.get(read.table, -1) for read in contract.inputs},
        code_version=platform.code_versions[contract.name],
        configuration=platform.configurations[contract.name].parts,
        seconds=seconds,
    )
    found = {day: staged.digest(day) for day in days}
    figures = {
        day: staged.figures(day) | checks[day].accepted | _read_figures(platform, contract, day, staged) for day in days
    }
    contents = replaced(platform.lake, contract.name, release, publication, found, state.made_from, figures)
    changes = [made(table=contract.name, schema_string=spark_schema(contract).json(), days=contents)]
    if contract.rules:
        dead = quarantine_table(contract)
        bad = {day: staged.quarantined.get(day, Profile()).digest for day in days}
        contents = replaced(platform.lake, dead, release, publication, bad, state.made_from, {})
        letters = {day: content for day, content in contents.items() if content.files or content.base}
        changes.append(made(table=dead, schema_string=DEAD_LETTERS.json(), days=letters))
    return changes


def _has_rows_by(state: Readiness, version: str) -> bool:
    """Whether rows made by this code are published, so that it has proved itself."""
    return any(found.rows and found.code_version == version for found in state.before.values())


def _read_figures(platform: Platform, contract: Contract, day: date, staged: Staged) -> dict[str, int]:
    read = read_for_day(contract, day, platform.calendar, staged.read)
    return {"days_read": read.days, "files_read": read.files}


def _remember(work: _Work, held: Mapping[date, tuple[Finding, ...]], refused: Mapping[date, str]) -> None:
    """Hold the days that failed."""
    table, now = work.contract.name, datetime.now(UTC)
    work.platform.ledger.hold(
        Hold(table, day, refused[day], found[0].check, found[0].message, work.author.run, now)
        for day, found in held.items()
    )


def _refused_before(hold: Hold) -> Finding:
    """Why a day stays held that is not tried again."""
    return Finding(
        check=cast("Check", hold.gate),
        day=hold.day,
        severity="block",
        message=f"{hold.reason}; refused before and not tried again, since neither what it reads nor its code has "
        "changed: correct one of them, or recompute it by force",
        expected="other input, other code, or a recomputation by force",
        found="the input and the code of what was refused",
    )
