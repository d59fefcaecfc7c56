"""Paths in a lake, and which names may become paths."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING

from platform_assets.contracts.columns import IDENTIFIER
from platform_assets.lakehouse.errors import LakeError, LockLostError
from platform_assets.lakehouse.storage.disk import Disk, path_of
from platform_assets.lakehouse.storage.location import Location
from platform_assets.places import is_object_store

if TYPE_CHECKING:
    from platform_assets.lakehouse.storage.object_store import Stored


DELIVERED = ("raw", "refused", "late")
"""Layers of what was delivered: only ever added to, together, and the ledger keeps what was taken."""
LAYERS = (*DELIVERED, "silver", "gold", "quarantine")
NO_READERS = ("quarantine", "refused", "late", "_publications", "_locks", "_stages", "_plans", "_private", "_deletions")
"""Folders of a lake that readers of a release never need."""
_PUBLICATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
GIVEN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,62}")
"""What people may call a stage or a pinned release."""
_UNUSABLE = re.compile(r"[%\\\[\]]")


@dataclass(frozen=True)
class Lake:
    """A lake, and the place of its locks.

    Args:
        root: its folder; made on first use.
        lock_url: PostgreSQL whose sessions hold the locks; files in the lake without it. All writers to a lake must use
            the same.
        lock_folder: folder of lock files for a lake in an object store, which keeps no locks; they separate only
            processes of one machine.

    Raises:
        LakeError: the path has characters that Delta libraries decode on their own.
    """

    root: Location
    lock_url: str | None = field(default=None, repr=False)
    lock_folder: Location | None = None

    def __post_init__(self) -> None:
        if match := _UNUSABLE.search(str(self.root)):
            raise LakeError(
                f"The lake cannot be in {self.root}: deltalake reads {match.group()!r} in a path as an escape.",
                "Choose a folder without %, backslash and square brackets.",
            )

    @classmethod
    def at(
        cls, place: str | os.PathLike[str], lock_url: str | None = None, lock_folder: Location | None = None
    ) -> Lake:
        """Return the lake in a folder or URL that a person names."""
        return cls(located(place), lock_url, lock_folder)

    @property
    def releases_path(self) -> Location:
        """Return the Delta table whose every version is one release."""
        return self.root / "_releases"

    @property
    def locks_path(self) -> Location:
        """Return the folder of lock files."""
        return self.lock_folder or self.root / "_locks"

    @property
    def private_path(self) -> Location:
        """Return the folder of private results, which are never published."""
        return self.root / "_private"

    @property
    def open_stages_path(self) -> Location:
        """Return the folder of the documents of named stages."""
        return self.root / "_stages"

    @property
    def plans_path(self) -> Location:
        """Return the folder of the records of backfills."""
        return self.root / "_plans"

    @property
    def horizon_file(self) -> Location:
        """Return the file with the first whole release, which does not exist while nothing was ever deleted."""
        return self.root / "_horizon.json"

    @property
    def deletions_path(self) -> Location:
        """Return the folder of the lists of files that are being deleted."""
        return self.root / "_deletions"

    def table_path(self, name: str) -> Location:
        """Return the folder of a table `<layer>.<table>`.

        Raises:
            LakeError: the name is invalid, so it must not become a path.
        """
        layer, _, table = name.partition(".")
        if layer not in LAYERS or not IDENTIFIER.fullmatch(table):
            raise LakeError(
                f"{name!r} is not the name of a table.",
                f"Write <layer>.<table> in lower case, with one of the layers {', '.join(LAYERS)}.",
            )
        return self.root / layer / table

    def publication_path(self, publication: str) -> Location:
        """Return the folder of a publication's manifest."""
        return self.root / "_publications" / checked_publication(publication)

    def stage_path(self, table: str, publication: str) -> Location:
        """Return the folder inside a table's where the files of a publication are staged."""
        return self.table_path(table) / checked_publication(publication)

    def table_names(self) -> tuple[str, ...]:
        """Return the tables that have a Delta log, sorted, without tables that only have staged files."""
        return tuple(
            f"{layer}.{table}"
            for layer in sorted(LAYERS)
            for table in (self.root / layer).names()
            if IDENTIFIER.fullmatch(table) and (self.root / layer / table / "_delta_log").exists()
        )


def located(place: str | os.PathLike[str]) -> Location:
    """Return the location for a path, a `file:` URL or an object store's URL."""
    place = os.fspath(place)
    return stored(place) if is_object_store(place) and not place.startswith("file:") else Disk(path_of(place))


def stored(url: str) -> Stored:
    """Return the location named by an object store's URL."""
    try:
        from platform_assets.lakehouse.storage.object_store import Stored  # which a lake on a disk does without
    except ImportError as error:
        raise LakeError(
            f"An object store, as in {url}, needs packages that are not installed: {error}.",
            "Install them: uv sync --inexact --extra s3, or pip install 'platform-assets[s3]'.",
        ) from error
    return Stored.of(url)


def table_name(path: Location) -> str:
    """Return the name of the table in a folder, for messages: `<layer>.<table>`, or the last part of other paths."""
    return f"{path.parent.name}.{path.name}" if path.parent.name in LAYERS else path.name


def checked_publication(publication: str) -> str:
    """Return the name of a publication, if it can be a folder's.

    Raises:
        LakeError: it cannot be a folder's name.
    """
    if not _PUBLICATION.fullmatch(publication):
        raise LakeError(
            f"{publication!r} is not the name of a publication.",
            "Use letters, digits, dots, hyphens and underscores; new_publication() makes one.",
        )
    return publication


_DRAFT = ".draft"


# A lock can end without its holder's knowledge. So such a file is written as a draft first; then the lock is checked;
# then the draft is renamed. The next holder removes all drafts, or finds the file.
def put(lake: Lake, file: Location, content: bytes, still_held: Callable[[], None]) -> None:
    """Write or replace a file of the lake, if the publish lock is still held at that moment."""
    draft = lake.deletions_path / f"{token_hex(8)}{_DRAFT}"
    if not file.replace_if_held(content, still_held, draft):
        raise LockLostError(
            f"Another process has taken the publish lock of {lake.root}; {file.name} is unchanged.",
            "Run the same command again.",
        )


def drop_drafts(lake: Lake) -> None:
    """Remove drafts of earlier holders of the publish lock. Call it right after taking the lock."""
    for name in lake.deletions_path.names():
        if name.endswith(_DRAFT):
            (lake.deletions_path / name).remove(durable=False)
