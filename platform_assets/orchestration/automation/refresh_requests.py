"""Request runs of `refresh` for waiting work: the daily schedule and the sensor of late data.

They share words, key, and retry time, so that they always agree.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import dagster as dg

from platform_assets.engine.late.queue import deep_restatements, late_queue
from platform_assets.engine.pending import Waiting, waiting
from platform_assets.orchestration.jobs import describe_by_people, refresh_job, tables_job
from platform_assets.orchestration.resources import PlatformResource
from platform_assets.planning.plan import Plan, PlannedStep, reason_counts
from platform_assets.planning.rows_aside import counts_of, open_to
from platform_assets.planning.windows import as_named
from platform_assets.records.code_version import Version
from platform_assets.records.history import CIRCUIT
from platform_assets.words import alike, counted

WORK_TAG = "platform/work"
"""What a run was requested for, as a hash: finished runs with the same one are earlier tries."""

WHY_TAG = "platform/why"
"""Shown with the run, and kept with everything it publishes."""

REASONS_TAG = "platform/reasons"
"""Why days are recomputed, as far as that is known when the run is requested: each reason and how many days have it."""

_ASSET_JOB = "__ASSET_JOB"
"""Under which name Dagster runs assets that belong to no job."""

_PRIORITY = "10"
"""Before everything that has none, such as a backfill's runs."""

_EVERY_S = 30
_FIRST_PAUSE_S = 300.0
_LONGEST_PAUSE_S = 6 * 3600.0
_MOST_SIGNS = 250
"""Of a reason that is kept with every publication."""
_SHOWN = 3
"""Items of a list that a message names."""

_WORKING = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
_UNFINISHED = [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED, *_WORKING]


def unfinished_refreshes(instance: dg.DagsterInstance) -> Sequence[dg.DagsterRun]:
    """Return queued or running runs of `refresh`."""
    return unfinished_runs(instance, refresh_job.name)


def unfinished_runs(instance: dg.DagsterInstance, job: str) -> Sequence[dg.DagsterRun]:
    """Return queued or running runs of a job."""
    return instance.get_runs(dg.RunsFilter(job_name=job, statuses=_UNFINISHED))


def asset_runs_at_work(instance: dg.DagsterInstance) -> tuple[list[dg.DagsterRun], list[dg.DagsterRun]]:
    """Return running runs of assets: those that ingest files, since they have a raw table, and the others."""
    runs = instance.get_runs(dg.RunsFilter(statuses=_WORKING))
    takers = [run for run in runs if "raw" in _layers(run)]
    return takers, [run for run in runs if _layers(run) and run not in takers]


def _layers(run: dg.DagsterRun) -> set[str]:
    if run.asset_selection is None:
        return {"raw", "silver", "gold"} if run.job_name == _ASSET_JOB else set()
    return {key.path[-1].partition(".")[0] for key in run.asset_selection}


def work_of(pending: Waiting, versions: Mapping[str, Version]) -> str:
    """Hash exactly what a run would do: the present files, the days with fingerprints, the code.

    A correction delivered later is other work, and so are the same files after a changed code or rule. So is every try
    of an open circuit: its policy alone says when the next one is due.
    """
    parts: list[str] = []
    for table, files in sorted(pending.files.items()):
        in_order = sorted(files, key=lambda file: file.path)
        parts += [f"|{table}|{file.path}|{file.size}|{file.modified_ns}" for file in in_order]
    for table, marks in sorted(pending.stale.items()):
        parts += [f"|{table}|{day}|{mark}" for day, mark in sorted(marks.items())]
    for table, days in sorted(pending.quiet.items()):
        parts += [f"|{table}|{day}" for day in sorted(days)]
    for table, days in sorted(pending.due.items()):
        parts += [f"|{table}|due {day}" for day in sorted(days)]
    parts += [f"|{table}|read {position}" for table, position in sorted(pending.unread.items())]
    parts += [f"|{table}|{tried}" for table, tried in sorted(pending.plan.tries.items())]
    parts += [f"|{table}|{version}" for table, version in sorted(versions.items())]
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:32]


def earlier_tries(instance: dg.DagsterInstance, work: str) -> Sequence[dg.RunRecord]:
    """Return ended runs that left exactly this work undone, newest first."""
    records = instance.get_run_records(dg.RunsFilter(tags={WORK_TAG: work}))
    return [record for record in records if record.dagster_run.is_finished]


