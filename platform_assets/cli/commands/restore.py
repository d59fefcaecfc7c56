"""`restore`: a generation of a backup put in the place of what was lost, or only tried."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from platform_assets.cli.console import UsageError
from platform_assets.cli.progress import telling
from platform_assets.report import Note, Part, Report, Table
from platform_assets.settings import load_settings
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.backup.generations import BackupFolder, Generation
    from platform_assets.operations.backup.restore import Rehearsed
    from platform_assets.records.manifest import Manifest

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
    from platform_assets.operations.backup.generations import BackupFolder

    if listed and (only_rehearsed or generation):
        raise UsageError("--list restores nothing.", "Leave out --list, or --rehearse and --generation.")
    backup = BackupFolder(folder.absolute())
    chosen = backup.generation(generation)
    if listed:
        return _list(backup)
    return _rehearse(backup, chosen) if only_rehearsed else _restore(backup, chosen)


def _list(backup: BackupFolder) -> Report:
    from platform_assets.operations.backup.generations import erased_since

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
    data = vars(done) | {"seconds": round(seconds, 1)}
    return Report(_parts(done, seconds), data, bool(done.faults))


def _parts(done: Rehearsed, seconds: float) -> Iterator[Part]:
    for fault in done.faults[:_SHOWN]:
        yield Note("red", fault.check, fault.what)
    if len(done.faults) > _SHOWN:
        yield f"and {counted(len(done.faults) - _SHOWN, 'fault')} more: --json shows all"
    for sentence in done.said:
        yield Note("yellow", "note", sentence)
    if done.faults:
        todo = (
            "Remove the damaged files from the backup and run `platform-assets backup` again: it copies them from "
            "the lake, if they are good there. Else try an older generation: `--list`."
        )
        count = counted(len(done.faults), "fault")
        yield Note("red", "Not to be relied on:", f"{done.generation} has {count}.", todo)
        return
    read = f"{counted(done.seen.get('contents', 0), 'file')} were read page by page, all as published"
    shows = f"{done.generation} shows release {done.release}; {read}; the platform opens on it. {seconds:.1f} s."
    yield Note("green", "Can be restored:", shows)


def _restore(backup: BackupFolder, generation: Generation) -> Report:
    from platform_assets.operations.backup.generations import erased_since
    from platform_assets.operations.backup.restore import restore

    since = erased_since(backup, generation)
    settings, started = load_settings(), time.monotonic()
    with telling("restore") as progress:
        lake, ledger = restore(backup, generation, settings, progress)
    seconds = round(time.monotonic() - started, 1)
    data = {
        "generation": generation.name,
        "lake": lake,
        "ledger": ledger,
        "erased_since": [manifest.publication for manifest in since],
        "seconds": seconds,
    }
    return Report(_restored_parts(generation, lake, ledger, since, seconds), data, bool(since))


def _restored_parts(
    generation: Generation, lake: str, ledger: Path | None, since: Sequence[Manifest], seconds: float
) -> Iterator[Part]:
    yield Note("green", "Restored", f"{generation.name} to {lake}{f' and {ledger}' if ledger else ''} in {seconds} s.")
    if ledger is None:
        yield Note(
            "yellow",
            "The ledger stays as it is:",
            "it is a server's. Where it was lost as well, restore its dump with the server's own tool; without one, "
            "`platform-assets ledger rebuild` makes its index from the lake, and people's decisions are gone.",
        )
    for manifest in since:
        yield Note(
            "red",
            "Erased rows are back:",
            f"what {manifest.who} erased on {manifest.created_at:%Y-%m-%d} ({manifest.why}) was erased after this "
            f"generation was taken, from {', '.join(sorted({erasure.table for erasure in manifest.erasures}))}; and it "
            "is not remembered, so that such rows are taken again when they are delivered.",
        )
    if since:
        yield Note(
            "bold", "  What to do:", "Call `platform-assets erase` again for each, before anything else is started."
        )
    yield Note("bold", "  What to do:", "`platform-assets doctor`, then `platform-assets refresh`.")
