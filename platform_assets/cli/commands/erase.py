"""`erase`: a person's rows out of all tables for good, and kept from coming back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.console import EXIT_LOOK, UsageError, console, opened_platform, print_json, say
from platform_assets.cli.grids import new_grid
from platform_assets.cli.options import AsJson, By, DryRun, Reason, TableName, decided_by
from platform_assets.cli.progress import telling
from platform_assets.cli.rollback_view import ended_json, print_ended
from platform_assets.cli.session import session_on_demand
from platform_assets.planning.windows import which
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.engine.platform import Author
    from platform_assets.operations.erasure.erasure import Erased

_FILES_SHOWN = 20


def erase(
    context: typer.Context,
    table: TableName,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="FIELD=VALUE[,FIELD=VALUE]", help="Whose rows; `-` asks for the value."),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option("--also", metavar="TABLE.FIELD", help="Another field that has the value; repeatable."),
    ] = None,
    lift: Annotated[
        bool, typer.Option("--lift", help="Take rows with the key again that are delivered from now on.")
    ] = False,
    reason: Reason = None,
    by: By = None,
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask: it cannot be undone.")] = False,
    as_json: AsJson = False,
) -> None:
    """Take a person's rows out of all tables for good, with the history before, and keep them from coming back.

    Exit code 1: rows are left, or days that could not be computed without them.
    """
    if lift:
        if dry_run:
            raise UsageError("--lift changes no row, so there is nothing to try.", "Leave out --dry-run.")
        _lift(table, key, also, decided_by(reason, by), as_json=as_json)
        return
    from platform_assets.operations.erasure import erasure as erasing
    from platform_assets.operations.erasure.places import Request

    request = Request(table, _fields(key), tuple(map(_other, also or ())))
    author = None if dry_run else decided_by(reason, by)
    with opened_platform() as platform, telling(context, "erase") as progress:
        if author is None:
            done = erasing.planned_erasure(platform, request, progress)
        else:
            if not yes:
                _ask(erasing.planned_erasure(platform, request, progress), as_json=as_json)
            with session_on_demand(platform.settings, progress) as spark:
                done = erasing.erase(platform, spark, request, author, progress)
    if as_json:
        print_json(_json(done, dry_run=dry_run))
    else:
        _print(done, dry_run=dry_run)
    if author is not None and not done.is_whole:
        raise typer.Exit(EXIT_LOOK)


def _fields(key: str | None) -> dict[str, str]:
    fields: dict[str, str] = {}
    for part in (key or "").split(",") if key else []:
        name, equals, value = part.partition("=")
        if not equals or not name.strip() or name.strip() in fields:
            raise UsageError(
                "--key is not FIELD=VALUE, or names a field twice.",
                "Write --key household_id=4711; a value with a comma is asked for with --key name=-.",
            )
        if value == "-":
            value = typer.prompt(name, hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline()
            value = value.rstrip("\n")
        fields[name.strip()] = value
    if not fields:
        raise UsageError("Say whose rows are to be erased.", "Add --key FIELD=VALUE, for example household_id=4711.")
    return fields


def _other(named: str) -> tuple[str, str]:
    table, _, field = named.rpartition(".")
    if "." not in table or not field:
        raise UsageError(f"{named!r} is not TABLE.FIELD.", "Write --also raw.households.id.")
    return table, field


def _ask(planned: Erased, *, as_json: bool) -> None:
    if as_json or not sys.stdin.isatty():
        raise UsageError(
            "An erasure cannot be undone, and cuts the history of all tables.",
            "Look at it with --dry-run, then add --yes.",
        )
    _print(planned, dry_run=True)
    typer.confirm("This cannot be undone. Go on?", abort=True, err=True)


def _print(done: Erased, *, dry_run: bool) -> None:
    grid = new_grid(
        "Would erase" if dry_run else "Erased", ("table", "days", "rows"), right=("rows",), whole=("table",)
    )
    for table, days in done.found.rows.items():
        grid.add_row(table, which(list(days)), f"{sum(days.values()):,}")
    for table, rows in done.found.older.items():
        grid.add_row(table, "older releases only", f"{rows:,}")
    if done.found:
        console.print(grid)
    _say(f"Looked into {', '.join(done.tables)}.")
    if done.namesakes:
        _say(f"Not looked into, though they have the same fields: {', '.join(done.namesakes)}; name them with --also.")
    if dry_run:
        lost = f", pinned ones ({', '.join(map(str, done.pins))}) among them" if done.pins else ""
        _say(f"Releases up to {done.before} could not be read any more{lost}. Nothing was changed: this was a dry run.")
    else:
        _print_done(done)
    for path in done.unreached.landing[:_FILES_SHOWN]:
        say("[yellow]not reached[/]", f"{path} in the landing area: it is dropped when taken again, and stays there")
    if len(done.unreached.landing) > _FILES_SHOWN:
        _say(f"and {len(done.unreached.landing) - _FILES_SHOWN:,} more files: --json shows all.")
    for table in done.unreached.undeclared:
        say("[yellow]not reached[/]", f"{table}, which has such a column and which no domain declares")
    for table, files in done.unreached.bounds:
        say(
            "[yellow]not reached[/]",
            f"logs and manifests of {table}: the value is the smallest or greatest of {counted(files, 'file')}",
        )
    for plan in done.unreached.plans:
        say("[yellow]not reached[/]", f"the plan {plan}: what is kept of it in `_plans` of the lake names the value")
    if done.unreached.scopes:
        say(
            "[yellow]not reached[/]",
            f"manifests of {counted(len(done.unreached.scopes), 'publication')} that computed rows of the value alone, "
            "as a plan or a stage with `only` does: they name it",
        )
    from platform_assets.operations.erasure.places import ELSEWHERE

    for what in ELSEWHERE:
        say("[yellow]not reached[/]", what)


def _print_done(done: Erased) -> None:
    if done.remembered and not done.found:
        _say(
            "The key was erased before, and nothing with it was left; rows with it are dropped when they are delivered."
        )
    elif done.remembered:
        _say("The key was erased before; this went on with it.")
    if done.release is not None:
        _say(f"Release {done.release} has none of the rows; rows with the key are dropped when they are delivered.")
    for table, days in done.refreshed.items():
        _say(f"{table}: {counted(len(days), 'day')} computed anew ({which(list(days))}).")
    _say(f"{counted(done.files, 'file')} deleted. Releases before {done.cut} cannot be read any more.")
    for rollback in done.ended:
        print_ended(rollback)
    for table, reasons in done.not_refreshed.items():
        for day, why in sorted(reasons.items()):
            say("[red]still counts the rows[/]", f"{table} {day}: {why}")
    for table, rows in done.left.items():
        say("[red]left[/]", f"{counted(rows, 'row')} in {table}: call it again once no other process is at work")


def _lift(table: str, key: str | None, also: list[str] | None, author: Author, *, as_json: bool) -> None:
    from platform_assets.operations.erasure import erasure as erasing
    from platform_assets.operations.erasure.places import Request

    with opened_platform() as platform:
        if key is None:
            release = erasing.lift_unreadable(platform, table, author)
        else:
            request = Request(table, _fields(key), tuple(map(_other, also or ())))
            release = erasing.lift(platform, request, author)
    if as_json:
        print_json({"release": release, "lifted": True})
        return
    _say(f"Lifted with release {release}: rows with the key that are delivered from now on are taken.")


def _say(text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _json(done: Erased, *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "tables": list(done.tables),
        "namesakes": list(done.namesakes),
        "rows": {table: {str(day): rows for day, rows in days.items()} for table, days in done.found.rows.items()},
        "older": dict(done.found.older),
        "before": done.before,
        "pins": list(done.pins),
        "remembered": done.remembered,
        "release": done.release,
        "refreshed": {table: list(days) for table, days in done.refreshed.items()},
        "not_refreshed": {
            table: {str(day): why for day, why in reasons.items()} for table, reasons in done.not_refreshed.items()
        },
        "rollbacks_ended": [ended_json(rollback) for rollback in done.ended],
        "cut": done.cut,
        "files": done.files,
        "left": dict(done.left),
        "landing": list(done.unreached.landing),
        "bounds": dict(done.unreached.bounds),
        "undeclared": list(done.unreached.undeclared),
        "plans": list(done.unreached.plans),
        "scopes": list(done.unreached.scopes),
    }
