"""The rows that raw has of a source, in DuckDB: the newest version of each key and day, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from platform_assets.contracts import DAY, Contract
from platform_assets.contracts.rules import refused_table
from platform_assets.lakehouse.reading import dataset, duckdb_type, quoted
from platform_assets.lakehouse.releases import Release
from platform_assets.records.raw_rows import ERASED, WITHDRAWAL
from platform_assets.sources.source import SoFar, SourceError

if TYPE_CHECKING:
    import duckdb
    import pyarrow.dataset as ds

_SETTINGS = {
    "memory_limit": "'1GB'",
    "threads": "2",
    "preserve_insertion_order": "false",
    "partitioned_write_flush_threshold": "100000",
    "TimeZone": "'UTC'",
}
_ORDER = ("_arrival_date", "_file_order", "_place")


@contextmanager
def scratch(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a temporary database for what does not fit into memory."""
    import duckdb

    connection = duckdb.connect(str(folder / "scratch.duckdb"))
    try:
        for name, value in _SETTINGS.items():
            connection.execute(f"SET {name} = {value}")
        yield connection
    except duckdb.Error as error:
        raise SourceError(
            f"What was read could not be compared with raw: {str(error).splitlines()[0]}",
            f"Nothing of it was taken. Make room at {folder.parent}, and run the same again.",
        ) from error
    finally:
        connection.close()
        (folder / "scratch.duckdb").unlink(missing_ok=True)


def add_current(
    connection: duckdb.DuckDBPyConnection,
    contract: Contract,
    so_far: SoFar,
    columns: Collection[str],
    days: Collection[date] | None = None,
    is_newer: Callable[[str], bool] = lambda publication: True,
) -> None:
    """Add the table `current`: the newest version of each key and day in raw or in the late queue.

    Args:
        columns: of the contract, besides key and day.
        days: only these; all by default.
        is_newer: whether a publication may have relevant versions; the others are not opened.
    """
    order = (*contract.versioned_by, *_ORDER)
    wanted = dict.fromkeys((DAY, *contract.key, *columns, "_kind", "_arrival", *order))
    types = {name: contract.column(name).type for name in wanted if name in contract.column_names}
    none = {name: f"CAST(NULL AS {duck_type(contract, name)}) AS {quoted(name)}" for name in wanted}
    shown = {
        name: f"make_timestamptz(epoch_us({quoted(name)})) AS {quoted(name)}"
        if types.get(name) == "timestamp"
        else quoted(name)
        for name in wanted
    }
    parts = []
    for number, table in enumerate((contract.name, contract.name.replace("raw.", "late.", 1))):
        if (rows := _rows(so_far, table, days, is_newer)) is not None:
            connection.register(f"rows_{number}", rows)
            has = {*rows.schema.names}  # not yet a column that was declared since
            parts.append(
                f"SELECT {', '.join(shown[name] if name in has else none[name] for name in wanted)} FROM rows_{number}"
            )
    connection.execute("CREATE TEMP TABLE withdrawn (path VARCHAR)")
    connection.executemany("INSERT INTO withdrawn VALUES (?)", [("",), *((path,) for path in so_far.withdrawn)])
    if not parts:
        parts.append(f"SELECT {', '.join(none.values())} WHERE false")
    key = ", ".join(map(quoted, (DAY, *contract.key)))
    newest = ", ".join(f"{quoted(name)} DESC NULLS LAST" for name in order)
    replaces = contract.source is not None and contract.source.replaces
    whole_days = f" AND _arrival_date = max(_arrival_date) OVER (PARTITION BY {DAY})" if replaces else ""
    connection.execute(
        f"CREATE TABLE current AS SELECT {', '.join(map(quoted, (DAY, *contract.key, *columns, '_kind')))} "
        f"FROM ({' UNION ALL BY NAME '.join(parts)}) "
        f"WHERE _kind NOT IN ('{WITHDRAWAL}', '{ERASED}') AND _arrival NOT IN (FROM withdrawn) "
        f"QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY {newest}) = 1{whole_days}"
    )


def differences(
    contract: Contract, before: SoFar, after: SoFar, folder: Path, columns: Collection[str], days: Collection[date]
) -> dict[date, dict[str, int]]:
    """Count the keys of some days that are `new`, `gone`, `changed` or the `same` between two releases of raw.

    Rows in the late queue do not count.

    Args:
        folder: for what does not fit into memory.
        columns: whose values are compared.
    """
    with scratch(folder) as rows:
        for name, so_far in (("before", before), ("after", after)):
            raw = {table: version for table, version in so_far.release.versions.items() if table == contract.name}
            add_current(rows, contract, replace(so_far, release=Release(so_far.release.number, raw)), columns, days)
            content = f"ROW({', '.join(map(quoted, columns)) or '1'})"
            named = f"SELECT * EXCLUDE (_kind), true AS _is_there, {content} AS _content FROM current"
            rows.execute(f"CREATE TABLE {name} AS {named} WHERE _kind = 'record'")
            rows.execute("DROP TABLE current; DROP TABLE withdrawn")
        key = ", ".join(map(quoted, (DAY, *contract.key)))
        what = "CASE WHEN b._is_there IS NULL THEN 'new' WHEN a._is_there IS NULL THEN 'gone' "
        what += "WHEN a._content IS DISTINCT FROM b._content THEN 'changed' ELSE 'same' END"
        counts = (
            f"SELECT {DAY}, {what}, count(*) FROM before b FULL JOIN after a USING ({key}) GROUP BY 1, 2 ORDER BY 1"
        )
        found: dict[date, dict[str, int]] = {}
        for day, kind, count in rows.execute(counts).fetchall():
            found.setdefault(day, {})[kind] = count
    return found


def add_refused(connection: duckdb.DuckDBPyConnection, contract: Contract, so_far: SoFar, name: str) -> None:
    """Add the table `refused`: a column of refused rows, which would be refused again."""
    rows = _rows(so_far, refused_table(contract.name), None, lambda publication: True)
    connection.execute("CREATE TABLE refused (value BIGINT)")
    if rows is not None:
        connection.register("refused_rows", rows)
        found = f"""regexp_extract(_payload, '"{name}":"?(-?[0-9]+)', 1)"""
        connection.execute(f"INSERT INTO refused SELECT TRY_CAST({found} AS BIGINT) FROM refused_rows")


def _rows(
    so_far: SoFar, table: str, days: Collection[date] | None, is_newer: Callable[[str], bool]
) -> ds.Dataset | None:
    import pyarrow.dataset as ds

    if table not in so_far.release.versions:
        return None
    found = dataset(so_far.lake, table, days, so_far.release)
    root = f"/{table.replace('.', '/')}/"
    files = [each for each in found.get_fragments() if is_newer(each.path.rpartition(root)[2].partition("/")[0])]
    return ds.FileSystemDataset(files, found.schema, found.format, found.filesystem)


_OWN = {DAY: "date", "_arrival_date": "date", "_place": "long"}


def duck_type(contract: Contract, name: str) -> str:
    """Return the type in `current` of a column of a contract, or of raw."""
    return duckdb_type(contract.column(name).type if name in contract.column_names else _OWN.get(name, "string"))
