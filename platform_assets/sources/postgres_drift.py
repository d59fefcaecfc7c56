"""Prove that raw equals a table of PostgreSQL, and read again what drifted.

The database computes a count and a checksum for each day, in one scan. The hashes in raw are the database's own, from
when the rows were read, so both sides are equal if nothing changed. Only days that differ are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from platform_assets.contracts import DAY, Contract
from platform_assets.lakehouse.reading import quoted
from platform_assets.sources.postgres_rows import IS_DELETED, OWN, READ_AT, ROW_HASH, Position, delivered, load, write
from platform_assets.sources.postgres_server import ROW, Access, Bound, Types, copy_to, snapshot
from platform_assets.sources.source import Drift, DriftedKey, Reading, SoFar, SourceError
from platform_assets.sources.taken import add_current, add_refused, duck_type, scratch

if TYPE_CHECKING:
    import duckdb

    from platform_assets.sources.postgres_server import Connection

_KEYS_AT_ONCE = 5_000
_MASKED = "***"
_DRIFTED = ("changed", "back-dated", "deleted", "moved")
_Sums = dict[date, tuple[int, int]]


def compare(
    contract: Contract,
    so_far: SoFar,
    folder: Path,
    days: Iterable[date] | None,
    most: int,
    access: Access,
    bound_of: Callable[[Connection], Bound],
) -> Drift:
    """Compare raw with a table as of one snapshot."""
    if not so_far.position:
        raise SourceError(
            f"Nothing of {access.table} was read yet.", "`platform-assets refresh` reads it; then it can be compared."
        )
    upto, csv = Position.parse(so_far.position).upto, folder / "rows.csv"
    chosen = None if days is None else sorted(days)
    assert contract.event_time is not None
    marks = dict.fromkeys((ROW_HASH, access.watermark, contract.event_time))
    columns = [name for name in marks if name not in contract.key]
    with access.open() as connection, scratch(folder) as rows:
        now = bound_of(connection).now
        with snapshot(connection):
            types = access.types(connection, contract, OWN)
            theirs, undated = _their_sums(connection, types, chosen)
            add_current(rows, contract, so_far, columns, chosen)
            ours = _our_sums(rows)
            compared = theirs.keys() | ours.keys()
            differing = tuple(sorted(day for day in compared if theirs.get(day) != ours.get(day)))
            if not differing:
                return Drift(len(compared), undated=undated)
            where = f"{types.rows()} WHERE {types.day()} = ANY (%(days)s)"
            load(rows, "theirs", csv, types, copy_to(connection, where, csv, {"days": [*differing]}))
            add_refused(rows, contract, so_far, ROW_HASH)
            _add_sides(rows, contract, differing)
            gone = f"{types.rows()} WHERE {types.has_key()}"
            copied = sum(copy_to(connection, gone, csv, keys) for keys in _gone(rows, contract))
            load(rows, "elsewhere", csv, types, copied)
        _add_outcomes(rows, contract, access.watermark, upto.isoformat())
        counts = dict(rows.execute("SELECT what, count(*) FROM outcomes GROUP BY 1").fetchall())
        keys = {what: counts[what] for what in _DRIFTED if what in counts}
        position = Position(upto, now)
        files = write(rows, _repair(contract, position, so_far.today), folder, types) if keys else {}
        return Drift(
            days=len(compared),
            differing=differing,
            keys=keys,
            examples=tuple(_examples(rows, contract, most)),
            waiting=counts.get("waiting", 0) + counts.get("refused", 0),
            undated=undated,
            repair=Reading(str(position), files, date.min) if keys else None,
        )


def _their_sums(connection: Connection, types: Types, days: list[date] | None) -> tuple[_Sums, int]:
    """Return count and checksum of each day in the database, and the number of rows without a day."""
    where = "" if days is None else f" WHERE {types.day()} = ANY (%(days)s)"
    found = connection.execute(
        f"SELECT ({types.day()})::text, count(*), sum({types.hash()}) FROM {types.access.sql_name} AS {ROW}{where} "
        "GROUP BY 1".encode(),
        {"days": days} if days is not None else None,
    )
    sums: _Sums = {}
    undated = 0
    for day, rows, checksum in found:
        try:
            sums[date.fromisoformat(day or "")] = rows, int(checksum)
        except ValueError:  # null, infinity, before the year 1 or after 9999
            undated += rows
    return sums, undated


def _our_sums(rows: duckdb.DuckDBPyConnection) -> _Sums:
    found = rows.execute(
        f"SELECT {DAY}, count(*), sum({ROW_HASH}) FROM current WHERE _kind = 'record' GROUP BY 1"
    ).fetchall()
    return {day: (count, int(checksum or 0)) for day, count, checksum in found}


def _typed(contract: Contract) -> str:
    return ", ".join(f"TRY_CAST({quoted(k)} AS {duck_type(contract, k)}) AS {quoted(k)}" for k in contract.key)


def _same(contract: Contract, one: str, other: str) -> str:
    return " AND ".join(f"{one}.{quoted(k)} = {other}.{quoted(k)}" for k in contract.key)


def _add_sides(rows: duckdb.DuckDBPyConnection, contract: Contract, differing: Iterable[date]) -> None:
    """Add the views `ours` and `yours`: the rows of the differing days, in raw and in the database."""
    rows.execute("CREATE TABLE differing (day DATE)")
    rows.executemany("INSERT INTO differing VALUES (?)", [(day,) for day in differing])
    rows.execute(f"CREATE VIEW ours AS FROM current WHERE _kind = 'record' AND {DAY} IN (FROM differing)")
    rows.execute(
        f"CREATE VIEW yours AS SELECT {_typed(contract)}, {ROW_HASH}, _mark, CAST(_day AS DATE) AS day FROM theirs"
    )


def _gone(rows: duckdb.DuckDBPyConnection, contract: Contract) -> Iterator[Mapping[str, list[str]]]:
    """Yield keys that the database does not have on their day, in groups, as parameters of `Types.has_key`."""
    key = ", ".join(f"CAST(o.{quoted(k)} AS VARCHAR)" for k in contract.key)
    found = rows.cursor().execute(
        f"SELECT {key} FROM ours AS o ANTI JOIN yours AS y ON o.{DAY} = y.day AND {_same(contract, 'o', 'y')}"
    )
    while keys := found.fetchmany(_KEYS_AT_ONCE):
        yield {f"key_{n}": list(values) for n, values in enumerate(zip(*keys, strict=True))}


def _add_outcomes(rows: duckdb.DuckDBPyConnection, contract: Contract, watermark: str, upto: str) -> None:
    """Add the table `outcomes`: each key with different content on the two sides, and what happened to it.

    A key that moved beyond `moves_within_days` gets a void on the day that it left; within reach, ingestion does that
    itself.
    """
    key = ", ".join(f"coalesce(o.{quoted(k)}, y.{quoted(k)}) AS {quoted(k)}" for k in contract.key)
    elsewhere = f"(SELECT {_typed(contract)}, {ROW_HASH}, _mark, TRY_CAST(_day AS DATE) AS day FROM elsewhere)"
    rows.execute(
        f"CREATE TABLE outcomes AS SELECT coalesce(o.{DAY}, y.day) AS day, {key}, "
        f"o.{quoted(str(contract.event_time))} AS happened, coalesce(y.{ROW_HASH}, e.{ROW_HASH}) AS hash, "
        f"CASE WHEN coalesce(y._mark, e._mark) >= TIMESTAMPTZ '{upto}' THEN 'waiting' "
        f"WHEN hash IN (FROM refused) THEN 'refused' WHEN hash IS NULL THEN 'deleted' WHEN y.day IS NULL THEN 'moved' "
        f"WHEN o.{DAY} IS NOT NULL AND y._mark IS NOT DISTINCT FROM o.{quoted(watermark)} THEN 'changed' "
        f"ELSE 'back-dated' END AS what, "
        f"coalesce(abs(date_diff('day', e.day, o.{DAY})) > {contract.moves_within_days}, true) AS is_far "
        f"FROM ours AS o FULL JOIN yours AS y ON o.{DAY} = y.day AND {_same(contract, 'o', 'y')} "
        f"LEFT JOIN {elsewhere} AS e ON y.day IS NULL AND {_same(contract, 'o', 'e')} "
        f"WHERE o.{ROW_HASH} IS DISTINCT FROM y.{ROW_HASH}"
    )


def _examples(rows: duckdb.DuckDBPyConnection, contract: Contract, most: int) -> Iterator[DriftedKey]:
    key = ", ".join(map(quoted, contract.key))
    found = rows.execute(
        f"SELECT day, what, {key} FROM outcomes WHERE what IN {_DRIFTED} ORDER BY day, {key} LIMIT {most}"
    )
    for day, what, *values in found.fetchall():
        shown = (
            _MASKED if contract.column(name).sensitive else value
            for name, value in zip(contract.key, values, strict=True)
        )
        yield DriftedKey(
            day, ", ".join(f"{name}={value}" for name, value in zip(contract.key, shown, strict=True)), what
        )


def _repair(contract: Contract, position: Position, today: date) -> str:
    """Return a query for the drifted rows in their present state, and voids of rows that are gone from their day."""
    voids = dict.fromkeys(contract.column_names, "CAST(NULL AS VARCHAR)")
    voids |= {name: f"CAST({quoted(name)} AS VARCHAR)" for name in contract.key}
    event_time = str(contract.event_time)
    is_moment = contract.column(event_time).type == "timestamp"
    moment = "strftime(make_timestamp(epoch_us(happened)), '%Y-%m-%d %H:%M:%S.%f') || '+00'"
    voids |= {event_time: moment if is_moment else "CAST(happened AS VARCHAR)"}
    voids |= {READ_AT: f"'{position.read_at.isoformat()}'", IS_DELETED: "'true'"}
    void = ", ".join(f"{value} AS {quoted(name)}" for name, value in voids.items())
    wanted = f"{ROW_HASH} IN (SELECT hash FROM outcomes WHERE what IN {_DRIFTED} AND hash IS NOT NULL)"
    records = (
        f"SELECT {delivered(contract, position)} FROM {table} WHERE {wanted}" for table in ("theirs", "elsewhere")
    )
    gone = f"SELECT {void} FROM outcomes WHERE what IN ('deleted', 'moved') AND is_far"
    return f"SELECT *, DATE '{today}' AS _arrival FROM ({' UNION '.join(records)} UNION {gone})"
