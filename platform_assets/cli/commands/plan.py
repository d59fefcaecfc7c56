"""`plan`: backfills as reviewed code."""

from __future__ import annotations

import getpass
import json
from pathlib import Path
from typing import Annotated

import typer

from platform_assets.cli.commands.plan_apply import COMMANDS
from platform_assets.cli.console import EXIT_LOOK, UsageError, console, opened_platform, print_json, say
from platform_assets.cli.decisions import decided_by
from platform_assets.cli.options import AsJson, By, Reason

app = typer.Typer(
    help="Backfills as reviewed code: a plan file is explained, approved and applied.", no_args_is_help=True
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The plan file.")]


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Of the plan: letters, digits, dots, hyphens and underscores.")],
    tables: Annotated[list[str], typer.Option("--table", help="To be computed; several times for several.")],
    days: Annotated[str, typer.Option("--days", metavar="DAYS", help="A..B, days with commas, or `stale`.")],
    reason: Reason = None,
    owner: Annotated[str | None, typer.Option("--owner", help="Who answers for it; the user by default.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Where to; plans/NAME.yaml by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a plan file that is worth a review: what you say, and all that you could say as comments."""
    from platform_assets.operations.backfill.files import PlanFileError, parse_plan, written

    if reason is None:
        raise UsageError("A plan needs --reason: it is kept for the next person.", 'Add --reason "…".')
    place = out or Path("plans") / f"{name}.yaml"
    said = {"name": name, "reason": reason, "owner": owner or getpass.getuser(), "tables": tables}
    file = parse_plan(_as_yaml(said | {"days": _days(days)}), f"plan new {name}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("x", encoding="utf-8") as opened:
            opened.write(written(file) + "\n")
    except FileExistsError as error:
        raise PlanFileError(f"{place} is there already.", "Choose another name, or edit that file.") from error
    if as_json:
        print_json({"file": str(place)})
    else:
        say("Wrote", f"{place}. Look what it comes to: platform-assets plan explain {place}")


@app.command()
def explain(
    file: File,
    markdown: Annotated[bool, typer.Option("--markdown", help="For a pull request.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a plan comes to, and start nothing: days with their reasons, order, price, what is in the way, hash."""
    from platform_assets.cli.commands.backfill_view import backfill_json, backfill_markdown, print_backfill
    from platform_assets.operations.backfill.explain import explain as explained
    from platform_assets.operations.backfill.files import read_plan

    with opened_platform() as platform:
        backfill = explained(platform, read_plan(file))
    if as_json:
        print_json(backfill_json(backfill))
    elif markdown:
        for line in backfill_markdown(backfill):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    else:
        print_backfill(backfill)
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
    from platform_assets.operations.backfill.files import read_plan

    author = decided_by(reason, by)
    with opened_platform() as platform:
        consent = approved(platform, read_plan(file), hash, author).consent
    if as_json:
        print_json({"hash": hash, "needed": consent.needed, "given": list(consent.given)})
    else:
        say("Approved", f"{hash} by {', '.join(consent.given)}; {consent.needed} needed.")


@app.command()
def schema() -> None:
    """Print the JSON Schema of plan files, by which editors complete and check them."""
    from platform_assets.operations.backfill.files import plan_schema

    print_json(plan_schema())


def _days(text: str) -> dict[str, object]:
    if text == "stale":
        return {"stale": True}
    return {"range": text} if ".." in text and "," not in text else {"list": [part.strip() for part in text.split(",")]}


def _as_yaml(said: dict[str, object]) -> str:
    return json.dumps(said)  # which is YAML, too


for carries_out in COMMANDS:
    app.command()(carries_out)
