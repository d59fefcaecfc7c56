"""`admin backup`, `restore`, `recover`: copy lake and ledger, put them back, finish what killed processes began."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from platform_assets.cli.console import UsageError
from platform_assets.cli.options import By, Reason, decided_by
from platform_assets.cli.progress import telling
from platform_assets.lakehouse.layout import Lake
from platform_assets.operations.backup import BackupFolder, Generation, erased_since, same
from platform_assets.progress import meanwhile
from platform_assets.report import Note, Part, Report, Table, picked
from platform_assets.settings import load_settings
from platform_assets.words import counted


def backup(
    folder: Annotated[Path, typer.Argument(help="Target folder; one with earlier backups gets only what is new.")],
    keep: Annotated[int, typer.Option("--keep", min=1, help="How many generations stay, the new one included.")] = 7,
) -> Report:
    """Copy lake and ledger as of the newest release, while readers and publishers go on.

    Every file that is copied is read and checked as it lies in the backup, and a good copy is never replaced. Exit code
    1: the backup is whole, and the lake has damaged files.
    """
    from platform_assets.ledger.moving import copy_ledger
    from platform_assets.operations.backup_copy import copy_lake, forget_deleted
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
                f"{folder} has a ledger file, and the ledger of these settings is a server's database.",
                "Name a folder of its own, or correct PLATFORM_LEDGER_URL.",
            )
        done = copy_lake(lake, copy, progress)
        if is_new := not before or done.release != done.before or done.files > 0 or not same(before[-1], draft):
            forget_deleted(copy)
            generation = target.show(draft, keep)
        else:
            generation = target.lead_to_newest()
    seconds = time.monotonic() - started
    data = vars(done) | {"generation": generation.name, "is_new": is_new, "ledger": with_ledger}

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
            yield Note("bold", "  What to do:", "`platform-assets admin audit --all` names what repairs the lake.")

    return Report(parts(), data | {"seconds": round(seconds, 1)}, bool(done.damaged))


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
        return _generations(backup)
    return _rehearse(backup, chosen) if only_rehearsed else _restore(backup, chosen)


def _generations(backup: BackupFolder) -> Report:
    every = [(each, len(erased_since(backup, each))) for each in backup.generations()]
    data = [{"generation": one.name, "release": one.release, "erased_since": since} for one, since in every]
    rows = [(one.name, f"{one.release:,}", f"{since:,}" if since else "") for one, since in every]
    names = ("generation", "release", "erased since")
    return Report([Table("Generations, oldest first", names, rows, right=names[1:], whole=names)], data)


def _rehearse(backup: BackupFolder, generation: Generation) -> Report:
    from platform_assets.operations.backup import rehearse

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
                "Remove the damaged files from the backup and run `platform-assets admin backup` again: it copies them "
                "from the lake, if they are good there. Else try an older generation: `--list`."
            )
            has = f"{done.generation} has {counted(len(done.faults), 'fault')}."
            yield Note("red", "Not to be relied on:", has, todo)
            return
        read = f"{counted(done.seen.get('contents', 0), 'file')} were read page by page, all as published"
        shows = f"{done.generation} shows release {done.release}; {read}; the platform opens on it. {seconds:.1f} s."
        yield Note("green", "Can be restored:", shows)

    return Report(parts(), vars(done) | {"seconds": round(seconds, 1)}, bool(done.faults))


def _restore(backup: BackupFolder, generation: Generation) -> Report:
    from platform_assets.operations.backup import restore

    since = erased_since(backup, generation)
    settings, started = load_settings(), time.monotonic()
    with telling("restore") as progress:
        lake, ledger = restore(backup, generation, settings, progress)
    seconds = round(time.monotonic() - started, 1)
    data: dict[str, Any] = {"generation": generation.name, "lake": lake, "ledger": ledger}
    data |= {"erased_since": [manifest.publication for manifest in since], "seconds": seconds}

    def parts() -> Iterator[Part]:
        yield Note(
            "green", "Restored", f"{generation.name} to {lake}{f' and {ledger}' if ledger else ''} in {seconds} s."
        )
        if ledger is None:
            dump = "Where it was lost as well, restore its dump with the server's own tool; without one, "
            index = (
                "`platform-assets admin ledger --rebuild` makes its index from the lake; people's decisions are gone."
            )
            yield Note("yellow", "The ledger stays as it is:", f"it is a server's. {dump}{index}")
        for manifest in since:
            erased = (
                f"what {manifest.who} erased on {manifest.created_at:%Y-%m-%d} ({manifest.why}) was erased after this "
            )
            tables = ", ".join(sorted({erasure.table for erasure in manifest.erasures}))
            then = "it is not remembered, so that such rows are taken again when they are delivered."
            yield Note("red", "Erased rows are back:", f"{erased}generation was taken, from {tables}; and {then}")
        if since:
            todo = "Call `platform-assets admin erase` again for each, before anything else is started."
            yield Note("bold", "  What to do:", todo)
        yield Note("bold", "  What to do:", "`platform-assets admin doctor`, then `platform-assets refresh`.")

    return Report(parts(), data, bool(since))


def recover(
    undo: Annotated[
        bool, typer.Option("--undo", help="Put tables back to what the newest release shows instead of finishing.")
    ] = False,
    reason: Reason = None,
    by: By = None,
) -> Report:
    """Finish what killed processes began. The next writer would do so too."""
    from platform_assets.operations.opening import recover_installation

    author = decided_by(reason, by) if undo else None
    with telling("recover") as progress, meanwhile(progress, "finishing what was begun"):
        recovered = recover_installation(load_settings(), author)
    parts = [Note("green", "done", sentence) for sentence in recovered.done]
    if recovered.indexed:
        names = ", ".join(f"{name} (release {number})" for name, number in recovered.indexed.items())
        parts.append(Note("green", "indexed", f"The ledger is up to date; it lacked {names}."))
    nothing: list[Part] = []
    if not parts:
        shown = f"release {recovered.release} shows all that was begun"
        nothing = [f"Nothing to recover: {shown if recovered.release >= 0 else 'nothing was published yet'}."]
    mended = [Note("yellow", "mended", sentence) for sentence in recovered.mended]
    return Report([*parts, *mended, *nothing], picked(recovered, "release done indexed mended"))
