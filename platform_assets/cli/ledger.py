"""`ledger`: the index of the lake's manifests."""

from __future__ import annotations

import time

import typer

from platform_assets.cli.console import console
from platform_assets.lakehouse.index import rebuild as rebuild_index
from platform_assets.lakehouse.lake import Lake
from platform_assets.ledger.ledger import Ledger
from platform_assets.settings import load_settings

app = typer.Typer(help="The index of what was published, rebuilt from the lake where it differs.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keeps `rebuild` a subcommand."""


@app.command()
def rebuild() -> None:
    """Rebuild the index from the lake's manifests; holds and people's decisions stay."""
    started = time.monotonic()
    settings = load_settings()
    ledger = Ledger.open(settings.ledger_url.get_secret_value())
    try:
        result = rebuild_index(Lake(settings.lake), ledger)
    finally:
        ledger.close()
    seconds = time.monotonic() - started
    console.print(f"Rebuilt the ledger from {len(result.added)} publications in {seconds:.1f} s.")
