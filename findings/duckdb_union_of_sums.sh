#!/usr/bin/env bash
# duckdb 2.0.0: UNION ALL of two sums of decimals rounds the finer one to the coarser one's digits, without an error.
#
# Expected: the common type of DECIMAL(38,2) and DECIMAL(38,4), which sum() gives, keeps four digits after the point, or the
# query is refused because 38 digits do not hold both; a difference of 0.0040 between two sides is found.
# Seen: the rows of a UNION become DECIMAL(38,2). 1.0040 is 1.00, and a reconciliation of 1.00 with 1.0040 by UNION ALL and
# GROUP BY says that nothing differs. COALESCE, CASE and lists of the two round alike; `=` compares exactly.
# For a user: cast both sides to one scale first; a cast that does not fit is an error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check duckdb==2.0.0
cd "$folder"
"$folder/python/bin/python" - <<'PYTHON'
from decimal import Decimal

import duckdb

duckdb.sql("CREATE TABLE ours AS SELECT 1.00::DECIMAL(18,2) AS net")
duckdb.sql("CREATE TABLE theirs AS SELECT 1.0040::DECIMAL(18,4) AS net")
OURS, THEIRS = "(SELECT sum(net) FROM ours)", "(SELECT sum(net) FROM theirs)"
QUERIES = {
    "difference by UNION ALL": f"SELECT sum(v) FROM (SELECT {OURS} AS v UNION ALL SELECT -{THEIRS})",
    "the same, cast before": f"SELECT sum(v) FROM (SELECT {OURS}::DECIMAL(38,4) AS v UNION ALL SELECT -{THEIRS})",
    "type of the UNION": f"SELECT DISTINCT typeof(v) FROM (SELECT {OURS} AS v UNION ALL SELECT {THEIRS})",
    "COALESCE(theirs, ours)": f"SELECT coalesce({THEIRS}, {OURS})",
    "CASE": f"SELECT CASE WHEN false THEN {OURS} ELSE {THEIRS} END",
    "list": f"SELECT [{OURS}, {THEIRS}][2]",
    "ours = theirs": f"SELECT {OURS} = {THEIRS}",
}
seen = {name: duckdb.sql(query).fetchall()[0][0] for name, query in QUERIES.items()}
for name, value in seen.items():
    print(f"{name}: {value}")
assert seen["difference by UNION ALL"] == 0 and seen["type of the UNION"] == "DECIMAL(38,2)"
assert seen["the same, cast before"] == Decimal("-0.0040")
assert seen["COALESCE(theirs, ours)"] == seen["CASE"] == seen["list"] == Decimal("1.00")
assert seen["ours = theirs"] is False
PYTHON
