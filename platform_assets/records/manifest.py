"""The manifest: the changes of one publication, written before anything is committed.

A dead publication is finished from it, and the ledger is rebuilt from it. Stored as
`<lake>/_publications/<publication>/manifest.json`.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from secrets import token_hex
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from platform_assets.records.code_version import Attempt

Decides = Literal[
    "",
    "acceptance",
    "adoption",
    "stage",
    "put back",
    "recovery",
    "erasure lifted",
    "lasting rollback",
    "rollback lifted",
]
"""What a person decides by a publication whose kind does not say so by itself."""
Kind = Literal["ingest", "approval", "withdrawal", "recompute", "roll back", "compact", "reload", "erasure"]
ArrivalKind = Literal["delivery", "approval", "due", "replay", "withdrawal", "reload"]
_MADE_HERE = re.compile(r"\d{8}T\d{12}Z-[0-9a-f]{8}")


STAGED = -2
"""In place of the version of a table that was read: as the same publication leaves it."""


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DataFile(_Value):
    """One Parquet file of a day.

    Args:
        path: relative to the table's folder, `<publication>/event_date=…/part-….parquet`, not URL-encoded.
        size: bytes.
        modified_ms: last change, milliseconds since 1970.
        stats: Delta's file statistics, JSON, verbatim as the writer made them.
    """

    path: str
    size: int
    modified_ms: int
    stats: str


class Scope(_Value):
    """The computed keys of a day whose other rows were copied, and may be outdated.

    The day as a whole keeps its former fingerprint and code, or a mixture that no day would get, so that it is stale
    until it is computed whole.

    Args:
        keys: keys of the computed rows: texts of values, by column.
        rows: number of computed rows.
        made_from: fingerprint that the day would have if all of it had been computed.
        reads: version of every input table of the copied rows.
    """

    keys: dict[str, tuple[str, ...]]
    rows: int
    made_from: str
    code_version: str
    reads: dict[str, int]


class Warned(_Value):
    """A gate's finding about a published day. It quotes no row, so that it may stay for good."""

    gate: str
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.gate}: {self.found}; expected: {self.expected}"


class DayContent(_Value):
    """New content of a day.

    Args:
        files: the whole content of the day after the publication; none empties the day.
        base: paths of the files that were live when the day was read; the publication conflicts if they changed. A day
            recomputed with an unchanged digest keeps these files.
        digest: digest of the whole content, as `records.digest.Digest` writes it; empty for a day that becomes as if
            never computed.
        fingerprint: hash of the day's inputs, from `planning.fingerprints`; empty for raw days.
        figures: counts of the day, including those that gates judge: superseded, voided, quarantined.
        warnings: findings of gates that no person has accepted.
        restores: for a day rolled back or compacted, the publication that had computed this content.
        scope: for a day whose rows were not all computed at once; None for any other.
    """

    files: tuple[DataFile, ...]
    base: tuple[str, ...]
    digest: str
    fingerprint: str = ""
    rows: int
    bytes: int
    figures: dict[str, int] = {}
    warnings: tuple[Warned, ...] = ()
    restores: str = ""
    scope: Scope | None = None

    @property
    def keeps_files(self) -> bool:
        """Return whether the day keeps its files, so that readers see nothing new."""
        return {file.path for file in self.files} == set(self.base)


class TableChange(_Value):
    """Days of one table that a publication replaces.

    Args:
        schema_string: Delta schema of the files, as JSON.
        reads: version of every input table; `STAGED` for one whose days are published with them.
        seconds: spent on computing the days.
        configuration: the contract's part in the days' content, from `planning.configuration`; empty if not recorded.
        replaces_schema: Delta schema that the table had when the days were computed, if they change it; empty if the
            columns stay.
        software: versions of the software that computed the days: `platform`, and where used `spark` and `delta`; empty
            for restored days and if not recorded.
        git_commit: of the repository that the code which computed the days lies in, as `engine.platform` has it; empty
            where it lies in none.
    """

    table: str
    schema_string: str
    days: dict[date, DayContent]
    reads: dict[str, int] = {}
    code_version: str = ""
    seconds: float = 0.0
    configuration: dict[str, Any] = {}
    replaces_schema: str = ""
    software: dict[str, str] = {}
    refuses: dict[date, tuple[Attempt, ...]] = {}
    git_commit: str = ""


