"""`restore`: a generation of a backup put in the place of what was lost, or only tried."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from platform_assets.cli.console import UsageError
from platform_assets.cli.progress import telling
from platform_assets.operations.backup.generations import BackupFolder, Generation, erased_since
from platform_assets.report import Note, Part, Report, Table
from platform_assets.settings import load_settings
from platform_assets.words import counted

if TYPE_CHECKING:
    pass

_SHOWN = 20


def restore(
    folder: Annotated[Path, typer.Argument(help="That `backup` was given.")],
    generation: Annotated[str | None, typer.Option("--generation", help="Which one; the newest by default.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="Only show which generations there are.")] = False,
    only_rehearsed: Annotated[
        bool, typer.Option("--rehearse", help="Restore beside the backup, read all of it, and leave no trace.")
    ] = False,
) -> Report:
    """Put lake and ledger of a backup where PLATFORM_STATE says, or rehearse it; nothing is ever replaced.

    Exit code 1: the rehearsal found something that is not as it was published, or rows are back that were erased later.
    """
    if listed and (only_rehearsed or generation):
        raise UsageError("--list restores nothing.", "Leave out --list, or --rehearse and --generation.")
    backup = BackupFolder(folder.absolute())
    chosen = backup.generation(generation)
    if listed:
        return _list(backup)
    return _rehearse(backup, chosen) if only_rehearsed else _restore(backup, chosen)


def _list(backup: BackupFolder) -> Report:
    every = [(each, len(erased_since(backup, each))) for each in backup.generations()]
    data = [{"generation": one.name, "release": one.release, "erased_since": since} for one, since in every]
    rows = [(one.name, f"{one.release:,}", f"{since:,}" if since else "") for one, since in every]
    names = ("generation", "release", "erased since")
    return Report([Table("Generations, oldest first", names, rows, right=names[1:], whole=names)], data)


def _rehearse(backup: BackupFolder, generation: Generation) -> Report:
    from platform_assets.operations.backup.restore import rehearse

    started = time.monotonic()
    with telling("rehearsal") as progress:
        done = rehearse(backup, generation, load_settings(), progress)
    seconds = time.monotonic() - started

    def parts() -> Iterator[Part]:
        for fault in done.faults[:_SHOWN]:
            yield Note("red", fault.check, fault.what)
        if len(done.faults) > _SHOWN:
            yield f"and {counted(len(done.faults) - _SHOWN, 'fault')} more: --json shows all"
        yield from (Note("yellow", "note", sentence) for sentence in done.said)
        if done.faults:
            todo = (
                "Remove the damaged files from the backup and run `platform-assets backup` again: it copies them from "
                "the lake, if they are good there. Else try an older generation: `--list`."
            )
            has = f"{done.generation} has {counted(len(done.faults), 'fault')}."
            yield Note("red", "Not to be relied on:", has, todo)
            return
        read = f"{counted(done.seen.get('contents', 0), 'file')} were read page by page, all as published"
        shows = f"{done.generation} shows release {done.release}; {read}; the platform opens on it. {seconds:.1f} s."
        yield Note("green", "Can be restored:", shows)

    return Report(parts(), vars(done) | {"seconds": round(seconds, 1)}, bool(done.faults))


def _restore(backup: BackupFolder, generation: Generation) -> Report:
    from platform_assets.operations.backup.restore import restore

    since = erased_since(backup, generation)
    settings, started = load_settings(), time.monotonic()
    with telling("restore") as progress:
        lake, ledger = restore(backup, generation, settings, progress)
    seconds = round(time.monotonic() - started, 1)
    data = {"generation": generation.name, "lake": lake, "ledger": ledger}
    data |= {"erased_since": [manifest.publication for manifest in since], "seconds": seconds}

    def parts() -> Iterator[Part]:
        yield Note(
            "green", "Restored", f"{generation.name} to {lake}{f' and {ledger}' if ledger else ''} in {seconds} s."
        )
        if ledger is None:
            dump = "Where it was lost as well, restore its dump with the server's own tool; without one, "
            index = "`platform-assets ledger rebuild` makes its index from the lake, and people's decisions are gone."
            yield Note("yellow", "The ledger stays as it is:", f"it is a server's. {dump}{index}")
        for manifest in since:
            erased = (
                f"what {manifest.who} erased on {manifest.created_at:%Y-%m-%d} ({manifest.why}) was erased after this "
            )
            tables = ", ".join(sorted({erasure.table for erasure in manifest.erasures}))
            then = "it is not remembered, so that such rows are taken again when they are delivered."
            yield Note("red", "Erased rows are back:", f"{erased}generation was taken, from {tables}; and {then}")
        if since:
            todo = "Call `platform-assets erase` again for each, before anything else is started."
            yield Note("bold", "  What to do:", todo)
        yield Note("bold", "  What to do:", "`platform-assets doctor`, then `platform-assets refresh`.")

    return Report(parts(), data, bool(since))
