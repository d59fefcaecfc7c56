#!/usr/bin/env bash
# duckdb 2.0.0: date_trunc of a DATE is a TIMESTAMP, so that monthly exports go to other folders than with 1.4.
#
# Expected: the first day of a date's month is a date, as in duckdb 1.4.4. An export partitioned by month that runs again
# after an upgrade overwrites the month's folder.
# Seen: the type is TIMESTAMP. `COPY … (PARTITION_BY month, OVERWRITE_OR_IGNORE)` of the new release writes
# `month=2024-01-01%2000%3A00%3A00` beside `month=2024-01-01` of the old one: readers of the folder count January twice, and
# the partition column is a text or a moment. Two results of the same release also changed from an error to a value:
# sqrt(-1) is NaN and ln(0) is -Infinity, which sums and averages then are; 1 // 0, which was NULL, is an error.
# For a user: write `date_trunc(…)::DATE`, and look into the folders after an upgrade.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >export.py <<'PYTHON'
import duckdb

duckdb.sql(
    "COPY (SELECT date_trunc('month', day) AS month, amount FROM (VALUES (DATE '2024-01-15', 7)) AS t(day, amount)) "
    "TO 'sales' (FORMAT parquet, PARTITION_BY (month), OVERWRITE_OR_IGNORE, FILENAME_PATTERN 'part')"
)
print(duckdb.__version__, duckdb.sql("SELECT sum(amount) FROM 'sales/*/*.parquet'").fetchall()[0][0])
for query in ("typeof(date_trunc('month', DATE '2024-01-15'))", "sqrt(-1)", "ln(0)", "1 // 0"):
    try:
        print(query, duckdb.sql(f"SELECT {query}").fetchall()[0][0])
    except duckdb.Error as error:
        print(query, type(error).__name__)
PYTHON
for version in 1.4.4 2.0.0; do
  python3 -m venv "python$version"
  "python$version/bin/pip" install --quiet --disable-pip-version-check duckdb==$version
  "python$version/bin/python" export.py | tee "$version"
done
ls sales | tee folders
diff folders - <<'END'
month=2024-01-01
month=2024-01-01%2000%3A00%3A00
END
diff 1.4.4 - <<'END'
1.4.4 7
typeof(date_trunc('month', DATE '2024-01-15')) DATE
sqrt(-1) OutOfRangeException
ln(0) OutOfRangeException
1 // 0 None
END
diff 2.0.0 - <<'END'
2.0.0 14
typeof(date_trunc('month', DATE '2024-01-15')) TIMESTAMP
sqrt(-1) nan
ln(0) -inf
1 // 0 InvalidInputException
END
