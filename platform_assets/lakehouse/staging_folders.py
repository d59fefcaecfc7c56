"""Stages: the private folders of publications, their log, and removing what no publication refers to, or will.

Staged files are kept while their process lives. A lock shows that it computes a batch of days. Finished batches wait
until all can be published: a file next to a lock of their stage names them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager

from deltalake import CommitProperties, DeltaTable, Field, Schema, convert_to_deltalake
from deltalake.schema import PrimitiveType

from platform_assets.contracts import DAY
from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.commits import files_changed
from platform_assets.lakehouse.delta.log import table_snapshot
from platform_assets.lakehouse.delta.new_commit import errors_numbered
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.locks import (
    BATCHES,
    forget_stage,
    is_staging,
    private_lock,
    publish_lock,
    stage_file,
    stage_lock,
)
from platform_assets.lakehouse.publish import finish_pending
from platform_assets.lakehouse.storage.location import Location
from platform_assets.records.manifest import new_publication


def log_stage(folder: Location, schema_string: str) -> None:
    """Make a Delta table, with statistics, of the Parquet files in a stage's folder, replacing its log.

    The log has the table's version from before the files could be referred to: `discard` looks no further back.
    """
    log = folder / "_delta_log"
    staged_on = commits.head_version(folder.parent)
    if log.exists():
        staged_on = _staged_on(folder)
        log.remove()
    said = CommitProperties(custom_metadata={commits.STAGED_ON: str(staged_on)})
    with errors_numbered(folder):
        days = (folder / name for name in folder.names() if name.startswith(f"{DAY}="))
        if any(name.endswith(".parquet") for day in days for name in day.names()):  # rows without a day left theirs
            day = Schema([Field(DAY, PrimitiveType("date"))])
            convert_to_deltalake(str(folder), partition_by=day, partition_strategy="hive", commit_properties=said)
        else:
            DeltaTable.create(str(folder), Schema.from_json(schema_string), partition_by=[DAY], commit_properties=said)


def discard(lake: Lake, table: str, publication: str) -> bool:
    """Delete the staged files of a publication for a table, unless it or another one has published or begun them.

    Returns:
        Whether the folder is gone. False if a release refers to one of its files: then it is history.
    """
    folder = lake.stage_path(table, publication)
    with publish_lock(lake) as still_held:
        if not folder.exists():
            return True
        finish_pending(lake, still_held)
        if _referred_to(lake.table_path(table), publication, _staged_on(folder)):
            return False
        failpoint("stage.before_discard")
        folder.remove()
        failpoint("stage.after_discard")
        return True


def forget_dead_holders(lake: Lake) -> None:
    """Remove lock files of staged folders whose holders were killed."""
    for name in lake.locks_path.names():
        publication = name.removeprefix("stage-").removesuffix(".holder.json")
        if name == f"stage-{publication}.holder.json" and not is_staging(lake, publication):
            forget_stage(lake, publication)


@contextmanager
def private_folder(lake: Lake) -> Iterator[Location]:
    """Open a temporary folder outside of every table, for private results.

    The remains of a killed process are removed: its lock ended with it.
    """
    with private_lock(lake):
        try:
            lake.private_path.remove(durable=False)
            lake.private_path.make()
            yield lake.private_path
        finally:
            lake.private_path.remove(durable=False)


def has_rows_without_day(lake: Lake, table: str, publication: str) -> bool:
    """Return whether a stage has rows without a day, which cannot be published."""
    return None in table_snapshot(lake.stage_path(table, publication)).days.values()


def drop_rows_without_day(lake: Lake, table: str, publication: str) -> None:
    """Remove the rows without a day from a stage, in its log and on disk: they cannot be published."""
    folder = lake.stage_path(table, publication)
    without_day = [path for path, day in table_snapshot(folder).days.items() if day is None]
    with errors_numbered(folder):
        DeltaTable(str(folder)).delete(f"{DAY} IS NULL")
    for path in without_day:
        (folder / path).remove()


def _staged_on(folder: Location) -> int:
    """Return the table's version from before a stage could be referred to; -1 if its log does not say."""
    if not commits.has_commit(folder, 0) or commits.is_torn(folder, 0):
        return -1
    said = [action["commitInfo"] for action in commits.actions(folder, 0) if "commitInfo" in action]
    return int(said[0].get(commits.STAGED_ON, -1)) if said else -1


def _referred_to(table_path: Location, publication: str, staged_on: int) -> bool:
    versions = range(staged_on + 1, commits.head_version(table_path) + 1)
    return any(
        file.startswith(f"{publication}/") for version in versions for file in files_changed(table_path, version)[1]
    )


Keep = Callable[[Collection[str]], None]
"""Called with the publications whose folders are needed from now on."""


@contextmanager
def staging(lake: Lake) -> Iterator[Keep]:
    """Keep staged files until they are published or given up; nothing is locked before there is something to keep."""
    stage = new_publication()
    with ExitStack() as held:
        locked = False

        def keep(publications: Collection[str]) -> None:
            nonlocal locked
            if not locked:
                held.enter_context(stage_lock(lake, stage))
                locked = True
            stage_file(lake, stage, BATCHES).replace(json.dumps(sorted(publications)).encode())

        yield keep


def kept_by_processes(lake: Lake) -> frozenset[str]:
    """Return the publications that live processes are going to publish."""
    kept: set[str] = set()
    for name in lake.locks_path.names():
        stage = name.removeprefix("stage-").removesuffix(f".{BATCHES}")
        if name == f"stage-{stage}.{BATCHES}" and is_staging(lake, stage):
            kept.update(json.loads((lake.locks_path / name).read() or b"[]"))
    return frozenset(kept)
