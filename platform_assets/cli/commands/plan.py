"""`plan`: backfills as reviewed code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from platform_assets.cli.commands.plan_apply import COMMANDS, Html, write_page
from platform_assets.cli.console import (
    EXIT_LOOK,
    UsageError,
    console,
    opened_platform,
    parse_days,
    platform_to_look,
    print_json,
    say,
)
from platform_assets.cli.decisions import decided_by
from platform_assets.cli.keys import parse_keys
from platform_assets.cli.options import AsJson, By, Days, Only, Reason
from platform_assets.cli.progress import telling
from platform_assets.cli.session import session_on_demand
from platform_assets.lakehouse.layout import GIVEN_NAME
from platform_assets.settings import Settings, load_settings

app = typer.Typer(
    help="Backfills as reviewed code: a plan file is explained, approved and applied.", no_args_is_help=True
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The plan file.")]


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Of the plan: letters, digits, dots, hyphens and underscores.")],
    tables: Annotated[list[str], typer.Option("--table", help="To be computed; several times for several.")],
    days: Days = None,
    stale: Annotated[bool, typer.Option("--stale", help="The days that are stale, in place of --days.")] = False,
    only: Only = None,
    reason: Reason = None,
    by: By = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to; NAME.yaml in the folder of plans by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a plan file that is worth a review: what you say, and all that you could say as comments."""
    from platform_assets.operations.backfill.explain import unmatched_keys
    from platform_assets.operations.backfill.files import new_plan, parse_plan

    settings = load_settings()
    if (days is None) != stale:
        raise UsageError("A plan needs --days, or --stale, one of them.", "Add --days 2017-01-01..2017-03-31.")
    author = decided_by(reason, by)
    named = {"stale": True} if days is None else _days(days, settings)
    said: dict[str, object] = {"name": name, "reason": author.why, "owner": author.who, "tables": tables, "days": named}
    if only:
        said |= {"downstream": False, "only": parse_keys(only)}  # a plan of some keys is about its tables alone
    place = out or settings.plans / f"{name}.yaml"
    plan = parse_plan(json.dumps(said), f"plan new {name}")  # JSON is YAML, too
    with platform_to_look(settings) as platform:
        told = unmatched_keys(platform, plan)
    new_plan(plan, place)
    if as_json:
        print_json({"file": str(place), "obstacles": [{"what": one.what, "do": one.todo} for one in told]})
    else:
        for one in told:
            say("[yellow]look[/]", f"{one.what} {one.todo}")
        say("Wrote", f"{place}. Look what it comes to: platform-assets plan explain {place}")


@app.command()
def explain(
    file: File,
    markdown: Annotated[bool, typer.Option("--markdown", help="For a pull request.")] = False,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Show what a plan comes to, and start nothing: days with their reasons, order, price, what is in the way, hash."""
    from platform_assets.cli.commands.backfill_view import backfill_json, print_backfill
    from platform_assets.operations.backfill.explain import explain as explained
    from platform_assets.operations.backfill.files import plan_at, refuse_namesake
    from platform_assets.operations.backfill.pages import backfill_markdown

    with opened_platform() as platform, plan_at(file) as plan:
        refuse_namesake(platform.lake, plan, file)
        backfill = explained(platform, plan)
    if html is not None:
        from platform_assets.operations.backfill.html import backfill_html

        write_page(html, backfill_html(backfill))
    if as_json:
        print_json(backfill_json(backfill))
    elif html is not None:
        say("Wrote", str(html))
    elif markdown:
        for line in backfill_markdown(backfill):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    else:
        print_backfill(backfill, file)
    if backfill.blocking:
        raise typer.Exit(EXIT_LOOK)


@app.command()
def approve(
    file: File,
    hash: Annotated[str, typer.Option("--hash", help="That `plan explain` showed: only this is approved.")],
    reason: Reason = None,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Write down that you approve a plan as it was explained; another file, other days or other code need it anew."""
    from platform_assets.operations.backfill.explain import approve as approved
    from platform_assets.operations.backfill.files import plan_at, refuse_namesake

    author = decided_by(reason, by)
    with opened_platform() as platform, plan_at(file) as plan:
        refuse_namesake(platform.lake, plan, file)
        consent = approved(platform, plan, hash, author).consent
    if as_json:
        print_json({"hash": hash, "needed": consent.needed, "given": list(consent.given)})
    else:
        missing = consent.needed - len(consent.given)
        more = f", so {missing} more by somebody else" if missing > 0 else ""
        say("Approved", f"{hash} by {', '.join(consent.given)}; {consent.needed} needed{more}.")


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


def _days(text: str, settings: Settings) -> dict[str, object]:
    days = sorted(parse_days(text, settings))
    if (days[-1] - days[0]).days == len(days) - 1:
        return {"range": f"{days[0]}..{days[-1]}"}
    return {"list": [str(day) for day in days]}


for carries_out in (compare, *COMMANDS):
    app.command()(carries_out)
