"""Announce days that are held or healed, circuits, failed runs and events of plans: each once, on every channel.

Once a day the channel that leads away from this machine also gets the heads of both chains.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from secrets import token_hex
from typing import Any

import dagster as dg

from platform_assets.contracts import Catalogue
from platform_assets.contracts.domain import ANNOUNCEMENTS
from platform_assets.operations.lineage.held_days import HeldDay, withdrawals
from platform_assets.operations.plan_record import BackfillRecord, Event
from platform_assets.orchestration.assets.checks import TableDay, recorded_days_left
from platform_assets.planning.windows import as_named
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import CIRCUIT, Hold
from platform_assets.records.outbox import Announced, AnnouncedDay, AnnouncedHeads, Message
from platform_assets.records.schema_drift import DriftEvent, is_declared
from platform_assets.words import as_chat, visible, without_figures

LOOK_BACK = timedelta(days=7)
"""Runs that failed earlier are not announced any more, such as those of the time before a webhook was set."""

NEWS = timedelta(days=7)
"""Events of plans that are older are not announced any more: the outbox may have forgotten that they were."""

MOST_RUNS = 200
_ERROR_NAME = re.compile(r"^[\w.]+: ")

_MOST_DAYS = 50
_MOST_TEXT = 2000
_MANY = 4
"""Days with the same message, from which on one line stands for all."""
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
        reason: messages of the failed steps; without any, why the run could not begin, or Dagster's message.
        by_gates: whether every failed step said which days it did not publish.
        left: those days, each with its table.
        is_tried_again: whether Dagster retries it.
    """

    run_id: str
    job: str
    reason: str
    by_gates: bool
    is_tried_again: bool
    left: frozenset[TableDay] = frozenset()


def failed_runs(instance: dg.DagsterInstance, announced: Collection[str]) -> list[FailedRun]:
    """Return the runs of the last week that failed and are not announced yet, oldest first."""
    since = datetime.now(UTC) - LOOK_BACK
    failure = dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=since)
    runs = [record.dagster_run for record in instance.get_run_records(failure, limit=MOST_RUNS)]
    return [_failed(instance, run) for run in reversed(runs) if run.run_id not in announced]


def _failed(instance: dg.DagsterInstance, run: dg.DagsterRun) -> FailedRun:
    def events(kind: dg.DagsterEventType) -> list[dg.DagsterEvent]:
        records = instance.get_records_for_run(run.run_id, of_type={kind}).records
        return [event for record in records if (event := record.event_log_entry.dagster_event)]

    reasons: list[str] = []
    verdicts: list[bool] = []
    left: set[TableDay] = set()
    for event in events(dg.DagsterEventType.STEP_FAILURE):
        data = event.step_failure_data
        described = data.user_failure_data
        verdicts.append(bool(described and described.description))
        if described and described.description:
            reasons.append(described.description)
            left |= recorded_days_left(described.metadata)
        elif data.error:
            reasons.append((data.error.cause or data.error).message)
    if not reasons:  # its process could not load the definitions, as with a mistake in a contract
        errors = [event.engine_event_data.error for event in events(dg.DagsterEventType.ENGINE_EVENT)]
        reasons = [_ERROR_NAME.sub("", (error.cause or error).message) for error in errors if error]
    if not reasons:
        reasons = [event.message for event in events(dg.DagsterEventType.RUN_FAILURE) if event.message]
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
    """State of the platform for announcements.

    Args:
        holds: all holds.
        failed: failed runs.
        good: days left by failed runs that are good by now.
        details: details of held days, at least of unannounced ones.
        known_runs: ids of the runs that Dagster can show.
        ui_url: of Dagster.
        heads: of both chains, with the moment, if they are announced; None if not, or if there is no chain yet.
        failing: ids of failed runs after which their job had no successful one.
        recovered: jobs that failed before and whose newest ended run was successful.
    """

    holds: Collection[Hold]
    failed: Collection[FailedRun] = ()
    good: Collection[TableDay] = ()
    details: Mapping[TableDay, HeldDay] = field(default_factory=dict)
    known_runs: Collection[str] = ()
    ui_url: str = ""
    heads: AnnouncedHeads | None = None
    failing: frozenset[str] = frozenset()
    recovered: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Announcement:
    """One message.

    Args:
        about: what this announces, so that it is announced once.
        title: one line.
        text: for a person, with the link.
        payload: for a program; `text` is part of it, as chat systems expect: foreign words in it are code.
        over: announced things that ended: they may be announced again.
    """

    about: Announced
    title: str
    text: str
    payload: dict[str, Any]
    over: frozenset[AnnouncedDay] = frozenset()

    def message(self, now: datetime) -> Message:
        """Return it for the outbox, due at once. The same may be news again later, so keys are unique."""
        return Message(token_hex(16), ANNOUNCEMENTS, self.title, json.dumps(self.payload), created_at=now, due_at=now)


