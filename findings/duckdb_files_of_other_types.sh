#!/usr/bin/env bash
# DuckDB 2.0.0: reading Parquet files of which a later one has a wider type loses digits without an error, either way.
#
# Expected: `read_parquet(['old.parquet', 'new.parquet'])` raises where the type of a column differs and values do not fit,
# as Polars 2.1 and Arrow 26 do; or `union_by_name = true` finds a type that holds all values.
# Seen: without `union_by_name` the first file's type counts, and values of later ones are rounded to it: 2.3456 of a
# decimal(12,4) becomes 2.35 behind a decimal(12,2), 0.5 of a double becomes 0 behind a BIGINT. Which file is first follows
# from its name. With `union_by_name` decimals get a type that holds all of them, but BIGINT and DOUBLE become DOUBLE, and
# 9007199254740993 becomes 9007199254740992.
# For a user: compare `parquet_schema(…)` of all files before you read them together; or cast each file by itself, where
# `CAST(v AS DECIMAL(12,2))` is at least to be seen in the query.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check duckdb==2.0.0 polars==2.1.0 pyarrow==26.0.1
cd "$folder"
"$folder/python/bin/python" - <<'PYTHON'
from decimal import Decimal

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

COLUMNS = {
    "decimals": (
        pa.array([Decimal("1.10")], pa.decimal128(12, 2)),
        pa.array([Decimal("2.3456")], pa.decimal128(12, 4)),
    ),
    "numbers": (pa.array([9007199254740993], pa.int64()), pa.array([0.5], pa.float64())),
}
FIRST = {
    "decimals": [("DECIMAL(12,2)", Decimal("1.10")), ("DECIMAL(12,2)", Decimal("2.35"))],
    "numbers": [("BIGINT", 9007199254740993), ("BIGINT", 0)],
}
UNION = {
    "decimals": [("DECIMAL(14,4)", Decimal("1.1000")), ("DECIMAL(14,4)", Decimal("2.3456"))],
    "numbers": [("DOUBLE", 9007199254740992.0), ("DOUBLE", 0.5)],
}
for name, columns in COLUMNS.items():
    files = [f"{name}_{number}.parquet" for number in (1, 2)]
    for file, column in zip(files, columns):
        pq.write_table(pa.table({"v": column}), file)
    for union, expected in ((False, FIRST[name]), (True, UNION[name])):
        query = f"SELECT typeof(v), v FROM read_parquet({files}, union_by_name = {union})"
        found = duckdb.sql(query).fetchall()
        print(f"{name}, union_by_name = {union}: {found}")
        assert found == expected
    for library, read in (
        ("Polars", lambda: pl.scan_parquet(files).collect()),
        ("Arrow", lambda: ds.dataset(files).to_table()),
    ):
        try:
            read()
        except (pl.exceptions.SchemaError, pa.ArrowInvalid) as error:
            print(f"{name}, {library}: {type(error).__name__}: {str(error).splitlines()[0]}")
        else:
            raise SystemExit(f"{library} reads {files}")
PYTHON
