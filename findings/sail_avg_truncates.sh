#!/usr/bin/env bash
# pysail 0.7.2: avg of decimals cuts the last digit off, where Spark rounds half up.
#
# Expected: Spark SQL's avg of decimal(10,2) is decimal(14,6), rounded half up: 5.00 / 3 is 1.666667.
# Seen: the type is the same, the value is 1.666666. A division of the same sum by the same count in the same query is
# 1.666667, so that `avg(x)` and `sum(x) / count(x)` differ in one engine. A check of a few rows hardly sees it: half of all averages
# that have more digits than their type are one unit too small, none too large.
# For a user: write sum(x) / count(x), and cast it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check pysail==0.7.2 pyspark-client==4.2.0 'pandas<3' \
  'setuptools<81'
"$folder/python/bin/python" - <<'PYTHON' 2>&1 | grep -v "INFO sail\|WARN sail"
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal

from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession

server = SparkConnectServer("127.0.0.1", 0)
server.start(background=True)
spark = SparkSession.builder.remote(f"sc://127.0.0.1:{server.listening_address[1]}").getOrCreate()

rows = spark.sql(
    "SELECT id % 97 AS k, CAST(id * 7 % 1000 AS DECIMAL(10,2)) / 100 AS raw, "
    "CAST(CAST(id * 7 % 1000 AS DOUBLE) / 100 AS DECIMAL(10,2)) AS x FROM range(1000)"
)
rows.createOrReplaceTempView("t")
groups = spark.sql("SELECT k, avg(x) AS a, sum(x) AS s, count(x) AS n FROM t GROUP BY k")
print(groups.schema["a"].dataType.simpleString())
assert groups.schema["a"].dataType.simpleString() == "decimal(14,6)"
unit = Decimal("0.000001")
down = up = 0
for row in groups.collect():
    exact = row.s / row.n
    down += row.a == exact.quantize(unit, ROUND_DOWN)
    up += row.a == exact.quantize(unit, ROUND_HALF_UP)
print(f"of 97 averages {down} are cut, {up} are rounded half up")
assert down == 97 and up < 97, (down, up)
one = spark.sql("SELECT avg(x) AS a FROM VALUES (1.00BD), (2.00BD), (2.00BD) AS t(x)").collect()[0].a
print("avg of 1.00, 2.00, 2.00:", one)
assert one == Decimal("1.666666")
server.stop()
PYTHON
