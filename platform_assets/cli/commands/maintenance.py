"""`maintenance`: fewer files, shorter logs, and nothing on disk that nobody needs."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.console import EXIT_LOOK, console, opened_platform, print_json, say
from platform_assets.cli.grids import Grid, new_grid
from platform_assets.cli.options import AsJson, DryRun
from platform_assets.cli.progress import telling
from platform_assets.cli.session import session_on_demand
from platform_assets.planning.retention import TASKS, Deletion, Task
from platform_assets.planning.windows import which
from platform_assets.progress import meanwhile
from platform_assets.words import counted, size

if TYPE_CHECKING:
    from platform_assets.engine.platform import Platform
    from platform_assets.operations.maintenance.maintenance import Maintenance


class Only(StrEnum):
    """One task instead of all."""

    compaction = "compaction"
    checkpoints = "checkpoints"
    stages = "stages"
    deletion = "deletion"


app = typer.Typer(
    help="Compact days, write checkpoints, and delete what no release in the rollback window, pin or stage needs.",
    no_args_is_help=True,
)


@app.command()
def run(
    context: typer.Context,
    dry_run: DryRun = False,
    only: Annotated[Only | None, typer.Option(help="Only this task; all four by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Do what is due; exit code 1 if the files of a day hold other rows than were published."""
    tasks: tuple[Task, ...] = TASKS if only is None else (only.value,)
    with opened_platform() as platform:
        done = _planned(context, platform, tasks) if dry_run else _done(context, platform, tasks)
        window = platform.settings.rollback_window_days
    if as_json:
        print_json({"dry_run": dry_run, **_json(done)})
    else:
        _print(done, dry_run, window)
    if done.differing:
        raise typer.Exit(EXIT_LOOK)


@app.command()
def delete(
    context: typer.Context,
    publication: Annotated[str, typer.Argument(help="As `releases` or `why` name it.")],
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Delete the files of one publication; refused by name while a release that stays needs them."""
    from platform_assets.operations.maintenance.maintenance import Maintenance, delete_publication

    with (
        opened_platform() as platform,
        telling(context, "maintenance delete") as progress,
        meanwhile(progress, "looking for what needs its files"),
    ):
        gone = delete_publication(platform, publication, dry_run=dry_run)
    if as_json:
        print_json({"dry_run": dry_run, "deleted": _removals_json(gone)})
    else:
        console.print(_grid(Maintenance(deletions=gone), dry_run))


def _planned(context: typer.Context, platform: Platform, tasks: Sequence[Task]) -> Maintenance:
    from platform_assets.operations.maintenance.maintenance import plan_maintenance

    with telling(context, "maintenance") as progress, meanwhile(progress, "looking for what is due"):
        return plan_maintenance(platform, tasks)


def _done(context: typer.Context, platform: Platform, tasks: Sequence[Task]) -> Maintenance:
    from platform_assets.engine.platform import Author
    from platform_assets.operations.maintenance.maintenance import Maintenance
    from platform_assets.operations.maintenance.tasks import maintain

    author = Author(run=f"process {os.getpid()}", why="maintenance", who=getpass.getuser())
    done = Maintenance()
    with telling(context, "maintenance") as progress, session_on_demand(platform.settings, progress) as spark:
        for task in tasks:
            done += maintain(platform, spark, task, author, progress)
            if done.differing:
                break  # what would be deleted next may be what mends them
    return done


def _print(done: Maintenance, dry_run: bool, window: int) -> None:
    if not (done.compaction or done.checkpoints or done.deletions or done.busy or done.differing):
        console.print(f"Nothing to do: releases of the last {window} days need everything that is there.")
        return
    console.print(_grid(done, dry_run))
    for table, days in done.busy.items():
        say("[yellow]left for the next time[/]", f"{table} {which(days)}: {next(iter(days.values()))}")
    for table, differing in done.differing.items():
        say(
            "[red]left alone[/]",
            f"{table} {which(differing)}: the files hold other rows than were published; `platform-assets verify "
            f"{table} --days {differing[0]}` tells more",
        )
    if dry_run:
        console.print("Nothing was changed: this was a dry run.")


def _grid(done: Maintenance, dry_run: bool) -> Grid:
    title = "Maintenance that is due" if dry_run else "Maintenance done"
    names = ("task", "table", "what", "files", "bytes")
    grid = new_grid(title, names, right=("files", "bytes"), whole=("task", "table"))
    for row in (*_compaction_rows(done), *_checkpoint_rows(done), *_removal_rows(done.deletions)):
        grid.add_row(*row)
    return grid


def _compaction_rows(done: Maintenance) -> Iterator[tuple[str, ...]]:
    for table in _tables(done.compaction):
        days = [day for day in done.compaction if day.table == table]
        files, bytes_ = sum(len(day.small) for day in days), sum(day.bytes for day in days)
        what = f"{counted(len(days), 'day')} ({which([day.day for day in days])})"
        yield "compaction", table, what, f"{files:,} → {len(days):,}", size(bytes_)


def _checkpoint_rows(done: Maintenance) -> Iterator[tuple[str, ...]]:
    for table, version in done.checkpoints.items():
        yield "checkpoints", table, f"log up to version {version:,}", "", ""


def _removal_rows(deletions: Sequence[Deletion]) -> Iterator[tuple[str, ...]]:
    for task, noun in (("stages", "orphaned stage"), ("deletion", "publication")):
        for table in _tables(deletion for deletion in deletions if deletion.task == task):
            gone = [deletion for deletion in deletions if deletion.task == task and deletion.table == table]
            files, bytes_ = sum(len(deletion.files) for deletion in gone), sum(deletion.bytes for deletion in gone)
            yield task, table, counted(len(gone), noun), f"{files:,}", size(bytes_)


def _tables(parts: Iterable[Any]) -> list[str]:
    return sorted({part.table for part in parts})


def _json(done: Maintenance) -> dict[str, Any]:
    return {
        "compaction": [
            {"table": day.table, "day": day.day, "files": len(day.small), "bytes": day.bytes} for day in done.compaction
        ],
        "checkpoints": dict(done.checkpoints),
        "stages": _removals_json(deletion for deletion in done.deletions if deletion.task == "stages"),
        "deletion": _removals_json(deletion for deletion in done.deletions if deletion.task == "deletion"),
        "busy": {table: {str(day): why for day, why in days.items()} for table, days in done.busy.items()},
        "differing": dict(done.differing),
    }


def _removals_json(deletions: Iterable[Deletion]) -> list[dict[str, Any]]:
    return [
        {
            "table": deletion.table,
            "publication": deletion.publication,
            "files": len(deletion.files),
            "bytes": deletion.bytes,
        }
        for deletion in deletions
    ]
