"""`admin ledger`, `maintenance`, `backup`, `restore`, `recover`: index, small files, copies, work that was killed."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import SecretStr

from platform_assets.cli.console import UsageError, opened_platform
from platform_assets.cli.options import By, DryRun, Reason, decided_by
from platform_assets.cli.progress import telling
from platform_assets.cli.session import computing
from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.layout import Lake
from platform_assets.operations.backup import BackupFolder, Generation, erased_since, same
from platform_assets.planning.retention import TASKS, Deletion, Task
from platform_assets.planning.windows import which
from platform_assets.progress import meanwhile
from platform_assets.report import Note, Part, Report, Table, picked
from platform_assets.settings import load_settings
from platform_assets.words import counted, size

if TYPE_CHECKING:
    from platform_assets.operations.maintenance import Maintenance


def ledger(
    file: Annotated[Path | None, typer.Argument(help="With --move: the SQLite file; by default the state's.")] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Make the index again from the manifests.")] = False,
    move: Annotated[bool, typer.Option("--move", help="Move it to where PLATFORM_LEDGER_URL says now.")] = False,
) -> Report:
    """Rebuild the index of publications from the lake, or move the ledger to PostgreSQL; people's decisions stay."""
    if rebuild == move or (file and not move):
        raise UsageError("Choose one thing to do with the ledger.", "Add --rebuild, or --move and its file.")
    return _move(file) if move else _rebuild()


def _rebuild() -> Report:
    """Rebuild the index from the lake's manifests; holds and people's decisions stay.

    A damaged ledger is set aside; its readable holds and decisions go into the new one.
    """
    from platform_assets.ledger.database import salvage, set_aside
    from platform_assets.ledger.errors import LedgerCorruptError
    from platform_assets.ledger.ledger import Ledger
    from platform_assets.ledger.sync import rebuild as rebuild_index
    from platform_assets.operations.opening import held_again

    started = time.monotonic()
    settings = load_settings()
    url = settings.ledger_url.get_secret_value()
    aside: Path | None = None
    salvaged: dict[str, int | None] = {}
    try:
        ledger = Ledger.open(url)
    except LedgerCorruptError:
        aside = set_aside(url)
        ledger = Ledger.open(url)
        salvaged = salvage(aside, url)
    try:
        with telling("ledger") as progress:
            result = rebuild_index(Lake.at(settings.lake), ledger, progress)
            held = held_again(ledger, result.added)
    finally:
        ledger.close()
    seconds = time.monotonic() - started
    data = {
        "publications": len(result.publications),
        **picked(result, "forgotten lifted"),
        "held_again": held,
        "set_aside": aside,
        "salvaged": salvaged,
        "seconds": round(seconds, 3),
    }

    def parts() -> Iterator[Part]:
        yield f"Rebuilt the ledger from {counted(len(result.publications), 'publication')} in {seconds:.1f} s."
        if aside:
            yield Note("yellow", "set aside", f"the damaged ledger is {aside} now.")
            kept = sum(rows or 0 for rows in salvaged.values())
            yield Note("yellow", "kept", f"{counted(kept, 'row')} of holds and people's decisions were read from it.")
            if unread := [table.removeprefix("ledger_") for table, rows in salvaged.items() if rows is None]:
                todo = "Restore them from a backup, or decide again."
                yield Note("red", "lost", f"not all could be read of: {', '.join(unread)}.", todo)
        if result.forgotten:
            first, last = result.forgotten[0], result.forgotten[-1]
            forgotten = counted(len(result.forgotten), "publication")
            yield Note("yellow", "forgotten", f"{forgotten} that the lake has not: {first} to {last}")
        for hold in result.lifted:
            yield Note("yellow", "lifted", f"{hold.table} {hold.day}, held by {hold.gate}: {hold.reason}")
        yield from (Note("yellow", "mended", sentence) for sentence in held)

    return Report(parts(), data)


