"""`admin audit`, the history of a day, decisions, and undoing the commits of another tool."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.console import (
    UsageError,
    opened_platform,
    parse_day,
    parse_days,
    platform_to_look,
    selected_tables,
)
from platform_assets.cli.options import Days
from platform_assets.cli.progress import telling
from platform_assets.cli.session import session_on_demand
from platform_assets.engine.platform import Author
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.revert import remove_foreign_releases, revert_foreign
from platform_assets.operations.audit_logs import CHECKS, Scope
from platform_assets.operations.lineage.day_history import Content, Event, Published, life_of
from platform_assets.planning.selection import shown_keys
from platform_assets.planning.windows import which
from platform_assets.progress import meanwhile
from platform_assets.quality.findings import accepted_by_hand
from platform_assets.records.chain import Entry, Heads
from platform_assets.records.decisions import (
    Acknowledgement,
    CircuitDecision,
    Decision,
    LateDecision,
    LiftDecision,
    MessageDecision,
    PinDecision,
    PlanDecision,
    QuarantineDecision,
    from_content,
    signed,
)
from platform_assets.records.history import EndedHold, Hold
from platform_assets.report import Cell, Mark, Note, Part, Report, Table, picked, plain
from platform_assets.settings import load_settings
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.audit import Audit


_SHOWN = 20


def audit(
    tables: Annotated[
        list[str] | None, typer.Argument(metavar="TABLE", help="Only these; the chain is always checked as a whole.")
    ] = None,
    days: Days = None,
    fast: Annotated[bool, typer.Option("--fast", help="Only the chain and the logs, no files.")] = False,
    every_release: Annotated[bool, typer.Option("--all", help="Also files that only older releases need.")] = False,
    read_mb: Annotated[
        int, typer.Option("--read-mb", min=0, help="Read about so many MB of files page by page, others every day.")
    ] = 200,
    read_all: Annotated[bool, typer.Option("--read-all", help="Read every file page by page.")] = False,
    digests: Annotated[bool, typer.Option("--digests", help="Also compute every day's digest, with Spark.")] = False,
    expect: Annotated[
        str | None, typer.Option("--expect", metavar="HEAD", help="An earlier head that both chains must contain.")
    ] = None,
    head: Annotated[
        bool, typer.Option("--head", help="Only print the head of both chains: keep it elsewhere, for --expect.")
    ] = False,
) -> Report:
    """Check both chains, logs, manifests, files, row counts and the ledger; exit code 1 on any fault.

    Damage that keeps the length of a file is found when its pages are read: each audit reads a part of all files, every
    day another part.
    """
    from platform_assets.operations.audit import audit_installation

    if head:
        return _head()
    settings = load_settings()
    if fast and (every_release or digests or read_all):
        raise UsageError("--fast looks at no files.", "Leave out --fast, or --all, --read-all and --digests.")
    names, there = frozenset(tables or ()), frozenset(Lake.at(settings.lake).table_names())
    if names - there:  # tables of the lake may have no contract
        with platform_to_look(settings) as platform:
            names = names & there | selected_tables(platform, sorted(names - there))
    read_bytes = None if read_all else read_mb * 1_000_000
    chosen = None if days is None else parse_days(days, settings)
    scope = Scope(names, chosen, fast=fast, every_release=every_release, read_bytes=read_bytes)
    expected = None if expect is None else _expected_heads(expect)
    with (
        telling("audit") as progress,
        session_on_demand(settings, progress) if digests else nullcontext() as spark,
    ):
        done = audit_installation(settings, scope, progress, spark, expected)
    data = picked(done, "release chain decisions", head=str(done.heads), **picked(done.findings, "seen faults notes"))
    return Report(_parts(done), data, bool(done.findings.faults))


def life(table: str, day: str) -> Report:
    """Show the whole history of a day, oldest first: publications, holds, decisions, withdrawals and rollbacks."""
    with opened_platform() as platform:
        asked = parse_day(day, platform.settings)
        events = life_of(platform, table, asked)
    return Report(_life_parts(table, asked, events), [life_json(event) for _, event in events])


def _head() -> Report:
    """Print the heads of both chains as one value."""
    from platform_assets.ledger.ledger import Ledger
    from platform_assets.operations.audit import heads_of

    settings = load_settings()
    with Ledger.open(settings.ledger_url.get_secret_value(), read_only=True) as ledger:
        heads = heads_of(Lake.at(settings.lake), ledger)
    return Report([str(heads)], {"head": str(heads), **asdict(heads)})


def decisions(limit: int = _SHOWN) -> Report:
    """List people's decisions, newest first: kind, subject, author, user and machine, reason."""
    with platform_to_look() as platform:
        chain = platform.ledger.decision_chain()
    shown = [(entry, _decision(entry)) for entry in chain[: -limit - 1 : -1]]
    data = [
        picked(entry, "number chain", decision=json.loads(entry.content))
        if decision
        else picked(entry, "number chain", decision=None, content=entry.content)
        for entry, decision in shown
    ]
    parts = _decisions_parts(shown, len(chain) - len(shown)) if shown else ["There are no decisions yet."]
    return Report(parts, data)


