#!/usr/bin/env bash
# ibis 12.0.0: one expression gives other counts, remainders and amounts on Polars 2.1.0 than on DuckDB 1.5.6.
#
# Expected: an expression of ibis means the same on each backend, or a backend says that it cannot compute it; pipelines
# are tested on a local backend for that reason.
# Seen, without an error or a warning:
# - nunique() of texts counts a null as a value of its own on Polars: 3 instead of 2
# - -7 % 2 is 1 on Polars and -1 on DuckDB, so that the buckets of negative keys move
# - 2.5 rounds to 2 on Polars (half to even) and to 3 on DuckDB; casts of doubles to decimals do alike
# - 2.00 / 3.00 of decimals is the double 0.67 on Polars (two digits, like its inputs) and 0.666… on DuckDB
# For a user: run the same small table through both backends and compare, before results of one stand for the other.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check \
  "ibis-framework[duckdb,polars]==12.0.0" duckdb==1.5.6 polars==2.1.0 pyarrow==26.0.1
cd "$folder"
python/bin/python -W ignore - <<'PYTHON'
from decimal import Decimal

import ibis
import pyarrow as pa
import pyarrow.parquet as parquet

parquet.write_table(
    pa.table(
        {
            "text": ["a", "b", None],
            "whole": [-7, 7, None],
            "number": [2.5, 0.5, None],
            "amount": pa.array([Decimal("2.00"), Decimal("1.00"), None], pa.decimal128(10, 2)),
            "parts": pa.array([Decimal("3.00")] * 3, pa.decimal128(10, 2)),
        }
    ),
    "t.parquet",
)
found = {}
for name, backend in {"duckdb": ibis.duckdb.connect(), "polars": ibis.polars.connect()}.items():
    t = backend.read_parquet("t.parquet", table_name="t")
    rows = backend.to_pyarrow(
        t.select(modulo=t.whole % 2, rounded=t.number.round(), quotient=t.amount / t.parts)
    ).slice(0, 1)
    found[name] = {"distinct": backend.to_pyarrow(t.text.nunique()).as_py(), **rows.to_pylist()[0]}
    print(name, found[name])
assert found["duckdb"] == {"distinct": 2, "modulo": -1, "rounded": 3, "quotient": 2 / 3}, found
assert found["polars"] == {"distinct": 3, "modulo": 1, "rounded": 2, "quotient": 0.67}, found
PYTHON
