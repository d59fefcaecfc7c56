#!/usr/bin/env bash
# deltalake 1.6.6: filters lose rows with decimals of 16 digits or more, in Spark, Arrow and Polars, without an error.
#
# Expected: a decimal's smallest and largest value stand in a file's statistics with all digits, as Spark writes them, or
# are widened, so that skipping files by them never loses a row.
# Seen: `write_deltalake` writes them as 64-bit floats. 1234567890123456.78 of decimal(18,2) becomes 1234567890123456.8, which
# says that no row is smaller. Delta's readers believe it: a filter for that very value finds no row in
# delta-spark 4.4.0 (Spark 4.2.0), in `DeltaTable.to_pyarrow_dataset` and in Polars' `scan_delta`; without a filter the row
# is there. The same row written by Spark is found by all.
# For a user: write such columns by Spark, or set the table's `delta.dataSkippingStatsColumns` to the other columns.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check \
  deltalake==1.6.6 pyarrow==26.0.1 polars==2.1.0 pyspark==4.2.0 delta-spark==4.4.0
cd "$folder"
export SPARK_LOCAL_IP=127.0.0.1
"$folder/python/bin/python" - <<'PYTHON' 2>"$folder/log" || { tail -20 "$folder/log"; exit 1; }
import json
from decimal import Decimal
from pathlib import Path

import polars
import pyarrow
import pyarrow.dataset
from delta import configure_spark_with_delta_pip
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

builder = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.databricks.delta.snapshotPartitions", "1")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()
AMOUNT, KIND = Decimal("1234567890123456.78"), pyarrow.decimal128(18, 2)


def smallest(table: str) -> str:
    """The text of the smallest value in the statistics of a table's only file."""
    log = Path(table, "_delta_log", f"{0:020}.json").read_text().splitlines()
    stats = next(json.loads(line)["add"]["stats"] for line in log if '"add"' in line)
    return json.loads(stats, parse_float=str)["minValues"]["amount"]


def found(table: str) -> dict[str, int]:
    """How many rows each reader finds for the value that the table's only row has."""
    arrow = DeltaTable(table).to_pyarrow_dataset()
    literal = polars.lit(AMOUNT, dtype=polars.Decimal(18, 2))
    return {
        "Spark": spark.read.format("delta").load(str(Path(table).resolve())).where(f"amount = {AMOUNT}").count(),
        "Arrow": arrow.to_table(filter=pyarrow.dataset.field("amount") == pyarrow.scalar(AMOUNT, KIND)).num_rows,
        "Polars": polars.scan_delta(table).filter(polars.col("amount") == literal).collect().height,
    }


write_deltalake("rust", pyarrow.table({"amount": pyarrow.array([AMOUNT], KIND)}))
spark.createDataFrame([(AMOUNT,)], "amount decimal(18,2)").write.format("delta").save(str(Path("jvm").resolve()))
for table in ("rust", "jvm"):
    whole = spark.read.format("delta").load(str(Path(table).resolve())).first()["amount"]
    print(f"{table}: the row is {whole}, its statistics say {smallest(table)}, rows found: {found(table)}", flush=True)
    assert whole == AMOUNT
assert smallest("rust") == "1234567890123456.8" and set(found("rust").values()) == {0}
assert smallest("jvm") == "1234567890123456.78" and set(found("jvm").values()) == {1}
PYTHON
