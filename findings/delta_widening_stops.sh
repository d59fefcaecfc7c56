#!/usr/bin/env bash
# delta-spark 4.4.0, Spark 4.2.0: with type widening on, whether an append keeps its digits depends on what came before.
#
# Expected: with `delta.enableTypeWidening` and `mergeSchema` an append of another type either widens the column so that
# all values are kept, or fails, because nobody asked for a cast.
# Seen: an INT column takes a double: it becomes DOUBLE and 1.7 stays 1.7. If a BIGINT came first, the column is BIGINT, and
# the same append makes 1 of 1.7 without an error: BIGINT to DOUBLE is no widening, so the value is cast as INSERT casts. A
# DECIMAL(12,2) grows for DECIMAL(14,4), and rounds 2.3456 of a DECIMAL(12,4) to 2.35, because that has fewer digits before
# the point.
# For a user: compare the schemas before an append, or set spark.sql.storeAssignmentPolicy=STRICT, with which these appends
# are refused.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check pyspark==4.2.0 delta-spark==4.4.0
cd "$folder"
export SPARK_LOCAL_IP=127.0.0.1
"$folder/python/bin/python" - <<'PYTHON' 2>"$folder/log" || { tail -20 "$folder/log"; exit 1; }
from delta import configure_spark_with_delta_pip
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
CASES = [
    ("INT", ["1.7D"], "double", ["1.7"]),
    ("INT", ["5000000000L", "1.7D"], "bigint", ["5000000000", "1"]),
    ("DECIMAL(12,2)", ["CAST(2.3456 AS DECIMAL(14,4))"], "decimal(14,4)", ["2.3456"]),
    ("DECIMAL(12,2)", ["CAST(2.3456 AS DECIMAL(12,4))"], "decimal(12,2)", ["2.35"]),
]


def append(table: str, number: int, value: str) -> None:
    rows = spark.sql(f"SELECT {number} AS id, {value} AS v")
    rows.write.format("delta").mode("append").option("mergeSchema", "true").saveAsTable(table)


for n, (declared, values, type_, expected) in enumerate(CASES):
    table = f"t{n}"
    spark.sql(f"CREATE TABLE {table} (id INT, v {declared}) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    for number, value in enumerate(values):
        append(table, number, value)
    found = [str(row.v) for row in spark.table(table).orderBy("id").collect()]
    now = dict(spark.table(table).dtypes)["v"]
    print(f"{declared}, then {', then '.join(values)}: {now}, {found}", flush=True)
    assert (now, found) == (type_, expected)
spark.conf.set("spark.sql.storeAssignmentPolicy", "STRICT")
for table, value in (("t1", "1.7D"), ("t3", "CAST(2.3456 AS DECIMAL(12,4))")):
    try:
        append(table, 9, value)
    except Exception as error:  # noqa: BLE001 - only its name is of interest
        print(f"STRICT, {value}: {str(error).splitlines()[0][:120]}", flush=True)
    else:
        raise SystemExit(f"STRICT takes {value}: {spark.table(table).collect()}")
PYTHON
