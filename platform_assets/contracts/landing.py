"""Where a source lands its files, and how it marks them as complete."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

from platform_assets.contracts.errors import ContractError, Minutes, check_declaration
from platform_assets.contracts.files import Csv

Format = Literal["parquet", "csv", "json"]
"""How a file holds its rows. Code that depends on it has a case for each, which the type checker holds."""

FORMATS: Mapping[str, Format] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
"""What an ending says of a file, in small letters."""

COMPRESSIONS: Mapping[str, str] = {".gz": "gzip", ".zst": "zstandard", ".bz2": "bzip2", ".zip": "zip"}
"""What may follow the ending of a text file, and what it says of its content."""


def without_compression(name: str) -> str:
    """Return a file's name without the ending that says how it is compressed."""
    return name[: -len(ending)] if (ending := PurePosixPath(name).suffix).lower() in COMPRESSIONS else name


def format_of(name: str, source: LandingFiles | None = None) -> Format | None:
    """Return the format of a file of this name; None if neither its ending nor its source says so."""
    small = name.lower()
    stem = without_compression(small)
    endings = source.csv.endings if source and source.csv else ()
    if any(each.endswith(endings) and each not in endings for each in (small, stem)):
        return "csv"
    known = FORMATS.get(PurePosixPath(stem).suffix)
    return None if known == "parquet" and stem != small else known


_POLICIES = ("rescue", "ignore", "fail")
_BY_CONTRACT = {
    "add": 'Give "rescue": values are kept. Once a Column is declared, `admin reload` takes it from older files.',
    "widen": "Leave it out: a wider number is taken where it fits. Else declare the wider type, then `admin reload`.",
}
"""Policies of others, and what there is in their place."""

_MARKER = re.compile(r"[A-Za-z0-9._-]{1,64}")


def _is_numbering(pattern: str) -> bool:
    try:
        return re.compile(pattern).groups == 1
    except re.error:
        return False


