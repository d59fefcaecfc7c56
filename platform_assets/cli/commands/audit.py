"""`audit`: whether the lake is what its manifests say, the life of a day, and undoing what another tool did.

The life of a day, for people and for programs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.console import (
    EXIT_LOOK,
    UsageError,
    console,
    escape,
    opened_platform,
    parse_day,
    platform_to_look,
    print_json,
    say,
    selected,
)
from platform_assets.cli.grids import new_grid
from platform_assets.cli.options import AsJson, By, Days, OneDay, Reason, TableName, decided_by
from platform_assets.cli.progress import telling
from platform_assets.cli.session import session_on_demand
from platform_assets.lakehouse.layout import Lake
from platform_assets.planning.key_scope import shown_keys
from platform_assets.planning.windows import which
from platform_assets.progress import meanwhile
from platform_assets.quality.findings import accepted_by_hand
from platform_assets.records.chain import Entry, Heads
from platform_assets.records.decisions import (
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
from platform_assets.records.history import EndedHold, Hold, PublicationRecord
from platform_assets.settings import Settings, load_settings
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.audit.installation import Audit
    from platform_assets.operations.lineage.day_history import Content, Event, Published


app = typer.Typer(
    help="Whether everything published is as it was published, and what was ever done to a day.", no_args_is_help=True
)

_SHOWN = 20
"""Faults that are printed of each check; all of them with --json."""


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


@app.command()
def verify(
    context: typer.Context,
    table: Annotated[str | None, typer.Option("--table", help="Only this table; the chain is always whole.")] = None,
    days: Days = None,
    fast: Annotated[bool, typer.Option("--fast", help="Only the chain and the logs, no files.")] = False,
    every_release: Annotated[bool, typer.Option("--all", help="Also files that only older releases show.")] = False,
    read_mb: Annotated[
        int, typer.Option("--read-mb", min=0, help="Read about so many MB of files page by page, other ones every day.")
    ] = 200,
    read_all: Annotated[bool, typer.Option("--read-all", help="Read every file page by page.")] = False,
    digests: Annotated[bool, typer.Option("--digests", help="Also compute every day's digest, with Spark.")] = False,
    expect: Annotated[
        str | None, typer.Option("--expect", metavar="HEAD", help="A head of before that both chains must go through.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check both chains, logs, manifests, files, row counts and the ledger; exit code 1 on any fault.

    A file that was damaged and is as long as before is found when its pages are read: a part of all files with every
    audit, another one the next day.
    """
    from platform_assets.operations.audit.faults import Scope
    from platform_assets.operations.audit.installation import audit_installation

    settings = load_settings()
    if fast and (every_release or digests or read_all):
        raise UsageError("--fast looks at no files.", "Leave out --fast, or --all, --read-all and --digests.")
    only = selected(None if table is None else _known(settings, table), days, settings)
    scope = Scope(
        only.tables,
        only.days,
        fast=fast,
        every_release=every_release,
        read_bytes=None if read_all else read_mb * 1_000_000,
    )
    expected = None if expect is None else _expected(expect)
    with (
        telling(context, "audit") as progress,
        session_on_demand(settings, progress) if digests else nullcontext() as spark,
    ):
        done = audit_installation(settings, scope, progress, spark, expected)
    if as_json:
        print_json(_json(done))
    else:
        _print(done)
    if done.findings.faults:
        raise typer.Exit(EXIT_LOOK)


@app.command()
def show(
    table: TableName,
    day: OneDay,
    as_json: AsJson = False,
) -> None:
    """Tell the whole life of a day, oldest first: what was published, held, decided, withdrawn and rolled back."""
    from platform_assets.operations.lineage.day_history import life_of

    with opened_platform() as platform:
        asked = parse_day(day, platform.settings)
        events = life_of(platform, table, asked)
    if as_json:
        print_json([life_json(event) for _, event in events])
    else:
        print_life(table, asked, events)


@app.command()
def head(as_json: AsJson = False) -> None:
    """Print where both chains stand, as one value: keep it elsewhere, and give it to `audit verify --expect`."""
    from platform_assets.ledger.ledger import Ledger
    from platform_assets.operations.audit.decisions import heads_of

    settings = load_settings()
    with Ledger.open(settings.ledger_url.get_secret_value(), read_only=True) as ledger:
        heads = heads_of(Lake.at(settings.lake), ledger)
    if as_json:
        print_json({"head": str(heads), **asdict(heads)})
    else:
        print(heads)