def announcements(now: Present, announced: Announced) -> list[Announcement]:
    """Return all announcements that were not made yet.

    The held days of one table and run are one message, the healed ones of a table another. A run that failed by its own
    verdict is announced by its unpublished days: not a second time, and not at all once they are good.
    """
    together: defaultdict[tuple[str, str], list[Hold]] = defaultdict(list)
    for hold in now.holds:
        if announced_day(hold) not in announced.held:
            together[hold.table, hold.run].append(hold)
    of_holds = [announcement_of_holds(table, run, group, now) for (table, run), group in together.items()]
    silent = announced.runs | runs_announced_by_days(now)
    of_runs = (announcement_of_run(run, now.ui_url) for run in now.failed if run.run_id not in silent)
    return [*of_holds, *_of_healed(now, announced), *of_runs, *_of_heads(now.heads, announced.heads)]


def runs_announced_by_days(now: Present) -> frozenset[str]:
    """Return failed runs whose days say everything: each of these is held, or good by now."""
    held_by = {hold.run for hold in now.holds}
    days = {(hold.table, hold.day) for hold in now.holds} | set(now.good)
    return frozenset(
        run.run_id for run in now.failed if run.by_gates and (run.run_id in held_by or (run.left and run.left <= days))
    )


def open_circuit(hold: Hold) -> Hold:
    """Return an open circuit's announcement key: once, for the date on which it opened."""
    return replace(hold, day=hold.created_at.date(), refused=_CIRCUIT)


def announced_day(hold: Hold) -> AnnouncedDay:
    """Return a hold's announcement key."""
    return AnnouncedDay(hold.table, hold.day, hold.refused)


def announcement_of_holds(table: str, run: str, holds: Sequence[Hold], now: Present) -> Announcement:
    """Return the announcement of held days of a table, or of its open circuit."""
    days = sorted({hold.day for hold in holds})
    details = [now.details[table, day] for day in days if (table, day) in now.details]
    commands = withdrawals(details)
    title = f"{table}: {_several(days)} held."
    if any(hold.gate == CIRCUIT for hold in holds):
        title = f"{table}: its circuit is open, nothing of it is published."
    link = f"{now.ui_url}/{_page(table, run, now.known_runs)}"
    lines = _lines([(hold.day, _words(hold, now.details.get((table, hold.day)))) for hold in holds])
    text, chat = (
        _with_link(title, lines, [_NEW, *commands] if commands else [], link, written) for written in (visible, as_chat)
    )
    payload = {
        "text": chat,
        "what": "held",
        "table": table,
        "days": [_as_json(hold, now.details.get((table, hold.day))) for hold in holds[:_MOST_DAYS]],
        "days_in_all": len(days),
        "withdraw": commands,
        "run": run,
        "link": link,
    }
    return Announcement(Announced(held=frozenset(map(announced_day, holds))), title, text, payload)


def _lines(words: Sequence[tuple[date, str]]) -> list[str]:
    """Return a line for each day; lines that differ only in figures share one, with the figures of the first."""
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
    return reason + (f"{details.by_version}; {details.instead}" if details else "")


def _as_json(hold: Hold, details: HeldDay | None) -> dict[str, Any]:
    arrivals = [arrival.path for arrival in details.arrivals[:_MOST_DAYS]] if details else []
    return {
        "day": f"{hold.day}",
        "gate": hold.gate,
        "reason": hold.reason[:_MOST_TEXT],
        "readers_see": details.instead.removeprefix("readers see ") if details else None,
        "new_arrivals": arrivals,
    }


def _of_healed(now: Present, announced: Announced) -> Iterator[Announcement]:
    # A circuit that is frozen after it opened is another moment, and still not closed.
    standing = {(hold.table, None if hold.gate == CIRCUIT else hold.day) for hold in now.holds}
    by_table: defaultdict[tuple[str, bool], set[AnnouncedDay]] = defaultdict(set)
    for day in announced.held:
        is_circuit = day.refused == _CIRCUIT
        if (day.table, None if is_circuit else day.day) not in standing:
            by_table[day.table, is_circuit].add(day)
    for (table, is_circuit), over in sorted(by_table.items()):
        days = sorted({day.day for day in over})
        title = f"{table}: {_several(days)} healed, held no more; readers see the newest content."
        if is_circuit:
            title = f"{table}: its circuit is closed; waiting days are published again."
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
        yield Announcement(Announced(), title, text, payload, frozenset(over))


