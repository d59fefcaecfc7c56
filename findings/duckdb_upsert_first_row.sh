#!/usr/bin/env bash
# duckdb 2.0.0: an upsert of several rows of one key keeps the first of them and drops the others, without an error.
#
# Expected: INSERT … ON CONFLICT DO UPDATE either applies one row of the statement after the other, so that the last one
# wins and sums grow (SQLite), or refuses a second row of a key (PostgreSQL: "cannot affect row a second time"; DuckDB's own
# MERGE refuses it, too).
# Seen: the first row of each key is inserted or applied, all later ones of the same statement are left out, also if the
# key was in the table before. A change feed loaded in its order keeps the oldest version of each key, and counters grow by
# one row of each statement.
# For a user: pick the newest row of each key before (QUALIFY row_number() OVER (…) = 1), or use MERGE, which refuses them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check duckdb==2.0.0
cd "$folder"
"$folder/python/bin/python" - <<'PYTHON'
import sqlite3

import duckdb

SETUP = "CREATE TABLE price (item INTEGER PRIMARY KEY, version INTEGER)", "INSERT INTO price VALUES (2, 0)"
FEED = "SELECT n % 2 + 1, n FROM feed ORDER BY n"
NEWEST = f"INSERT INTO price {FEED} ON CONFLICT (item) DO UPDATE SET version = excluded.version"
SUM = f"INSERT INTO price {FEED} ON CONFLICT (item) DO UPDATE SET version = version + excluded.version"
MERGE = f"MERGE INTO price USING ({FEED}) AS f(item, version) USING (item) WHEN MATCHED THEN UPDATE SET version = f.version"


def after(connection: sqlite3.Connection | duckdb.DuckDBPyConnection, upsert: str) -> list[tuple[int, int]]:
    """The table after an upsert of ten changes, 1 to 10, of two items, of which item 2 was there before."""
    connection.execute("CREATE TABLE feed (n INTEGER)")
    connection.execute("INSERT INTO feed VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)")
    for statement in (*SETUP, upsert):
        connection.execute(statement)
    return connection.execute("SELECT item, version FROM price ORDER BY item").fetchall()


def sqlite(upsert: str) -> str:
    # Without this WHERE, SQLite takes ON CONFLICT for the join of a SELECT.
    return upsert.replace("ORDER BY", "WHERE true ORDER BY")


for name, upsert in (("newest version", NEWEST), ("sum", SUM)):
    duck, lite = after(duckdb.connect(), upsert), after(sqlite3.connect(":memory:"), sqlite(upsert))
    print(f"{name}: DuckDB {duck}, SQLite {lite}")
    assert duck == [(1, 2), (2, 1)]
    assert lite == ([(1, 10), (2, 9)] if upsert == NEWEST else [(1, 30), (2, 25)])
try:
    after(duckdb.connect(), MERGE)
except duckdb.Error as error:
    print(f"DuckDB's MERGE: {str(error).splitlines()[0][:79]}")
else:
    raise AssertionError("MERGE applied several rows to one")
PYTHON
