#!/usr/bin/env bash
# pysail 0.7.2: the schema of UNION ALL is that of its first side, whatever type the rows have.
#
# Expected: as in Spark and in standard SQL, the result has a type that holds both sides: int and bigint make bigint,
# decimal(10,2) and decimal(12,4) make decimal(12,4).
# Seen: the schema says int and decimal(10,2), the rows hold 3000000000 and 2.1234. Collected, they look right. toArrow,
# which casts to the schema, fails on one order of the sides and works on the other; a sum has the scale of the first
# side in its type and that of the second in its value. What writes files by the schema is off by up to a cent a row.
# For a user: cast both sides of a union by hand.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check pysail==0.7.2 pyspark-client==4.2.0 'pandas<3' \
  pyarrow==26.0.1 'setuptools<81'
"$folder/python/bin/python" - <<'PYTHON' 2>&1 | grep -v "INFO sail\|WARN sail"
import os
from decimal import Decimal

import pyarrow as pa
from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession

server = SparkConnectServer("127.0.0.1", 0)
server.start(background=True)
spark = SparkSession.builder.remote(f"sc://127.0.0.1:{server.listening_address[1]}").getOrCreate()

numbers = spark.sql("SELECT CAST(1 AS INT) AS a UNION ALL SELECT 3000000000")
print(numbers.schema.simpleString(), sorted(row.a for row in numbers.collect()))
assert numbers.schema.simpleString() == "struct<a:int>"
assert sorted(row.a for row in numbers.collect()) == [1, 3000000000]

SHORT, LONG = "SELECT CAST(1 AS DECIMAL(10,2)) AS a", "SELECT CAST(2.1234 AS DECIMAL(12,4)) AS a"
mixed = spark.sql(f"{SHORT} UNION ALL {LONG}")
print(mixed.schema.simpleString(), sorted(row.a for row in mixed.collect()))
assert mixed.schema.simpleString() == "struct<a:decimal(10,2)>"
assert sorted(row.a for row in mixed.collect()) == [Decimal("1.0000"), Decimal("2.1234")]
try:
    mixed.toArrow()
except pa.ArrowInvalid as error:
    print("toArrow:", error)
else:
    raise AssertionError("toArrow works now")
assert spark.sql(f"{LONG} UNION ALL {SHORT}").toArrow().num_rows == 2

total = spark.sql(f"SELECT SUM(a) AS a FROM ({SHORT} UNION ALL {LONG})")
print(total.schema.simpleString(), total.collect()[0].a)
assert total.schema.simpleString() == "struct<a:decimal(20,2)>"
assert total.collect()[0].a == Decimal("3.1234")
os._exit(0)
PYTHON
