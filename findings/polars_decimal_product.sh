#!/usr/bin/env bash
# polars 2.1.0: a product of two decimals is rounded to the digits of its factors, half to even, without a word.
#
# Expected: decimal(10,2) times decimal(10,2) has four digits after the point, as in Spark, DuckDB and Arrow (and in SQL's
# standard), so that 0.05 * 0.50 is 0.0250 and nothing is lost before a sum.
# Seen: the product has the greater scale of the two, here 2: 0.05 * 0.50 is 0.02, 0.05 * 0.09 is 0.00, and 0.15 * 0.50 is
# 0.08. The type says decimal(38,2). Over many rows a discount of small amounts vanishes, and the same query in
# Polars and in another engine ends in other totals. A quotient is rounded alike: 0.20 / 3.00 is 0.07.
# For a user: cast a factor to the scale of the product first, `pl.col("price").cast(pl.Decimal(38, 4))`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check polars==2.1.0 pyarrow==26.0.1 duckdb==2.0.0
cd "$folder"
"$folder/python/bin/python" - <<'PYTHON'
from decimal import Decimal

import duckdb
import polars
import pyarrow.compute

ROWS = 1_000
lines = polars.DataFrame(
    {"price": [Decimal("0.05"), Decimal("0.05"), Decimal("0.15")] * ROWS, "share": [Decimal("0.50"), Decimal("0.09"), Decimal("0.50")] * ROWS},
    schema={"price": polars.Decimal(10, 2), "share": polars.Decimal(10, 2)},
)
arrow = lines.to_arrow()
product = polars.col("price") * polars.col("share")
first = {
    "Polars": lines.select(product).to_series().head(3).to_list(),
    "Arrow": pyarrow.compute.multiply(arrow["price"], arrow["share"]).slice(0, 3).to_pylist(),
    "DuckDB": [row[0] for row in duckdb.sql("SELECT price * share FROM arrow LIMIT 3").fetchall()],
}
total = {
    "Polars": lines.select(product.sum()).item(),
    "Polars, cast before": lines.select((polars.col("price").cast(polars.Decimal(38, 4)) * polars.col("share")).sum()).item(),
    "DuckDB": duckdb.sql("SELECT sum(price * share) FROM arrow").fetchall()[0][0],
}
for name, values in first.items():
    print(f"{name}: {', '.join(map(str, values))}")
print("sum of 3,000 rows:", ", ".join(f"{name} {value}" for name, value in total.items()))
quotient = lines.select(polars.lit(Decimal("0.20"), polars.Decimal(10, 2)) / polars.lit(Decimal("3.00"), polars.Decimal(10, 2))).item()
print(f"0.20 / 3.00 in Polars: {quotient}")
exact = [Decimal("0.0250"), Decimal("0.0045"), Decimal("0.0750")]
assert first["Polars"] == [Decimal("0.02"), Decimal("0.00"), Decimal("0.08")]
assert first["Arrow"] == first["DuckDB"] == exact
assert total["Polars"] == Decimal("100.00")
assert total["DuckDB"] == total["Polars, cast before"] == Decimal("104.50")
assert quotient == Decimal("0.07")
PYTHON
