#!/usr/bin/env bash
# delta-spark 4.4.0, Spark 4.2.0: with a generated day, a session of another time zone does not find rows by their moment.
#
# Expected: a moment (TIMESTAMP) is the same in every session, and `WHERE ts = TIMESTAMP '2024-01-01 23:40:00Z'` finds its
# row whatever `spark.sql.session.timeZone` says. Partition columns that Delta generates only leave files out.
# Seen: for a table partitioned by `day DATE GENERATED ALWAYS AS (CAST(ts AS DATE))` Delta derives a condition on `day` from
# the one on `ts`, in the time zone of the session that reads. Rows that a session in UTC wrote shortly before midnight are
# not found by a session in Berlin, by = or by >=, without an error. DELETE with the same condition derives none: it deletes
# the row that SELECT says is not there.
# For a user: compute the day in one fixed zone yourself, or set the same time zone in every session, Connect clients and
# SQL warehouses included.
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
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()
MOMENT = "TIMESTAMP '2024-01-01 23:40:00Z'"
KINDS = {"generated": "DATE GENERATED ALWAYS AS (CAST(ts AS DATE))", "plain": "DATE"}


def count(table: str, condition: str) -> int:
    return spark.sql(f"SELECT count(*) FROM {table} WHERE {condition}").first()[0]


for table, kind in KINDS.items():
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.sql(f"CREATE TABLE {table} (id INT, ts TIMESTAMP, day {kind}) USING delta PARTITIONED BY (day)")
    spark.sql(f"INSERT INTO {table} VALUES (1, {MOMENT}, DATE '2024-01-01')")
    found = {}
    for zone in ("UTC", "Europe/Berlin"):
        spark.conf.set("spark.sql.session.timeZone", zone)
        found[zone] = count(table, f"ts = {MOMENT}"), count(table, f"ts >= {MOMENT} - INTERVAL 10 MINUTES")
    deleted = spark.sql(f"DELETE FROM {table} WHERE ts = {MOMENT}").first()[0]
    print(f"{table} day: found by = and by >=: {found}; deleted from Berlin: {deleted}", flush=True)
    assert found["UTC"] == (1, 1)
    assert (found["Europe/Berlin"], deleted) == ((0, 0) if table == "generated" else (1, 1), 1)
PYTHON
