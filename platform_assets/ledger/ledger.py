"""The ledger: its queries and writes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from types import TracebackType
from typing import NamedTuple, Self

from sqlalchemy import Connection, Row, delete, func, select

from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.errors import masked
from platform_assets.ledger import queries, schema
from platform_assets.ledger.all_days import Counts, Looks, forget_looks
from platform_assets.ledger.database import Database, copied_database, open_database
from platform_assets.ledger.errors import LedgerError
from platform_assets.ledger.holds import (
    D,
    Verdicts,
    add_published,
    add_refused,
    append,
    append_carried_out,
    chain_head,
    decided,
    drop_contradicted,
    ended_of_day,
    entries,
    hold_put_back,
    lift_read,
    renew,
    settle,
)
from platform_assets.ledger.outbox import Notes, Outbox, forget_messages, write_messages
from platform_assets.ledger.queries import (
    DAY_COLUMNS,
    counting,
    delete_each,
    insert_all,
    is_among,
    is_current,
    its_release,
    mark_replaced,
    to_arrival,
    to_day,
    without_columns,
)
from platform_assets.planning.arrivals import Delivery
from platform_assets.planning.reasons import Revision
from platform_assets.records.chain import Entry, Head
from platform_assets.records.decisions import Decision
from platform_assets.records.history import (
    COMPACTION,
    ArrivalRecord,
    DayMark,
    DayRecord,
    EndedHold,
    Hold,
    PublicationRecord,
)
from platform_assets.records.schema_drift import DriftEvent, Noted, events


class Ledger:
    """An open ledger; close it, or use it as a context manager."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.notes, self.outbox, self.verdicts = Notes(database), Outbox(database), Verdicts(database)
        self.counts, self.looks = Counts(database), Looks(database)

    @classmethod
    def open(cls, url: str, *, read_only: bool = False) -> Ledger:
        """Open the ledger and bring its schema up to date.

        Args:
            url: `sqlite:///…` or `postgresql://…`.
            read_only: for commands that only read. Nothing is created, migrated or locked; where there is no ledger
                yet, it is an empty one.

        Raises:
            LedgerUnreachableError: there is no database where the URL points.
            LedgerCorruptError: the SQLite file is damaged or something else.
            LedgerVersionError: the schema is newer than this code, or too old to be read without migrating it.
            LedgerReadOnlyError: it must be written and cannot be.
        """
        return cls(open_database(url, read_only=read_only))

    @classmethod
    def open_copy(cls, url: str) -> Ledger:
        """Open a temporary copy of a ledger, for reading on a read-only disk. Writes to it are lost.

        A server's database is opened for reading; where there is no ledger yet, it is an empty one.
        """
        return cls(copied_database(url))

    def close(self) -> None:
        """Release the connections; the ledger cannot be used afterwards."""
        self._database.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # The index of the lake: everything here can be rebuilt.

    def record(self, *records: PublicationRecord) -> int:
        """Index publications; those already indexed stay unchanged.

        Days that a rollback among them restored are held. Restored content that people had refused is no longer
        refused.

        Returns:
            How many were new.
        """
        with self._database.writing() as connection:
            return index(connection, (), records).new

    def reindex(
        self, forget: Collection[str], records: Iterable[PublicationRecord], *, lift: bool = False
    ) -> tuple[Hold, ...]:
        """Forget some publications and index others, in one transaction.

        Returns:
            The holds that ended with it.
        """
        with self._database.writing() as connection:
            held = connection.execute(select(schema.holds)).mappings() if lift else ()
            lifted = tuple(Hold(**without_columns(row)) for row in held)
            for table in (schema.holds, schema.ended_holds) if lift else ():
                connection.execute(delete(table))
            return (*lifted, *index(connection, forget, records).lifted)

    def indexed(self) -> dict[str, int]:
        """Return the release of every indexed publication, oldest first."""
        head = schema.publications.c
        rows = self._database.rows(select(head.publication, head.release).order_by(head.release))
        return {row["publication"]: row["release"] for row in rows}

    def newest(self) -> PublicationRecord | None:
        """Return the publication of the highest release, without days and arrivals, if all up to it are indexed.

        None also where there is a gap, or nothing.
        """
        rows = self._database.rows(select(schema.publications).order_by(schema.publications.c.release.desc()).limit(1))
        return PublicationRecord(**rows[0]) if rows and self.knows(rows[0]["release"]) else None

    def release_of(self, publication: str) -> int:
        """Return the release of an indexed publication."""
        head = self.head(publication)
        if head is None:
            raise LedgerError(
                f"Publication {publication} is not indexed in the ledger {masked(self._database.engine.url)}.",
                "Run `platform-assets admin ledger --rebuild`.",
            )
        return head.release

    def knows(self, release: int) -> bool:
        """Return whether every release up to one is indexed."""
        query = select(func.count().label("releases")).select_from(schema.publications).where(its_release <= release)
        count: int = self._database.rows(query)[0]["releases"]
        return count == release + 1

    def head(self, publication: str) -> PublicationRecord | None:
        """Return one publication without its days and arrivals."""
        heads = self._database.rows(select(schema.publications).where(schema.publications.c.publication == publication))
        return PublicationRecord(**heads[0]) if heads else None

    def heads(self, kind: str) -> tuple[PublicationRecord, ...]:
        """Return the publications of a kind without their days and arrivals, oldest first."""
        head = schema.publications.c
        query = select(schema.publications).where(head.kind == kind).order_by(head.release)
        return tuple(PublicationRecord(**row) for row in self._database.rows(query))

    def publication(self, publication: str) -> PublicationRecord | None:
        """Return one publication with its days and arrivals."""
        if (head := self.head(publication)) is None:
            return None
        days, arrivals = (self._database.rows(query) for query in queries.parts(publication))
        return replace(head, days=tuple(map(to_day, days)), arrivals=tuple(map(to_arrival, arrivals)))

    def current_days(
        self, table: str, *, at: int | None = None, among: Collection[date] | None = None
    ) -> dict[date, DayRecord]:
        """Return the content of every published day, oldest first, as readers of release `at` see it."""
        records = {row["day"]: to_day(row) for row in self._database.rows(queries.current_days(table, at, among))}
        return records if among is None else {day: record for day, record in records.items() if day in among}

    def marked_otherwise(self) -> tuple[tuple[str, date], ...]:
        """Return tables and days with contradictory records: another program wrote into the ledger."""
        return tuple((row["table"], row["day"]) for row in self._database.rows(queries.marked_otherwise()))

    def warned(self, tables: Collection[str], *, at: int) -> tuple[DayRecord, ...]:
        """Return the current days of some tables that were published with warnings, the newest published first."""
        day = schema.days.c
        query = select(*DAY_COLUMNS).join_from(schema.days, schema.publications).where(day.table.in_(sorted(tables)))
        query = query.where(is_current(at), its_release <= at, day.warnings.is_not(None))
        query = query.order_by(its_release.desc(), day.table, day.day.desc())
        return tuple(map(to_day, self._database.rows(query)))

    def marks(self, tables: Collection[str], *, at: int) -> dict[str, dict[date, DayMark]]:
        """Return the marks that planning needs, of every day of some tables, oldest day first."""
        marks: dict[str, dict[date, DayMark]] = {table: {} for table in tables}
        its = schema.days.c
        # Of days that were published for the first time after that release, this finds what they are, too.
        shown = select(schema.publications.c.publication, its_release).where(its_release <= at)
        named = [its[name] for name in DayMark._fields if name != "release"]
        query = select(its.table, its.publication, *named).where(its.table.in_(sorted(tables)), is_current(at))
        with self._database.reading() as connection:
            releases = {row[0]: row[1] for row in connection.execute(shown).all()}
            for table, publication, day, *rest in connection.execute(query).all():
                if publication in releases:
                    marks[table][day] = DayMark(day, releases[publication], *rest)
        return {table: dict(sorted(days.items())) for table, days in marks.items()}

    def revisions(self, table: str, among: Collection[date], *, at: int) -> dict[date, tuple[Revision, ...]]:
        """Return all revisions of some days of a table up to a release, oldest first."""
        by_day: dict[date, list[Revision]] = {day: [] for day in among}
        day = schema.days.c
        query = select(day.day, its_release, day.digest, day.rows, day.figures).join(schema.publications)
        query = query.where(day.table == table, its_release <= at, *is_among(among)).order_by(day.day, its_release)
        for row in self._database.rows(query):
            if row["day"] in by_day:
                tombstones = row["figures"].get("tombstones", 0)
                by_day[row["day"]].append(Revision(row["release"], row["digest"], row["rows"], tombstones))
        return {day: tuple(revisions) for day, revisions in by_day.items()}

    def history(self, table: str, day: date) -> tuple[DayRecord, ...]:
        """Return all revisions of a day, newest first."""
        return self.histories(table, [day])[day]

    def histories(self, table: str, among: Collection[date]) -> dict[date, tuple[DayRecord, ...]]:
        """Return the history of several days of a table at once."""
        by_day: dict[date, list[DayRecord]] = {day: [] for day in among}
        query = select(*DAY_COLUMNS).join_from(schema.days, schema.publications).order_by(its_release.desc())
        for row in self._database.rows(query.where(schema.days.c.table == table, *is_among(among))):
            if row["day"] in by_day:
                by_day[row["day"]].append(to_day(row))
        return {day: tuple(records) for day, records in by_day.items()}

    def arrivals(self, table: str | None = None, *, refused_only: bool = False) -> tuple[ArrivalRecord, ...]:
        """Return all arrivals, oldest first; a file that was refused and delivered again occurs each time."""
        return tuple(map(to_arrival, self._database.rows(queries.all_arrivals(table, refused_only=refused_only))))

    def schema_drift(self, table: str | None = None) -> tuple[DriftEvent, ...]:
        """Return how columns of arrivals differed from their contracts, each difference once, the oldest first."""
        return events(Noted(**row) for row in self._database.rows(queries.noted(table)))

    def known_files(self, table: str) -> Sequence[Row[tuple[str, int, int, str, bool]]]:
        """Return path, size, modification time and hash of arrivals, and whether all of each was refused."""
        with self._database.reading() as connection:
            return connection.execute(queries.known_files(table)).all()

    def refused_rows(self) -> dict[str, int]:
        """Return how many rows of each raw table were refused at parsing; tables without any are left out."""
        return {row["table"]: row["rows"] for row in self._database.rows(queries.refused_rows())}

    def withdrawn(self, table: str) -> frozenset[str | None]:
        """Return the withdrawn arrivals of a raw table."""
        file = schema.arrivals.c
        query = counting(select(file.origin).where(file.table == table, file.kind == "withdrawal"))
        return frozenset(row["origin"] for row in self._database.rows(query))

    def arrival(self, table: str, path: str) -> ArrivalRecord | None:
        """Return the newest record of a file; for many files call `arrivals` once."""
        query = counting(select(schema.arrivals)).order_by(its_release.desc()).limit(1)
        query = query.where(schema.arrivals.c.table == table, schema.arrivals.c.path == path)
        return next(map(to_arrival, self._database.rows(query)), None)

    def deliveries(self, table: str, *, at: int, alike_only: bool) -> tuple[Delivery, ...]:
        """Return what orders the versions of a release's arrivals, without withdrawn ones."""
        rows = self._database.rows(queries.deliveries(table, at, alike_only=alike_only))
        return tuple(Delivery(**row) for row in rows)

    def newest_arrival_date(self, table: str, *, at: int) -> date | None:
        """Return the newest arrival date with files in a release, without refused ones; None without any."""
        file = schema.arrivals.c
        query = counting(select(file.arrival_date), at).order_by(file.arrival_date.desc()).limit(1)
        newest = self._database.rows(query.where(file.table == table, file.reason.is_(None), its_release <= at))
        return newest[0]["arrival_date"] if newest else None

    # Holds and decisions: these live only here.

    def hold(self, holds: Iterable[Hold], announced: Collection[int] = ()) -> None:
        """Hold days. A day may have several holds; an equal one is renewed.

        Their verdicts are recorded at once, which decide circuits, and announced ones are settled.
        """
        held = tuple(holds)
        with self._database.writing() as connection:
            renew(connection, held)
            add_refused(connection, held)
            settle(connection, announced)

    def drop(self, holds: Collection[Hold]) -> None:
        """Lift exactly the holds that were read. Other holds of their days stay, and so do holds renewed since.

        The days are then stale if their inputs changed.
        """
        with self._database.writing() as connection:
            lift_read(connection, holds)

    def ended_holds(self, table: str, day: date) -> tuple[EndedHold, ...]:
        """Return the ended holds of a day, in the order of their ends."""
        return tuple(ended_of_day(self._database, table, day))

    def holds(self, table: str | None = None) -> tuple[Hold, ...]:
        """Return the holds, by table and day, oldest first."""
        query = select(schema.holds)
        if table is not None:
            query = query.where(schema.holds.c.table == table)
        order = ("table", "day", "created_at", *(column.name for column in schema.holds.primary_key))
        ordered = query.order_by(*(schema.holds.c[name] for name in order))
        return tuple(Hold(**without_columns(row)) for row in self._database.rows(ordered))

    def decide(self, decision: Decision) -> None:
        """Record a person's decision."""
        with self._database.writing() as connection:
            append(connection, [decision])

    def decisions(self, kind: type[D], *, as_far_as_readable: bool = False) -> tuple[D, ...]:
        """Return people's decisions of one kind, oldest first."""
        return decided(self._database, kind, as_far_as_readable=as_far_as_readable)

    def decision_chain(self) -> tuple[Entry, ...]:
        """Return all stored decisions, oldest first, unchecked. `breaks` checks the chain."""
        return entries(self._database)

    def decision_head(self) -> Head:
        """Return the head of the chain of decisions."""
        return chain_head(self._database)


