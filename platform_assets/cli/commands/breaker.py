"""`breaker`: circuits of tables: which are open and why, opened, closed and overridden by hand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

import typer

from platform_assets.cli.commands.ack import parse_time
from platform_assets.cli.console import UsageError, opened_platform, platform_to_look
from platform_assets.cli.options import TableName
from platform_assets.engine.circuits import circuits, stopped
from platform_assets.engine.platform import Author, Platform
from platform_assets.operations.breaker import close as close_circuit
from platform_assets.operations.breaker import freeze
from platform_assets.operations.breaker import override as let_pass
from platform_assets.planning.circuit import OVERRIDE_ENDED, CircuitState, TableVerdict
from platform_assets.report import Note, Part, Report, Table, picked

breaker = typer.Typer(
    help="Circuits of tables: nothing is published where one is open; which are, why, and what ends it.",
    no_args_is_help=True,
)

Scope = Annotated[str, typer.Argument(metavar="SCOPE", help="A table, domain:NAME, or all.")]
_SHOWN = 20


@breaker.command("list")
def list_circuits() -> Report:
    """Show the circuit of every table; exit code 1 if one is open."""
    with platform_to_look() as platform:
        return _report(platform, platform.catalogue.names)


@breaker.command("show")
def show_circuit(table: TableName) -> Report:
    """Show the circuit of a table: why it is open, since when, the next try, and its history; exit code 1 if open."""
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


@breaker.command("open")
def open_circuit(scope: Scope, author: Author) -> Report:
    """Publish nothing of a table, a domain or all until `breaker close`; dependent tables wait."""
    return _decide(lambda platform: freeze(platform, scope, author))


@breaker.command()
def close(scope: Scope, author: Author) -> Report:
    """Close the circuit of a table, or end a freeze or an override of a scope; the next run publishes."""
    return _decide(lambda platform: close_circuit(platform, scope, author))


@breaker.command()
def override(
    scope: Scope,
    author: Author,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="When it ends, UTC, as 2017-04-09T18:00.")
    ] = None,
) -> Report:
    """Let what open circuits stop be published until a time."""
    end = _until(until)
    return _decide(lambda platform: let_pass(platform, scope, end, author))


def _until(text: str | None) -> datetime:
    if text is None:
        raise UsageError("An override needs an end.", "Add --until TIME, in UTC, as --until 2017-04-09T18:00.")
    return parse_time(text)


def _decide(decide: Callable[[Platform], Collection[str]]) -> Report:
    with opened_platform() as platform:
        done = _report(platform, decide(platform), in_short=True)
    return replace(done, needs_a_look=False)


def _report(platform: Platform, tables: Collection[str], *, in_short: bool = False) -> Report:
    """Report where circuits stand; it needs a look if one is open."""
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
        closes = f"`platform-assets breaker close {state.scope or table} --reason … --by …`."
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
