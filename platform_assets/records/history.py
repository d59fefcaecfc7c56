"""What the ledger stores and returns, and a stage's replacements of released days, as plain values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict

from platform_assets.records.code_version import UNTIL_LIFTED, Attempt, Refused, Version
from platform_assets.records.manifest import Arrival, DayContent, TableChange, Warned


def kept_text(text: str) -> str:
    """Return a text for the ledger, without NUL, which PostgreSQL refuses."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


@dataclass(frozen=True)
class DayRecord:
    """A day of a table in one publication.

    Args:
        fingerprint: hash of the day's inputs; empty for raw days.
        files: number of data files; none for a loaded and empty day.
        reads: version of every input table.
        seconds: the day's share of its table's time; the shares add up.
        configuration: hash of the contract's part in it; empty if not recorded.
        git_commit: commit of its code; empty if that is in no repository, or not recorded.
    """

    table: str
    day: date
    publication: str
    digest: str
    fingerprint: str
    rows: int
    bytes: int
    files: int
    figures: dict[str, int]
    reads: dict[str, int]
    code_version: str
    seconds: float
    configuration: str = ""
    git_commit: str = ""
    warnings: tuple[Warned, ...] = ()

    @property
    def made_by(self) -> Version:
        """Return code and configuration of the day, as far as recorded."""
        return Version(self.code_version, self.configuration)

    @property
    def delivered(self) -> int:
        """Return its rows, as `delivered_rows` counts them."""
        return delivered_rows(self.rows, self.figures)


def delivered_rows(rows: int, figures: Mapping[str, int]) -> int:
    """Return the rows of a day without a raw day's tombstones and withdrawals, which only mark others."""
    return rows - figures.get("tombstones", 0) - figures.get("withdrawals", 0)


class DayTotals(NamedTuple):
    """Counts over all days of one table.

    Args:
        delivered: rows, as `delivered_rows` counts them.
        ahead: rows that arrived before their day.
    """

    days: int = 0
    newest: date | None = None
    delivered: int = 0
    quarantined: int = 0
    ahead: int = 0


class DayMark(NamedTuple):
    """The few fields of a day that are read for every day of every table.

    Args:
        release: number of the release with the day's content.
        fingerprint: hash of the day's inputs; empty for raw days.
    """

    day: date
    release: int = 0
    digest: str = ""
    fingerprint: str = ""
    rows: int = 0
    bytes: int = 0
    code_version: str = ""
    configuration: str = ""
    seconds: float = 0.0


class Timing(NamedTuple):
    """Computing time of one publication's days of a table.

    Args:
        seconds: of all of them together, without the start of Spark.
    """

    table: str
    days: int
    seconds: float
    run: str = ""
    publication: str = ""


Marks = Mapping[str, Mapping[date, DayMark]]
"""The mark of every loaded day, by table."""


class ArrivalRecord(Arrival):
    """An arrival, with the publication that ingested or refused it."""

    publication: str


@dataclass(frozen=True)
class PublicationRecord:
    """A publication in a release.

    Args:
        refuses: for a rollback, content that must not be computed again, for each table and day that it restored; empty
            if nothing has to hold the day. Indexing the publication makes holds of it, and does not store it.
        exposures: exposures to notify, by name, each with the tables that it reads. Indexing the publication makes
            messages of them in the outbox, and does not store them.
    """

    publication: str
    release: int
    created_at: datetime
    kind: str
    run: str
    who: str
    why: str
    git_commit: str | None
    days: tuple[DayRecord, ...] = ()
    arrivals: tuple[ArrivalRecord, ...] = ()
    refuses: Mapping[tuple[str, date], tuple[Attempt, ...]] = field(default_factory=dict, compare=False)
    as_user: str = ""
    on_host: str = ""
    decides: str = ""
    exposures: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        parts: tuple[DayRecord | ArrivalRecord, ...] = (*self.days, *self.arrivals)
        strangers = {part.publication for part in parts} - {self.publication}
        if strangers:
            raise ValueError(f"the record of {self.publication} holds parts of {', '.join(sorted(strangers))}")

    @property
    def what(self) -> str:
        """Return the decision, or else the kind: some kinds carry out opposite decisions."""
        return self.decides or self.kind


COMPACTION = "compact"
"""The kind of a publication that leaves the content of its days as it was."""

RELOAD: Final = "reload"
"""The kind of a publication, and of its one arrival, that has the deliveries of a raw table taken anew."""

ERASURE: Final = "erasure"
"""The kind of a publication that takes rows out of tables for good, or has their key forgotten."""