@dataclass(frozen=True)
class LandingFiles:
    r"""Declare a source of files: `<landing root>/<folder>/<arrival date>/<file>` in Parquet, CSV or JSON lines.

    Args:
        folder: below the landing root. Several raw tables may name one; each ingests every file by itself, and a
            withdrawal removes the file from all of them.
        complete: a marker for complete deliveries. With a name such as `_SUCCESS`, an arrival date is ingested once its
            folder has that file; alone, it means that nothing came. With an ending such as `.done`, `a.csv` is ingested
            once `a.csv.done` is there. Without a marker, a file is ingested once it has not changed for `settle_s`.
        order: which of two files of one arrival date is later: `name` by natural order (`part-2` before `part-10`),
            `modified` by the time of the last change, or a regular expression with one group by the number in the name,
            as `order=r"_(\d+)\.csv"`; files without a number, or with more than 18 digits, come first. By default the
            name decides, but rows that differ in order by name alone are reported as rivals.
        resent: what a file with the content of an earlier one is. A `replay` keeps the place of the first in the order
            of versions. With `anew` it counts by its own arrival date, for content that may change back.
        replaces: `days` if the source delivers whole days: only the rows of a day's newest arrival date count. `table`
            if each arrival date brings a snapshot of the whole table: days that the newest snapshot lacks become empty.
            By default rows of all arrivals count, and the newest version of a key wins.
        csv: how CSV files are written; by default as RFC 4180 says, in UTF-8, with commas and a header.
        records: where the array of objects is within one JSON document, as `("data", "items")`. By default each line is
            an object, or the file is an array of them.
        schema_drift: what happens to columns that the contract does not declare. `rescue` keeps them as JSON in
            `_rescued`; `ignore` leaves them out; `fail` refuses the file, of JSON the row, and also files in which a
            number is wider than declared: docs/schema-drift.md.
        rescued_in: a nullable `string` column of the contract that gets what `_rescued` has, for transforms to read.
        ask_again: a command that writes the rows of some days into `{folder}` once more, as `("fetch", "--from",
            "{first}", "--to", "{last}", "--into", "{folder}")`, for `admin pull --days`: docs/read-again.md.
        ask_again_minutes: after which the command is ended.
    """

    folder: str
    complete: str | None = None
    order: str | None = None
    resent: Literal["replay", "anew"] = "replay"
    replaces: Literal["days", "table"] | None = None
    csv: Csv | None = None
    records: tuple[str, ...] = ()
    schema_drift: str = "rescue"
    rescued_in: str | None = None
    ask_again: tuple[str, ...] = ()
    ask_again_minutes: Minutes = 60

    def __post_init__(self) -> None:
        check_declaration(self, f"The source {self.folder!r}", self._problems)

    def _problems(self) -> Iterator[ContractError]:
        if not all(part.strip(".") for part in self.folder.split("/")) or "\\" in self.folder:
            yield ContractError(
                f"The source {self.folder!r} is not a folder below the landing root.",
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
        if self.schema_drift in _BY_CONTRACT:
            yield ContractError(
                f"The source {self.folder!r} has schema_drift={self.schema_drift!r}, and a table has the columns "
                "of its contract, which is code that people review.",
                _BY_CONTRACT[self.schema_drift],
                field="schema_drift",
            )
        elif self.schema_drift not in _POLICIES:
            yield ContractError(
                f"The source {self.folder!r} has the unknown schema_drift={self.schema_drift!r}.",
                f"Give one of {', '.join(_POLICIES)}.",
                field="schema_drift",
            )
        if self.rescued_in is not None and self.schema_drift != "rescue":
            yield ContractError(
                f"The source {self.folder!r} keeps columns in {self.rescued_in!r} that schema_drift="
                f"{self.schema_drift!r} does not keep.",
                'Leave out `rescued_in`, or give schema_drift="rescue".',
                field="rescued_in",
            )
        if self.ask_again and (self.is_read or not any("{folder}" in word for word in self.ask_again)):
            yield ContractError(
                f"The source {self.folder!r} cannot be asked again by the command {' '.join(self.ask_again)!r}.",
                "Leave it out: a source that is read reads again by itself."
                if self.is_read
                else "Give the command {folder}, where it writes the rows, as one of its words.",
                field="ask_again",
            )
        if self.complete is None:
            return
        taken = {*FORMATS, *COMPRESSIONS, *(self.csv.endings if self.csv else ())}
        is_delivery = "." + self.complete.rpartition(".")[2].lower() in taken
        if not _MARKER.fullmatch(self.complete) or not self.complete.strip(".") or is_delivery:
            yield ContractError(
                f"The source {self.folder!r} cannot have {self.complete!r} as its completion marker.",
                "Name a file such as _SUCCESS, or an ending such as .done, of letters, digits, dots, hyphens and "
                f"underscores, which is not that of a delivery ({', '.join([*FORMATS, *COMPRESSIONS])}).",
                field="complete",
            )

    @property
    def is_read(self) -> bool:
        """Return whether the platform reads it, and writes its files."""
        return False

    @property
    def drift_outcome(self) -> str:
        """Return what becomes of columns that the contract does not declare, after their names."""
        kept = f"kept in {self.rescued_in or '_rescued'}"
        return {"ignore": "left out", "fail": "refused"}.get(self.schema_drift, kept)

    @property
    def marks_files(self) -> bool:
        """Return whether each file has its own marker, instead of the folder of an arrival date."""
        return self.complete is not None and self.complete.startswith(".")

    def misfits(self, contract: Any) -> Iterator[tuple[str, str, str]]:
        """Yield why this source does not fit the contract of a raw table: what is missing, what to do, the field.

        Args:
            contract: the `Contract`, whose own fields are right.
        """
        if (name := self.rescued_in) is None:
            return
        kept = next((column for column in contract.columns if column.name == name), None)
        fits = kept is not None and kept.type == "string" and kept.may_be_absent and not (kept.source_name or kept.path)
        if not fits or name in contract.needed:
            todo = f'Declare Column({name!r}, "string", …, may_be_absent=True), with neither `source_name` nor `path`.'
            yield f"keeps undeclared columns in {name!r}, which is no column for them", todo, "rescued_in"
