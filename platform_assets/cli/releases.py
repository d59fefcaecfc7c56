"""`releases`: what was published, newest first."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from platform_assets.cli.console import console, counted, print_json, reading
from platform_assets.ledger.records import PublicationRecord


def releases(
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """List what was published: release, when, what of which tables, by whom and why."""
    with reading() as platform:
        names = list(platform.ledger.indexed())
        shown = [found for name in names[: -limit - 1 : -1] if (found := platform.ledger.publication(name))]
    if as_json:
        print_json([_json(one) for one in shown])
        return
    if not shown:
        console.print("Nothing was published yet.")
        return
    grid = Table(title="Releases", title_justify="left")
    for heading in ("release", "publication", "when (UTC)", "kind", "days", "by", "run", "why"):
        grid.add_column(heading, justify="right" if heading == "release" else "left", overflow="fold")
    for one in shown:
        days = "\n".join(f"{table}: {counted(count, 'day')}" for table, count in _days(one).items())
        when = f"{one.created_at:%Y-%m-%d %H:%M:%S}"
        grid.add_row(str(one.release), one.publication, when, one.kind, days, one.who, one.run, one.why)
    console.print(grid, markup=False)
    if len(names) > len(shown):
        console.print(f"{len(names) - len(shown):,} older ones: --limit {len(names)}", highlight=False)


def _days(one: PublicationRecord) -> dict[str, int]:
    found: dict[str, int] = {}
    for day in one.days:
        found[day.table] = found.get(day.table, 0) + 1
    return found


def _json(one: PublicationRecord) -> dict[str, object]:
    return {
        "release": one.release,
        "publication": one.publication,
        "created_at": one.created_at,
        "kind": one.kind,
        "run": one.run,
        "who": one.who,
        "why": one.why,
        "git_commit": one.git_commit,
        "days": _days(one),
    }
