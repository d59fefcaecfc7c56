#!/usr/bin/env bash
# dlt 1.31.0 on DuckDB: with a primary key, a row that changed again within its last `updated_at` is never loaded.
#
# Expected: `incremental("updated_at")` reads from the last value on, the last value included, so that rows written late
# within the same second are not missed, and `write_disposition="merge"` by the key then writes the newer content.
# Seen: at the boundary rows are left out whose *key* was read before with that value, whatever else they hold. A correction
# within the same second, or the same day if `updated_at` is a date, is dropped by this run and all later ones; the
# table keeps the old amount, without a warning. Without a key rows are compared as a whole, and the correction arrives.
# For a user: give `incremental` a `lag`, or its own `primary_key=("id", "amount", …)` with all columns that may change.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check "dlt[duckdb]==1.31.0" duckdb==2.0.1
cd "$folder"
export RUNTIME__DLTHUB_TELEMETRY=false DLT_DATA_DIR=$folder/dlt
python/bin/python -W ignore - <<'PYTHON'
import dlt

first = [{"id": 1, "updated_at": 10, "amount": 5}, {"id": 2, "updated_at": 10, "amount": 7}]
second = [{"id": 1, "updated_at": 10, "amount": 500}, {"id": 2, "updated_at": 10, "amount": 7}]


def loaded(name, key="id", **settings):
    """Return the amounts after both states of the source were read."""
    pipeline = dlt.pipeline(name, destination=dlt.destinations.duckdb(f"{name}.db"), dataset_name="s")
    for state in (first, second, second + [{"id": 3, "updated_at": 11, "amount": 1}]):

        def orders(updated=dlt.sources.incremental("updated_at", **settings)):
            yield state

        pipeline.run(dlt.resource(orders, write_disposition="merge" if key else "append", primary_key=key))
    with pipeline.sql_client() as client:
        return client.execute_sql("SELECT id, amount FROM orders ORDER BY id, amount")


merged = loaded("merged")
lagging = loaded("lagging", lag=1)
appended = loaded("appended", key=None)
by_all = loaded("by_all", primary_key=("id", "amount"))
print("merge by id:", merged, "\nwith a lag of 1:", lagging, "\nappend without a key:", appended)
print("merge by id, boundary by id and amount:", by_all)
assert merged == [(1, 5), (2, 7), (3, 1)]
assert all((1, 500) in rows for rows in (lagging, appended, by_all))
PYTHON
