"""Recompute days of silver and gold tables: read, transform, stage, profile, gate, publish."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime

from pyspark.sql import SparkSession

from platform_assets.compute.dead_letters import quarantine_table
from platform_assets.compute.profiles import Profile, profile, read_staged
from platform_assets.compute.schemas import spark_schema
from platform_assets.compute.staging import TransformError, check_columns, stage
from platform_assets.contracts import Contract, Span
from platform_assets.engine.changes import files_at, replaced, staged_at
from platform_assets.engine.frames import Prepared, prepare
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes, stage_folders, without
from platform_assets.engine.results import Progress, StepResult, no_progress
from platform_assets.lakehouse.manifest import DayContent, TableChange, new_publication
from platform_assets.lakehouse.publish import Conflict
from platform_assets.lakehouse.releases import Release, current_release
from platform_assets.ledger.records import Hold
from platform_assets.planning.digests import Digest
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.planning.steps import Step, batches
from platform_assets.planning.windows import day_range, days_read
from platform_assets.quality.gates import Breach, contract_breaches

ATTEMPTS = 3
"""How often days that another run published meanwhile are computed again before the conflict is passed on."""


def recompute_step(
    platform: Platform,
    spark: SparkSession,
    step: Step,
    author: Author,
    progress: Progress = no_progress,
) -> StepResult:
    """Recompute days of one silver or gold table, in batches of which each is one publication.

    Days that fail a gate are held and keep their last good content; days whose inputs were never loaded, or are held
    on the same day, are blocked. Neither keeps the others from being published.

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
            done, days = _recompute_batch(platform, spark, contract, days, author, last=attempt == ATTEMPTS)
            result += done
            if not days:
                break
        result += StepResult(step.table, seconds=time.monotonic() - started)
        progress(
            step.table,
            len(result.published) + len(result.held) + len(result.blocked),
            len(step.days),
        )
    return result


def _recompute_batch(
    platform: Platform,
    spark: SparkSession,
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
        prepared = prepare(platform, spark, contract, days, release)
        schema = spark_schema(contract)
        check_columns(contract.name, prepared.frame, schema)
        stage(
            prepared.frame.select(*schema.fieldNames()),
            folders[contract.name],
            clustered=prepared.clustered,
        )
        required = [column.name for column in contract.columns if not column.nullable]
        profiles = profile(read_staged(spark, folders[contract.name]), required, contract.key)
        letters: dict[date, Profile] = {}
        if prepared.quarantined is not None:
            stage(prepared.quarantined, folders[dead])
            letters = profile(read_staged(spark, folders[dead]), (), ())
        if strays := set(profiles) - set(days):
            raise TransformError(
                f"The transform of {contract.name} returned rows of {min(strays)}, which it was not asked for.",
                "Return only rows of the days being computed.",
            )
        breaches = _gate(contract, days, profiles, letters, prepared)
        good = [day for day in days if day not in breaches]
        changes = [
            TableChange(
                table=table,
                schema_string=schema_of.json(),
                days=_contents(
                    platform,
                    release,
                    table,
                    publication,
                    good,
                    found,
                    figures,
                    made_from,
                ),
                reads={read.table: release.versions.get(read.table, -1) for read in contract.inputs},
                code_version=platform.code_versions[contract.name],
                seconds=time.monotonic() - started,
            )
            for table, schema_of, found, figures in (
                (contract.name, schema, profiles, prepared.figures(profiles)),
                *([(dead, prepared.dead_schema, letters, {})] if contract.rules else []),
            )
        ]
        again: tuple[date, ...] = ()
        try:
            publish_changes(platform, publication, "recompute", changes, author)
        except Conflict as conflict:
            again = tuple(day for day in good if day in conflict.days)
            if last:
                raise
            if rest := without(changes, again):
                publish_changes(platform, new_publication(), "recompute", rest, author)

    _remember(
        platform,
        contract,
        breaches,
        [day for day in good if day not in again],
        made_from,
        author,
    )
    published = {day: content for day, content in changes[0].days.items() if day not in again}
    return StepResult(contract.name, published, breaches, blocked), again


def _blocked(
    platform: Platform,
    contract: Contract,
    days: Collection[date],
    digests: Mapping[str, Mapping[date, str]],
) -> dict[date, str]:
    """Days that cannot be computed now, and why."""
    blocked: dict[date, str] = {}
    for read in contract.inputs:
        held = {hold.day: hold for hold in platform.ledger.holds(read.table)} if read.window == Span(0, 0) else {}
        have = digests[read.table]
        for day in days:
            if day in held:
                blocked[day] = f"{read.table} is held on {day}: {held[day].reason}"
            elif lacking := next(
                (d for d in day_range(*days_read(read.window, day, platform.calendar)) if d not in have),
                None,
            ):
                blocked[day] = f"{read.table} has never been loaded for {lacking}"
    return blocked


def _gate(
    contract: Contract,
    days: Collection[date],
    profiles: Mapping[date, Profile],
    letters: Mapping[date, Profile],
    prepared: Prepared,
) -> dict[date, tuple[Breach, ...]]:
    breaches: dict[date, tuple[Breach, ...]] = {}
    for day in days:
        found = profiles.get(day, Profile())
        problems = contract_breaches(contract.name, day, found.nulls, contract.key, found.repeated_keys)
        problems += prepared.conservation(day, found.digest.rows, letters.get(day, Profile()).digest.rows)
        if problems:
            breaches[day] = tuple(problems)
    return breaches


def _contents(
    platform: Platform,
    release: Release,
    table: str,
    publication: str,
    days: Collection[date],
    profiles: Mapping[date, Profile],
    figures: Mapping[date, Mapping[str, int]],
    made_from: Mapping[date, str],
) -> dict[date, DayContent]:
    live = files_at(platform.lake, table, release.versions.get(table))
    staged = staged_at(platform.lake, table, publication)
    digests: dict[date, Digest] = {day: found.digest for day, found in profiles.items()}
    contents = replaced(days, live, staged, digests, figures, made_from)
    if figures:
        return contents
    return {day: content for day, content in contents.items() if content.files or content.base}


def _remember(
    platform: Platform,
    contract: Contract,
    breaches: Mapping[date, tuple[Breach, ...]],
    good: Collection[date],
    made_from: Mapping[date, str],
    author: Author,
) -> None:
    now = datetime.now(UTC)
    platform.ledger.hold(
        [
            Hold(
                contract.name,
                day,
                made_from[day],
                found[0].gate,
                found[0].message,
                author.run,
                now,
            )
            for day, found in breaches.items()
        ]
    )
    platform.ledger.lift(contract.name, good)