def put_back(table: str, author: Author) -> Report:
    """Undo what another tool committed to a table, or to `_releases`: it shows the release again."""
    lost: tuple[date, ...] = ()
    with (
        telling("undo") as progress,
        meanwhile(progress, f"putting {table} back"),
        opened_platform() as platform,
    ):
        if table == "_releases":
            release = remove_foreign_releases(platform.lake, author.why, author.who)
        else:
            done = revert_foreign(platform.lake, table, author.why, author.who)
            release, lost = (done.release, done.lost) if done else (None, ())
        platform.sync()
    parts: list[Part] = [f"{table} is again as it was published; release {release} shows it."]
    if release is None:
        parts = [f"No other tool changed {table}: nothing to put back."]
    if lost:
        from platform_assets.operations.audit import repair_of

        gone = f"Another tool deleted files of {counted(len(lost), 'day')}, {which(lost)}."
        parts.append(Note("red", "gone", gone, repair_of(table, *lost)))
    return Report(parts, {"table": table, "release": release, "lost": lost}, bool(lost))


def _expected_heads(text: str) -> Heads:
    try:
        return Heads.parse(text)
    except ValueError as error:
        raise UsageError(
            f"{text!r} is no head.",
            "Write it as `admin audit --head` prints it: releases=NUMBER:HASH,decisions=NUMBER:HASH, with `none` for "
            "either NUMBER:HASH.",
        ) from error


def _parts(done: Audit) -> Iterator[Part]:
    rows: list[Sequence[Cell]] = []
    for check, what in CHECKS.items():
        faults, seen = done.findings.of(check), done.findings.seen[check]
        if faults or seen:
            rows.append((check, f"{seen:,} {what}", Mark(f"{faults:,}", "red") if faults else "0"))
    names = ("check", "looked at", "faults")
    yield Table("Audit", names, rows, right=names[1:], whole=names)
    for check in CHECKS:
        faulty = [fault for fault in done.findings.faults if fault.check == check]
        yield from (Note("red", check, fault.what, fault.todo) for fault in faulty[:_SHOWN])
        if len(faulty) > _SHOWN:
            yield f"and {counted(len(faulty) - _SHOWN, 'fault')} more of {check}: --json shows all"
    for note in done.findings.notes:
        yield Note("yellow", "note", note)
    if done.chain.chain:
        yield Note("", "chain", f"{done.chain.chain} at release {done.chain.release}")
    if done.decisions.chain:
        yield Note("", "decisions", f"{done.decisions.chain} at decision {done.decisions.number}")
    yield Note("", "head", str(done.heads))


def _life_parts(table: str, day: date, events: Sequence[tuple[datetime, Event]]) -> Iterator[Part]:
    if not events:
        yield f"{table} {day}: nothing is on record."
    for moment, event in events:
        head, text, *more = _lines(event)
        yield Note("bold", f"{moment:%Y-%m-%d %H:%M:%S} {head}", text)
        yield from (f"    {line}" for line in more)


def life_json(event: Event) -> dict[str, Any]:
    """Return an event as a JSON object; `event` says what it is."""
    if isinstance(event, Hold):
        return {"event": "hold", **plain(event)}
    if isinstance(event, EndedHold):
        return {"event": "hold ended", "ended_at": event.ended_at, **plain(event.hold)}
    if isinstance(event, LateDecision):
        return {"event": event.kind, **asdict(event)}
    head, record = event.head, event.record
    made = picked(head, "publication release created_at decides who as_user on_host why run")
    of_day = "fingerprint code_version git_commit configuration reads figures files bytes seconds warnings"
    arrivals = [picked(arrival, "path kind origin") for arrival in event.arrivals]
    return {"event": head.kind, **made, **picked(record, of_day)} | picked(
        event, "before after", arrivals=arrivals, restores=event.restores or None, only=event.keys or None
    )


