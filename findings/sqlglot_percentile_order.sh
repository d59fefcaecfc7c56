#!/usr/bin/env bash
# sqlglot 30.30.0 with pyspark 4.2.0: rewriting Spark's SQL as Spark's own turns percentiles upside down and drops weights.
#
# Expected: parsing with dialect "spark" and generating with "spark" keeps the result, as formatters, linters and tools
# that add a condition to a statement rely on; a function that sqlglot does not know passes through by its name.
# Seen, without an error or a warning:
# - percentile_cont(0.9) WITHIN GROUP (ORDER BY amount DESC) becomes percentile_approx(amount, 0.9): the tenth percentile
#   becomes the ninetieth, and nothing is interpolated any more
# - percentile(amount, 0.5, weight) loses its weights
# - parse_json(text) becomes text, so that a VARIANT column is a STRING
# For a user: compare such statements before and after, or use Spark's own text.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check sqlglot==30.30.0 pyspark==4.2.0
cd "$folder"
python/bin/python - <<'PYTHON' 2>/dev/null
import sqlglot
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.createDataFrame([(a, 9 if a == 10 else 1) for a in range(1, 11)], "amount int, weight int").createOrReplaceTempView("t")
seen = {}
for expression in (
    "percentile_cont(0.9) WITHIN GROUP (ORDER BY amount DESC)",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY amount)",
    "percentile(amount, 0.5, weight)",
    "typeof(parse_json(max('1')))",
):
    statement = f"SELECT {expression} AS x FROM t"
    rewritten = sqlglot.transpile(statement, read="spark", write="spark")[0]
    pair = [spark.sql(query).first().x for query in (statement, rewritten)]
    seen[expression] = tuple(x if isinstance(x, str) else round(x, 6) for x in pair)
    print(seen[expression], rewritten)
assert list(seen.values()) == [(1.9, 9), (5.5, 5), (9.5, 5.5), ("variant", "string")], seen
PYTHON
