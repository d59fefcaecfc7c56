"""A table of PostgreSQL, read by its watermark, and compared with raw.

A reading is one copy out of one snapshot. It has the rows whose watermark is between the last reading, minus an
overlap, and the start of the oldest open transaction. Rows that raw already has unchanged are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from platform_assets.contracts import Contract, ContractError
from platform_assets.sources.postgres_rows import (
    IS_DELETED,
    OWN,
    READ_AT,
    READING,
    ROW_HASH,
    Position,
    delivered,
    load,
    write,
)
from platform_assets.sources.postgres_server import JSON_LINES, Access, Bound, copy_to, snapshot
from platform_assets.sources.source import Again, Drift, Reading, SoFar, Source, SourceError, Waits
from platform_assets.sources.taken import add_current, add_refused, scratch

if TYPE_CHECKING:
    from platform_assets.sources.postgres_server import Connection

__all__ = ["READING", "PostgresTable"]

_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}\.[A-Za-z_][A-Za-z0-9_$]{0,62}")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_COUNTED = 1_000
_SAMPLED = 10_000
_REASON = 20
_LOOKS_S = 20
_CLOCKS_PUT_BACK = timedelta(hours=2)
_IS_READ = "is read from PostgreSQL, and"


@dataclass(frozen=True)
class PostgresTable(Source):
    """Declare a table or view of PostgreSQL that feeds a raw table.

    Args:
        folder: folder for the files of readings, below the landing root.
        table: `schema.table`. Columns have the names of the contract.
        url_env: the environment variable with the URL, `postgresql://…`, of a role that may only read.
        watermark: the column with the time of a row's last change: `timestamptz`, or `timestamp` in the column's zone.
        overlap_minutes: how far each reading starts before the end of the last one, for late clocks and triggers, and
            rounded watermarks.
        statement_minutes: time limit of one statement.
    """

    order: str | None = "name"
    resent: Literal["replay", "anew"] = "anew"
    table: str = ""
    url_env: str = ""
    watermark: str = "updated_at"
    overlap_minutes: Annotated[int, Field(ge=0, le=525_600)] = 60
    statement_minutes: Annotated[int, Field(ge=1, le=1_440)] = 60

    def _problems(self) -> Iterator[ContractError]:
        yield from super()._problems()
        whose = f"The source {self.folder!r}"
        if not _TABLE.fullmatch(self.table):
            yield ContractError(f"{whose} reads the table {self.table!r}.", "Write schema.table.", field="table")
        if not _VARIABLE.fullmatch(self.url_env):  # not shown: it may be the URL itself
            yield ContractError(
                f"{whose} has a url_env that is no name of an environment variable.",
                "Write the variable's name, such as SHOP_DATABASE_URL, and keep the URL out of the code.",
                field="url_env",
            )
        if self.replaces is not None or self.resent != "anew":
            yield ContractError(
                f"{whose} brings rows one by one.", "Leave out `replaces` and `resent`.", field="replaces"
            )

    @property
    def drift_outcome(self) -> str:
        """Return what becomes of columns that the contract does not declare: only `rescued_in` has them read."""
        return super().drift_outcome if self.rescued_in or self.schema_drift == "fail" else "left out"

    def misfits(self, contract: Contract) -> Iterator[tuple[str, str, str]]:
        """Yield what a contract lacks for readings."""
        yield from super().misfits(contract)
        declared = {column.name: column.type for column in contract.columns}
        if any(declared.get(name) != type_ for name, type_ in OWN.items()):
            yield f"{_IS_READ} lacks {', '.join(OWN)}", "End `columns` with *READING.", "columns"
        if contract.versioned_by != (READ_AT,) or contract.voided != IS_DELETED:
            todo = f'Give updated_at="{READ_AT}", voided="{IS_DELETED}": the newest reading of a row counts.'
            yield f"{_IS_READ} orders versions otherwise than they were read", todo, "updated_at"
        if declared.get(self.watermark) != "timestamp":
            todo = "Name the column of the last change in `watermark`; a table without one can be delivered as files."
            yield f"{_IS_READ} has no timestamp {self.watermark!r}, its watermark", todo, "source"
        for column in contract.columns:
            if column.epoch:
                yield f"{_IS_READ} has {column.name!r} in {column.epoch}", "Read a view with moments.", column.name
            if column.pattern:
                yield f"{_IS_READ} has a pattern of {column.name!r}", "Leave it out: times come in ISO.", column.name

    def waits(self, contract: Contract, so_far: SoFar) -> Waits:
        """Count rows with a newer watermark than the last reading, up to a bound."""
        before = Position.parse(so_far.position) if so_far.position else None
        with self._access.open() as connection:
            connection.execute(f"SET statement_timeout = '{_LOOKS_S}s'".encode())
            bound = self._bound(connection, so_far)
            with snapshot(connection):
                types = self._access.types(connection, contract, OWN)
                counted = connection.execute(
                    f"SELECT count(*) FROM (SELECT FROM {self._access.sql_name} "
                    f"WHERE {types.between(first=before is None)} LIMIT {_COUNTED + 1}) AS found".encode(),
                    {"since": before and before.upto, "upto": bound.upto},
                ).fetchone()
        assert counted is not None
        held = f", held back by {bound.held_by}" if bound.held_by else ""
        lag = f"lags {(bound.now - bound.upto).total_seconds():,.0f} s{held}"
        read = f"read up to {before.upto:%Y-%m-%d %H:%M:%S} UTC" if before else "never read"
        return Waits(counted[0], f"{read}; {lag}")

    def read(self, contract: Contract, so_far: SoFar, folder: Path) -> Reading | None:
        """Copy rows that changed since the last reading."""
        before = Position.parse(so_far.position) if so_far.position else None
        csv = folder / "rows.csv"
        with self._access.open() as connection:
            bound = self._bound(connection, so_far)
            with snapshot(connection):
                types = self._access.types(connection, contract, OWN)
                overlap = timedelta(minutes=self.overlap_minutes)
                overlap += _CLOCKS_PUT_BACK if types.is_local(self.watermark) else timedelta(0)
                since = before and before.upto - overlap
                where = types.between(first=since is None)
                copied = copy_to(connection, f"{types.rows()} WHERE {where}", csv, {"since": since, "upto": bound.upto})

        def is_newer(publication: str) -> bool:
            newest = so_far.publications.get(publication)
            return since is None or newest is None or Position.parse(newest).read_at >= since

        position = Position(bound.upto, bound.now)
        with scratch(folder) as rows:
            load(rows, "arrived", csv, types, copied)
            add_current(rows, contract, so_far, [ROW_HASH], is_newer=is_newer)
            add_refused(rows, contract, so_far, ROW_HASH)
            had = f"(SELECT {ROW_HASH} FROM current WHERE _kind = 'record' UNION ALL FROM refused)"
            query = (
                f"SELECT {delivered(contract, position)}, least(CAST(make_timestamp(epoch_us(_mark)) AS DATE), "
                f"DATE '{so_far.today}') AS _arrival FROM arrived AS a"
            )
            files = write(
                rows, f"{query} WHERE NOT EXISTS (FROM {had} AS had WHERE had.{ROW_HASH} = a.{ROW_HASH})", folder, types
            )
            if not files and before:
                [(fresh,)] = rows.execute("SELECT count(*) FROM arrived WHERE _mark >= ?", [before.upto]).fetchall()
                if fresh:  # all of it is in raw; the next reading begins after it
                    files = write(rows, f"{query} WHERE false", folder, types, min(bound.upto.date(), so_far.today))
        return Reading(str(position), files, bound.upto.date())

    def again(self, contract: Contract, so_far: SoFar, folder: Path, asked: Again) -> Reading | None:
        """Read the rows of days that are other than raw has them, deletes as voids."""
        if not asked.days:
            raise SourceError(
                f"{self.table} is read again by days, not from a place.",
                "Give --days in place of --from or --accept-loss.",
            )
        first, last = asked.days
        days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
        found = self.drift(contract, so_far, folder, days, 0).repair
        why = re.sub("[^A-Za-z0-9]+", "-", asked.reason)[:_REASON].strip("-")
        return found and replace(found, position=f"{found.position}-{why}")

    def sample(self, folder: Path) -> Path:
        """Write some rows with all columns that the table has."""
        file = folder / "sample.jsonl"
        query = f"SELECT row_to_json(t) FROM (SELECT * FROM {self._access.sql_name} LIMIT {_SAMPLED}) AS t"
        with self._access.open() as connection, snapshot(connection):
            copy_to(connection, query, file, form=JSON_LINES)
        return file

    def drift(self, contract: Contract, so_far: SoFar, folder: Path, days: Iterable[date] | None, most: int) -> Drift:
        """Compare count and checksum of each day, read the days that differ again, and compare these by key."""
        from platform_assets.sources.postgres_drift import compare  # which a reading does without

        def bound(connection: Connection) -> Bound:
            return self._bound(connection, so_far)

        return compare(contract, so_far, folder, days, most, self._access, bound)

    @property
    def _access(self) -> Access:
        return Access(self.table, self.watermark, self.url_env, self.statement_minutes)

    def _bound(self, connection: Connection, so_far: SoFar) -> Bound:
        """Return the end of a reading, by a clock that is ahead of all readings."""
        before = Position.parse(so_far.position).upto if so_far.position else None
        bound = self._access.bound(connection, before)
        last = max((Position.parse(each).read_at for each in so_far.positions), default=None)
        if last and bound.now <= last:
            raise SourceError(
                f"The clock of the database with {self.table} runs back: it says {bound.now:%Y-%m-%d %H:%M:%S.%f} UTC, "
                f"and the table was read at {last:%Y-%m-%d %H:%M:%S.%f}.",
                "Correct the clock, or wait until it is past that moment; rows written meanwhile are read then.",
            )
        return bound