def pause_left_s(tries: Sequence[dg.RunRecord]) -> float:
    """Return seconds until the next try: five minutes after the first failure, then four times as long, up to 6 h.

    A run that ended in the future, by a clock that was ahead, does not delay the next try.
    """
    now = time.time()
    ends = (record.end_time or record.update_timestamp.replace(tzinfo=UTC).timestamp() for record in tries)
    ended = max((end for end in ends if end <= now), default=None)
    if ended is None:
        return 0.0
    pause_s = min(_FIRST_PAUSE_S * 4.0 ** (len(tries) - 1), _LONGEST_PAUSE_S)
    return max(ended + pause_s - now, 0.0)


def request(pending: Waiting, work: str, tries: Sequence[dg.RunRecord]) -> dg.RunRequest:
    """Request a run for this work.

    Dagster never starts a second run for a key, so the key has the state of every file and the number of the try.
    """
    until = pending.until.isoformat() if pending.until else ""
    reasons = describe_reasons(pending.plan.steps)
    why = describe_work(pending)
    if len(why) > _MOST_SIGNS:
        why = f"{why[: _MOST_SIGNS - 1].rstrip()}…"
    return dg.RunRequest(
        job_name=refresh_job.name,
        run_key=f"{work}-{len(tries)}",
        run_config={"ops": {"refresh_tables": {"config": {"until": until}}}},
        tags={WORK_TAG: work, WHY_TAG: why, "dagster/priority": _PRIORITY}
        | ({REASONS_TAG: reasons} if reasons else {}),
    )


def describe(pending: Waiting) -> str:
    """Describe found and remaining work, for the page of a tick."""
    parts = [describe_work(pending) or "nothing to do"]
    if pending.growing:
        names = _some(problem.path for problem in pending.growing)
        parts.append(f"{len(pending.growing):,} still growing, left for the next tick ({names})")
    if pending.problems:
        kinds = _some(alike((problem.path, problem.message) for problem in pending.problems))
        parts.append(f"{len(pending.problems):,} cannot be taken ({kinds}): `platform-assets status files` lists them")
    return "; ".join(parts)


def describe_work(pending: Waiting) -> str:
    """Describe a run's purpose, empty if there is none: it is stored with all its publications."""
    parts: list[str] = []
    if pending.files:
        count = sum(map(len, pending.files.values()))
        dates = {table: [file.arrival_date for file in files] for table, files in pending.files.items()}
        parts.append(f"{counted(count, 'file')} landed ({_by_table(dates)})")
    if pending.unread:
        parts.append(f"sources to read ({', '.join(sorted(pending.unread))})")
    if pending.left:
        parts.append(f"{pending.left:,} more of newer dates, left for the next run")
    if pending.due:
        parts.append(f"rows that arrived far ahead of their day are due ({_by_table(pending.due)})")
    if pending.stale and not pending.files:
        count = sum(map(len, pending.stale.values()))
        parts.append(f"{counted(count, 'day')} stale ({_by_table(pending.stale)})")
    if pending.quiet and not pending.files:
        count = sum(map(len, pending.quiet.values()))
        parts.append(f"{counted(count, 'day')} to load on which nothing was expected ({_by_table(pending.quiet)})")
    if pending.plan.tries:
        parts.append(
            f"circuits to try ({_by_table({table: [tried.day] for table, tried in pending.plan.tries.items()})})"
        )
    return "; ".join(parts)


def describe_reasons(steps: Iterable[PlannedStep]) -> str:
    """Return each reason with its number of days; empty without days."""
    return ", ".join(f"{reason} {count:,}" for reason, count in reason_counts(steps).items())


def describe_waiting(plan: Plan) -> str:
    """Describe the days that wait for a person, and the command for them; empty without any."""
    count = sum(len(step.days) for step in plan.waiting)
    parts: list[str] = []
    if count:
        parts.append(
            f"{counted(count, 'day', 'wait')} for a person "
            f"({describe_reasons(plan.waiting)}): `platform-assets refresh` or a backfill takes them"
        )
    blocked = [day.state.hold for days in plan.blocked.values() for day in days.values()]
    parts = [*dict.fromkeys(hold.reason for hold in blocked if hold and hold.gate == CIRCUIT), *parts]
    if blocked:
        parts.append(
            f"{counted(len(blocked), 'day')} cannot be computed, because an input is held or not there, or a circuit "
            "is open: `platform-assets status stale` says which"
        )
    if plan.by_people:
        parts.append(describe_by_people(plan.by_people))
    return "; ".join(parts)