def _move(file: Path | None) -> Report:
    """Move a SQLite ledger, with every decision, to the PostgreSQL database in PLATFORM_LEDGER_URL.

    Both are compared row by row. The file is set aside, and a note in its place stops commands with the old setting.
    """
    from platform_assets.lakehouse.errors import masked
    from platform_assets.ledger.connection import moved_to, parse_url
    from platform_assets.ledger.database import move_ledger, require_server, url_of_file

    started = time.monotonic()
    settings = load_settings()
    url = settings.ledger_url.get_secret_value()
    require_server(url)
    source = (file or settings.state / "ledger.db").absolute()
    target = masked(parse_url(url))
    if (where := moved_to(source)).startswith(f"to {target}, "):
        where = f"{source} was moved {where}, the database that PLATFORM_LEDGER_URL names."
        nothing: dict[str, object] = {"rows": {}, "set_aside": None, "seconds": 0.0}
        return Report([Note("green", "Nothing to move:", where)], nothing)
    with telling("ledger") as progress:
        # Migrated, of this lake, and with all that was published in it.
        with opened_platform(settings.model_copy(update={"ledger_url": SecretStr(url_of_file(source))})):
            pass
        with meanwhile(progress, "copying and comparing"):
            moved = move_ledger(source, url)
    rows, seconds = sum(moved.rows.values()), time.monotonic() - started
    names = {table.removeprefix("ledger_"): count for table, count in moved.rows.items()}
    what = f"{counted(rows, 'row')}, {counted(moved.rows['ledger_decisions'], 'decision')} among them"
    aside = f"the file is {moved.aside} now; {source} only says where the ledger is."
    todo = "Set PLATFORM_LEDGER_URL wherever the platform runs, and start it again."
    parts = [
        Note("green", "Moved", f"{what}, to {target} in {seconds:.1f} s."),
        Note("yellow", "set aside", aside, todo),
    ]
    return Report(parts, {"rows": names, "set_aside": moved.aside, "seconds": round(seconds, 3)})


def maintenance(
    dry_run: DryRun = False,
    only: Annotated[Task | None, typer.Option(help="Only this task; all four by default.")] = None,
    delete: Annotated[
        str | None, typer.Option("--delete", metavar="PUBLICATION", help="Only delete the files of this one.")
    ] = None,
) -> Report:
    """Compact days, write checkpoints, and delete what no release in the rollback window, pin or stage needs.

    Exit code 1 if the files of a day hold other rows than were published.
    """
    if delete is not None:
        if only is not None:
            raise UsageError("--delete is no task.", "Leave out --only.")
        return _delete(delete, dry_run=dry_run)
    tasks: tuple[Task, ...] = TASKS if only is None else (only,)
    with opened_platform() as platform:
        if dry_run:
            from platform_assets.operations.maintenance import plan_maintenance

            with telling("maintenance") as progress, meanwhile(progress, "looking for what is due"):
                done = plan_maintenance(platform, tasks)
        else:
            done = _done(platform, tasks)
        window = platform.settings.rollback_window_days
    data = {"dry_run": dry_run, **_json(done)}
    return Report(_parts(done, dry_run, window), data, bool(done.differing))


def _delete(publication: str, *, dry_run: bool) -> Report:
    """Delete the files of one publication; refused by name while a kept release needs them."""
    from platform_assets.operations.deletion import delete_publication
    from platform_assets.operations.maintenance import Maintenance

    with (
        opened_platform() as platform,
        telling("maintenance") as progress,
        meanwhile(progress, "looking for what needs its files"),
    ):
        gone = delete_publication(platform, publication, dry_run=dry_run)
    table = _table(Maintenance(deletions=gone), dry_run)
    return Report([table], {"dry_run": dry_run, "deleted": _removals_json(gone)})


