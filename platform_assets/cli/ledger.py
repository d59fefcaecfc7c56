"""`ledger`: the index of the lake's manifests."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from platform_assets.cli.console import console, print_json
from platform_assets.lakehouse.index import rebuild as rebuild_index
from platform_assets.lakehouse.lake import Lake
from platform_assets.ledger.ledger import Ledger
from platform_assets.settings import load_settings

app = typer.Typer(help="The index of what was published, rebuilt from the lake where it differs.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keeps `rebuild` a subcommand."""


@app.command()
def rebuild(as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """Rebuild the index from the lake's manifests; holds and people's decisions stay."""
    started = time.monotonic()
    settings = load_settings()
    ledger = Ledger.open(settings.ledger_url.get_secret_value())
    try:
        result = rebuild_index(Lake(settings.lake), ledger)
    finally:
        ledger.close()
    seconds = time.monotonic() - started
    if as_json:
        print_json({"publications": len(result.added), "seconds": round(seconds, 3)})
        return
    console.print(f"Rebuilt the ledger from {len(result.added)} publications in {seconds:.1f} s.")
