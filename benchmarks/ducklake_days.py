"""What somebody with DuckLake writes to correct days: it keeps tables and has no models. Runs in its own environment.

python -m benchmarks.ducklake_days FOLDER create    # the models, of all days
python -m benchmarks.ducklake_days FOLDER correct   # the days whose raw rows changed since
python -m benchmarks.ducklake_days FOLDER undo      # the days that the latest of these wrote, as they were before

`FOLDER/models.json` has the query of each table, with `{days}` for a condition. Which days changed is asked of
DuckLake's change feed; both tables are written in one transaction, which is one snapshot; what was before is read at
the snapshot before.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path

import duckdb

from benchmarks.peer_tables import MODELS, RAW, connect

_COMPUTED = "computed"


def create(db: duckdb.DuckDBPyConnection, queries: Mapping[str, str]) -> None:
    """The models of all days, partitioned by day."""
    for table, query in queries.items():
        db.execute(f"CREATE TABLE {table} AS {query.format(days='false')}")
        db.execute(f"ALTER TABLE {table} SET PARTITIONED BY (event_date)")
    db.execute("BEGIN")
    for table, query in queries.items():
        db.execute(f"INSERT INTO {table} BY NAME {query.format(days='true')}")
    _commit(db, _COMPUTED)


def correct(db: duckdb.DuckDBPyConnection, queries: Mapping[str, str]) -> None:
    """The models of the days of which raw changed since they were computed."""
    days = _days(changed(db, RAW, _latest(db) + 1))
    if days == "false":
        return
    db.execute("BEGIN")
    for table, query in queries.items():
        db.execute(f"DELETE FROM {table} WHERE {days}")
        db.execute(f"INSERT INTO {table} BY NAME {query.format(days=days)}")
    _commit(db, _COMPUTED)


def undo(db: duckdb.DuckDBPyConnection) -> None:
    """The days that were computed last, as they were before."""
    latest = _latest(db)
    written = {table: _days(changed(db, table, latest, latest)) for table in MODELS.values()}
    db.execute("BEGIN")
    for table, days in written.items():
        db.execute(f"DELETE FROM {table} WHERE {days}")
        db.execute(f"INSERT INTO {table} SELECT * FROM {table} AT (VERSION => {latest - 1}) WHERE {days}")
    _commit(db, "undone")


def changed(db: duckdb.DuckDBPyConnection, name: str, first: int, last: int | None = None) -> list[date]:
    """Days of which rows were added or taken away from one snapshot to another, both with what they did."""
    if last is None:
        (last,) = db.execute("SELECT max(snapshot_id) FROM lake.snapshots()").fetchone() or (0,)
    if first > last:
        return []
    schema, table = name.split(".")
    feed = f"ducklake_table_changes('lake', '{schema}', '{table}', {first}, {last})"
    return [day for (day,) in db.execute(f"SELECT DISTINCT event_date FROM {feed} ORDER BY 1").fetchall()]


def _latest(db: duckdb.DuckDBPyConnection) -> int:
    """The snapshot that computed last."""
    query = f"SELECT max(snapshot_id) FROM lake.snapshots() WHERE commit_message = '{_COMPUTED}'"
    (found,) = db.execute(query).fetchone() or (None,)
    if found is None:
        raise SystemExit("Nothing was computed yet.")
    return int(found)


def _days(days: Iterable[date]) -> str:
    """A condition with the days written out: DuckLake leaves out the files of others by it."""
    named = ", ".join(f"DATE '{day}'" for day in days)
    return f"event_date IN ({named})" if named else "false"


def _commit(db: duckdb.DuckDBPyConnection, message: str) -> None:
    db.execute(f"CALL lake.set_commit_message('benchmark', '{message}')")
    db.execute("COMMIT")


def main() -> None:
    """Do one of these, or say which days of which table the latest snapshot wrote."""
    folder, what = Path(sys.argv[1]), sys.argv[2]
    queries = json.loads((folder / "models.json").read_text(encoding="utf-8"))
    with connect(folder) as db:
        if what == "create":
            create(db, queries)
        elif what == "correct":
            correct(db, queries)
        elif what == "undo":
            undo(db)
        elif what == "written":
            (last,) = db.execute("SELECT max(snapshot_id) FROM lake.snapshots()").fetchone() or (0,)
            found = {name: changed(db, table, last, last) for name, table in MODELS.items()}
            print(json.dumps(found, default=str))
        else:
            raise SystemExit(f"There is nothing called {what} here.")


if __name__ == "__main__":
    main()
