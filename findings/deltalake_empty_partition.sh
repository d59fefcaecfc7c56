#!/usr/bin/env bash
# deltalake 1.6.6, polars 2.1.0: the empty string as a partition value is null for one reader and '' for the others.
#
# Expected: the Delta protocol writes null partition values as "" and has no way to write an empty string, so a reader
# gives null, and every reader of one package gives the same.
# Seen: to_pyarrow_table gives null; the SQL engine of the same package and Polars give ''. So `p IS NULL` finds the row
# in one and `p = ''` in the others: a count by partition differs with the reader.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check deltalake==1.6.6 pyarrow==26.0.1 polars==2.1.0
cd "$folder"
python/bin/python - <<'PYTHON'
import json
from pathlib import Path

import polars as pl
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

write_deltalake("table", pa.table({"n": [1, 2], "p": ["", "a"]}), partition_by=["p"])
table = DeltaTable("table")
log = [json.loads(line) for file in Path("table/_delta_log").glob("*.json") for line in file.read_text().splitlines()]
print("in the log:", sorted(str(line["add"]["partitionValues"]) for line in log if "add" in line))
arrow = table.to_pyarrow_table().filter(pa.compute.equal(table.to_pyarrow_table()["n"], 1))["p"].to_pylist()
count = "SELECT count(*) AS rows FROM t WHERE "
engine = QueryBuilder().register("t", table)
is_null, is_empty = (
    pa.table(engine.execute(count + test).read_all())["rows"].to_pylist()[0] for test in ("p IS NULL", "p = ''")
)
polars = pl.read_delta("table").filter(pl.col("n") == 1)["p"].to_list()
print(f"Arrow: {arrow}; SQL: {is_null} null, {is_empty} empty; Polars: {polars}")
assert arrow == [None] and (is_null, is_empty) == (0, 1) and polars == [""]
PYTHON
