#!/usr/bin/env bash
# sqlglot 30.30.0 with pyspark 4.2.0: a doubled quote inside a text loses the quote on the way through sqlglot.
#
# Expected: reading a statement as Spark's and writing it as Spark's keeps its result.
# Seen: since Spark 4.0 `'it''s'` is `it's`, as in standard SQL; two texts with a blank between are still joined. sqlglot
# takes the first for the second and writes CONCAT('it', 's'), which is `its`. So do tools that format, lint or rewrite
# Spark's SQL with it, for a filter such as name = 'O''Brien'.
# For a user: write 'it\'s' or "it's", which come through unchanged.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check pyspark==4.2.0 sqlglot==30.30.0
cd "$folder"
"$folder/python/bin/python" - <<'PYTHON' 2>/dev/null
import sqlglot
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()


def result(statement: str) -> str:
    [[value]] = spark.sql(statement).collect()
    return str(value)


for text, before, after in (
    ("'it''s'", "it's", "its"),
    ("'it' 's'", "its", "its"),
    (r"'it\'s'", "it's", "it's"),
    ('"it\'s"', "it's", "it's"),
):
    statement = f"SELECT {text}"
    [written] = sqlglot.transpile(statement, read="spark", write="spark")
    print(f"{statement} is {result(statement)}; sqlglot writes {written}, which is {result(written)}")
    assert (result(statement), result(written)) == (before, after)
PYTHON
