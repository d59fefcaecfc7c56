"""What is being deleted: announced before the first file goes, and heeded by whoever refers to files.

A lock can end without its holder: who deletes may be suspended, lose it, and go on while others publish. So that a file
is either deleted or referred to all the same, the lock is not relied on between two files:

1. Who deletes announces the list of a slice, if it still holds the lock then (`drafts`). Only what is announced is
   deleted, file by file, and nothing else.
2. Who publishes refers to no file that is announced.
3. A list is forgotten once none of its files is there.

Nobody needs to know whether the writer of a list is alive: until it is forgotten nobody refers to its files, and then
they are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from secrets import token_hex

from pydantic import TypeAdapter, ValidationError

from platform_assets.lakehouse.drafts import put
from platform_assets.lakehouse.errors import LakeError, StagedFileError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.replace import check_file
from platform_assets.lakehouse.storage.location import Location
from platform_assets.records.manifest import Manifest

_ANNOUNCED = ".json"
_FILES = TypeAdapter(dict[str, set[str]])


@contextmanager
def announced(lake: Lake, files: Mapping[str, Collection[str]], still_held: Callable[[], None]) -> Iterator[None]:
    """Announce what is deleted meanwhile; to be called under the publish lock, after everything was decided.

    Args:
        files: paths from the folder of each table.
        still_held: raises if the lock was lost.

    Raises:
        LockLostError: the lock was lost; nothing may be deleted.
    """
    listed = _FILES.dump_json({table: set(paths) for table, paths in files.items()})
    put(lake, lake.deletions_path / f"{token_hex(8)}{_ANNOUNCED}", listed, still_held)
    yield
    for file, announcement in _announcements(lake):
        if not any((lake.table_path(table) / path).exists() for table, path in _each(announcement)):
            file.remove(durable=False)


def going(lake: Lake) -> dict[str, set[str]]:
    """The files that are being deleted, or were when who deleted them died: paths by table.

    Raises:
        LakeError: a list of them cannot be read.
    """
    by_table: dict[str, set[str]] = {}
    for _, announcement in _announcements(lake):
        for table, paths in announcement.items():
            by_table.setdefault(table, set()).update(paths)
    return by_table


def require_files(lake: Lake, manifest: Manifest) -> None:
    """Refuse a publication of which a file is not what its manifest says, or is being deleted.

    What its days consisted of before is shown by a release and goes nowhere; only what enters can be going.

    Raises:
        StagedFileError: naming the table, the day and the file.
    """
    gone = going(lake)
    for change in manifest.tables:
        of_table = gone.get(change.table, set())
        for day, content in change.days.items():
            for file in content.files:
                check_file(lake.table_path(change.table), change.table, file, day.isoformat())
                if file.path in of_table and file.path not in content.base:
                    raise StagedFileError(
                        f"{change.table} {day}: {file.path} is being deleted: no release that is kept needs it.",
                        "Compute the day again; what is beyond the rollback window cannot be put back.",
                    )


def _announcements(lake: Lake) -> Iterator[tuple[Location, dict[str, set[str]]]]:
    for name in lake.deletions_path.names():
        file = lake.deletions_path / name
        content = file.read() if name.endswith(_ANNOUNCED) else None
        if content is None:
            continue
        try:
            yield file, _FILES.validate_json(content)
        except ValidationError as error:
            raise LakeError(
                f"{file} cannot be read: {error.errors()[0]['msg']}.",
                "It lists files that are being deleted. If no maintenance is running, remove it and run maintenance.",
            ) from error


def _each(files: Mapping[str, Collection[str]]) -> Iterator[tuple[str, str]]:
    return ((table, path) for table, paths in files.items() for path in paths)