def _done(platform: Platform, tasks: Sequence[Task]) -> Maintenance:
    from platform_assets.operations.maintenance import Maintenance, maintain

    author, done = decided_by("maintenance", None), Maintenance()
    with computing(platform.settings, "maintenance") as (spark, progress):
        for task in tasks:
            done += maintain(platform, spark, task, author, progress)
            if done.differing:
                break  # what would be deleted next may be what mends them
    return done


def _parts(done: Maintenance, dry_run: bool, window: int) -> Iterator[Part]:
    if not (done.compaction or done.checkpoints or done.deletions or done.busy or done.differing):
        yield f"Nothing to do: releases of the last {window} days need everything that is there."
        return
    yield _table(done, dry_run)
    for table, days in done.busy.items():
        yield Note("yellow", "left for the next time", f"{table} {which(days)}: {next(iter(days.values()))}")
    for table, differing in done.differing.items():
        holds = f"{table} {which(differing)}: the files hold other rows than were published"
        verify = f"`platform-assets admin verify {table} --days {differing[0]}` shows more"
        yield Note("red", "left alone", f"{holds}; {verify}")
    if dry_run:
        yield "Nothing was changed: this was a dry run."


def _table(done: Maintenance, dry_run: bool) -> Table:
    title = "Maintenance that is due" if dry_run else "Maintenance done"
    rows: list[tuple[str, ...]] = []
    for table, days in _by_table(done.compaction):
        what = f"{counted(len(days), 'day')} ({which([day.day for day in days])})"
        files = f"{sum(len(day.small) for day in days):,} → {len(days):,}"
        rows.append(("compaction", table, what, files, size(sum(day.bytes for day in days))))
    rows += [("checkpoints", table, f"log up to version {version:,}") for table, version in done.checkpoints.items()]
    for task, noun in (("stages", "orphaned stage"), ("deletion", "publication")):
        for table, gone in _by_table(one for one in done.deletions if one.task == task):
            files = f"{sum(len(one.files) for one in gone):,}"
            rows.append((task, table, counted(len(gone), noun), files, size(sum(one.bytes for one in gone))))
    return Table(title, ("task", "table", "what", "files", "bytes"), rows, ("files", "bytes"), ("task", "table"))


def _by_table(parts: Iterable[Any]) -> Iterator[tuple[str, list[Any]]]:
    every = sorted(parts, key=attrgetter("table"))
    return ((table, list(some)) for table, some in groupby(every, key=attrgetter("table")))


def _json(done: Maintenance) -> dict[str, Any]:
    return {
        "compaction": [picked(day, "table day bytes", files=len(day.small)) for day in done.compaction],
        "checkpoints": done.checkpoints,
        **{task: _removals_json(one for one in done.deletions if one.task == task) for task in ("stages", "deletion")},
        **picked(done, "busy differing"),
    }


def _removals_json(deletions: Iterable[Deletion]) -> list[dict[str, Any]]:
    return [picked(deletion, "table publication bytes", files=len(deletion.files)) for deletion in deletions]


def backup(
    folder: Annotated[Path, typer.Argument(help="Target folder; one with earlier backups gets only what is new.")],
    keep: Annotated[int, typer.Option("--keep", min=1, help="How many generations stay, the new one included.")] = 7,
) -> Report:
    """Copy lake and ledger as of the newest release, while readers and publishers continue.

    Every copied file is read back and checked, and a good copy is never replaced. Exit code 1: the backup is whole, and
    the lake has damaged files.
    """
    from platform_assets.ledger.database import copy_ledger
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
            yield "The ledger is not a SQLite file: copy its database with the server's own tool, for example pg_dump."
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
        bool, typer.Option("--rehearse", help="Restore to a temporary place, read all of it, and remove it.")
    ] = False,
) -> Report:
    """Restore lake and ledger from a backup to the places in the settings, or rehearse it; nothing is ever replaced.

    Exit code 1: the rehearsal found a difference from what was published, or rows are back that were erased later.
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
        bool, typer.Option("--undo", help="Return tables to the newest release instead of finishing.")
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
