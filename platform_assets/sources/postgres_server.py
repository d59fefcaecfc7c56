"""A PostgreSQL database, read-only: connection, limits, snapshot, and named errors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platform_assets.contracts import Contract
from platform_assets.lakehouse.errors import driver_message
from platform_assets.lakehouse.reading import qualified, quoted
from platform_assets.sources.source import SourceError

if TYPE_CHECKING:
    import psycopg
    from sqlalchemy import URL

    Connection = psycopg.Connection[tuple[Any, ...]]

_LEAST_VERSION = 140_000
_CONNECT_S = 15
_SETTINGS = {
    "default_transaction_read_only": "on",
    "lock_timeout": "30s",
    "idle_in_transaction_session_timeout": "300s",
    "row_security": "off",  # rows that a policy hides raise an error, rather than look deleted
    "search_path": "pg_catalog",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "iso_8601",
    "extra_float_digits": "1",
}
_REMEDIES = {
    "42501": "GRANT SELECT on the table and USAGE on its schema to the role:",
    "57014": "Allow more time for a statement, or index the watermark:",
    "55P03": "Run the same again when the change of the table is over:",
}
"""What to do about an error, by its code."""
_NUMBERS = {"int2", "int4", "int8", "numeric"}
_READ_AS = {
    "long": _NUMBERS,
    "int": _NUMBERS,
    "decimal": _NUMBERS | {"float4", "float8"},
    "double": _NUMBERS | {"float4", "float8"},
    "boolean": {"bool"},
    "date": {"date"},
    "timestamp": {"timestamp", "timestamptz", "date"},
}
_IN_CONTRACTS = {"int2": "int", "int4": "int", "int8": "long"}
ROW = "platform_row"
"""Stands for the row in queries."""
_RESCUED = "rescued"
"""In place of the type of the column that holds all others."""
_HASHED = _NUMBERS | {"float4", "float8", "bool", "date", "timestamp", "timestamptz", "uuid"}


@dataclass(frozen=True)
class Access:
    """Access to a table, with its limits.

    Args:
        table: `schema.table`, or a view.
        watermark: the column with the time of a row's last change.
        url_env: the environment variable with the URL.
        minutes: time limit of one statement.
    """

    table: str
    watermark: str
    url_env: str
    minutes: int

    @property
    def sql_name(self) -> str:
        """Return the table in SQL."""
        return qualified(self.table)

    @contextmanager
    def open(self) -> Iterator[Connection]:
        """Connect for reading, each statement a transaction of its own.

        Raises:
            SourceError: the address is missing, or the server refuses, disconnects or is too slow; without secrets.
        """
        try:
            import psycopg
        except ImportError:
            raise self._error(
                "cannot be read without its client",
                "Install it: uv sync --inexact --extra postgres, or pip install 'platform-assets[postgres]'.",
            ) from None
        address = self._address()
        try:
            with psycopg.connect(
                address.render_as_string(hide_password=False),
                autocommit=True,
                prepare_threshold=None,
                connect_timeout=_CONNECT_S,
                keepalives_idle=60,  # a server that is gone without a word is noticed within two minutes
                keepalives_interval=10,
                keepalives_count=6,
                client_encoding="utf8",
                application_name="platform-assets",
            ) as connection:
                for name, value in {**_SETTINGS, "statement_timeout": f"{self.minutes}min"}.items():
                    connection.execute("SELECT set_config(%s, %s, false)", [name, value])
                yield connection
        except psycopg.Error as error:
            todo = _REMEDIES.get(error.sqlstate or "", "Nothing of this was kept; run the same again, or correct")
            raise self._error(
                f"was not read: {driver_message(error, address)}",
                f"{todo} {self.table}, {self.url_env}, statement_minutes={self.minutes}.",
            ) from None

    def _error(self, what: str, todo: str) -> SourceError:
        return SourceError(f"The table {self.table} of PostgreSQL ({self.url_env}) {what}.", todo)

    def _address(self) -> URL:
        from sqlalchemy import make_url
        from sqlalchemy.exc import ArgumentError

        try:
            address = make_url(os.environ.get(self.url_env, "").strip())
            is_known = address.drivername in ("postgresql", "postgres")
        except (ArgumentError, ValueError):
            address, is_known = None, False
        if address is None or not is_known:
            raise self._error(
                f"is where the environment variable {self.url_env} says, which has no URL of PostgreSQL",
                f"Set {self.url_env}='postgresql://reader:password@host/database?sslmode=verify-full', with special "
                "characters of the password percent-encoded.",
            )
        return address

    def bound(self, connection: Connection, before: datetime | None) -> Bound:
        """Return up to which moment all rows are visible: the start of the oldest open transaction.

        Call it before a snapshot is taken, or a transaction that ends in between would be overlooked.
        """
        one = connection.execute(
            "SELECT clock_timestamp(), current_user::text, pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'), "
            "pg_is_in_recovery(), current_setting('server_version_num')::int"
        ).fetchone()
        assert one is not None
        now, role, sees_all, is_standby, version = one
        if version < _LEAST_VERSION:
            raise self._error(f"is on a server of version {version // 10_000}", "Version 14 or later can be read.")
        if is_standby:
            raise self._error(
                "is on a standby, where open transactions of the primary cannot be seen", "Name the primary."
            )
        if not sees_all:
            raise self._error(
                f"cannot be read as the role {role}: it does not see when transactions of others began, and could "
                "overlook what they write",
                f"GRANT pg_read_all_stats TO {role};",
            )
        open_ = connection.execute(
            "SELECT min(xact_start), bool_or(state = 'disabled') FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() AND "
            "backend_type NOT IN ('autovacuum worker', 'parallel worker', 'walsender')"
        ).fetchone()
        assert open_ is not None
        oldest, is_hidden = open_
        if is_hidden:
            raise self._error(
                "cannot be read beside a session with track_activities off, which hides when its transaction began",
                "Set track_activities to on for all roles, and let such sessions connect again.",
            )
        prepared = connection.execute(  # after the open ones, or one that is prepared in between would be overlooked
            "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() ORDER BY prepared LIMIT 1"
        ).fetchone()
        if prepared:
            held = f"the prepared transaction {prepared[0]!r}"
            if before is None:
                raise self._error(f"cannot be read first beside {held}", "Commit it or roll it back.")
            return Bound(now, before, held)
        if oldest and oldest < now:
            return Bound(now, max(oldest, before or oldest), f"a transaction open since {oldest:%H:%M:%S} UTC")
        return Bound(now, max(now, before or now))

    def types(self, connection: Connection, contract: Contract, own: Mapping[str, str]) -> Types:
        """Return how the columns of a contract are read from the table."""
        found = connection.execute(
            "SELECT c.oid, c.relkind::text, has_table_privilege(c.oid, 'SELECT') FROM pg_class c "
            "WHERE c.oid = to_regclass(%s)",
            [self.sql_name],
        ).fetchone()
        if found is None:
            raise self._error("is not there", "Correct `table` of the source, as schema.table.")
        oid, kind, may_read = found
        if kind == "f":
            raise self._error(
                "is a foreign table, and open transactions of its server cannot be seen", "Name that server and table."
            )
        if not may_read:
            raise self._error("may not be read by this role", f"GRANT SELECT ON {self.table} TO it.")
        there: dict[str, str] = dict(
            connection.execute(
                "SELECT a.attname::text, CASE WHEN t.typelem <> 0 AND t.typlen = -1 THEN 'array' "
                "WHEN t.typtype = 'd' THEN b.typname::text ELSE t.typname::text END FROM pg_attribute a "
                "JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = t.typbasetype "
                "WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped",
                [oid],
            ).fetchall()
        )
        source = contract.source
        kept_in = source and source.rescued_in
        columns = [column for column in contract.columns if column.name not in own and column.name != kept_in]
        extra = [name for name in there if name not in contract.column_names or name == kept_in]
        if extra and (kept_in in there or (source and source.schema_drift == "fail")):
            raise self._error(
                f"has the column {', '.join(extra)}, which {contract.name} does not declare",
                "Declare it; or have its source rescue or ignore such columns"
                + (f", with another `rescued_in` than {kept_in}." if kept_in else "."),
            )
        if missing := [column.name for column in columns if column.name not in there]:
            raise self._error(
                f"has no column {', '.join(missing)}",
                f"It has {', '.join(there)}; correct the contract of {contract.name}, or read a view with its names.",
            )
        for column in columns:
            type_ = there[column.name]
            if column.type == "string" and type_ != "bytea":
                continue
            if type_ not in _READ_AS.get(column.type.partition("(")[0], ()) or column.epoch:
                raise self._error(
                    f"has {column.name} as {type_}, which does not become {column.type}",
                    f"Declare it with another type in {contract.name}, or read a view that casts it.",
                )
        if kind in ("r", "p"):
            self._expect_key(connection, oid, contract)
        read = {column.name: there[column.name] for column in columns} | ({kept_in: _RESCUED} if kept_in else {})
        return Types(read, contract, self, {name: _IN_CONTRACTS.get(type_, "") for name, type_ in there.items()})

    def _expect_key(self, connection: Connection, oid: int, contract: Contract) -> None:
        unique = connection.execute(
            "SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_index i JOIN pg_attribute a "
            "ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts-1]) "
            "WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL "
            "GROUP BY i.indexrelid, i.indisprimary ORDER BY i.indisprimary DESC, i.indexrelid",
            [oid],
        ).fetchall()
        if not any({*names} <= {*contract.key} for (names,) in unique):
            has = f"its key is ({', '.join(unique[0][0])})" if unique else "no key or unique index keeps its rows apart"
            raise self._error(
                f"may have several rows for one ({', '.join(contract.key)}): {has}",
                f"Correct the key of {contract.name}, or add the unique index; another key needs another raw table.",
            )


@dataclass(frozen=True)
class Bound:
    """End of a possible reading.

    Args:
        now: the server's clock.
        upto: rows with an older watermark are all visible.
        held_by: what keeps it before the clock; empty if nothing does.
    """

    now: datetime
    upto: datetime
    held_by: str = ""


@dataclass(frozen=True)
class Types:
    """Types of a table's columns, by name, and the SQL that follows from them.

    Args:
        there: all columns, with the types that whole numbers have in contracts.
    """

    of: Mapping[str, str]
    contract: Contract
    access: Access
    there: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> str:
        """Return a query for all rows: columns as text, hash, watermark as a moment if it is one, day."""
        name = quoted(self.access.watermark)
        mark = f"CASE WHEN isfinite({name}) AND {name} >= '0001-01-01' THEN {self.moment(self.access.watermark)} END"
        shown = ", ".join([*map(self.text, self.of), self.hash(), mark, f"({self.day()})::text"])
        return f"SELECT {shown} FROM {self.access.sql_name} AS {ROW}"

    def between(self, *, first: bool) -> str:
        """Return the condition for rows of a reading, with parameters `since` and `upto`; `first` has no `since`."""
        name = quoted(self.access.watermark)
        is_moment = self.of[self.access.watermark] == "timestamptz"
        as_stored = "" if is_moment else f" AT TIME ZONE '{self.zone(self.access.watermark)}'"
        upto, since = (f"(%({bound})s::timestamptz{as_stored})" for bound in ("upto", "since"))
        if first:
            return f"({name} < {upto} OR {name} IS NULL)"
        return f"{name} >= {since} AND {name} < {upto}"

    def has_key(self) -> str:
        """Return the condition for rows with given keys, with the text parameters `key_0` and so on."""
        names = self.contract.key
        as_is = [self.of[name] in _HASHED for name in names]
        ours = [quoted(name) if known else f"{quoted(name)}::text" for name, known in zip(names, as_is, strict=True)]
        kinds = [self.of[name] if known else "text" for name, known in zip(names, as_is, strict=True)]
        given = ", ".join(f"unnest(%(key_{n})s::text[])::{kind}" for n, kind in enumerate(kinds))
        return f"({', '.join(ours)}) IN (SELECT {given})"

    def text(self, name: str) -> str:
        """Return the text that a reading writes for a column."""
        if self.of[name] == "array":
            return f"to_json({quoted(name)})"
        if self.of[name] == _RESCUED:
            declared = ", ".join(f"'{declared}'" for declared in self.contract.column_names)
            return f"nullif(jsonb_strip_nulls(to_jsonb({ROW}) - ARRAY[{declared}])::text, '{{}}')"
        return quoted(name)

    def hash(self) -> str:
        """Return a 64-bit hash of a row's content. Equal numbers with other digits (1.0 and 1.00) have equal hashes."""
        return f"hash_record_extended(ROW({', '.join(map(self._hashed, sorted(self.of)))}), 0)"

    def moment(self, name: str) -> str:
        """Return a time as the server's type with a time zone."""
        if self.of[name] == "timestamptz":
            return quoted(name)
        return f"({quoted(name)}::timestamp AT TIME ZONE '{self.zone(name)}')"

    def day(self) -> str:
        """Return the day of a row, as ingestion does."""
        name = self.contract.event_time
        assert name is not None
        if self.contract.column(name).type == "date":
            return quoted(name)
        return f"({self.moment(name)} AT TIME ZONE '{self.contract.day_zone or 'UTC'}')::date"

    def zone(self, name: str) -> str:
        """Return the time zone of a column without one."""
        return self.contract.column(name).zone or "UTC"

    def _hashed(self, name: str) -> str:
        if self.of[name] in _HASHED:
            return quoted(name)
        return f'{self.text(name)}::text COLLATE "C"'

    def is_local(self, name: str) -> bool:
        """Return whether a column has local times of a zone in which clocks are set back once a year."""
        return self.of[name] != "timestamptz" and self.zone(name) != "UTC"


@contextmanager
def snapshot(connection: Connection) -> Iterator[None]:
    """Make all statements read-only at one moment."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


JSON_LINES = r"FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02'"
"""Writes a column of JSON, which has no such signs, as it is."""


def copy_to(
    connection: Connection,
    query: str,
    file: Path,
    values: Mapping[str, object] | None = None,
    form: str = "FORMAT csv",
) -> int:
    """Append the rows of a query to a file as CSV, as they come, and return how many there are."""
    with connection.cursor() as cursor:
        with cursor.copy(f"COPY ({query}) TO STDOUT ({form})".encode(), values) as copy, file.open("ab") as csv:
            for block in copy:
                csv.write(block)
        return cursor.rowcount