def _by_table(days: Mapping[str, Collection[date]]) -> str:
    return "; ".join(f"{table.removeprefix('raw.')} {_days(of_table)}" for table, of_table in days.items())


def _days(days: Collection[date]) -> str:
    return _some(as_named(days))


def _some(texts: Iterable[str]) -> str:
    every = list(texts)
    more = f" and {len(every) - _SHOWN:,} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more


@dg.sensor(
    name="late_data",
    # It requests the first; by the second, which has them all, the tables name it as what they are automated by.
    jobs=[refresh_job, tables_job],
    minimum_interval_seconds=_EVERY_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Ingests newly landed files and recomputes exactly the days that they touch, old ones included.",
)
def late_data(context: dg.SensorEvaluationContext, platform: PlatformResource) -> dg.RunRequest | dg.SkipReason:
    """Request one run for all waiting work, including days that a dead run left stale."""
    if refreshes := unfinished_refreshes(context.instance):
        return dg.SkipReason(f"run {refreshes[0].run_id} of refresh is on its way; what landed since waits for its end")
    takers, others = asset_runs_at_work(context.instance)
    if takers:
        return dg.SkipReason(f"run {takers[0].run_id} is taking files itself; what it leaves is taken after its end")
    with platform.open() as opened:
        # Days without deliveries are left to the daily run.
        pending = replace(waiting(opened, opened.settings.files_per_run), quiet={})
        work = work_of(pending, opened.versions)
    message = "; ".join(filter(None, (describe(pending), describe_waiting(pending.plan))))
    takes = pending.files or pending.unread or pending.due
    if not (takes or pending.stale or pending.plan.tries):
        return dg.SkipReason(message)
    if others and not takes:
        return dg.SkipReason(f"{message}; run {others[0].run_id} may be computing them")
    tries = earlier_tries(context.instance, work)
    if left_s := pause_left_s(tries):
        last = tries[0].dagster_run
        return dg.SkipReason(
            f"{message}; run {last.run_id} left this undone ({last.status.value.lower()}), "
            f"next try at {datetime.now(UTC) + timedelta(seconds=left_s):%H:%M UTC}, or run `refresh` by hand"
        )
    context.log.info(message)
    return request(pending, work, tries)


def daily(context: dg.ScheduleEvaluationContext, platform: PlatformResource) -> dg.RunRequest | dg.SkipReason:
    """Request all tables for the day that just ended, and every earlier missed day.

    It looks for missing days now, not at the tick's own date: missed ticks need no catching up.
    """
    with platform.open() as opened:
        settings = opened.settings
        pending = waiting(opened, settings.files_per_run)
        work = work_of(pending, opened.versions)
    ended = min(settings.current_day() - timedelta(days=1), settings.last_day())
    missing = f"never delivered: {_by_table(pending.missing)}" if pending.missing else ""
    parts = (f"up to {ended}: {describe(pending)}", missing, describe_waiting(pending.plan))
    message = "; ".join(filter(None, parts))
    context.log.info(message)
    takes = pending.files or pending.unread or pending.due
    if not (takes or pending.stale or pending.quiet or pending.plan.tries):
        return dg.SkipReason(message)
    for run in unfinished_refreshes(context.instance):
        if run.tags.get(WORK_TAG) == work:
            return dg.SkipReason(f"run {run.run_id} is on its way to do this already; {message}")
    return request(pending, work, earlier_tries(context.instance, work))


def deep_restatement(
    context: dg.ScheduleEvaluationContext, platform: PlatformResource
) -> dg.RunRequest | dg.SkipReason:
    """Request late rows that contracts leave to the deep restatement, a month's at once: days are computed once."""
    with platform.open() as opened:
        queue = late_queue(opened)
        selections = deep_restatements(opened, queue)
    waits = [rows for selection in selections for rows in open_to("approval", queue, selection)]
    if not waits:
        return dg.SkipReason("nothing to do: no late rows wait that a contract leaves to the deep restatement")
    tables = ", ".join(sorted({rows.table for rows in waits}))
    days = len({(rows.table, rows.day) for rows in waits})
    message = f"deep restatement: {counts_of(waits).waiting:,} late rows of {days:,} days ({tables})"
    context.log.info(message)
    return dg.RunRequest(
        run_config={"ops": {"refresh_tables": {"config": {"deep_restatement": True}}}}, tags={WHY_TAG: message}
    )
