#!/usr/bin/env bash
# deltalake 1.6.6: a table with column mapping is read as nulls by to_pyarrow_table and to_pandas, without an error.
#
# Expected: `delta.columnMapping.mode = 'name'`, which renaming or dropping a column in Spark needs, is either read by the
# columns' physical names or refused as an unknown reader feature, as Polars does.
# Seen: `DeltaTable.to_pyarrow_table` looks for the columns' own names in files that have others: each row is there, each
# of its values is null, also in columns that were never renamed. `QueryBuilder` of the same release reads the values.
# For a user: read such tables by `QueryBuilder`, DuckDB or Spark, and check for columns that are null throughout.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check \
  deltalake==1.6.6 pyarrow==26.0.1 polars==2.1.0 pandas==2.3.3 pyspark==4.2.0 delta-spark==4.4.0
cd "$folder"
export SPARK_LOCAL_IP=127.0.0.1
"$folder/python/bin/python" - <<'PYTHON' 2>"$folder/log" || { tail -20 "$folder/log"; exit 1; }
from pathlib import Path

import polars
from delta import configure_spark_with_delta_pip
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

builder = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()
path = str(Path("t").resolve())
spark.sql(f"CREATE TABLE delta.`{path}` (item INT, net INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 2), (3, 4)")
right = sorted(tuple(row) for row in spark.read.format("delta").load(path).collect())
table = DeltaTable(path)
arrow = [tuple(row.values()) for row in table.to_pyarrow_table().to_pylist()]
nulls = int(table.to_pandas().isna().sum().sum())
query = QueryBuilder().register("t", table).execute("SELECT item, net FROM t ORDER BY item").read_all()
queried = list(zip(*(query[name].to_pylist() for name in ("item", "net")), strict=True))
print(f"Spark: {right}\nto_pyarrow_table: {arrow}\nto_pandas: {nulls} of 4 values are null\nQueryBuilder: {queried}", flush=True)
assert right == queried == [(1, 2), (3, 4)]
assert arrow == [(None, None)] * 2 and nulls == 4
try:
    polars.scan_delta(path).collect()
except Exception as error:
    print(f"Polars: {str(error).splitlines()[0]}")
else:
    raise AssertionError("Polars read it")
PYTHON
