#!/usr/bin/env bash
# dlt 1.31.0 on DuckDB: a value of another type than its column's first becomes that type where it can, and loses content.
#
# Expected: as its docs on schema evolution say, a value that does not fit the column's type goes to a column of its own
# (`code__v_text`), so that nothing is lost; the order in which rows arrive decides at most where a value is.
# Seen: "fits" means "Python can convert it". After a first row with another type, without a warning:
# - the text 007 is the number 7 (a code among numbers), 3 is true, 9007199254740993 is …992 (whole number among doubles)
# - a moment late in the evening, New York's time, is the next day (among dates)
# - a decimal has nine digits after the point, the others are cut off or rounded (also in a first row)
# The same rows in the opposite order keep all of it: a column of texts takes numbers and keeps its texts.
# For a user: declare types by `columns={…}`, precision and scale of decimals included. `schema_contract` with frozen data
# types does not help: 007 passes it as 7.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check "dlt[duckdb]==1.31.0" duckdb==2.0.1
cd "$folder"
export RUNTIME__DLTHUB_TELEMETRY=false DLT_DATA_DIR=$folder/dlt
python/bin/python -W ignore - <<'PYTHON'
import itertools
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import dlt

numbers = itertools.count()


def loaded(*values):
    """Return what a table holds after each value was loaded by a run of its own."""
    name = f"p{next(numbers)}"
    pipeline = dlt.pipeline(name, destination=dlt.destinations.duckdb(f"{name}.db"), dataset_name="s")
    for number, value in enumerate(values):
        pipeline.run([{"number": number, "value": value}], table_name="rows")
    with pipeline.sql_client() as client:
        rows = client.execute_sql("SELECT * EXCLUDE (number, _dlt_load_id, _dlt_id) FROM rows ORDER BY number")
    print(*values, "->", rows)
    return rows


evening = datetime(2024, 1, 2, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
assert loaded(1, "007", "x") == [(1, None), (7, None), (None, "x")]
assert loaded(True, 3) == [(True,), (True,)]
assert loaded(1.5, 9007199254740993) == [(1.5,), (9007199254740992.0,)]
assert loaded(date(2024, 1, 1), evening) == [(date(2024, 1, 1),), (date(2024, 1, 3),)]
assert loaded(Decimal("0.12345678951")) == [(Decimal("0.123456790"),)]
assert loaded("007", 1) == [("007",), ("1",)]
PYTHON
