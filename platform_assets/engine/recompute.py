"""Recompute days of silver and gold tables: stage, gate, publish, remember."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial

from pyspark.sql import SparkSession

from platform_assets.compute.dead_letters import quarantine_table
from platform_assets.compute.failures import full_disk_explained
from platform_assets.compute.profiles import Profile
from platform_assets.compute.schemas import DEAD_LETTERS, spark_schema
from platform_assets.contracts import Contract, Span
from platform_assets.engine.changes import replaced
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes, stage_folders, without
from platform_assets.engine.results import Progress, StepResult, no_progress
from platform_assets.engine.staging import Staged, stage_days
from platform_assets.lakehouse.manifest import TableChange, new_publication
from platform_assets.lakehouse.publish import Conflict
from platform_assets.lakehouse.releases import Release, current_release
from platform_assets.ledger.records import Hold
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.planning.steps import Step, batches
from platform_assets.planning.windows import day_range, days_read
from platform_assets.quality.gates import Breach

ATTEMPTS = 3
"""How often days that another run published meanwhile are computed again before the conflict is passed on."""


def recompute_step(
    platform: Platform,
    spark: Callable[[], SparkSession],
    step: Step,
    author: Author,
    progress: Progress = no_progress,
) -> StepResult:
    """Recompute days of one silver or gold table, in batches of which each is one publication.

    Days that fail a gate are held and keep their last good content; days whose inputs were never loaded, or are held
    on the same day, are blocked. Neither keeps the others from being published.

    Args:
        platform: what to work with.
        spark: gives the session; not called where no input day has rows.
        step: table and days.
        author: on whose behalf.
        progress: told after every batch.

    Raises:
        TransformError: the transform does not return what the contract declares.
        Conflict: others kept publishing the same days.
    """
    result = StepResult(step.table)
    contract = platform.catalogue[step.table]
    for batch in batches(step.days, platform.settings.batch_days):
        started = time.monotonic()
        days: Collection[date] = batch
        for attempt in range(1, ATTEMPTS + 1):
            with full_disk_explained(contract.name):
                done, days = _recompute_batch(platform, spark, contract, days, author, last=attempt == ATTEMPTS)
            result += done
            if not days:
                break
        result += StepResult(step.table, seconds=time.monotonic() - started)
        progress(step.table, len(result.published) + len(result.held) + len(result.blocked), len(step.days))
    return result


def _recompute_batch(
    platform: Platform,
    spark: Callable[[], SparkSession],
    contract: Contract,
    days: Collection[date],
    author: Author,
    *,
    last: bool,
) -> tuple[StepResult, tuple[date, ...]]:
    """What was done, and the days to compute again because of a conflict."""
    started = time.monotonic()
    release = current_release(platform.lake)
    digests = {read.table: platform.digests(read.table, release) for read in contract.inputs}
    made_from = fingerprints(contract, days, digests, platform.calendar)
    blocked = _blocked(platform, contract, days, digests)
    days = tuple(sorted(set(days) - set(blocked)))
    if not days:
        return StepResult(contract.name, blocked=blocked), ()

    dead = quarantine_table(contract)
    with stage_folders(platform, (contract.name, dead)) as (publication, folders):
        staged = stage_days(platform, spark, contract, days, release, folders[contract.name], folders[dead])
        held = {day: breaches for day in days if (breaches := staged.breaches(contract, day))}
        good = tuple(day for day in days if day not in held)
        seconds = time.monotonic() - started
        changes = _changes(platform, contract, release, publication, good, staged, made_from, seconds)
        again: tuple[date, ...] = ()
        try:
            publish_changes(platform, publication, "recompute", changes, author)
        except Conflict as conflict:
            if last:
                raise
            again = tuple(day for day in good if day in conflict.days)
            if rest := without(changes, again):
                publish_changes(platform, new_publication(), "recompute", rest, author)

    _remember(platform, contract, held, [day for day in good if day not in again], made_from, author)
    published = {day: content for day, content in changes[0].days.items() if day not in again}
    return StepResult(contract.name, published, held, blocked), again


def _blocked(
    platform: Platform, contract: Contract, days: Collection[date], digests: Mapping[str, Mapping[date, str]]
) -> dict[date, str]:
    """Days that cannot be computed now, and why."""
    blocked: dict[date, str] = {}
    for read in contract.inputs:
        held = {hold.day: hold for hold in platform.ledger.holds(read.table)} if read.window == Span(0, 0) else {}
        have = digests[read.table]
        for day in days:
            needed = day_range(*days_read(read.window, day, platform.calendar))
            if day in held:
                blocked[day] = f"{read.table} is held on {day}: {held[day].reason}"
            elif lacking := next((needed_day for needed_day in needed if needed_day not in have), None):
                blocked[day] = f"{read.table} has never been loaded for {lacking}"
    return blocked


def _changes(
    platform: Platform,
    contract: Contract,
    release: Release,
    publication: str,
    days: Collection[date],
    staged: Staged,
    made_from: Mapping[date, str],
    seconds: float,
) -> Sequence[TableChange]:
    """The table's days and, for silver, those of its quarantine that have or had rows."""
    made = partial(
        TableChange,
        reads={read.table: release.versions.get(read.table, -1) for read in contract.inputs},
        code_version=platform.code_versions[contract.name],
        seconds=seconds,
    )
    found = {day: staged.profiles.get(day, Profile()).digest for day in days}
    figures = {day: staged.figures(day) for day in days}
    contents = replaced(platform.lake, contract.name, release, publication, found, made_from, figures)
    changes = [made(table=contract.name, schema_string=spark_schema(contract).json(), days=contents)]
    if contract.rules:
        dead = quarantine_table(contract)
        bad = {day: staged.quarantined.get(day, Profile()).digest for day in days}
        contents = replaced(platform.lake, dead, release, publication, bad, made_from, {})
        letters = {day: content for day, content in contents.items() if content.files or content.base}
        changes.append(made(table=dead, schema_string=DEAD_LETTERS.json(), days=letters))
    return changes


def _remember(
    platform: Platform,
    contract: Contract,
    held: Mapping[date, tuple[Breach, ...]],
    good: Collection[date],
    made_from: Mapping[date, str],
    author: Author,
) -> None:
    """Hold the days that failed, and lift the holds of those that passed."""
    now = datetime.now(UTC)
    platform.ledger.hold(
        Hold(contract.name, day, made_from[day], found[0].gate, found[0].message, author.run, now)
        for day, found in held.items()
    )
    platform.ledger.lift(contract.name, good)
