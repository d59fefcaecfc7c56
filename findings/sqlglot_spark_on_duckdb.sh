#!/usr/bin/env bash
# sqlglot 30.30.0, Spark 4.2.0, duckdb 2.0.0: Spark SQL transpiled for DuckDB runs, and gives other dates and numbers.
#
# Expected: `sqlglot.transpile(query, read="spark", write="duckdb")` keeps the meaning, or refuses what it cannot say.
# Teams test their Spark models so on DuckDB, without a JVM.
# Seen, without an error or a warning:
# - to_utc_timestamp shifts in the other direction: midnight in Berlin becomes 02:00 instead of 22:00 of the day before
# - date_diff(HOUR, …) casts both moments to dates first, and is 0 within a day
# - timestampdiff counts boundaries that were crossed: 31 January to 29 February is a month
# - a sequence by month loses its last days: after 29 February come 29 March and 29 April
# - percentile(x, 0.5) becomes DuckDB's discrete quantile, one of the values
# - CAST(2.5 AS INT) rounds instead of cutting; dayofweek begins at 0; transform(list, (x, i) -> …) counts i from 1
# For a user: test such expressions on Spark, or compare both engines over odd values before you trust one for the other.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check sqlglot==30.30.0 duckdb==2.0.0 pyspark==4.2.0 pytz
cd "$folder"
export SPARK_LOCAL_IP=127.0.0.1 TZ=UTC
"$folder/python/bin/python" - <<'PYTHON' 2>"$folder/log" || { tail -20 "$folder/log"; exit 1; }
import duckdb
import sqlglot
from pyspark.sql import SparkSession

DIFFERENT = {
    "to_utc_timestamp(timestamp'2024-07-01 00:00:00', 'Europe/Berlin')": ("2024-06-30 22:00:00", "2024-07-01 02:00:00+00"),
    "date_diff(HOUR, timestamp'2024-01-01 00:59:00', timestamp'2024-01-01 02:01:00')": ("1", "0"),
    "timestampdiff(MONTH, timestamp'2024-01-31 00:00:00', timestamp'2024-02-29 00:00:00')": ("0", "1"),
    "date_format(sequence(date'2024-01-31', date'2024-04-30', interval 1 month)[2], 'dd.MM.')": ("31.03.", "29.03."),
    "percentile(x, 0.5)": ("2.5", "2"),
    "CAST(2.5 AS INT)": ("2", "3"),
    "dayofweek(date'2024-01-07')": ("1", "0"),
    "array_max(transform(array(1, 2), (x, i) -> x + i))": ("3", "4"),
}
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)
duck = duckdb.connect()
duck.execute("SET timezone = 'UTC'")
for expression, seen in DIFFERENT.items():
    query = f"SELECT CAST({expression} AS STRING) FROM (VALUES (1), (2), (3), (3)) AS t(x)"
    if "percentile" not in expression:
        query += " LIMIT 1"
    (transpiled,) = sqlglot.transpile(query, read="spark", write="duckdb")
    both = spark.sql(query).collect()[0][0], duck.execute(transpiled).fetchall()[0][0]
    print(f"{expression}: Spark {both[0]}, DuckDB {both[1]}", flush=True)
    assert both == seen, (both, transpiled)
PYTHON
