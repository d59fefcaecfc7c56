"""Where things lie in a lake, and which names may become paths."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from platform_assets.contracts.columns import IDENTIFIER
from platform_assets.lakehouse import storage
from platform_assets.lakehouse.errors import LakeError

DELIVERED = ("raw", "refused", "late")
"""Layers of what was delivered: only ever added to, together, and the ledger keeps what was taken."""
LAYERS = (*DELIVERED, "silver", "gold", "quarantine")
_PUBLICATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
GIVEN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,62}")
"""What people may call a stage or a pinned release."""
_UNUSABLE = re.compile(r"[%\\\[\]]")


@dataclass(frozen=True)
class Lake:
    """A lake on the local file system.

    Args:
        root: its folder; made on first use.

    Raises:
        LakeError: the path has characters that Delta libraries decode on their own.
    """

    root: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", Path(self.root).absolute())
        if found := _UNUSABLE.search(str(self.root)):
            raise LakeError(
                f"The lake cannot lie in {self.root}: deltalake reads {found.group()!r} in a path as an escape.",
                "Choose a folder without %, backslash and square brackets.",
            )

    @property
    def releases_path(self) -> Path:
        """The Delta table whose every version is one release."""
        return self.root / "_releases"

    @property
    def publications_path(self) -> Path:
        """The folder of all manifests."""
        return self.root / "_publications"

    @property
    def locks_path(self) -> Path:
        """The folder of lock files."""
        return self.root / "_locks"

    @property
    def private_path(self) -> Path:
        """The folder of what is computed to be looked at and never published."""
        return self.root / "_private"

    @property
    def open_stages_path(self) -> Path:
        """The folder that says what lies in the stages that people opened by name."""
        return self.root / "_stages"

    @property
    def horizon_file(self) -> Path:
        """Says from which release on the history is whole; not there while nothing was ever deleted."""
        return self.root / "_horizon.json"

    @property
    def deletions_path(self) -> Path:
        """The folder of the lists of files that are being deleted."""
        return self.root / "_deletions"

    def table_path(self, name: str) -> Path:
        """The folder of a table `<layer>.<table>`.

        Raises:
            LakeError: the name is not one, so it must not become a path.
        """
        layer, _, table = name.partition(".")
        if layer not in LAYERS or not IDENTIFIER.fullmatch(table):
            raise LakeError(
                f"{name!r} is not the name of a table.",
                f"Write <layer>.<table> in lower case, with one of the layers {', '.join(LAYERS)}.",
            )
        return self.root / layer / table

    def publication_path(self, publication: str) -> Path:
        """The folder of a publication's manifest.

        Raises:
            LakeError: the name must not become a path.
        """
        return self.publications_path / checked_publication(publication)

    def stage_path(self, table: str, publication: str) -> Path:
        """The folder inside a table's where the files of a publication are staged.

        Raises:
            LakeError: one of the names must not become a path.
        """
        return self.table_path(table) / checked_publication(publication)

    def table_names(self) -> tuple[str, ...]:
        """Tables that have a Delta log, sorted; tables with staged files only are not among them."""
        return tuple(
            f"{layer}.{table}"
            for layer in sorted(LAYERS)
            for table in storage.names(self.root / layer)
            if IDENTIFIER.fullmatch(table) and storage.exists(self.root / layer / table / "_delta_log")
        )


def table_name(path: Path) -> str:
    """The name of the table in a folder, for messages: `<layer>.<table>`, or the last part of other paths."""
    return f"{path.parent.name}.{path.name}" if path.parent.name in LAYERS else path.name


def checked_publication(publication: str) -> str:
    """The name of a publication, if it can be a folder's.

    Raises:
        LakeError: it cannot.
    """
    if not _PUBLICATION.fullmatch(publication):
        raise LakeError(
            f"{publication!r} is not the name of a publication.",
            "Use letters, digits, dots, hyphens and underscores; new_publication() makes one.",
        )
    return publication
