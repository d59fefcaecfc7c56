"""The life of a day, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING, Any

from platform_assets.cli.console import console, say
from platform_assets.planning.key_scope import shown_keys
from platform_assets.quality.findings import accepted_by_hand
from platform_assets.records.decisions import LateDecision, signed
from platform_assets.records.history import PublicationRecord
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.lineage.day_history import Content, Event, Published


def print_life(table: str, day: date, events: Sequence[Event]) -> None:
    """Print every event with what is known of it, oldest first."""
    if not events:
        console.print(f"{table} {day}: nothing is on record.", highlight=False)
    for event in events:
        head, text, *more = _lines(event)
        say(f"[bold]{event.moment:%Y-%m-%d %H:%M:%S}[/] [cyan]{head}[/]", text)
        for line in more:
            say("   ", line)


def life_json(event: Event) -> dict[str, Any]:
    """An event as a JSON object; `event` says what it is."""
    from platform_assets.operations.lineage.day_history import Decided, Held, Lifted

    if isinstance(event, Held):
        return {"event": "hold", **asdict(event.hold)}
    if isinstance(event, Lifted):
        return {"event": "hold ended", "ended_at": event.ended.ended_at, **asdict(event.ended.hold)}
    if isinstance(event, Decided):
        return {"event": event.decision.kind, **asdict(event.decision)}
    head, record = event.head, event.record
    return {
        "event": head.kind,
        **{name: getattr(head, name) for name in _OF_A_PUBLICATION},
        "before": asdict(event.before) if event.before else None,
        "after": asdict(event.after) if event.after else None,
        **{name: getattr(record, name) for name in _OF_A_DAY},
        "warnings": [warned.model_dump() for warned in record.warnings],
        "arrivals": [
            {"path": arrival.path, "kind": arrival.kind, "origin": arrival.origin} for arrival in event.arrivals
        ],
        "restores": event.restores or None,
        "only": event.keys or None,
    }


_OF_A_PUBLICATION = ("publication", "release", "created_at", "decides", "who", "as_user", "on_host", "why", "run")
_OF_A_DAY = (
    "fingerprint",
    "code_version",
    "git_commit",
    "configuration",
    "reads",
    "figures",
    "files",
    "bytes",
    "seconds",
)


def _lines(event: Event) -> Iterator[str]:
    """What happened, in a sentence, and then a line for every detail."""
    from platform_assets.operations.lineage.day_history import Decided, Held, Lifted

    if isinstance(event, Lifted):
        hold = event.ended.hold
        yield "held no longer"
        yield f"by {hold.gate}, as since {hold.created_at:%Y-%m-%d %H:%M:%S} UTC"
    elif isinstance(event, Held):
        yield "held"
        yield f"by {event.hold.gate}, run {event.hold.run}: {event.hold.reason}"
    elif isinstance(event, Decided):
        decision = event.decision
        yield decision.kind
        yield f"of waiting rows of {decision.arrival} for {decision.table}, by {_signed(decision)}: {decision.reason}"
    else:
        yield from _published(event)


def _published(event: Published) -> Iterator[str]:
    head, record = event.head, event.record
    yield head.what
    yield f"release {head.release} by {_signed(head)}: {head.why}"
    yield f"publication {head.publication}, run {head.run}"
    changed = f"{_said(event.before)} -> {_said(event.after)}"
    yield changed if event.before != event.after else f"{_said(event.after)}, as before"
    if accepted := accepted_by_hand(record.figures):
        yield f"accepted by hand: what {' and '.join(accepted)} found"
    yield from (f"warning of {warned}" for warned in record.warnings)
    if event.restores:
        yield f"put back what publication {event.restores} had computed"
    if event.keys:
        yield f"only rows of {shown_keys(event.keys)} were computed, all others carried over"
    if record.reads:
        reads = (
            f"{table} version {version}" if version >= 0 else f"{table} (empty)"
            for table, version in _sorted(record.reads)
        )
        yield f"made from {', '.join(reads)}"
    if record.code_version:
        yield f"code {record.code_version}, configuration {record.configuration or 'not recorded'}"
    if record.git_commit:
        yield f"git commit {record.git_commit}"
    for arrival in event.arrivals:
        origin = f" of {arrival.origin}" if arrival.origin else ""
        yield f"{arrival.kind} {arrival.path}{origin}"


def _signed(made: PublicationRecord | LateDecision) -> str:
    return signed(made.who, made.as_user, made.on_host)


def _sorted(reads: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(reads.items())


def _said(content: Content | None) -> str:
    return f"{counted(content.rows, 'row')}, digest {content.digest}" if content else "never computed"
