#!/usr/bin/env bash
# deltalake 1.6.6: delete, update and overwrite by `rate = 1.0` also hit rows whose rate is NaN.
#
# Expected: NaN equals no number, and `DeltaTable.delete("rate = 1.0")` keeps it, as it keeps a null.
# Seen: bounds of a file leave NaN out, so that a file with 1.0 and NaN is said to hold 1.0 alone. The condition then counts
# as true for the whole file, and no row is looked at. `delete` deletes the NaN, `update` writes over it, an overwrite
# with that predicate replaces it, and a query by `QueryBuilder` counts it. With a second number in the same file the
# same calls are right.
# For a user: write null in place of NaN.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check deltalake==1.6.6 pyarrow==26.0.1
cd "$folder"
"$folder/python/bin/python" - <<'PYTHON'
from collections.abc import Callable
from shutil import rmtree

import pyarrow
from deltalake import DeltaTable, QueryBuilder, write_deltalake

ONE = "rate = 1.0"
DO: dict[str, Callable[[], object]] = {
    "delete": lambda: DeltaTable("t").delete(ONE),
    "update": lambda: DeltaTable("t").update(predicate=ONE, updates={"rate": "5.0"}),
    "overwrite": lambda: write_deltalake("t", rates(9.0).slice(0, 0), mode="overwrite", predicate=ONE),
}


def rates(*values: float) -> pyarrow.Table:
    return pyarrow.table({"rate": pyarrow.array(values, pyarrow.float64())})


def after(action: Callable[[], object], *values: float) -> list[str]:
    """What a table of one file holds after an action."""
    rmtree("t", ignore_errors=True)
    write_deltalake("t", rates(*values))
    action()
    return sorted(map(str, DeltaTable("t").to_pyarrow_table()["rate"].to_pylist()))


def counted() -> int:
    return QueryBuilder().register("t", DeltaTable("t")).execute(f"SELECT count(*) c FROM t WHERE {ONE}").read_all()["c"][0].as_py()


NAN = float("nan")
for name, action in DO.items():
    print(f"{name} where {ONE}: of 1.0, NaN stays {after(action, 1.0, NAN)}; of 1.0, 2.0, NaN {after(action, 1.0, 2.0, NAN)}")
after(lambda: None, 1.0, NAN)
print(f"SELECT count(*) WHERE {ONE}, of 1.0, NaN: {counted()}")
assert after(DO["delete"], 1.0, NAN) == after(DO["overwrite"], 1.0, NAN) == []
assert after(DO["update"], 1.0, NAN) == ["5.0", "5.0"]
assert after(DO["delete"], 1.0, 2.0, NAN) == after(DO["overwrite"], 1.0, 2.0, NAN) == ["2.0", "nan"]
assert after(DO["update"], 1.0, 2.0, NAN) == ["2.0", "5.0", "nan"]
after(lambda: None, 1.0, NAN)
assert counted() == 2
PYTHON
