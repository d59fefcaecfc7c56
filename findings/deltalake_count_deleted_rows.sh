#!/usr/bin/env bash
# deltalake 1.6.6: DeltaTable.count() counts rows that deletion vectors deleted.
#
# Expected: the number of rows of the table. `to_pyarrow_table` refuses a table with deletion vectors by name; `QueryBuilder`,
# Polars and Spark read it without its deleted rows.
# Seen: `DeltaTable.count()` neither refuses nor subtracts: it adds up the statistics of files, which deletion vectors leave as
# they were. After one DELETE and one UPDATE in Spark, 4 rows are counted as 6; so are the `num_records` of
# `get_add_actions`. OPTIMIZE or REORG in Spark makes the count right again, so a check of counts passes on some days.
# For a user: count by a query (`QueryBuilder`, Polars, Spark) when rows of two tables are to be compared.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check \
  deltalake==1.6.6 pyarrow==26.0.1 polars==2.1.0 pyspark==4.2.0 delta-spark==4.4.0
cd "$folder"
export SPARK_LOCAL_IP=127.0.0.1
"$folder/python/bin/python" - <<'PYTHON' 2>"$folder/log" || { tail -20 "$folder/log"; exit 1; }
from pathlib import Path

import polars
import pyarrow
from delta import configure_spark_with_delta_pip
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

builder = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.databricks.delta.snapshotPartitions", "1")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()
path = str(Path("t").resolve())
spark.sql(f"CREATE TABLE delta.`{path}` (id INT, v INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
spark.sql(f"INSERT INTO delta.`{path}` SELECT /*+ COALESCE(1) */ CAST(id AS INT), CAST(id AS INT) FROM range(5)")


def counts() -> dict[str, int]:
    table = DeltaTable(path)
    query = QueryBuilder().register("t", table).execute("SELECT count(*) AS n FROM t").read_all()
    return {
        "Spark": spark.read.format("delta").load(path).count(),
        "Polars": polars.scan_delta(path).select(polars.len()).collect().item(),
        "QueryBuilder": pyarrow.table(query)["n"][0].as_py(),
        "count()": table.count(),
    }


before = counts()
spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 2")
spark.sql(f"UPDATE delta.`{path}` SET v = 40 WHERE id = 4")
after = counts()
spark.sql(f"REORG TABLE delta.`{path}` APPLY (PURGE)")
purged = counts()
print(f"5 rows: {before}\none deleted, one updated: {after}\npurged: {purged}", flush=True)
assert set(before.values()) == {5}
assert after == {"Spark": 4, "Polars": 4, "QueryBuilder": 4, "count()": 6}
assert set(purged.values()) == {4}
PYTHON
