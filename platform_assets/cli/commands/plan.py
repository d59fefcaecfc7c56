"""`plan`: backfills as reviewed code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from platform_assets.cli.commands.plan_apply import COMMANDS, Html, write_page
from platform_assets.cli.commands.plan_compare import compare
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
from platform_assets.cli.options import AsJson, By, Days, Only, Reason, decided_by, parse_keys
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
    from platform_assets.operations.backfill.files import new_plan, parse_plan
    from platform_assets.operations.backfill.narrowing import unmatched_keys

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
    from platform_assets.operations.backfill.files import plan_at
    from platform_assets.operations.backfill.namesakes import refuse_namesake
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
    from platform_assets.operations.backfill.approve import approve as approved
    from platform_assets.operations.backfill.files import plan_at
    from platform_assets.operations.backfill.namesakes import refuse_namesake

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


def _days(text: str, settings: Settings) -> dict[str, object]:
    days = sorted(parse_days(text, settings))
    if (days[-1] - days[0]).days == len(days) - 1:
        return {"range": f"{days[0]}..{days[-1]}"}
    return {"list": [str(day) for day in days]}


for carries_out in (compare, *COMMANDS):
    app.command()(carries_out)
