"""`breaker`: circuits of tables: which are open and why, opened, closed and overridden by hand."""

from __future__ import annotations

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
from platform_assets.cli.decisions import decided_by
from platform_assets.cli.grids import new_grid
from platform_assets.cli.options import AsJson, By, Reason, TableName
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
        states, stops = circuits(platform), stopped(platform)
        names = platform.catalogue.names
    waits = {table: hold.table for table, hold in stops.items() if hold.table != table}
    if as_json:
        print_json([_as_json(name, states.get(name, CircuitState()), waits.get(name)) for name in names])
    else:
        grid = new_grid(
            "Circuits", ("table", "state", "since (UTC)", "next try (UTC)", "why"), whole=("table", "state")
        )
        for name in names:
            state = states.get(name, CircuitState())
            why = f"waits for {waits[name]}" if name in waits else state.why
            grid.add_row(name, state.state, _moment(state.since), _moment(state.next_try), escape(why))
        console.print(grid)
    if stops:
        raise typer.Exit(EXIT_LOOK)


@app.command()
def show(table: TableName, as_json: AsJson = False) -> None:
    """Show the circuit of a table: why it is open, since when, the next try, and its history; exit code 1 if open."""
    from platform_assets.operations.breaker import tables_of

    with platform_to_look() as platform:
        if tables_of(platform, table) != (table,):
            raise UsageError("`breaker show` shows one table.", "`platform-assets breaker list` shows all.")
        state = circuits(platform, [table]).get(table, CircuitState())
        by = stopped(platform, [table]).get(table)
        verdicts = platform.ledger.verdicts.of([table]).get(table, ())
        policy = platform.catalogue[table].circuit
    waits = by.table if by and by.table != table else None
    if as_json:
        history = [_verdict_json(verdict) for verdict in verdicts]
        changes = [vars(change) for change in state.changes]
        print_json(_as_json(table, state, waits) | {"policy": vars(policy), "changes": changes, "verdicts": history})
    else:
        _print(table, state, waits, verdicts)
    if by:
        raise typer.Exit(EXIT_LOOK)


@app.command("open")
def open_circuit(scope: Scope, reason: Reason = None, by: By = None, as_json: AsJson = False) -> None:
    """Publish nothing of a table, a domain or all until `breaker close`; what reads it waits, readers keep what is."""
    author = decided_by(reason, by)
    from platform_assets.operations.breaker import freeze

    with opened_platform() as platform:
        _tell(platform, freeze(platform, scope, author), scope, as_json=as_json)


@app.command()
def close(scope: Scope, reason: Reason = None, by: By = None, as_json: AsJson = False) -> None:
    """Close the circuit of a table, or end what `breaker open` opened for a domain or all; the next run publishes."""
    author = decided_by(reason, by)
    from platform_assets.operations.breaker import close as close_circuit

    with opened_platform() as platform:
        _tell(platform, close_circuit(platform, scope, author), scope, as_json=as_json)


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

    with opened_platform() as platform:
        _tell(platform, let_pass(platform, scope, end, author), scope, as_json=as_json)


def _until(text: str | None) -> datetime:
    if text is None:
        raise UsageError("An override needs an end.", "Add --until TIME, in UTC, as --until 2017-04-09T18:00.")
    try:
        end = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is not a time.", "Write it as 2017-04-09T18:00, in UTC.") from error
    return end.astimezone(UTC) if end.tzinfo else end.replace(tzinfo=UTC)


def _tell(platform: Platform, tables: tuple[str, ...], scope: str, *, as_json: bool) -> None:
    states = circuits(platform, tables)
    shown = {table: states.get(table, CircuitState()) for table in tables}
    if as_json:
        print_json([_as_json(table, state, None) for table, state in shown.items()])
        return
    for table, state in shown.items():
        if table == scope or state.stops or state.state == "overridden":
            say(state.state, f"{table}{f': {state.why}' if state.why else ''}")
    if not any(state.stops for state in shown.values()):
        console.print("The next refresh publishes what waits.")


def _print(table: str, state: CircuitState, waits: str | None, verdicts: tuple[TableVerdict, ...]) -> None:
    sentence = state.sentence(table)
    say(state.state, sentence if state.why else f"the circuit of {table} is closed")
    if waits:
        say("waits", f"for {waits}, from which it is made")
    for change in state.changes[-_SHOWN:]:
        say(f"{change.at:%Y-%m-%d %H:%M} UTC", f"{change.state}: {change.why}")
    if verdicts:
        names = ("when (UTC)", "run", "day", "verdict")
        grid = new_grid("The last verdicts", names, whole=("when (UTC)", "day"))
        for verdict in verdicts[-_SHOWN:]:
            day = str(verdict.day) if verdict.day else ""
            grid.add_row(_moment(verdict.at), escape(verdict.run), day, escape(_words(verdict)))
        console.print(grid)
    if state.state == "overridden":
        console.print(f"`platform-assets breaker close {table}` closes it.", markup=False, soft_wrap=True)
    elif state.stops:
        console.print(
            f"Correct the code or the input and run `platform-assets refresh`: it tries the newest day that failed. "
            f"Or `platform-assets breaker close {table} --reason … --by …`.",
            markup=False,
            soft_wrap=True,
        )


def _words(verdict: TableVerdict) -> str:
    said = [f"failed by {name}: {why}" for name, why in verdict.failed.items()]
    said += [f"warned by {name}: {why}" for name, why in verdict.warned.items()]
    told = "; ".join(said) or ("to come" if verdict.is_pending else "passed")
    return f"try: {told}" if verdict.is_try else told


def _moment(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M}" if at else ""


def _as_json(table: str, state: CircuitState, waits: str | None) -> dict[str, Any]:
    return {
        "table": table,
        "state": state.state,
        "why": state.why,
        "since": state.since,
        "next_try": state.next_try,
        "until": state.until,
        "waits_for": waits,
    }


def _verdict_json(verdict: TableVerdict) -> dict[str, Any]:
    names = ("number", "at", "run", "day", "failed", "warned", "publication", "is_try", "is_pending")
    return {name: getattr(verdict, name) for name in names}