def _lines(event: Event) -> Iterator[str]:
    """Yield what happened in a sentence, then a line for every detail."""
    if isinstance(event, EndedHold):
        hold = event.hold
        yield "held no longer"
        yield f"by {hold.gate}, as since {hold.created_at:%Y-%m-%d %H:%M:%S} UTC"
    elif isinstance(event, Hold):
        yield "held"
        yield f"by {event.gate}, run {event.run}: {event.reason}"
    elif isinstance(event, LateDecision):
        yield event.kind
        by = signed(event.who, event.as_user, event.on_host)
        yield f"of waiting rows of {event.arrival} for {event.table}, by {by}: {event.reason}"
    else:
        yield from _published_lines(event)


def _published_lines(event: Published) -> Iterator[str]:
    head, record = event.head, event.record
    yield head.what
    yield f"release {head.release} by {signed(head.who, head.as_user, head.on_host)}: {head.why}"
    yield f"publication {head.publication}, run {head.run}"
    changed = f"{_content_text(event.before)} -> {_content_text(event.after)}"
    yield changed if event.before != event.after else f"{_content_text(event.after)}, as before"
    if accepted := accepted_by_hand(record.figures):
        yield f"accepted by hand: what {' and '.join(accepted)} found"
    yield from (f"warning of {warned}" for warned in record.warnings)
    if event.restores:
        yield f"put back what publication {event.restores} had computed"
    if event.keys:
        yield f"only rows of {shown_keys(event.keys)} were computed, all others carried over"
    if record.reads:
        reads = ((table, f"version {at}" if at >= 0 else "(empty)") for table, at in sorted(record.reads.items()))
        yield f"made from {', '.join(map(' '.join, reads))}"
    if record.code_version:
        yield f"code {record.code_version}, configuration {record.configuration or 'not recorded'}"
    if record.git_commit:
        yield f"git commit {record.git_commit}"
    for arrival in event.arrivals:
        yield f"{arrival.kind} {arrival.path}{f' of {arrival.origin}' if arrival.origin else ''}"


def _content_text(content: Content | None) -> str:
    return f"{counted(content.rows, 'row')}, digest {content.digest}" if content else "never computed"


def _decision(entry: Entry) -> Decision | None:
    """Return the text of a chain entry; None if it has none."""
    with suppress(ValueError):
        return from_content(entry.content)
    return None


def _decisions_parts(entries: Sequence[tuple[Entry, Decision | None]], more: int) -> Iterator[Part]:
    """Show a row for each decision; for an unreadable one, its raw text."""
    rows: list[Sequence[Cell]] = []
    for entry, decision in entries:
        if decision is None:
            rows.append((str(entry.number), "", Mark("unreadable", "red"), entry.content))
            continue
        by = signed(decision.who, decision.as_user, decision.on_host)
        when = f"{decision.created_at:%Y-%m-%d %H:%M:%S}"
        rows.append((str(entry.number), when, decision.kind, _about(decision), by, decision.reason))
    names = ("number", "when (UTC)", "decision", "about", "by", "why")
    yield Table("Decisions", names, rows, right=("number",), whole=names[:3])
    if more:
        yield f"{more:,} older ones: --limit {len(entries) + more}"


def _about(decision: Decision) -> str:
    match decision:
        case LateDecision():
            return f"{decision.table} {decision.day}, {decision.arrival}"
        case QuarantineDecision():
            return f"{decision.table} {decision.day}, {decision.error}, {decision.arrival}"
        case PinDecision():
            return f"{decision.publication} as {decision.name}" if decision.name else decision.publication
        case PlanDecision():
            return f"{decision.plan}, {decision.hash}"
        case LiftDecision():
            return f"{decision.table} {which(decision.days)}, {decision.publication}"
        case Acknowledgement():
            return (
                f"{decision.finding} until {decision.until:%Y-%m-%d %H:%M} UTC" if decision.until else decision.finding
            )
        case CircuitDecision():
            return f"{decision.scope} until {decision.until:%Y-%m-%d %H:%M} UTC" if decision.until else decision.scope
        case MessageDecision():
            return f"{decision.message} for {decision.target}"
        case _:
            return decision.publication