@app.command()
def decisions(
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List what people decided, newest first: what, about what, by whom and as which user of which machine, why."""
    with platform_to_look() as platform:
        chain = platform.ledger.decision_chain()
    shown = chain[: -limit - 1 : -1]
    if as_json:
        print_json([decision_json(entry) for entry in shown])
    elif shown:
        print_decisions(shown, len(chain) - len(shown))
    else:
        console.print("Nobody decided anything yet.")


@app.command("put-back")
def put_back(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="A table that another tool changed, or _releases.")],
    reason: Reason = None,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Undo what another tool committed to a table, so that it is again what the release shows."""
    author = decided_by(reason, by)
    from platform_assets.lakehouse.revert import remove_foreign_releases, revert_foreign

    lost: tuple[date, ...] = ()
    with (
        telling(context, "audit put-back") as progress,
        meanwhile(progress, f"putting {table} back"),
        opened_platform() as platform,
    ):
        if table == "_releases":
            release = remove_foreign_releases(platform.lake, author.why, author.who)
        else:
            done = revert_foreign(platform.lake, table, author.why, author.who)
            release, lost = (done.release, done.lost) if done else (None, ())
        platform.sync()
    if as_json:
        print_json({"table": table, "release": release, "lost": list(lost)})
        if lost:
            raise typer.Exit(EXIT_LOOK)
        return
    if release is None:
        console.print(f"Nobody else changed {table}: nothing to put back.", markup=False, highlight=False)
        return
    console.print(f"{table} is again as it was published; release {release} shows it.", highlight=False)
    if lost:
        from platform_assets.operations.audit.lake import repair_of

        say("[red]gone[/]", f"Another tool deleted files of {counted(len(lost), 'day')}, {which(lost)}.")
        say("  [bold]What to do:[/]", repair_of(table, *lost))
        raise typer.Exit(EXIT_LOOK)


def _expected(text: str) -> Heads:
    try:
        return Heads.parse(text)
    except ValueError as error:
        raise UsageError(
            f"{text!r} is no head.",
            "Write it as `audit head` prints it: releases=NUMBER:HASH,decisions=NUMBER:HASH, or none for NUMBER:HASH.",
        ) from error


def _known(settings: Settings, table: str) -> str:
    """A table of the lake or of a contract."""
    from platform_assets.engine.catalogue import load_catalogue

    return table if table in Lake.at(settings.lake).table_names() else load_catalogue(settings)[table].name


def _print(done: Audit) -> None:
    from platform_assets.operations.audit.faults import CHECKS

    names = ("check", "looked at", "faults")
    grid = new_grid("Audit", names, right=names[1:], whole=names)
    for check, what in CHECKS.items():
        faults = done.findings.of(check)
        if faults or done.findings.seen[check]:
            grid.add_row(check, f"{done.findings.seen[check]:,} {what}", f"[red]{faults:,}[/]" if faults else "0")
    console.print(grid)
    for check in CHECKS:
        faulty = [fault for fault in done.findings.faults if fault.check == check]
        for fault in faulty[:_SHOWN]:
            say(f"[red]{check}[/]", fault.what)
            say("  [bold]What to do:[/]", fault.todo)
        if len(faulty) > _SHOWN:
            console.print(f"and {counted(len(faulty) - _SHOWN, 'fault')} more of {check}: --json shows all")
    for note in done.findings.notes:
        say("[yellow]note[/]", note)
    if done.chain.chain:
        say("chain", f"{done.chain.chain} at release {done.chain.release}")
    if done.decisions.chain:
        say("decisions", f"{done.decisions.chain} at decision {done.decisions.number}")
    say("head", str(done.heads))


def _json(done: Audit) -> dict[str, object]:
    return {
        "release": done.release,
        "chain": asdict(done.chain),
        "decisions": asdict(done.decisions),
        "head": str(done.heads),
        "seen": dict(done.findings.seen),
        "faults": [asdict(fault) for fault in done.findings.faults],
        "notes": done.findings.notes,
    }


def print_life(table: str, day: date, events: Sequence[tuple[datetime, Event]]) -> None:
    """Print every event with what is known of it, oldest first."""
    if not events:
        console.print(f"{table} {day}: nothing is on record.", highlight=False)
    for moment, event in events:
        head, text, *more = _lines(event)
        say(f"[bold]{moment:%Y-%m-%d %H:%M:%S}[/] [cyan]{head}[/]", text)
        for line in more:
            say("   ", line)


def life_json(event: Event) -> dict[str, Any]:
    """An event as a JSON object; `event` says what it is."""
    if isinstance(event, Hold):
        return {"event": "hold", **asdict(event)}
    if isinstance(event, EndedHold):
        return {"event": "hold ended", "ended_at": event.ended_at, **asdict(event.hold)}
    if isinstance(event, LateDecision):
        return {"event": event.kind, **asdict(event)}
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


def _lines(event: Event) -> Iterator[str]:
    """What happened, in a sentence, and then a line for every detail."""
    if isinstance(event, EndedHold):
        hold = event.hold
        yield "held no longer"
        yield f"by {hold.gate}, as since {hold.created_at:%Y-%m-%d %H:%M:%S} UTC"
    elif isinstance(event, Hold):
        yield "held"
        yield f"by {event.gate}, run {event.run}: {event.reason}"
    elif isinstance(event, LateDecision):
        yield event.kind
        yield f"of waiting rows of {event.arrival} for {event.table}, by {_signed(event)}: {event.reason}"
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


def print_decisions(entries: Sequence[Entry], more: int) -> None:
    """A row for each decision; one that cannot be read shows what lies in its place.

    Args:
        entries: in the order in which they are shown.
    """
    names = ("number", "when (UTC)", "decision", "about", "by", "why")
    grid = new_grid("Decisions", names, right=("number",), whole=("number", "when (UTC)", "decision"))
    for entry in entries:
        try:
            decision = from_content(entry.content)
        except ValueError:
            grid.add_row(str(entry.number), "", "[red]unreadable[/]", escape(entry.content), "", "")
            continue
        by = signed(decision.who, decision.as_user, decision.on_host)
        cells = (f"{decision.created_at:%Y-%m-%d %H:%M:%S}", decision.kind, _about(decision), by, decision.reason)
        grid.add_row(str(entry.number), *map(escape, cells))
    console.print(grid)
    if more:
        console.print(f"{more:,} older ones: --limit {len(entries) + more}", highlight=False, soft_wrap=True)


def decision_json(entry: Entry) -> dict[str, Any]:
    """An entry of the chain; what it says is `decision`, or as text `content` where that is none."""
    try:
        from_content(entry.content)
    except ValueError:
        return {"number": entry.number, "chain": entry.chain, "decision": None, "content": entry.content}
    return {"number": entry.number, "chain": entry.chain, "decision": json.loads(entry.content)}


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
        case CircuitDecision():
            return f"{decision.scope} until {decision.until:%Y-%m-%d %H:%M} UTC" if decision.until else decision.scope
        case MessageDecision():
            return f"{decision.message} for {decision.target}"
        case _:
            return decision.publication
