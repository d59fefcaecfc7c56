"""Whether lakes hold the same rows, however they were made: counted and hashed per table by DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import duckdb
from deltalake import DeltaTable

from benchmarks.harness import BenchmarkError
from platform_assets.contracts import DAY, Contract
from platform_assets.domains.retail.contracts import TABLES

DEAD_LETTERS = ("_arrival",)
"""What the sides agree on for a row refused or quarantined; each words its reason and payload in its own way."""


class UnequalError(BenchmarkError):
    """Two sides of a benchmark hold different rows, so their times must not be compared."""


@dataclass(frozen=True)
class Content:
    """How many rows a table holds, the sum of its money, and of the hashes of all columns and days."""

    rows: int
    net: Decimal
    hashed: int


def contents(lake: Path) -> dict[str, Content]:
    """Every table of a lake in Delta (the platform's or a bare script's) or in plain Parquet."""
    return {name: _content(lake / name.replace(".", "/"), name, columns) for name, columns in _tables()}


def table_content(table: Path, contract: Contract) -> Content:
    """One Delta table, whoever wrote it, as far as a contract declares its columns."""
    return _content(table, contract.name, {column.name: column.type for column in contract.columns})


def check_equal(expected: dict[str, Content], found: dict[str, Content], what: str) -> None:
    """Compare two lakes; the error names every table that differs, with rows and money of both."""
    different = [
        f"{name}: {one.rows:,} rows and {one.net} against {found[name].rows:,} rows and {found[name].net}"
        + (", other values" if (one.rows, one.net) == (found[name].rows, found[name].net) else "")
        for name, one in expected.items()
        if one != found[name]
    ]
    if different:
        raise UnequalError(f"{what} do not hold the same rows. " + "; ".join(different))


def _tables() -> Iterator[tuple[str, dict[str, str]]]:
    for contract in TABLES:
        more = {"_arrival": "string"} if contract.layer == "raw" else {}
        yield contract.name, {column.name: column.type for column in contract.columns} | more
        if other := {"raw": "refused", "silver": "quarantine"}.get(contract.layer):
            yield f"{other}.{contract.table}", dict.fromkeys(DEAD_LETTERS, "string")


def _content(table: Path, name: str, columns: dict[str, str]) -> Content:
    files = _files(table)
    if name.startswith("refused."):
        # What a bare script refuses for its day alone, far from any that it loads, waits in the platform's late queue
        files += _files(table.parent.parent / "late" / table.name)
    if not files:
        return Content(0, Decimal(0), 0)
    # Rows of the platform's own bookkeeping: days on which a moved key lost
    kept = "_kind <> 'tombstone'" if name.startswith("raw.") else "true"
    day = "CAST(split_part(_arrival, '/', 2) AS DATE)" if name.startswith("refused.") else DAY
    options = f"union_by_name = true, hive_partitioning = true, hive_types = {{'{DAY}': DATE}}"
    typed = ", ".join(f"CAST({column} AS {_sql_type(type_)})" for column, type_ in columns.items())
    money = next((column for column in ("net", "net_amount", "spend", "sales_value") if column in columns), "0")
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'; SET memory_limit = '4GB'")
        found = db.execute(
            f"SELECT count(*), coalesce(sum({money}), 0)::DECIMAL(18,2), "
            f"coalesce(sum(hash({typed}, {day})), 0)::HUGEINT FROM read_parquet($files, {options}) WHERE {kept}",
            {"files": files},
        ).fetchone()
    assert found is not None
    return Content(*found)


def _files(table: Path) -> list[str]:
    if (table / "_delta_log").is_dir():
        return DeltaTable(table).file_uris()
    return [str(file) for file in sorted(table.glob("*/*.parquet"))]


def _sql_type(type_: str) -> str:
    return {"long": "BIGINT", "string": "VARCHAR", "timestamp": "TIMESTAMPTZ"}.get(type_, type_)
