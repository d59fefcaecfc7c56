"""The horizon: the release before which history was deleted, so that a deleted file is not mistaken for damage.

Written before the first file is deleted, and only ever moved forward: a longer window later brings nothing back.

Deletions are announced before the first file goes, and every publisher heeds them. A lock can end without its
holder: a process that deletes may be suspended, lose the lock, and go on while others publish. So the lock is not
relied on between two files:

1. Who deletes announces the list of a slice, if it still holds the lock then (`layout.put`). Only what is announced is
   deleted, file by file.
2. Who publishes refers to no file that is announced.
3. A list is forgotten once none of its files is there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from secrets import token_hex

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from platform_assets.lakehouse.delta.new_commit import check_file
from platform_assets.lakehouse.errors import BeyondWindowError, ErasedError, LakeError, StagedFileError
from platform_assets.lakehouse.layout import Lake, put
from platform_assets.lakehouse.storage.location import Location
from platform_assets.records.manifest import Manifest


class Cut(BaseModel):
    """Where an erasure cut history: releases with the erased rows cannot be read any more, pinned or not.

    Args:
        before: first readable release; 0 without any erasure.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    before: int = 0
    publication: str = ""


NO_CUT = Cut()
"""Without any erasure."""


class Horizon(BaseModel):
    """Releases that are whole.

    Args:
        before: first release of the whole history.
        kept: older releases that are whole too, because they were pinned.
        at: time of the last move, UTC.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    before: int = 0
    kept: tuple[int, ...] = ()
    at: datetime = datetime.min.replace(tzinfo=UTC)
    cut: Cut = NO_CUT

    def has(self, number: int) -> bool:
        """Return whether all files of a release exist."""
        return number >= self.before or number in self.kept

    def moved(self, first: int, pinned: Iterable[int], now: datetime, cut: Cut) -> Horizon:
        """Return the horizon after deleting what no kept or pinned release needs."""
        before = max(self.before, first)
        kept = tuple(pin for pin in pinned if self.has(pin) and pin < before)
        return Horizon(before=before, kept=kept, at=now, cut=max(self.cut, cut, key=lambda cut: cut.before))


def horizon_of(lake: Lake) -> Horizon:
    """Return the horizon of a lake; before release 0 if nothing was ever deleted."""
    content = lake.horizon_file.read()
    if content is None:
        return Horizon()
    try:
        return Horizon.model_validate_json(content)
    except ValidationError as error:
        raise LakeError(
            f"{lake.horizon_file} cannot be read: {error.errors()[0]['msg']}.",
            "Restore it from a backup: it says which releases still have their files.",
        ) from error


def write_horizon(lake: Lake, horizon: Horizon, still_held: Callable[[], None]) -> None:
    """Move the horizon; call it under the publish lock."""
    put(lake, lake.horizon_file, horizon.model_dump_json().encode(), still_held)


def require_whole(lake: Lake, number: int) -> None:
    """Refuse a release whose files may have been deleted.

    Call it under the publish lock before you keep a release, for example by a pin.

    Raises:
        ErasedError: an erasure deleted its files.
        BeyondWindowError: it is older than the rollback window was when history was last deleted.
    """
    horizon = horizon_of(lake)
    if 0 <= number < horizon.cut.before:
        raise ErasedError(
            f"Release {number} cannot be read any more: rows that it may show were erased for good by publication "
            f"{horizon.cut.publication}, and all that only releases before {horizon.cut.before} needed went with them.",
            f"Name release {max(horizon.before, horizon.cut.before)} or a later one. `platform-assets status releases` "
            "says who erased, and why.",
        )
    if number >= 0 and not horizon.has(number):
        pinned = f", or a pinned one ({', '.join(map(str, horizon.kept))})" if horizon.kept else ""
        raise BeyondWindowError(
            f"Release {number} is beyond the rollback window: what only releases before {horizon.before} needed was "
            f"deleted on {horizon.at:%Y-%m-%d}.",
            f"Name release {horizon.before} or a later one{pinned}. The setting `rollback_window_days` says how long "
            "releases are kept, and a pin keeps one for longer.",
        )


_ANNOUNCED = ".json"
_FILES = TypeAdapter(dict[str, set[str]])


@contextmanager
def announcement(lake: Lake, files: Mapping[str, Collection[str]], still_held: Callable[[], None]) -> Iterator[None]:
    """Announce the files that the caller deletes inside this context. Call it under the publish lock."""
    listed = _FILES.dump_json({table: set(paths) for table, paths in files.items()})
    put(lake, lake.deletions_path / f"{token_hex(8)}{_ANNOUNCED}", listed, still_held)
    yield
    for file, left in _announcements(lake):
        if not any((lake.table_path(table) / path).exists() for table, paths in left.items() for path in paths):
            file.remove(durable=False)


def files_going(lake: Lake) -> dict[str, set[str]]:
    """Return files that are being deleted, or were announced by a process that died: paths by table."""
    by_table: dict[str, set[str]] = {}
    for _, announcement in _announcements(lake):
        for table, paths in announcement.items():
            by_table.setdefault(table, set()).update(paths)
    return by_table


def require_files(lake: Lake, manifest: Manifest) -> None:
    """Refuse a publication if one of its files differs from the manifest or is being deleted.

    The former files of its days belong to a release and stay; only new files can be in deletion.

    Raises:
        StagedFileError: names the table, the day and the file.
    """
    gone = files_going(lake)
    for change in manifest.tables:
        of_table = gone.get(change.table, set())
        for day, content in change.days.items():
            for file in content.files:
                check_file(lake.table_path(change.table), change.table, file, day.isoformat())
                if file.path in of_table and file.path not in content.base:
                    raise StagedFileError(
                        f"{change.table} {day}: {file.path} is being deleted: no release that is kept needs it.",
                        "Compute the day again; a release beyond the rollback window cannot be restored.",
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
