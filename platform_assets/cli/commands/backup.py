"""`backup`: a copy of lake and ledger, taken while the platform goes on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from platform_assets.cli.console import console, counted, print_json
from platform_assets.cli.progress import telling
from platform_assets.progress import meanwhile
from platform_assets.settings import load_settings


def backup(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Where to; a folder of an earlier backup gets what is new.")],
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Copy lake and ledger as of the newest release; readers and publishers go on meanwhile."""
    from platform_assets.lakehouse.layout import Lake
    from platform_assets.ledger.copying import copy_ledger
    from platform_assets.operations.recovery.backup import copy_lake

    started = time.monotonic()
    settings = load_settings()
    with telling(context, "backup") as progress:
        # The ledger first: one that is behind its lake catches up, one that is ahead is refused.
        with meanwhile(progress, "copying the ledger"):
            with_ledger = copy_ledger(settings.ledger_url.get_secret_value(), folder / "ledger.db")
        done = copy_lake(Lake.at(settings.lake), Lake.at(folder / "lake"), progress)
    seconds = time.monotonic() - started
    if as_json:
        print_json({**vars(done), "ledger": with_ledger, "seconds": round(seconds, 1)})
        return
    console.print(
        f"{folder} shows release {done.release}: {counted(done.files, 'file')}, {done.bytes / 1e6:,.1f} MB copied in "
        f"{seconds:.1f} s.",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    if done.gone:
        console.print(f"{counted(done.gone, 'file')} of older releases had been deleted before.", highlight=False)
    if not with_ledger:
        console.print(
            "The ledger is no SQLite file: copy its database with the server's own tool, for example pg_dump."
        )
