#!/usr/bin/env bash
# deltalake 1.6.6: create_write_transaction with mode="overwrite" does not hold added files against partition_filters.
#
# Expected: partition_filters say what is replaced, as replaceWhere does in Spark: files added outside of them are
# refused, and a filter that selects no partition, such as `day in []`, replaces nothing because nothing may be added.
# Seen: an added file may lie in any partition. With a filter on another day the day that was added holds its old and its
# new rows, and the other day is gone; with `in []` the day holds both. An empty list is no filter: it empties the table.
# For a publisher: compute removes and adds from the table's files, and commit these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check deltalake==1.6.6 pyarrow==26.0.1
cd "$folder"
python/bin/python - <<'PYTHON'
import os

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction


def replaced(number: int, filters: list[tuple[str, str, object]]) -> list[tuple[str, int]]:
    """Rows after day `a`, which held 1 and 2, was overwritten by 10 in a table that has day `b` with 3 as well."""
    path = f"table{number}"
    write_deltalake(path, pa.table({"n": [1, 2, 3], "day": ["a", "a", "b"]}), partition_by=["day"])
    pq.write_table(pa.table({"n": [10]}), f"{path}/new.parquet")
    add = AddAction("new.parquet", os.path.getsize(f"{path}/new.parquet"), {"day": "a"}, 0, True, '{"numRecords": 1}')
    table = DeltaTable(path)
    table.create_write_transaction([add], "overwrite", table.schema(), ["day"], filters)
    rows = DeltaTable(path).to_pyarrow_table().to_pydict()
    return sorted(zip(rows["day"], rows["n"]))


CASES = {
    "day = a": ([("day", "=", "a")], [("a", 10), ("b", 3)]),
    "day = b": ([("day", "=", "b")], [("a", 1), ("a", 2), ("a", 10)]),
    "day in []": ([("day", "in", [])], [("a", 1), ("a", 2), ("a", 10), ("b", 3)]),
    "[]": ([], [("a", 10)]),
}
for number, (name, (filters, rows)) in enumerate(CASES.items()):
    got = replaced(number, filters)
    print(f"{name:10} {got}")
    assert got == rows, (name, got)
PYTHON