# A rollback's manifest says what its days must not become again. The publisher, the next command or a rebuild indexes
# it and holds the days in the same transaction, so one is never visible without the other. In the same way
# do decisions that publications carried out enter the chain of decisions, and messages to exposures the outbox.
class Indexed(NamedTuple):
    """Result of indexing: how many publications were added, and the people's holds that ended."""

    new: int
    lifted: tuple[Hold, ...]


def index(connection: Connection, forget: Collection[str], records: Iterable[PublicationRecord]) -> Indexed:
    """Forget some publications and index others; publications indexed already stay unchanged.

    A rollback that was indexed before, and is only indexed again, holds nothing again: its holds were lifted on
    purpose. If a later publication of a day is forgotten for good, the day is again as the rollback left it, and held.

    Raises:
        LedgerError: one of them, or its release, is indexed differently, so the ledger belongs to another lake.
    """
    given = {record.publication: record for record in records}
    known_rows = connection.execute(queries.indexed(given, [record.release for record in given.values()])).all()
    known = {row.publication: row.release for row in known_rows}
    of_forgotten = {name: connection.execute(queries.days_of(name)).all() for name in forget}
    delete_each(connection, schema.publications, [{"publication": name} for name in forget])
    forget_messages(connection, [name for name in forget if name not in given])
    is_new_ledger = not (known.keys() & given.keys()) and not connection.execute(select(its_release).limit(1)).first()
    new = _new(connection, given, {name: release for name, release in known.items() if name not in of_forgotten})
    insert_all(connection, schema.publications, [queries.publication_row(record) for record in new])
    failpoint("ledger.recording")
    insert_all(connection, schema.days, [queries.day_row(day) for record in new for day in record.days])
    insert_all(connection, schema.arrivals, [vars(arrival) for record in new for arrival in record.arrivals])
    since = None if forget else min((record.release for record in new), default=None)
    touched = {(row.table, row.day) for rows in of_forgotten.values() for row in rows}
    touched |= {(day.table, day.day) for record in new for day in record.days}
    mark_replaced(connection, touched, since)
    if forget or new:
        forget_looks(connection, since)
    bared = {(row.table, row.day) for name, rows in of_forgotten.items() if name not in given for row in rows}
    for record in new:
        if among := record.refuses.keys() & bared if record.publication in known else record.refuses.keys():
            hold_put_back(connection, record, among)
    computed = [record for record in new if record.publication not in known and record.kind != COMPACTION]
    published = {(day.table, day.day) for record in computed for day in record.days}
    lifted = drop_contradicted(connection, touched, published)
    append_carried_out(connection, new, lifted)
    never_indexed = [record for record in new if record.publication not in known]
    write_messages(connection, never_indexed, of_newest_alone=is_new_ledger)
    add_published(connection, never_indexed)
    return Indexed(len(new), lifted)


def _new(
    connection: Connection, given: Mapping[str, PublicationRecord], indexed: Mapping[str, int]
) -> list[PublicationRecord]:
    owners = {release: publication for publication, release in indexed.items()}
    for name, record in given.items():
        if indexed.get(name, record.release) != record.release or owners.get(record.release, name) != name:
            raise LedgerError(
                f"Release {record.release} with publication {name} contradicts the ledger "
                f"{masked(connection.engine.url)}, which was made from another lake or another state of this one.",
                "Run `platform-assets admin ledger --rebuild`.",
            )
    return [record for name, record in given.items() if name not in indexed]
