"""Where a source lands its files, and how it says that they are complete."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from platform_assets.contracts.errors import ContractError
from platform_assets.contracts.mistakes import check_declaration

Format = Literal["parquet", "csv", "json"]
"""How a file holds its rows; whoever treats them differently has a case for each, which the type checker holds."""

FORMATS: Mapping[str, Format] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
"""What an ending says of a file, in small letters."""

COMPRESSED = ".gz"
"""What follows the ending of a text file that is compressed with gzip."""


def format_of(name: str) -> Format | None:
    """Return how a file of this name holds its rows; None if its ending says nothing of that."""
    stem = name.lower()
    kind = FORMATS.get(PurePosixPath(stem.removesuffix(COMPRESSED)).suffix)
    return None if kind == "parquet" and stem.endswith(COMPRESSED) else kind


_MARKER = re.compile(r"[A-Za-z0-9._-]{1,64}")


def _is_numbering(pattern: str) -> bool:
    try:
        return re.compile(pattern).groups == 1
    except re.error:
        return False


@dataclass(frozen=True)
class LandingFiles:
    r"""A source of files: `<landing root>/<folder>/<arrival date>/<file>` in Parquet, CSV or JSON lines.

    Args:
        folder: below the landing root. Several raw tables may name one: each takes every file by itself, and a
            withdrawal takes it out of all that took it.
        complete: the marker by which the source says that what it wrote is complete. A name such as `_SUCCESS`: nothing
            of an arrival date is taken before its folder has a file of that name; with nothing else in the folder,
            nothing came on that date. An ending such as `.done`: `a.csv` is taken once `a.csv.done` lies beside it.
            Without one a file is taken once it was left alone for `settle_s`: a writer who pauses longer is cut short.
        order: which of two files of one arrival date is the later one: `name` by its name in natural order (`part-2`
            before `part-10`), `modified` by the time of its last change, a regular expression with one group by the
            number in its name, as `order=r"_(\d+)\.csv"`; one without it, or of more than 18 digits, is before all
            others. By default the name decides as well, but nothing declares that it means anything: rows that differ
            by nothing else are told as rivals.
        resent: a file with the content of an earlier one is a `replay`: it keeps the place of the first in the order
            of versions. `anew` where content may go back to what it was: the file counts by its own arrival date.
        replaces: `days` where the source brings whole days: of each day only the rows of its newest arrival date count,
            those of all files of that date. `table` where each arrival date brings a snapshot of the whole table: as
            `days`, and days that the newest snapshot has no row of are empty, as far back as it takes rows. By default
            the rows of all arrivals count, and a key has its newest.
    """

    folder: str
    complete: str | None = None
    order: str | None = None
    resent: Literal["replay", "anew"] = "replay"
    replaces: Literal["days", "table"] | None = None

    def __post_init__(self) -> None:
        check_declaration(self, f"The source {self.folder!r}", self._problems)

    def _problems(self) -> Iterator[ContractError]:
        if not all(part.strip(".") for part in self.folder.split("/")) or "\\" in self.folder:
            yield ContractError(
                f"The source {self.folder!r} is no folder below the landing root.",
                "Name a folder such as tills or shop/tills, not one that leads out of the landing root.",
                field="folder",
            )
        if self.order not in (None, "name", "modified") and not _is_numbering(self.order):
            yield ContractError(
                f"The source {self.folder!r} cannot order its files by {self.order!r}.",
                'Give "name", "modified", or a regular expression with one group for a number, as r"_(\\d+)\\.csv".',
                field="order",
            )
        if self.replaces == "table" and self.resent != "anew":
            yield ContractError(
                f"The source {self.folder!r} brings snapshots of a whole table, and a file with the content of an "
                "earlier one is taken for a replay of that.",
                'Give resent="anew": a table may go back to what it was.',
                field="resent",
            )
        if self.complete is None:
            return
        is_delivery = "." + self.complete.rpartition(".")[2].lower() in {*FORMATS, COMPRESSED}
        if not _MARKER.fullmatch(self.complete) or not self.complete.strip(".") or is_delivery:
            yield ContractError(
                f"The source {self.folder!r} cannot mark with {self.complete!r} what is complete.",
                "Name a file such as _SUCCESS, or an ending such as .done, of letters, digits, dots, hyphens and "
                f"underscores, which is not that of a delivery ({', '.join([*FORMATS, COMPRESSED])}).",
                field="complete",
            )

    @property
    def marks_files(self) -> bool:
        """Whether each file has a marker of its own, instead of the folder of an arrival date."""
        return self.complete is not None and self.complete.startswith(".")