ROLL_BACK = "roll back"
"""In place of a gate: a person put the day back as it was."""

LASTING: Final = "lasting rollback"
"""The decision by which a person puts days back until a person lifts that."""


CIRCUIT = "circuit"
"""In place of a gate: the circuit of the table is open."""


@dataclass(frozen=True)
class Hold:
    """A day that the planner skips while it would get the refused content.

    Args:
        refused: content that must not be published.
        gate: name of the refusing gate, or `ROLL_BACK`.
        failed: every check that refused it, with its reason, for the verdict of its table; the hold keeps the first.
    """

    table: str
    day: date
    refused: Refused
    gate: str
    reason: str
    run: str
    created_at: datetime
    failed: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_of_good_content(self) -> bool:
        """Return whether a person restored the day's content, so that its readers need not wait."""
        return self.gate == ROLL_BACK

    @property
    def lasts(self) -> bool:
        """Return whether a person rolled the day back until it is lifted: neither new input nor force ends that."""
        return self.refused == UNTIL_LIFTED

    @property
    def overruled_by(self) -> str:
        """Return the command by which a person ends the hold."""
        if self.gate == CIRCUIT:
            return f"`platform-assets status circuits {self.table}`"
        if self.lasts:
            return f"`platform-assets undo rollback:{self.table} --days {self.day} --reason … --by …`"
        return f"`platform-assets refresh {self.table} --days {self.day} --force`"

    def refuses(self, fingerprint: str) -> bool:
        """Return whether a result from this fingerprint was refused, by any code. A day that is only tied never was."""
        return self.lasts or (isinstance(self.refused, Attempt) and self.refused.fingerprint == fingerprint)


def hold_of_each_day(holds: Iterable[Hold]) -> dict[tuple[str, date], Hold]:
    """Return for every held day the hold that affects readers: a person's if there is one, else the newest.

    A rollback by a person comes first, even if gates refused the day before or since, and regardless of clocks.

    Args:
        holds: oldest first.
    """
    by_day: dict[tuple[str, date], Hold] = {}
    for hold in holds:
        had = by_day.get((hold.table, hold.day))
        if had is None or hold.is_of_good_content or not had.is_of_good_content:
            by_day[hold.table, hold.day] = hold
    return by_day


@dataclass(frozen=True)
class EndedHold:
    """A hold that has ended."""

    hold: Hold
    ended_at: datetime


class StagedDays(BaseModel):
    """Days staged over a release, and their gate results.

    Args:
        tables: the days, by table; of a table without days at most its columns.
        holds: days that failed a gate: they are not in `tables`.
        over: holds in the ledger that no longer count, since every gate passed the staged days.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tables: Mapping[str, TableChange] = {}
    holds: tuple[Hold, ...] = ()
    over: tuple[Hold, ...] = ()

    @property
    def days(self) -> dict[str, tuple[date, ...]]:
        """Return the days to publish, by table."""
        return {table: tuple(sorted(change.days)) for table, change in self.tables.items() if change.days}

    def of(self, table: str) -> Mapping[date, DayContent]:
        """Return the part about one table."""
        return self.tables[table].days if table in self.tables else {}

    def with_days(
        self, changes: Iterable[TableChange], holds: Iterable[Hold] = (), over: Iterable[Hold] = ()
    ) -> StagedDays:
        """Return it with further results; a newer result of a day replaces the older one."""
        tables = dict(self.tables)
        for change in changes:
            earlier = tables.get(change.table, change.model_copy(update={"days": {}, "seconds": 0.0}))
            both = {"days": {**earlier.days, **change.days}, "seconds": earlier.seconds + change.seconds}
            tables[change.table] = change.model_copy(update=both)
        held = {(hold.table, hold.day): hold for hold in (*self.holds, *holds)}
        return StagedDays(tables=tables, holds=tuple(held.values()), over=tuple(dict.fromkeys((*self.over, *over))))

    def without(self, tables: Collection[str], days: Collection[date] | None = None) -> StagedDays:
        """Return it without some days of some tables, or all of them, and without their gate results."""

        def goes(table: str, day: date) -> bool:
            return table in tables and (days is None or day in days)

        left = {
            table: change.model_copy(update={"days": {d: c for d, c in change.days.items() if not goes(table, d)}})
            for table, change in self.tables.items()
        }
        return StagedDays(
            tables={table: change for table, change in left.items() if change.days or table not in tables},
            holds=tuple(hold for hold in self.holds if not goes(hold.table, hold.day)),
            over=tuple(hold for hold in self.over if not goes(hold.table, hold.day)),
        )
