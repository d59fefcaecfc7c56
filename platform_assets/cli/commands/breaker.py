"""`breaker`: circuits of tables: which are open and why, opened, closed and overridden by hand."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.console import (
    EXIT_LOOK,
    UsageError,
    console,
    escape,
    opened_platform,
    platform_to_look,
    print_json,
    say,
)
from platform_assets.cli.grids import new_grid
from platform_assets.cli.options import AsJson, By, Reason, TableName, decided_by
from platform_assets.engine.circuits import circuits, stopped
from platform_assets.planning.circuit import CircuitState, TableVerdict

if TYPE_CHECKING:
    from platform_assets.engine.platform import Platform

app = typer.Typer(
    help="Circuits of tables: nothing is published where one is open; which are, why, and what ends it.",
    no_args_is_help=True,
)

Scope = Annotated[str, typer.Argument(metavar="SCOPE", help="A table, domain:NAME, or all.")]
_SHOWN = 20
"""Verdicts and changes that `show` names."""


@app.command("list")
def list_circuits(as_json: AsJson = False) -> None:
    """Show the circuit of every table; exit code 1 if one is open."""
    with platform_to_look() as platform:
        stops = _print(platform, platform.catalogue.names, as_json=as_json)
    if stops:
        raise typer.Exit(EXIT_LOOK)


@app.command()
def show(table: TableName, as_json: AsJson = False) -> None:
    """Show the circuit of a table: why it is open, since when, the next try, and its history; exit code 1 if open."""
    with platform_to_look() as platform:
        policy = platform.catalogue[table].circuit
        states = circuits(platform, platform.catalogue.with_inputs([table]))
        state, by = states.get(table, CircuitState()), stopped(platform, [table], states).get(table)
        verdicts = platform.ledger.verdicts.of([table]).get(table, ())
    if as_json:
        names = ("number", "at", "run", "day", "failed", "warned", "publication", "is_try", "is_pending")
        history = [{name: getattr(verdict, name) for name in names} for verdict in verdicts]
        changes = [vars(change) for change in state.changes]
        shown = _json(table, state, by.table if by else table)
        print_json(shown | {"policy": vars(policy), "changes": changes, "verdicts": history})
    else:
        _print_circuit(table, state, by.reason if by else "", verdicts)
    if by:
        raise typer.Exit(EXIT_LOOK)


@app.command("open")
def open_circuit(scope: Scope, reason: Reason = None, by: By = None, as_json: AsJson = False) -> None:
    """Publish nothing of a table, a domain or all until `breaker close`; what reads it waits, readers keep what is."""
    author = decided_by(reason, by)
    from platform_assets.operations.breaker import freeze

    _decide(lambda platform: freeze(platform, scope, author), as_json=as_json)


@app.command()
def close(scope: Scope, reason: Reason = None, by: By = None, as_json: AsJson = False) -> None:
    """Close the circuit of a table, or end what `breaker open` opened for a domain or all; the next run publishes."""
    author = decided_by(reason, by)
    from platform_assets.operations.breaker import close as close_circuit

    _decide(lambda platform: close_circuit(platform, scope, author), as_json=as_json)


@app.command()
def override(
    scope: Scope,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="When it ends, UTC, as 2017-04-09T18:00.")
    ] = None,
    reason: Reason = None,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Let what open circuits stop be published until a time."""
    author, end = decided_by(reason, by), _until(until)
    from platform_assets.operations.breaker import override as let_pass

    _decide(lambda platform: let_pass(platform, scope, end, author), as_json=as_json)


def _until(text: str | None) -> datetime:
    if text is None:
        raise UsageError("An override needs an end.", "Add --until TIME, in UTC, as --until 2017-04-09T18:00.")
    try:
        end = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is not a time.", "Write it as 2017-04-09T18:00, in UTC.") from error
    return end.astimezone(UTC) if end.tzinfo else end.replace(tzinfo=UTC)


def _decide(decide: Callable[[Platform], Collection[str]], *, as_json: bool) -> None:
    """Carry out a decision and show the tables that it is about."""
    with opened_platform() as platform:
        tables = decide(platform)
        if as_json:
            _print(platform, tables, as_json=True)
            return
        states = circuits(platform, tables)
    for table in tables:
        say(states.get(table, CircuitState()).state, table)


def _print(platform: Platform, tables: Collection[str], *, as_json: bool) -> bool:
    """Print where circuits stand; return whether one is open."""
    states = circuits(platform)
    stops = stopped(platform, states=states)
    shown = {
        table: (states.get(table, CircuitState()), stops[table].table if table in stops else table) for table in tables
    }
    if as_json:
        print_json([_json(table, *of_it) for table, of_it in shown.items()])
        return bool(stops)
    columns = ("table", "state", "since (UTC)", "next try (UTC)", "why")
    grid = new_grid("Circuits", columns, whole=columns[:2])
    for table, (state, by) in shown.items():
        why = state.why if by == table else f"waits for {by}"
        grid.add_row(table, state.state, _moment(state.since), _moment(state.next_try), escape(why))
    console.print(grid)
    return bool(stops)


def _print_circuit(table: str, state: CircuitState, stops: str, verdicts: tuple[TableVerdict, ...]) -> None:
    say(state.state, state.sentence(table) if state.why else stops or f"nothing stops {table}")
    for change in state.changes[-_SHOWN:]:
        say(f"{change.at:%Y-%m-%d %H:%M} UTC", f"{change.state}: {change.why}")
    if verdicts:
        names = ("when (UTC)", "run", "day", "verdict")
        grid = new_grid("The last verdicts", names, whole=("when (UTC)", "day"))
        for verdict in verdicts[-_SHOWN:]:
            day = str(verdict.day) if verdict.day else ""
            grid.add_row(_moment(verdict.at), escape(verdict.run), day, escape(_words(verdict)))
        console.print(grid)
    if state.stops:
        todo = "Correct the code or the input: the next `platform-assets refresh` tries the newest day that failed. Or "
        closes = f"`platform-assets breaker close {table} --reason … --by …`."
        console.print(f"{'' if state.state == 'frozen' else todo}{closes}", markup=False, soft_wrap=True)


def _words(verdict: TableVerdict) -> str:
    found = [f"failed by {name}: {why}" for name, why in verdict.failed.items()]
    found += [f"warned by {name}: {why}" for name, why in verdict.warned.items()]
    outcome = "; ".join(found) or ("to come" if verdict.is_pending else "passed")
    return f"try: {outcome}" if verdict.is_try else outcome


def _moment(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M}" if at else ""


def _json(table: str, state: CircuitState, by: str) -> dict[str, Any]:
    fields = {name: getattr(state, name) for name in ("state", "why", "since", "next_try", "until")}
    return {"table": table, **fields, "waits_for": None if by == table else by}
