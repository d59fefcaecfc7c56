#!/usr/bin/env bash
# pysail 0.7.2: quotients and averages of decimals are cut to their type's digits, where Spark rounds half up.
#
# Expected: Spark SQL rounds the result of a decimal division, and avg, half up to the scale of its type: the average of
# 1.00, 2.00 and 2.00 is 1.666667 as decimal(14,6).
# Seen: the type is the same, the value is 1.666666; below zero it is cut towards zero. Of sums of such averages the error
# goes one way and does not cancel. Averages that have an end within their type are right, so small samples of whole
# numbers agree with Spark.
# For a user: compute quotients with more digits than are wanted, and round them: round(avg(CAST(x AS DECIMAL(20,6))), 6).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check pysail==0.7.2 pyspark-client==4.2.0 'pandas<3' \
  'setuptools<81'
"$folder/python/bin/python" - <<'PYTHON' 2>&1 | grep -v "INFO sail\|WARN sail"
import os
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal

from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession

server = SparkConnectServer("127.0.0.1", 0)
server.start(background=True)
spark = SparkSession.builder.remote(f"sc://127.0.0.1:{server.listening_address[1]}").getOrCreate()


def one(query: str) -> Decimal:
    return spark.sql(query).collect()[0].a


for number, total, cut in (("2.00", "5.00", "1.666666"), ("-6.00", "-5.00", "-1.666666")):
    values = f"VALUES (2.00BD), ({'1.00' if number == '2.00' else '-1.00'}BD), ({number}BD) AS t(x)"
    average, quotient = one(f"SELECT avg(x) AS a FROM {values}"), one(f"SELECT sum(x) / count(x) AS a FROM {values}")
    print(f"{total} / 3: avg {average}, sum / count {quotient}")
    assert average == quotient == Decimal(cut), (average, quotient)

groups = spark.sql(
    "SELECT id % 300 AS k, avg(CAST(id % 7 AS DECIMAL(10,2))) AS a, sum(CAST(id % 7 AS DECIMAL(10,2))) AS s, "
    "count(*) AS n FROM range(900) GROUP BY id % 300"
)
assert groups.schema["a"].dataType.simpleString() == "decimal(14,6)"
unit = Decimal("0.000001")
down = up = unlike = 0
for row in groups.collect():
    exact = row.s / row.n
    unlike += exact.quantize(unit, ROUND_DOWN) != exact.quantize(unit, ROUND_HALF_UP)
    down += row.a == exact.quantize(unit, ROUND_DOWN)
    up += row.a == exact.quantize(unit, ROUND_HALF_UP)
print(f"of 300 averages {down} are as cut, {up} as rounded half up")
assert unlike > 40 and down == 300 and up == 300 - unlike, (down, up, unlike)
os._exit(0)
PYTHON
