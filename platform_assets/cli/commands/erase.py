"""`admin erase`: delete a person's rows from all tables for good, and keep them out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.changes_view import ended_json, ended_note
from platform_assets.cli.console import UsageError, opened_platform, print_parts
from platform_assets.cli.options import AsJson, DryRun, TableName
from platform_assets.cli.progress import telling
from platform_assets.cli.session import session_on_demand
from platform_assets.engine.platform import Author
from platform_assets.operations import erasure as erasing
from platform_assets.operations.erasure_places import ELSEWHERE, Request, Unreached
from platform_assets.planning.windows import which
from platform_assets.report import Note, Part, Report, Table, picked
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.erasure import Erased

_FILES_SHOWN = 20


def erase(
    table: TableName,
    author: Author | None,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="FIELD=VALUE[,FIELD=VALUE]", help="Key of the rows; FIELD=- asks for the value."),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option("--also", metavar="TABLE.FIELD", help="Another field that has the value; repeatable."),
    ] = None,
    lift: Annotated[
        bool, typer.Option("--lift", help="Take rows with the key again that are delivered from now on.")
    ] = False,
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask: it cannot be undone.")] = False,
    as_json: AsJson = False,
) -> Report:
    """Delete a person's rows from all tables for good, with the history before, and keep them out.

    Exit code 1: some rows remain, or days could not be recomputed without them.
    """
    if lift and author is None:
        raise UsageError("--lift changes no row, so there is nothing to try.", "Leave out --dry-run.")
    if author is not None and lift and key is None:
        with opened_platform() as platform:
            return _lift_report(erasing.lift_unreadable(platform, table, author))
    request = Request(table, _fields(key), tuple(map(_other, also or ())))
    if author is not None and lift:
        with opened_platform() as platform:
            return _lift_report(erasing.lift(platform, request, author))
    with opened_platform() as platform, telling("erase") as progress:
        if author is None:
            done = erasing.planned_erasure(platform, request, progress)
        else:
            if not yes:
                _ask(erasing.planned_erasure(platform, request, progress), as_json=as_json)
            with session_on_demand(platform.settings, progress) as spark:
                done = erasing.erase(platform, spark, request, author, progress)
    needs = author is not None and not done.is_whole
    return Report(_parts(done, dry_run=dry_run), _json(done, dry_run=dry_run), needs)


def _lift_report(release: int) -> Report:
    lifted = f"Lifted with release {release}: rows with the key that are delivered from now on are taken."
    return Report([lifted], {"release": release, "lifted": True})


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
        what = "An erasure cannot be undone, and cuts the history of all tables."
        raise UsageError(what, "Look at it with --dry-run, then add --yes.")
    print_parts(_parts(planned, dry_run=True))
    typer.confirm("This cannot be undone. Go on?", abort=True, err=True)


def _parts(done: Erased, *, dry_run: bool) -> Iterator[Part]:
    rows = [(table, which(list(days)), f"{sum(days.values()):,}") for table, days in done.found.rows.items()]
    rows += [(table, "older releases only", f"{count:,}") for table, count in done.found.older.items()]
    if done.found:
        title = "Would erase" if dry_run else "Erased"
        yield Table(title, ("table", "days", "rows"), rows, right=("rows",), whole=("table",))
    yield f"Looked into {', '.join(done.tables)}."
    if done.namesakes:
        yield f"Not searched, although they have the same fields: {', '.join(done.namesakes)}; name them with --also."
    if dry_run:
        lost = f", pinned ones ({', '.join(map(str, done.pins))}) among them" if done.pins else ""
        unread = f"Releases up to {done.before} could not be read any more{lost}."
        yield f"{unread} Nothing was changed: this was a dry run."
    else:
        yield from _done_parts(done)
    for what in _unreached_lines(done.unreached):
        yield Note("yellow", "not reached", what)
    if (more := len(done.unreached.landing) - _FILES_SHOWN) > 0:
        yield f"and {more:,} more files of the landing area: --json shows all."
    yield from (Note("yellow", "not reached", what) for what in ELSEWHERE)


def _unreached_lines(unreached: Unreached) -> Iterator[str]:
    for path in unreached.landing[:_FILES_SHOWN]:
        yield f"{path} in the landing area: it is dropped when taken again, and stays there"
    for table in unreached.undeclared:
        yield f"{table}, which has such a column and which no domain declares"
    for table, files in unreached.bounds:
        yield f"logs and manifests of {table}: the value is the smallest or greatest of {counted(files, 'file')}"
    for plan in unreached.plans:
        yield f"the plan {plan}: its record in `_plans` of the lake names the value"
    if unreached.scopes:
        made = f"manifests of {counted(len(unreached.scopes), 'publication')} that computed rows of the value alone"
        yield f"{made}, as a plan or a stage with `only` does: they name it"


def _done_parts(done: Erased) -> Iterator[Part]:
    if done.remembered and not done.found:
        rest = "nothing with it was left; rows with it are dropped when they are delivered"
        yield f"The key was erased before, and {rest}."
    elif done.remembered:
        yield "The key was erased before; this went on with it."
    if done.release is not None:
        yield f"Release {done.release} has none of the rows; rows with the key are dropped when they are delivered."
    for table, days in done.refreshed.items():
        yield f"{table}: {counted(len(days), 'day')} computed anew ({which(list(days))})."
    yield f"{counted(done.files, 'file')} deleted. Releases before {done.cut} cannot be read any more."
    yield from map(ended_note, done.ended)
    for table, reasons in done.not_refreshed.items():
        for day, why in sorted(reasons.items()):
            yield Note("red", "still counts the rows", f"{table} {day}: {why}")
    for table, rows in done.left.items():
        yield Note("red", "left", f"{counted(rows, 'row')} in {table}: call it again once no other process is at work")


def _json(done: Erased, *, dry_run: bool) -> dict[str, Any]:
    unreached = done.unreached
    names = "tables namesakes before pins remembered release refreshed not_refreshed cut files left"
    return picked(
        done,
        names,
        dry_run=dry_run,
        rows=done.found.rows,
        older=done.found.older,
        rollbacks_ended=[ended_json(rollback) for rollback in done.ended],
        bounds=dict(unreached.bounds),
        **picked(unreached, "landing undeclared plans scopes"),
    )
