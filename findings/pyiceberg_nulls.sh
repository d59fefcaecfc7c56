#!/usr/bin/env bash
# pyiceberg 0.12.0: whether `!=` and `not in` match nulls depends on the file, and scan and delete disagree.
#
# Expected: as in SQL, a null matches neither; or it always does. What `scan(row_filter=f)` returns is what `delete(f)`
# removes and what `overwrite(…, overwrite_filter=f)` replaces, whatever files the rows are in.
# Seen, without an error or a warning:
# - `n != 10` and `not in (10)` leave a null out of a scan, `n not in (10, 20)` returns it, and `delete` of the latter keeps
#   it: rows that are read, mended and written back by that filter are there twice
# - `delete("n != 10")` keeps a null that shares a file with other values, and deletes one whose file has only nulls; a
#   scan by the same filter returns neither
# - in files written before a column was added, `added != 'a'` returns all rows from a scan, and `delete` removes none
# For a user: add `and n is not null`, or `or n is null`, to each such filter.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check \
  "pyiceberg[sql-sqlite,pyarrow]==0.12.0" pyarrow==26.0.1
cd "$folder"
python/bin/python -W ignore - <<'PYTHON' 2>/dev/null
import itertools

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.types import StringType

catalog = SqlCatalog("local", uri="sqlite:///catalog.db", warehouse="lake")
catalog.create_namespace("s")
numbers = itertools.count()


def table(*appends):
    made = catalog.create_table(f"s.t{next(numbers)}", schema=rows((1, 10)).schema)
    for append in appends:
        made.append(append)
    return made


def rows(*pairs):
    ids, values = zip(*pairs)
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array(values, pa.int64())})


def ids(read):
    return sorted(read.to_arrow()["id"].to_pylist())


def both(made, condition):
    """Return the ids that a scan gives, and those that a delete leaves."""
    found = ids(made.scan(row_filter=condition))
    made.delete(condition)
    print(f"{condition:18} scan {found} left by delete {ids(made.scan())}")
    return found, ids(made.scan())


mixed = rows((1, 10), (2, 20), (3, None), (4, 30))
assert both(table(mixed), "n != 10") == ([2, 4], [1, 3])
assert both(table(mixed), "n not in (10)") == ([2, 4], [1, 3])
assert both(table(mixed), "n not in (10, 20)") == ([3, 4], [1, 2, 3])

apart = table(rows((1, 10), (2, 20), (4, 30)), rows((3, None)))
assert both(apart, "n != 10") == ([2, 4], [1])

mended = table(mixed)
part = mended.scan(row_filter="n not in (10, 20)").to_arrow()
mended.overwrite(part, overwrite_filter="n not in (10, 20)")
print("read and written back:", ids(mended.scan()))
assert ids(mended.scan()) == [1, 2, 3, 3, 4]

grown = table(rows((1, 10), (2, 20)))
with grown.update_schema() as update:
    update.add_column("added", StringType())
later = rows((3, 30), (4, 40)).append_column("added", pa.array(["a", None]))
grown.append(later)
assert both(grown, "added != 'a'") == ([1, 2], [1, 2, 3, 4])
PYTHON
