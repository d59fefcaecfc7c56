"""`recover`: finish what a killed process began, and say what that was."""

from __future__ import annotations

from typing import Annotated

import typer

from platform_assets.cli.console import console, print_json, say
from platform_assets.cli.options import AsJson, By, Reason, decided_by
from platform_assets.cli.progress import telling
from platform_assets.operations.recovery import recover_installation
from platform_assets.progress import meanwhile
from platform_assets.settings import load_settings


def recover(
    context: typer.Context,
    undo: Annotated[
        bool, typer.Option("--undo", help="Put tables back to what the newest release shows instead of finishing.")
    ] = False,
    reason: Reason = None,
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Finish what killed processes began; whoever writes next would do so too."""
    author = decided_by(reason, by) if undo else None
    with telling(context, "recover") as progress, meanwhile(progress, "finishing what was begun"):
        recovered = recover_installation(load_settings(), author)
    if as_json:
        print_json(
            {
                "release": recovered.release,
                "done": recovered.done,
                "indexed": recovered.indexed,
                "mended": recovered.mended,
            }
        )
        return
    for sentence in recovered.done:
        say("[green]done[/]", sentence)
    if recovered.indexed:
        names = ", ".join(f"{name} (release {number})" for name, number in recovered.indexed.items())
        say("[green]indexed[/]", f"The ledger is up to date; it lacked {names}.")
    for sentence in recovered.mended:
        say("[yellow]mended[/]", sentence)
    if not recovered.done and not recovered.indexed:
        shown = f"release {recovered.release} shows all that was begun"
        why = shown if recovered.release >= 0 else "nothing was published yet"
        console.print(f"Nothing to recover: {why}.", highlight=False)
