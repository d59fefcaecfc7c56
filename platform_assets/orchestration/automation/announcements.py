"""What people are told of: days that are held, runs that failed. Each thing once, on every channel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
from dagster import DagsterEventType as Event

from platform_assets.records.history import Hold
from platform_assets.records.notes import HeldDay, Told

_LOOK_BACK = timedelta(days=7)
"""Runs that failed earlier are not announced any more, such as those of the time before a webhook was set."""

_MOST_RUNS = 200
_MOST_DAYS = 50
_MOST_TEXT = 2000


@dataclass(frozen=True)
class Announcement:
    """One message.

    Args:
        about: what is announced once.
        title: in a line.
        text: for a person, with the link.
        payload: for a program; `text` is part of it, as chat systems want it.
    """

    about: Told
    title: str
    text: str
    payload: dict[str, Any]


@dataclass(frozen=True)
class FailedRun:
    """A run that failed.

    Args:
        run_id: Dagster's id.
        job: its name.
        reason: what the failed steps said, or Dagster of a run without any.
        by_gates: whether a step said by itself which days it did not publish.
        is_tried_again: whether Dagster starts it once more.
    """

    run_id: str
    job: str
    reason: str
    by_gates: bool
    is_tried_again: bool


def announcements(
    holds: Collection[Hold],
    failed: Collection[FailedRun],
    told: Told,
    known_runs: Collection[str],
    ui_url: str,
) -> list[Announcement]:
    """Everything there is to tell that was not told yet.

    The held days of one table and run are one message. A run that failed because of days it held is not told a second
    time.

    Args:
        holds: all that stand.
        failed: runs.
        told: what was announced before.
        known_runs: ids of the runs that Dagster can show.
        ui_url: of Dagster.
    """
    together: defaultdict[tuple[str, str], list[Hold]] = defaultdict(list)
    for hold in holds:
        if _held_day(hold) not in told.held:
            together[hold.table, hold.run].append(hold)
    of_holds = [
        _of_holds(table, run, group, f"{ui_url}/{_page(table, run, known_runs)}")
        for (table, run), group in together.items()
    ]
    held_by = {hold.run for hold in holds}
    return of_holds + [
        _of_run(run, ui_url)
        for run in failed
        if run.run_id not in told.runs and not (run.by_gates and run.run_id in held_by)
    ]


def failed_runs(instance: dg.DagsterInstance, told: Collection[str]) -> list[FailedRun]:
    """Runs that failed within the last week and are not among those announced, oldest first."""
    since = datetime.now(UTC) - _LOOK_BACK
    failure = dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=since)
    runs = [record.dagster_run for record in instance.get_run_records(failure, limit=_MOST_RUNS)]
    return [_failed(instance, run) for run in reversed(runs) if run.run_id not in told]


def _failed(instance: dg.DagsterInstance, run: dg.DagsterRun) -> FailedRun:
    reasons: list[str] = []
    by_gates = False
    for record in instance.get_records_for_run(run.run_id, of_type={Event.STEP_FAILURE}).records:
        event = record.event_log_entry.dagster_event
        data = event.step_failure_data if event else None
        if data and data.user_failure_data and data.user_failure_data.description:
            by_gates = True
            reasons.append(data.user_failure_data.description)
        elif data and data.error:
            reasons.append((data.error.cause or data.error).message)
    if not reasons:
        ends = instance.get_records_for_run(run.run_id, of_type={Event.RUN_FAILURE}).records
        events = [record.event_log_entry.dagster_event for record in ends]
        reasons = [event.message for event in events if event and event.message]
    return FailedRun(
        run_id=run.run_id,
        job=run.job_name,
        reason="\n".join(reason.strip() for reason in reasons) or "no reason was recorded",
        by_gates=by_gates,
        is_tried_again=run.tags.get("dagster/will_retry") == "true",
    )


def _held_day(hold: Hold) -> HeldDay:
    return HeldDay(hold.table, hold.day, hold.refused)


def _of_holds(table: str, run: str, holds: Sequence[Hold], link: str) -> Announcement:
    days = sorted({hold.day for hold in holds})
    lines = [f"{hold.day}: {hold.reason}" for hold in holds[:_MOST_DAYS]]
    several = f"{len(days)} days" if len(days) > 1 else f"{days[0]}"
    title = f"{table}: {several} held; readers keep the last good content."
    text = _with_link("\n".join([title, *lines]), link)
    return Announcement(
        about=Told(held=frozenset(map(_held_day, holds))),
        title=title,
        text=text,
        payload={
            "text": text,
            "what": "held",
            "table": table,
            "days": [
                {"day": f"{hold.day}", "gate": hold.gate, "reason": hold.reason[:_MOST_TEXT]}
                for hold in holds[:_MOST_DAYS]
            ],
            "days_in_all": len(days),
            "run": run,
            "link": link,
        },
    )


def _of_run(run: FailedRun, ui_url: str) -> Announcement:
    link = f"{ui_url}/runs/{run.run_id}"
    again = " It is tried once more." if run.is_tried_again else ""
    title = f"Run {run.run_id[:8]} of {run.job} failed.{again}"
    text = _with_link(f"{title}\n{run.reason}", link)
    payload = {"text": text, "what": "failed", "job": run.job, "reason": run.reason[:_MOST_TEXT]}
    return Announcement(Told(runs=frozenset({run.run_id})), title, text, payload | {"run": run.run_id, "link": link})


def _with_link(text: str, link: str) -> str:
    shown = text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]} …"
    return f"{shown}\n{link}"


def _page(table: str, run: str, known_runs: Collection[str]) -> str:
    return f"runs/{run}" if run in known_runs else f"assets/{table.replace('.', '/')}?view=partitions"
