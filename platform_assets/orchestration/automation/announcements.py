"""What people are told of: days that are held, that these healed, runs that failed. Each once, on every channel.

And once a day, where both chains stand, on the channel that leads away from this machine.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from secrets import token_hex
from typing import Any

import dagster as dg
from dagster import DagsterEventType

from platform_assets.contracts.exposures import ANNOUNCEMENTS
from platform_assets.operations.lineage.held_days import HeldDay, withdrawals
from platform_assets.orchestration.assets.outcomes import TableDay, recorded_days_left
from platform_assets.planning.windows import as_named
from platform_assets.records.history import CIRCUIT, Hold
from platform_assets.records.notes import AnnouncedDay, Told, ToldHeads
from platform_assets.records.outbox import Message
from platform_assets.records.refused import Attempt
from platform_assets.visible import as_chat, visible
from platform_assets.words import without_figures

_LOOK_BACK = timedelta(days=7)
"""Runs that failed earlier are not announced any more, such as those of the time before a webhook was set."""

_MOST_RUNS = 200
_ERROR_NAME = re.compile(r"^[\w.]+: ")


_MOST_DAYS = 50
_MOST_TEXT = 2000
_MANY = 4
"""Days of which the like is to be said, from which one line stands for all."""
_HEADS_EVERY = timedelta(days=1)
_CUT = " …"
_CIRCUIT = Attempt(CIRCUIT)
_NEW = "New since then; what should not have come is taken out with"


@dataclass(frozen=True)
class FailedRun:
    """A run that failed.

    Args:
        run_id: Dagster's id.
        job: its name.
        reason: what the failed steps said, or of a run without any, why it could not begin, or Dagster.
        by_gates: whether every failed step said by itself which days it did not publish.
        left: those days, each with its table.
        is_tried_again: whether Dagster starts it once more.
    """

    run_id: str
    job: str
    reason: str
    by_gates: bool
    is_tried_again: bool
    left: frozenset[TableDay] = frozenset()


def failed_runs(instance: dg.DagsterInstance, told: Collection[str]) -> list[FailedRun]:
    """Runs that failed within the last week and are not among those announced, oldest first."""
    since = datetime.now(UTC) - _LOOK_BACK
    failure = dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=since)
    runs = [record.dagster_run for record in instance.get_run_records(failure, limit=_MOST_RUNS)]
    return [_failed(instance, run) for run in reversed(runs) if run.run_id not in told]


def _why_not_begun(instance: dg.DagsterInstance, run: dg.DagsterRun) -> list[str]:
    """What kept the process of a run from loading the definitions, as a mistake in a contract does."""
    records = instance.get_records_for_run(run.run_id, of_type={DagsterEventType.ENGINE_EVENT}).records
    events = [record.event_log_entry.dagster_event for record in records]
    errors = [event.engine_event_data.error for event in events if event]
    return [_ERROR_NAME.sub("", (error.cause or error).message) for error in errors if error]


def _failed(instance: dg.DagsterInstance, run: dg.DagsterRun) -> FailedRun:
    reasons: list[str] = []
    verdicts: list[bool] = []
    left: set[TableDay] = set()
    for record in instance.get_records_for_run(run.run_id, of_type={DagsterEventType.STEP_FAILURE}).records:
        event = record.event_log_entry.dagster_event
        data = event.step_failure_data if event else None
        said = data.user_failure_data if data else None
        verdicts.append(bool(said and said.description))
        if said and said.description:
            reasons.append(said.description)
            left |= recorded_days_left(said.metadata)
        elif data and data.error:
            reasons.append((data.error.cause or data.error).message)
    reasons = reasons or _why_not_begun(instance, run)
    if not reasons:
        ends = instance.get_records_for_run(run.run_id, of_type={DagsterEventType.RUN_FAILURE}).records
        events = [record.event_log_entry.dagster_event for record in ends]
        reasons = [event.message for event in events if event and event.message]
    return FailedRun(
        run_id=run.run_id,
        job=run.job_name,
        reason="\n".join(reason.strip() for reason in reasons) or "no reason was recorded",
        by_gates=bool(verdicts) and all(verdicts),
        is_tried_again=run.tags.get("dagster/will_retry") == "true",
        left=frozenset(left),
    )


@dataclass(frozen=True)
class Present:
    """What is the case, as far as people may have to be told.

    Args:
        holds: all that stand.
        failed: runs.
        good: days that failed runs left and that are what they should be by now.
        details: of held days, those at least that are not announced.
        known_runs: ids of the runs that Dagster can show.
        ui_url: of Dagster.
        heads: of both chains, with the moment, where they are told; None where they are not, or nothing is chained.
    """

    holds: Collection[Hold]
    failed: Collection[FailedRun] = ()
    good: Collection[TableDay] = ()
    details: Mapping[TableDay, HeldDay] = field(default_factory=dict)
    known_runs: Collection[str] = ()
    ui_url: str = ""
    heads: ToldHeads | None = None


@dataclass(frozen=True)
class Announcement:
    """One message.

    Args:
        about: what is announced once.
        over: what was announced and is no longer so: it may be announced again.
        title: in a line.
        text: for a person, with the link.
        payload: for a program; `text` is part of it, as chat systems want it: there the words of others are code.
    """

    about: Told
    over: frozenset[AnnouncedDay]
    title: str
    text: str
    payload: dict[str, Any]

    def message(self, now: datetime) -> Message:
        """It for the outbox, due at once. The same may be news again later, so no two have one key."""
        return Message(token_hex(16), ANNOUNCEMENTS, self.title, json.dumps(self.payload), created_at=now, due_at=now)


def announcements(now: Present, told: Told) -> list[Announcement]:
    """Everything there is to tell that was not told yet.

    The held days of one table and run are one message, those of one table that healed another. A run that failed by
    its own verdict is told by the days it left: not a second time, and not at all once they are good.
    """
    together: defaultdict[tuple[str, str], list[Hold]] = defaultdict(list)
    for hold in now.holds:
        if announced(hold) not in told.held:
            together[hold.table, hold.run].append(hold)
    of_holds = [_of_holds(table, run, group, now) for (table, run), group in together.items()]
    silent = told.runs | runs_told_by_days(now)
    return [
        *of_holds,
        *_of_healed(now, told),
        *(_of_run(run, now.ui_url) for run in now.failed if run.run_id not in silent),
        *_of_heads(now.heads, told.heads),
    ]


def runs_told_by_days(now: Present) -> frozenset[str]:
    """Failed runs that say nothing which their days do not: each of these is held, or good by now."""
    held_by = {hold.run for hold in now.holds}
    told_of = {(hold.table, hold.day) for hold in now.holds} | set(now.good)
    return frozenset(
        run.run_id
        for run in now.failed
        if run.by_gates and (run.run_id in held_by or (run.left and run.left <= told_of))
    )


def open_circuit(hold: Hold) -> Hold:
    """Return an open circuit as it is announced: once, on the date on which it opened."""
    return replace(hold, day=hold.created_at.date(), refused=_CIRCUIT)


def announced(hold: Hold) -> AnnouncedDay:
    """A hold as it is announced."""
    return AnnouncedDay(hold.table, hold.day, hold.refused)


def _of_holds(table: str, run: str, holds: Sequence[Hold], now: Present) -> Announcement:
    days = sorted({hold.day for hold in holds})
    details = [now.details[table, day] for day in days if (table, day) in now.details]
    commands = withdrawals(details)
    lines = _lines([(hold.day, _words(hold, now.details.get((table, hold.day)))) for hold in holds])
    said = [_NEW, *commands] if commands else []
    title = f"{table}: {_several(days)} held."
    if any(hold.gate == CIRCUIT for hold in holds):
        title = f"{table}: its circuit is open, nothing of it is published."
    link = f"{now.ui_url}/{_page(table, run, now.known_runs)}"
    return Announcement(
        about=Told(held=frozenset(map(announced, holds))),
        over=frozenset(),
        title=title,
        text=_with_link(title, lines, said, link, visible),
        payload={
            "text": _with_link(title, lines, said, link, as_chat),
            "what": "held",
            "table": table,
            "days": [_as_json(hold, now.details.get((table, hold.day))) for hold in holds[:_MOST_DAYS]],
            "days_in_all": len(days),
            "withdraw": commands,
            "run": run,
            "link": link,
        },
    )


def _lines(words: Sequence[tuple[date, str]]) -> list[str]:
    """A line for each day, or one for many of which the same is to be said but for figures, those of the first."""
    by_kind: defaultdict[str, dict[date, str]] = defaultdict(dict)
    for day, said in sorted(words):
        by_kind[without_figures(said)][day] = said
    lines: list[tuple[date, str]] = []
    for kind in by_kind.values():
        first = min(kind)
        if len(kind) < _MANY:
            lines += [(day, f"{day}: {said}") for day, said in kind.items()]
        else:
            lines.append((first, f"{', '.join(as_named(kind))}, each as {first}: {kind[first]}"))
    return [line for _, line in sorted(lines)]


def _words(hold: Hold, details: HeldDay | None) -> str:
    reason = hold.reason.removeprefix(f"{hold.table} on {hold.day}: ")
    return reason + (f"; {details.instead}" if details else "")


def _as_json(hold: Hold, details: HeldDay | None) -> dict[str, Any]:
    arrivals = [arrival.path for arrival in details.arrivals[:_MOST_DAYS]] if details else []
    return {
        "day": f"{hold.day}",
        "gate": hold.gate,
        "reason": hold.reason[:_MOST_TEXT],
        "readers_see": details.instead.removeprefix("readers see ") if details else None,
        "new_arrivals": arrivals,
    }


def _of_healed(now: Present, told: Told) -> Iterator[Announcement]:
    standing = {(hold.table, hold.day, hold.gate == CIRCUIT) for hold in now.holds}
    by_table: defaultdict[tuple[str, bool], set[AnnouncedDay]] = defaultdict(set)
    for day in told.held:
        is_circuit = day.refused == _CIRCUIT
        if (day.table, day.day, is_circuit) not in standing:
            by_table[day.table, is_circuit].add(day)
    for (table, is_circuit), over in sorted(by_table.items()):
        days = sorted({day.day for day in over})
        title = f"{table}: {_several(days)} healed, held no more; readers see what was published since."
        if is_circuit:
            title = f"{table}: its circuit is closed; what waited is published again."
        link = f"{now.ui_url}/{_page(table, '', ())}"
        text = _with_link(title, [", ".join(as_named(days))] if len(days) > 1 else [], [], link, visible)
        payload = {
            "text": text,
            "what": "healed",
            "table": table,
            "days": [f"{day}" for day in days[:_MOST_DAYS]],
            "days_in_all": len(days),
            "link": link,
        }
        yield Announcement(Told(), frozenset(over), title, text, payload)


def _of_run(run: FailedRun, ui_url: str) -> Announcement:
    link = f"{ui_url}/runs/{run.run_id}"
    again = " It is tried once more." if run.is_tried_again else ""
    title = f"Run {run.run_id[:8]} of {run.job} failed.{again}"
    lines = run.reason.split("\n")
    text = _with_link(title, lines, [], link, visible)
    payload = {
        "text": _with_link(title, lines, [], link, as_chat),
        "what": "failed",
        "job": run.job,
        "reason": run.reason[:_MOST_TEXT],
    }
    about = Told(runs=frozenset({run.run_id}))
    return Announcement(about, frozenset(), title, text, payload | {"run": run.run_id, "link": link})


def _of_heads(now: ToldHeads | None, told: ToldHeads | None) -> Iterator[Announcement]:
    """Where both chains stand, unless that was told within the last day, or they stand there still."""
    if now is None or (told and (told.heads == now.heads or now.told_at - told.told_at < _HEADS_EVERY)):
        return
    title = "The chains of releases and decisions go on."
    text = f"{title}\nKeep this head: `platform-assets audit verify --expect {now.heads}`"
    payload = {"text": text, "what": "head", "head": now.heads, "at": now.told_at.isoformat()}
    yield Announcement(Told(heads=now), frozenset(), title, text, payload)


def _several(days: Sequence[date]) -> str:
    return f"{len(days)} days" if len(days) > 1 else f"{days[0]}"


def _with_link(
    title: str, lines: Sequence[str], commands: Sequence[str], link: str, written: Callable[[str], str]
) -> str:
    """A text of which reasons are cut where it is too long, and no command.

    Args:
        commands: what they begin with is the platform's own.
        written: what becomes of the words of others.
    """
    said, rest = [title], [*(line if line == _NEW else written(line) for line in commands), link]
    room = _MOST_TEXT - len("\n".join((title, *rest)))
    for line in filter(str.strip, lines):
        kept = _cut(line, room, written)
        if kept:
            said.append(written(kept))
            room -= len(said[-1]) + 1
        if kept != line:
            break
    return "\n".join((*said, *rest))


def _cut(line: str, room: int, written: Callable[[str], str]) -> str:
    """As much of a line as there is room for once it is written."""
    if len(written(line)) < room:
        return line
    kept = line[: max(room, 0)]
    while kept and len(written(kept + _CUT)) >= room:
        kept = kept[: -max((len(written(kept + _CUT)) - room) // 10, 1)]
    return kept + _CUT if kept else ""


def _page(table: str, run: str, known_runs: Collection[str]) -> str:
    return f"runs/{run}" if run in known_runs else f"assets/{table}?view=partitions"
