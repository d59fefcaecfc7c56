"""`maintenance`: fewer files, shorter logs, and no unneeded files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.console import UsageError, opened_platform
from platform_assets.cli.options import DryRun, decided_by
from platform_assets.cli.progress import telling
from platform_assets.cli.session import computing
from platform_assets.engine.platform import Platform
from platform_assets.planning.retention import TASKS, Deletion, Task
from platform_assets.planning.windows import which
from platform_assets.progress import meanwhile
from platform_assets.report import Note, Part, Report, Table, picked
from platform_assets.words import counted, size

if TYPE_CHECKING:
    from platform_assets.operations.maintenance import Maintenance


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
    """Delete the files of one publication; refused by name while a release that stays needs them."""
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
