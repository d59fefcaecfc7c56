"""`reconcile`: whether two sides say the same, and where they do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from platform_assets.cli.console import opened_platform, parse_days, write_page
from platform_assets.cli.options import Days
from platform_assets.cli.rows import column_names
from platform_assets.cli.session import computing
from platform_assets.contracts.checks import Tolerance
from platform_assets.quality.sides import SidesBeside, difference, facts, key_sentence
from platform_assets.report import Heading, Part, Points, Report, Table
from platform_assets.report_pages import page
from platform_assets.words import counted

_SIDE = "gold.daily_sales, gold.daily_sales@RELEASE, gold.daily_sales@stage:NAME, a Parquet or Delta folder, or a CSV."


def reconcile(
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
) -> Report:
    """Compare two sides: columns and rows, the content of each day, and with --drill the keys that differ.

    Exit code 1 if they differ by more than the tolerance.
    """
    from platform_assets.operations.reconcile import reconcile as compare

    allowed = Tolerance.parse(tolerance)
    with opened_platform() as platform:
        chosen = None if days is None else parse_days(days, platform.settings)
        with computing(platform.settings, "comparing") as (spark, progress):
            sides, columns = (left, right), column_names(by) or None
            found = compare(
                platform, spark, sides, chosen, columns, allowed, drill=drill, most=limit, progress=progress
            )
    own = {"agree": found.agree, "tolerance": str(found.tolerance), "sums": found.sums}
    if html is not None:
        title = f"Reconciled: {' and '.join(found.names)} {'agree' if found.agree else 'differ'}"
        write_page(html, page(title, [Heading(title, 1), *_parts(found, None)]))
    return Report(_parts(found, limit), asdict(found) | own, not found.agree)


def _parts(found: SidesBeside, limit: int | None) -> Iterator[Part]:
    yield Points([*facts(found)])
    if found.differing:
        numbers = ("left", "right", "difference")
        rows = []
        for day in found.differing[:limit]:
            for name, pair in day.figures.items():
                shown = ("none" if one is None else f"{one:,}" for one in pair)
                rows.append((str(day.day), day.outcome, name, *shown, difference(*pair) or ""))
        yield Table("Days that differ", ("day", "", "figure", *numbers), rows, numbers, ("day", "figure"))
        if limit and len(found.differing) > limit:
            yield f"and {counted(len(found.differing) - limit, 'more day')}: --limit"
        if limit and found.counts is None:
            yield "--drill names the keys that differ."
    if found.keys:
        yield Points([key_sentence(key) for key in found.keys], quoted=True)