class Arrival(_Value):
    """An arrival for a raw table and its outcome: a file, or a person's decision about the rows of one.

    Conservation: `landed == taken + refused + late + erased` unless the file was refused whole (`reason` is set, and
    nothing ingested). If each of its rows was refused by itself, both are true: such an arrival has delivered nothing.

    Args:
        path: path of a file below the landing root, with forward slashes; for a decision its own name.
        arrival_date: the date of its folder.
        modified_ns: last change, nanoseconds since 1970; saves hashing an unchanged file again.
        landed: rows in the file.
        taken: rows that entered raw.
        refused: rows refused at parsing.
        late: rows that wait in the late queue, because they were too late or too far ahead.
        erased: rows that were dropped, because their person was erased before.
        reason: why the whole file was refused.
        notes: remarks for a person though nothing was refused, for example extra columns.
        kind: a delivery of a source, approved waiting rows or rows whose day has come (`due`), refused rows that are
            read again (`replay`), the withdrawal of an arrival, or a `reload`, before which nothing of the table
            counts.
        origin: path of the original or withdrawn arrival.
    """

    table: str
    path: str
    arrival_date: date
    size: int
    sha256: str
    modified_ns: int
    landed: int = 0
    taken: int = 0
    refused: int = 0
    late: int = 0
    erased: int = 0
    reason: str | None = None
    notes: tuple[str, ...] = ()
    kind: ArrivalKind = "delivery"
    origin: str | None = None


class Erasure(_Value):
    """Rows of an erased key that were removed from a table for good, without the key itself.

    Args:
        table: `<layer>.<table>`; for a raw table, later rows with the key are dropped, too.
        key: keyed hash of each field's value, by field, as `records.erased_keys` makes them.
        secret: name of the secret of these hashes.
        rows: removed rows, by day.
        arrivals: delivered rows that were removed from a raw table, by arrival.
        lifts: whether the key is no longer remembered; nothing was removed then.
    """

    table: str
    key: dict[str, str]
    secret: str
    rows: dict[date, int] = {}
    arrivals: dict[str, int] = {}
    lifts: bool = False


class ErasedBy(BaseModel):
    """The part of a manifest about erasures: for one that rewrote a year, a hundredth of the whole."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    publication: str
    erasures: tuple[Erasure, ...] = ()


class Manifest(_Value):
    """One publication.

    Args:
        publication: its name, sortable by time.
        run: id of the run that made it (Dagster's, or the process').
        who: author as stated; the operating system's user by default.
        git_commit: commit of the code that computed its tables, if known; several are joined by commas.
        platform_version: version of this package; empty in older manifests.
        erasures: permanent removals, one for each searched table.
        on_release: the release that must still be current, if days were computed from others of the same publication:
            their inputs are then exactly what it publishes.
        on_versions: tables, each with the version that must still be current (-1 without one), where a lock should keep
            others from publishing.
        as_user: the operating system's user that the process belonged to; empty if not recorded.
        on_host: the machine on which it ran; empty likewise.
        decides: the decision that it carries out, if the kind does not say so.
        exposures: exposures to notify, by name, each with the tables of the publication that it reads.
        lifts: days, by table, whose lasting rollbacks it ends.
    """

    publication: str
    created_at: datetime
    kind: Kind
    run: str
    who: str
    why: str
    git_commit: str | None
    tables: tuple[TableChange, ...]
    arrivals: tuple[Arrival, ...] = ()
    platform_version: str = ""
    erasures: tuple[Erasure, ...] = ()
    on_release: int | None = None
    on_versions: dict[str, int] = {}
    as_user: str = ""
    on_host: str = ""
    decides: Decides = ""
    exposures: dict[str, tuple[str, ...]] = {}
    lifts: dict[str, tuple[date, ...]] = {}


@cache
def platform_version() -> str:
    """Return the version of this package for its manifests; empty if it is not installed."""
    try:
        return version("platform-assets")
    except PackageNotFoundError:
        return ""


def change_of(manifest: Manifest, table: str) -> TableChange:
    """Return a publication's change of one of its tables."""
    return next(change for change in manifest.tables if change.table == table)


def new_publication() -> str:
    """Return a fresh name for a publication: UTC time to the microsecond and four random bytes, sortable as text."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}-{token_hex(4)}"


def is_publication(name: str) -> bool:
    """Return whether `new_publication` made a name. Other folders of a table belong to another tool."""
    return _MADE_HERE.fullmatch(name) is not None
