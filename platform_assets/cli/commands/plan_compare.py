"""`plan compare`: what a plan would show beside what readers see."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from platform_assets.cli.console import EXIT_LOOK, UsageError, console, opened_platform, parse_days, print_json
from platform_assets.cli.options import AsJson, Days, decided_by
from platform_assets.cli.progress import telling
from platform_assets.cli.session import session_on_demand
from platform_assets.lakehouse.layout import GIVEN_NAME


def compare(
    context: typer.Context,
    plan: Annotated[
        str, typer.Argument(metavar="FILE|NAME", help="A plan file, or the name of a plan that was begun.")
    ],
    sample: Annotated[int, typer.Option(min=1, max=1000, help="Named days to compute, of a file.")] = 3,
    days: Days = None,
    examples: Annotated[int, typer.Option(min=0, max=1000, help="Keys to show of each way to differ.")] = 5,
    markdown: Annotated[bool, typer.Option("--markdown", help="For a pull request.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what differs per table, column and key between the release and some days as the code here computes them.

    Of a file, a sample is computed where nobody sees it, and deleted. Of a name, what the plan has staged or published
    is compared. Exit code 1 if anything differs.
    """
    from platform_assets.cli.commands.compare_view import compared_json, compared_markdown, print_compared
    from platform_assets.operations.backfill.compare import compare_plan, compare_record
    from platform_assets.operations.backfill.files import plan_at
    from platform_assets.operations.plan_record import read_record

    file = Path(plan)
    is_file = file.is_file() or GIVEN_NAME.fullmatch(plan) is None or file.suffix in (".yaml", ".yml")
    if not is_file and days is not None:
        raise UsageError("--days chooses what is computed of a plan file.", "Name the file, or leave out --days.")
    with opened_platform() as platform, telling(context, "comparing") as progress:
        if is_file:
            only = None if days is None else parse_days(days, platform.settings)
            author = decided_by("plan compare", None)
            with plan_at(file) as said, session_on_demand(platform.settings, progress) as spark:
                found = compare_plan(platform, spark, said, author, sample, examples, only, progress)
        else:
            found = compare_record(platform, read_record(platform.lake, plan), examples)
    if as_json:
        print_json(compared_json(found))
    elif markdown:
        for line in compared_markdown(found):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    else:
        print_compared(found)
    if not found.is_equal:
        raise typer.Exit(EXIT_LOOK)
