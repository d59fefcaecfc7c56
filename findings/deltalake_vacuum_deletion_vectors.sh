#!/usr/bin/env bash
# deltalake 1.6.6: a full vacuum deletes deletion vectors that the table needs, and then nothing reads it.
#
# Expected: `DeltaTable.vacuum(full=True)` deletes files that the table refers to no more. deltalake reads tables with deletion
# vectors (`QueryBuilder`) and writes them, so it knows what a `deletion_vector_….bin` is.
# Seen: the newest version's own deletion vectors count as files that nothing refers to, as soon as they are older than the
# retention. They are deleted; the dry run lists them among the rest. Then Spark and `QueryBuilder` fail on the missing file,
# and the rows of its Parquet file cannot be read without the deleted ones. A vacuum without `full` leaves them alone.
# For a user: have tables with deletion vectors vacuumed by Spark alone, or purge them first (REORG TABLE … APPLY (PURGE)).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check \
  deltalake==1.6.6 pyarrow==26.0.1 pyspark==4.2.0 delta-spark==4.4.0
cd "$folder"
export SPARK_LOCAL_IP=127.0.0.1
"$folder/python/bin/python" - <<'PYTHON' 2>"$folder/log" || { tail -20 "$folder/log"; exit 1; }
from pathlib import Path

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
spark.sql(f"CREATE TABLE delta.`{path}` (id INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
spark.sql(f"INSERT INTO delta.`{path}` SELECT /*+ COALESCE(1) */ CAST(id AS INT) FROM range(5)")
spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 2")


def read_by(reader: str) -> str:
    try:
        if reader == "Spark":
            return str(sorted(row.id for row in spark.read.format("delta").load(path).collect()))
        query = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT id FROM t ORDER BY id").read_all()
        return str(pyarrow.table(query)["id"].to_pylist())
    except Exception as error:
        said = str(error)
        return "fails on a missing file" if "deletion_vector_" in said or "FileNotFound" in said else said


def vacuumed(full: bool) -> list[str]:
    files = DeltaTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False, full=full)
    return [file for file in files if file.startswith("deletion_vector_")]


readers = ("Spark", "QueryBuilder")
before = {reader: read_by(reader) for reader in readers}
usual, between = vacuumed(full=False), {reader: read_by(reader) for reader in readers}
full, after = vacuumed(full=True), {reader: read_by(reader) for reader in readers}
print(f"before: {before}\nafter a vacuum: {between}\nafter a full vacuum, which deletes {full}: {after}", flush=True)
assert set(before.values()) == set(between.values()) == {"[0, 1, 3, 4]"} and not usual
assert len(full) == 1 and set(after.values()) == {"fails on a missing file"}
PYTHON
