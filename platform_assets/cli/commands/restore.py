"""`restore`: a generation of a backup put in the place of what was lost, or only tried."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from platform_assets.cli.console import EXIT_LOOK, UsageError, console, print_json, say
from platform_assets.cli.grids import new_grid
from platform_assets.cli.options import AsJson
from platform_assets.cli.progress import telling
from platform_assets.settings import load_settings
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.backup.generations import BackupFolder, Generation
    from platform_assets.operations.backup.restore import Rehearsed
    from platform_assets.records.manifest import Manifest

_SHOWN = 20


def restore(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="That `backup` was given.")],
    generation: Annotated[str | None, typer.Option("--generation", help="Which one; the newest by default.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="Only show which generations there are.")] = False,
    only_rehearsed: Annotated[
        bool, typer.Option("--rehearse", help="Restore beside the backup, read all of it, and leave no trace.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Put lake and ledger of a backup where PLATFORM_STATE says, or rehearse it; nothing is ever replaced.

    Exit code 1: the rehearsal found something that is not as it was published, or rows are back that were erased later.
    """
    from platform_assets.operations.backup.generations import BackupFolder

    if listed and (only_rehearsed or generation):
        raise UsageError("--list restores nothing.", "Leave out --list, or --rehearse and --generation.")
    backup = BackupFolder(folder.absolute())
    chosen = backup.generation(generation)
    if listed:
        _list(backup, as_json=as_json)
    elif only_rehearsed:
        _rehearse(context, backup, chosen, as_json=as_json)
    else:
        _restore(context, backup, chosen, as_json=as_json)


def _list(backup: BackupFolder, *, as_json: bool) -> None:
    from platform_assets.operations.backup.generations import erased_since

    every = [(each, len(erased_since(backup, each))) for each in backup.generations()]
    if as_json:
        print_json([{"generation": one.name, "release": one.release, "erased_since": since} for one, since in every])
        return
    names = ("generation", "release", "erased since")
    grid = new_grid("Generations, oldest first", names, right=names[1:], whole=names)
    for one, since in every:
        grid.add_row(one.name, f"{one.release:,}", f"{since:,}" if since else "")
    console.print(grid)


def _rehearse(context: typer.Context, backup: BackupFolder, generation: Generation, *, as_json: bool) -> None:
    from platform_assets.operations.backup.restore import rehearse

    started = time.monotonic()
    with telling(context, "rehearsal") as progress:
        done = rehearse(backup, generation, load_settings(), progress)
    seconds = time.monotonic() - started
    if as_json:
        print_json({**vars(done), "faults": [vars(fault) for fault in done.faults], "seconds": round(seconds, 1)})
    else:
        _print(done, seconds)
    if done.faults:
        raise typer.Exit(EXIT_LOOK)


def _print(done: Rehearsed, seconds: float) -> None:
    for fault in done.faults[:_SHOWN]:
        say(f"[red]{fault.check}[/]", fault.what)
    if len(done.faults) > _SHOWN:
        console.print(f"and {counted(len(done.faults) - _SHOWN, 'fault')} more: --json shows all")
    for sentence in done.said:
        say("[yellow]note[/]", sentence)
    if done.faults:
        say("[red]Not to be relied on:[/]", f"{done.generation} has {counted(len(done.faults), 'fault')}.")
        say(
            "  [bold]What to do:[/]",
            "Remove the damaged files from the backup and run `platform-assets backup` again: it copies them from "
            "the lake, if they are good there. Else try an older generation: `--list`.",
        )
        return
    say(
        "[green]Can be restored:[/]",
        f"{done.generation} shows release {done.release}; {counted(done.seen.get('contents', 0), 'file')} were read "
        f"page by page, all as published; the platform opens on it. {seconds:.1f} s.",
    )


def _restore(context: typer.Context, backup: BackupFolder, generation: Generation, *, as_json: bool) -> None:
    from platform_assets.operations.backup.generations import erased_since
    from platform_assets.operations.backup.restore import restore

    since = erased_since(backup, generation)
    settings, started = load_settings(), time.monotonic()
    with telling(context, "restore") as progress:
        lake, ledger = restore(backup, generation, settings, progress)
    seconds = round(time.monotonic() - started, 1)
    if as_json:
        print_json(
            {
                "generation": generation.name,
                "lake": str(lake),
                "ledger": ledger and str(ledger),
                "erased_since": [manifest.publication for manifest in since],
                "seconds": seconds,
            }
        )
    else:
        _print_restored(generation, lake, ledger, since, seconds)
    if since:
        raise typer.Exit(EXIT_LOOK)


def _print_restored(
    generation: Generation, lake: str, ledger: Path | None, since: Sequence[Manifest], seconds: float
) -> None:
    say("[green]Restored[/]", f"{generation.name} to {lake}{f' and {ledger}' if ledger else ''} in {seconds} s.")
    if ledger is None:
        say(
            "[yellow]The ledger stays as it is:[/]",
            "it is a server's. Where it was lost as well, restore its dump with the server's own tool; without one, "
            "`platform-assets ledger rebuild` makes its index from the lake, and people's decisions are gone.",
        )
    for manifest in since:
        say(
            "[red]Erased rows are back:[/]",
            f"what {manifest.who} erased on {manifest.created_at:%Y-%m-%d} ({manifest.why}) was erased after this "
            f"generation was taken, from {', '.join(sorted({erasure.table for erasure in manifest.erasures}))}; and it "
            "is not remembered, so that such rows are taken again when they are delivered.",
        )
    if since:
        say("  [bold]What to do:[/]", "Call `platform-assets erase` again for each, before anything else is started.")
    say("  [bold]What to do:[/]", "`platform-assets doctor`, then `platform-assets refresh`.")
