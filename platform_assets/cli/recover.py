"""`recover`: finish what a killed process began, and say what that was."""

from __future__ import annotations

from typing import Annotated

import typer

from platform_assets.cli.console import console, print_json, say
from platform_assets.engine.recovering import recover_installation
from platform_assets.settings import load_settings


def recover(as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """Finish what killed processes began; whoever writes next would do so too."""
    found = recover_installation(load_settings())
    if as_json:
        print_json({"release": found.release, "done": found.done, "indexed": found.indexed, "mended": found.mended})
        return
    for sentence in found.done:
        say("[green]done[/]", sentence)
    if found.indexed:
        names = ", ".join(f"{name} (release {number})" for name, number in found.indexed.items())
        say("[green]indexed[/]", f"The ledger is up to date; it lacked {names}.")
    for sentence in found.mended:
        say("[yellow]mended[/]", sentence)
    if not found.done and not found.indexed:
        shown = f"release {found.release} shows all that was begun"
        why = shown if found.release >= 0 else "nothing was published yet"
        console.print(f"Nothing to recover: {why}.", highlight=False)
