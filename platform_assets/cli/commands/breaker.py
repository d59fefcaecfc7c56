"""`status circuits`, `admin breaker` by which a person acts on circuits, and `ack` of files or warnings looked at."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from platform_assets.cli.console import UsageError, opened_platform, parse_days, platform_to_look
from platform_assets.cli.options import DaysOrDay, only_one
from platform_assets.engine.circuits import circuits, stopped
from platform_assets.engine.platform import Author, Platform
from platform_assets.operations.breaker import close as close_circuit
from platform_assets.operations.breaker import freeze
from platform_assets.operations.breaker import override as let_pass
from platform_assets.operations.quarantine import Finding, acknowledge
from platform_assets.operations.status import look
from platform_assets.planning.circuit import OVERRIDE_ENDED, CircuitState, TableVerdict
from platform_assets.report import Note, Part, Report, Table, picked

_SHOWN = 20


def circuits_shown(names: Sequence[str] = ()) -> Report:
    """Show the circuit of every table, or the named one in full; it needs a look if one is open."""
    if table := only_one("status circuits", names):
        return _shown_circuit(table)
    with platform_to_look() as platform:
        return _report(platform, platform.catalogue.names)


def _shown_circuit(table: str) -> Report:
    with platform_to_look() as platform:
        policy = platform.catalogue[table].circuit
        states = circuits(platform, platform.catalogue.with_inputs([table]))
        state, by = states.get(table, CircuitState()), stopped(platform, [table], states).get(table)
        verdicts = platform.ledger.verdicts.of([table]).get(table, ())
    shown = _json(table, state, by.table if by else table)
    names = "number at run day failed warned publication is_try is_pending tries"
    history = [picked(verdict, names) for verdict in verdicts]
    data = shown | {"policy": policy, "changes": state.changes, "verdicts": history}
    return Report(_circuit_parts(table, state, by.reason if by else "", verdicts), data, bool(by))


def breaker(
    scope: Annotated[str, typer.Argument(metavar="SCOPE", help="A table, domain:NAME, or all.")],
    author: Author,
    opens: Annotated[bool, typer.Option("--open", help="Publish nothing of it; its readers wait.")] = False,
    closes: Annotated[bool, typer.Option("--close", help="End a stop or override; the next run publishes.")] = False,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Publish it until then although it is stopped, UTC.")
    ] = None,
) -> Report:
    """Open or close the circuit of a table, a domain or all tables, or override open ones until a time."""
    if opens + closes + (until is not None) != 1:
        todo = "Add --open, --close, or --until TIME, in UTC, as --until 2017-04-09T18:00."
        raise UsageError("Choose one thing to do with the circuit.", todo)
    if until is not None:
        end = parse_time(until)
        return _decide(lambda platform: let_pass(platform, scope, end, author))
    return _decide(lambda platform: (freeze if opens else close_circuit)(platform, scope, author))


def _decide(decide: Callable[[Platform], Collection[str]]) -> Report:
    with opened_platform() as platform:
        done = _report(platform, decide(platform), in_short=True)
    return replace(done, needs_a_look=False)


def _report(platform: Platform, tables: Collection[str], *, in_short: bool = False) -> Report:
    """Report the state of circuits; it needs a look if one is open."""
    states = circuits(platform)
    stops = stopped(platform, states=states)
    shown = {
        table: (states.get(table, CircuitState()), stops[table].table if table in stops else table) for table in tables
    }
    rows = []
    for table, (state, by) in shown.items():
        why = state.why if by == table else f"waits for {by}"
        rows.append((table, state.state, _moment(state.since), _moment(state.next_try), why))
    names = ("table", "state", "since (UTC)", "next try (UTC)", "why")
    brief = [Note("", state.state, ": ".join(filter(None, (table, state.why)))) for table, (state, _) in shown.items()]
    data = [_json(table, *of_it) for table, of_it in shown.items()]
    return Report(brief if in_short else [Table("Circuits", names, rows, whole=names[:2])], data, bool(stops))


def _circuit_parts(table: str, state: CircuitState, stops: str, verdicts: tuple[TableVerdict, ...]) -> Iterator[Part]:
    yield Note("", state.state, state.sentence(table) if state.why else stops or f"nothing stops {table}")
    for change in state.changes[-_SHOWN:]:
        yield Note("", f"{change.at:%Y-%m-%d %H:%M} UTC", f"{change.state}: {change.why}")
    if verdicts:
        names = ("when (UTC)", "run", "day", "verdict")
        rows = [(_moment(one.at), one.run, str(one.day or ""), _words(one)) for one in verdicts[-_SHOWN:]]
        yield Table("The last verdicts", names, rows, whole=("when (UTC)", "day"))
    if state.stops:
        todo = "Correct the code or the input: the next `platform-assets refresh` tries the newest day that failed. Or "
        closes = f"`platform-assets admin breaker {state.scope or table} --close --reason … --by …`."
        yield f"{'' if state.state == 'frozen' else todo}{closes}"


def _words(verdict: TableVerdict) -> str:
    failed = verdict.failed.items()
    found = [f"{name}: {why}" if name == OVERRIDE_ENDED else f"failed by {name}: {why}" for name, why in failed]
    found += [f"warned by {name}: {why}" for name, why in verdict.warned.items()]
    outcome = "; ".join(found) or ("to come" if verdict.is_pending else "passed")
    return f"try: {outcome}" if verdict.is_try else outcome


def _moment(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M}" if at else ""


def _json(table: str, state: CircuitState, by: str) -> dict[str, Any]:
    return picked(state, "state why since next_try until", table=table, waits_for=None if by == table else by)


Findings = Annotated[
    list[str],
    typer.Argument(metavar="FILE|TABLE…", help="Files as `status files` has them, or tables with warnings."),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="When it ends, UTC, as 2017-04-09 or 2017-04-09T18:00.")
]


def parse_time(text: str) -> datetime:
    """Return a time in UTC."""
    try:
        end = datetime.fromisoformat(text)
        return end.astimezone(UTC) if end.tzinfo else end.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{text!r} is not a time.", "Write it as 2017-04-09T18:00, in UTC.") from error


def ack(
    findings: Findings,
    author: Author,
    days: DaysOrDay = None,
    until: Until = None,
) -> Report:
    """Acknowledge broken files, or warnings of a table: no report and no exit code 1 until they change."""
    wanted, end = parse_days(days) if days else None, parse_time(until) if until else None
    with opened_platform() as platform:
        known = look(platform, with_metrics=False)
        there: list[Finding] = [*known.landing, *known.refused.there, *known.warned]
        made = acknowledge(platform, there, findings, author, days=wanted, until=end)
    ends = f"until {end:%Y-%m-%d %H:%M} UTC, or until it changes" if end else "until it changes"
    return Report([Note("", "acknowledged", f"{each.finding} {ends}") for each in made], made)