def announcement_of_run(run: FailedRun, ui_url: str) -> Announcement:
    """Return the announcement of a failed run."""
    link = f"{ui_url}/runs/{run.run_id}"
    title = f"Run {run.run_id[:8]} of {run.job} failed.{' It is tried once more.' if run.is_tried_again else ''}"
    text, chat = (_with_link(title, run.reason.split("\n"), [], link, written) for written in (visible, as_chat))
    payload = {
        "text": chat,
        "what": "failed",
        "job": run.job,
        "reason": run.reason[:_MOST_TEXT],
        "run": run.run_id,
        "link": link,
    }
    return Announcement(Announced(runs=frozenset({run.run_id})), title, text, payload)


def _of_heads(now: AnnouncedHeads | None, announced: AnnouncedHeads | None) -> Iterator[Announcement]:
    """Announce the heads of both chains, unless they are unchanged, or were announced within the last day."""
    if now is None or (announced and (announced.heads == now.heads or now.told_at - announced.told_at < _HEADS_EVERY)):
        return
    title = "The chains of releases and decisions go on."
    text = f"{title}\nKeep this head: `platform-assets admin audit --expect {now.heads}`"
    payload = {"text": text, "what": "head", "head": now.heads, "at": now.told_at.isoformat()}
    yield Announcement(Announced(heads=now), title, text, payload)


def _several(days: Sequence[date]) -> str:
    return f"{len(days)} days" if len(days) > 1 else f"{days[0]}"


def _with_link(
    title: str, lines: Sequence[str], commands: Sequence[str], link: str, written: Callable[[str], str]
) -> str:
    """Return a text whose reasons are cut if it is too long, but never a command."""
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
    """Return as much of a line as fits once it is escaped."""
    if len(written(line)) < room:
        return line
    kept = line[: max(room, 0)]
    while kept and len(written(kept + _CUT)) >= room:
        kept = kept[: -max((len(written(kept + _CUT)) - room) // 10, 1)]
    return kept + _CUT if kept else ""


def _page(table: str, run: str, known_runs: Collection[str]) -> str:
    return f"runs/{run}" if run in known_runs else f"assets/{table}?view=partitions"


def plan_messages(records: Iterable[BackfillRecord], now: datetime) -> Iterator[Message]:
    """Return messages about events of plans that their files ask for; the outbox takes each once."""
    for record in records:
        for event in record.events:
            if event.kind in record.file.notify and now - event.at < NEWS:
                yield _message(record, event, now)


def _message(record: BackfillRecord, event: Event, now: datetime) -> Message:
    title = " ".join(f"Plan {record.name} of {record.file.owner}, {event.kind}: {event.what}".split())
    body: dict[str, Any] = {
        "text": as_chat(title),
        "what": "plan",
        "plan": record.name,
        "event": event.kind,
        "said": event.what,
        "hash": record.hash,
        "owner": record.file.owner,
        "by": event.who,
        "release": record.release,
        "at": event.at.isoformat(),
    }
    key = sha256(json.dumps([record.name, event.kind, event.what, event.at.isoformat()]).encode()).hexdigest()[:32]
    return Message(key, ANNOUNCEMENTS, title, json.dumps(body), created_at=event.at, due_at=now)


def drift_messages(found: Iterable[DriftEvent], catalogue: Catalogue, now: datetime) -> Iterator[tuple[str, Message]]:
    """Yield a message for each file that first showed columns otherwise than declared, with its table's owner."""
    together: defaultdict[tuple[str, str, datetime], list[DriftEvent]] = defaultdict(list)
    for event in found:
        is_news = event.table in catalogue.names and now - event.since < NEWS
        if is_news and not is_declared(event.drift, catalogue[event.table]):
            together[event.table, event.first, event.since].append(event)
    for (table, first, since), some in together.items():
        owner, drifts = catalogue[table].owner, [event.drift for event in some]
        columns = "; ".join(f"{drift.column} {drift.what}" for drift in drifts[:_MOST_DAYS])
        title = visible(f"{table}: columns otherwise than declared, first in {first}: {columns}")[:_MOST_TEXT]
        body: dict[str, Any] = {
            "text": as_chat(title),
            "what": "schema",
            "table": table,
            "owner": owner,
            "first": first,
        }
        body |= {"columns": [drift._asdict() for drift in drifts[:_MOST_DAYS]], "at": since.isoformat()}
        # Not by its columns, of which some may be declared by now.
        key = sha256(json.dumps([table, first, since.isoformat()]).encode()).hexdigest()[:32]
        yield owner, Message(key, ANNOUNCEMENTS, title, json.dumps(body), created_at=since, due_at=now)
