#!/usr/bin/env bash
# pyspark 4.2.0: comparing a decimal(38,0) with a decimal that has a fraction rounds the fraction away first.
#
# Expected: 24 = 24.4 is false whatever the types, exactly or as an error, as for decimal(10,0) and decimal(10,1).
# sum() of a bigint that was cast to decimal(28,0) or more is a decimal(38,0), so this is the type of many totals.
# Seen: both sides are cast to one type of at most 38 digits; where whole digits and fraction together need more, the
# fraction is cut, rounded half up. Then 24 = 24.4 is true, 25 - 24 <= 0.6 is true (0.6 became 1), and IN, joins and
# null-safe equality say so too. ANSI mode, the default, raises nothing.
# For a user: cast both sides to types in which the digits of both fit, such as decimal(37,1), before they are compared.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check pyspark==4.2.0
cd "$folder"
"$folder/python/bin/python" - <<'PYTHON' 2>/dev/null
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
assert spark.conf.get("spark.sql.ansi.enabled") == "true"


def told(expression: str) -> bool:
    [[value]] = spark.sql(f"SELECT {expression}").collect()
    print(f"{expression}: {value}")
    return bool(value)


narrow, wide = "CAST({} AS DECIMAL(10,0))", "CAST({} AS DECIMAL(38,0))"
fits = "CAST({} AS DECIMAL(37,1))"
assert not told(f"{narrow.format(24)} = 24.4BD")
assert told(f"{wide.format(24)} = 24.4BD")
assert told(f"{wide.format(24)} <=> 24.4BD")
assert told(f"{wide.format(24)} IN (24.4BD)")
assert told(f"{wide.format(25)} - {wide.format(24)} <= 0.6BD")
assert not told(f"{wide.format(25)} - {wide.format(24)} <= 0.4BD")
assert not told(f"{fits.format(25)} - {fits.format(24)} <= 0.6BD")
assert not told(f"{fits.format(24)} = 24.4BD")
assert spark.sql("SELECT sum(CAST(id AS DECIMAL(28,0))) AS s FROM range(3)").schema["s"].dataType.precision == 38
spark.range(2).selectExpr("CAST(id + 24 AS DECIMAL(38,0)) AS total").createOrReplaceTempView("totals")
spark.sql("SELECT 24.4BD AS golden").createOrReplaceTempView("golden")
joined = spark.sql("SELECT total, golden FROM totals JOIN golden ON total = golden").collect()
print("joined on equality:", [(str(row.total), str(row.golden)) for row in joined])
assert [(str(row.total), str(row.golden)) for row in joined] == [("24", "24.4")]
PYTHON
