"""`backup`: a new generation of a copy of lake and ledger, taken while the platform goes on."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from platform_assets.cli.console import UsageError
from platform_assets.cli.progress import telling
from platform_assets.lakehouse.layout import Lake
from platform_assets.operations.backup.generations import BackupFolder, same
from platform_assets.progress import meanwhile
from platform_assets.report import Note, Part, Report
from platform_assets.settings import load_settings
from platform_assets.words import counted


def backup(
    folder: Annotated[Path, typer.Argument(help="Where to; a folder of earlier backups gets what is new.")],
    keep: Annotated[int, typer.Option("--keep", min=1, help="How many generations stay, the new one included.")] = 7,
) -> Report:
    """Copy lake and ledger as of the newest release; readers and publishers go on meanwhile.

    Every file that is copied is read and checked as it lies in the backup, and a good copy is never replaced. Exit code
    1: the backup is whole, and the lake has damaged files.
    """
    from platform_assets.ledger.moving import copy_ledger
    from platform_assets.operations.backup.copying import copy_lake, forget_deleted
    from platform_assets.secret import secret_file

    started = time.monotonic()
    settings = load_settings()
    lake, target = Lake.at(settings.lake), BackupFolder(folder.absolute())
    with telling("backup") as progress, target.begun(lake) as draft:
        copy = Lake.at(draft.lake)
        # The ledger first: one that is behind its lake catches up, one that is ahead is refused.
        with meanwhile(progress, "copying the ledger"):
            with_ledger = copy_ledger(settings.ledger_url.get_secret_value(), draft.ledger)
        if (secret := secret_file(settings)).exists():
            shutil.copy2(secret, draft.secret)  # and its mode
        before = target.generations()
        if before and before[-1].ledger.exists() and not with_ledger:
            raise UsageError(
                f"{folder} has a ledger, and that of these settings is a server's database.",
                "Name a folder of its own, or correct PLATFORM_LEDGER_URL.",
            )
        done = copy_lake(lake, copy, progress, before[-1].lacking if before else {})
        draft.note_lacking(done.lacking)
        if is_new := not before or done.release != done.before or done.files > 0 or not same(before[-1], draft):
            forget_deleted(copy)
            generation = target.show(draft, keep)
        else:
            generation = target.lead_to_newest()
    seconds = time.monotonic() - started
    copied = {name: value for name, value in vars(done).items() if name != "lacking"}
    data = copied | {"generation": generation.name, "is_new": is_new, "ledger": with_ledger}

    def parts() -> Iterator[Part]:
        yield Note("green", "Done." if is_new else "Nothing is new.", f"{folder} shows release {done.release}.")
        if is_new:
            newest = f"is the newest of {counted(len(target.generations()), 'generation')}"
            copy = f"{counted(done.files, 'file')}, {done.bytes / 1e6:,.1f} MB copied and checked in {seconds:.1f} s."
            yield Note("", generation.name, f"{newest}: {copy}")
        if done.gone:
            yield f"{counted(done.gone, 'file')} of older releases had been deleted before."
        if not with_ledger:
            yield "The ledger is no SQLite file: copy its database with the server's own tool, for example pg_dump."
        yield from (Note("red", "damaged", sentence) for sentence in done.damaged)
        if done.damaged:
            yield Note("bold", "  What to do:", "`platform-assets audit verify --all` names what repairs the lake.")

    return Report(parts(), data | {"seconds": round(seconds, 1)}, bool(done.damaged))
