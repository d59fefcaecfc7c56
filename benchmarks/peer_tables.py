"""Tables of a peer that keeps them with DuckDB: raw filled and appended to, models written out for comparing.

Runs in a peer's own environment. Where that has DuckLake's extension, tables are in a lake, otherwise in a database.

python -m benchmarks.peer_tables FOLDER load FILES.json
python -m benchmarks.peer_tables FOLDER append LINES.parquet
python -m benchmarks.peer_tables FOLDER export INTO
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path

import duckdb

RAW = "raw.transactions"
MODELS = {"silver.transactions": "shop.silver_transactions", "gold.store_sales": "shop.store_sales"}
"""Contracts, and the tables that are to hold the same."""

_EXTENSION = "duckdb_extension_ducklake"


def in_a_lake() -> bool:
    """Whether this environment has DuckLake."""
    return importlib.util.find_spec(_EXTENSION) is not None


def connect(folder: Path) -> duckdb.DuckDBPyConnection:
    """The peer's tables, by names of two parts."""
    if not in_a_lake():
        db = duckdb.connect(str(folder / "warehouse.duckdb"))
    else:
        db = duckdb.connect(config={"autoinstall_known_extensions": "false"})
        (extension,) = Path(importlib.import_module(_EXTENSION).__path__[0]).rglob("*.duckdb_extension")
        db.execute(f"LOAD '{extension}'")
        db.execute(f"ATTACH 'ducklake:{folder / 'catalog.ducklake'}' AS lake (DATA_PATH '{folder / 'files'}')")
        db.execute("USE lake")
    db.execute("SET TimeZone = 'UTC'")
    return db


def load(db: duckdb.DuckDBPyConnection, files: list[str]) -> None:
    """Raw, from files of a table partitioned by day."""
    read = "read_parquet($files, union_by_name = true, hive_partitioning = true, hive_types = {'event_date': DATE})"
    db.execute("CREATE SCHEMA raw; CREATE SCHEMA shop")
    db.execute(f"CREATE TABLE {RAW} AS SELECT * FROM {read} LIMIT 0", {"files": files})
    if in_a_lake():
        db.execute(f"ALTER TABLE {RAW} SET PARTITIONED BY (event_date)")
    db.execute(f"INSERT INTO {RAW} BY NAME SELECT * FROM {read}", {"files": files})


def export(db: duckdb.DuckDBPyConnection, into: Path) -> None:
    """Both models as Parquet by day, as `benchmarks.equality` reads them."""
    for name, table in MODELS.items():
        folder = into / name
        folder.mkdir(parents=True)
        db.execute(
            f"COPY (FROM {table}) TO '{folder}' (FORMAT parquet, PARTITION_BY (event_date), OVERWRITE_OR_IGNORE)"
        )


def main() -> None:
    """Do one of these."""
    folder, what, given = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    with connect(folder) as db:
        if what == "load":
            load(db, json.loads(given.read_text(encoding="utf-8")))
        elif what == "append":
            db.execute(f"INSERT INTO {RAW} BY NAME FROM read_parquet('{given}')")
        elif what == "export":
            export(db, given)
        else:
            raise SystemExit(f"There is nothing called {what} here.")


if __name__ == "__main__":
    main()
