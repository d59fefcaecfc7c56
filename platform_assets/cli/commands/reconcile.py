"""`reconcile`: whether two sides say the same, and where they do not."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from platform_assets.cli.commands.plan import write_page
from platform_assets.cli.console import EXIT_LOOK, console, escape, opened_platform, parse_days, print_json
from platform_assets.cli.grids import new_grid
from platform_assets.cli.options import AsJson, Days
from platform_assets.cli.progress import telling
from platform_assets.cli.rows import named
from platform_assets.cli.session import session_on_demand
from platform_assets.quality.sides import SidesBeside, difference, facts, key_sentence
from platform_assets.words import counted

_SIDE = "gold.daily_sales, gold.daily_sales@RELEASE, gold.daily_sales@stage:NAME, a Parquet or Delta folder, or a CSV."


def reconcile(
    context: typer.Context,
    left: Annotated[str, typer.Argument(metavar="A", help=_SIDE)],
    right: Annotated[str, typer.Argument(metavar="B", help="What to compare it with, written as A.")],
    days: Days = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="COLUMN,…", help="Compare sums by these; event_date: of each day.")
    ] = None,
    tolerance: Annotated[str, typer.Option(help="What may differ, as `0.05, 0.1 %, 161 keys`.")] = "",
    drill: Annotated[bool, typer.Option("--drill", help="Name the keys that differ, column by column.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="Most days, and keys of each kind, to name.")] = 20,
    html: Annotated[Path | None, typer.Option(help="Also write a page to keep there.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two sides: columns and rows, the content of each day, and with --drill the keys that differ.

    Exit code 1 if they differ by more than the tolerance.
    """
    from platform_assets.contracts.checks import Tolerance
    from platform_assets.operations.reconcile import reconcile as compare

    allowed = Tolerance.parse(tolerance)
    with opened_platform() as platform:
        chosen = None if days is None else parse_days(days, platform.settings)
        with telling(context, "comparing") as progress, session_on_demand(platform.settings, progress) as spark:
            sides, columns = (left, right), named(by) or None
            found = compare(
                platform, spark, sides, chosen, columns, allowed, drill=drill, most=limit, progress=progress
            )
    if html is not None:
        from platform_assets.operations.backfill.html import rendered

        how = {"facts": [*facts(found)], "difference": difference, "sentence": key_sentence}
        write_page(html, rendered("reconciled.html", found=found, **how))
    if as_json:
        own = {"agree": found.agree, "tolerance": str(found.tolerance), "sums": found.sums}
        print_json(asdict(found) | own)
    else:
        _print(found, limit)
    if not found.agree:
        raise typer.Exit(EXIT_LOOK)


def _print(found: SidesBeside, limit: int) -> None:
    for fact in facts(found):
        console.print(fact, markup=False, highlight=False, soft_wrap=True)
    if found.differing:
        numbers = ("left", "right", "difference")
        grid = new_grid("Days that differ", ("day", "", "figure", *numbers), right=numbers, whole=("day", "figure"))
        for day in found.differing[:limit]:
            for name, pair in day.figures.items():
                shown = ("none" if one is None else f"{one:,}" for one in pair)
                grid.add_row(str(day.day), day.outcome, escape(name), *shown, difference(*pair) or "")
        console.print(grid)
        if len(found.differing) > limit:
            console.print(f"and {counted(len(found.differing) - limit, 'more day')}: --limit", highlight=False)
        if found.counts is None:
            console.print("--drill names the keys that differ.", highlight=False)
    for key in found.keys:
        console.print(f"  {key_sentence(key)}", markup=False, highlight=False, soft_wrap=True)
