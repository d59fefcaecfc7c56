#!/usr/bin/env bash
# deltalake 1.6.6: an append with another type than the table's is cast, not refused.
#
# Expected: as with Spark and Delta, where 1.9 does not fit a BIGINT column, an append whose schema differs is refused
# unless schema_mode says otherwise; at worst a value that does not fit is an error.
# Seen: with the default schema_mode, doubles and decimals lose their fraction, and texts become numbers. A text that is
# no number is the only one of these that raises.
# For a pipeline: compare the schemas before write_deltalake; the writer does not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check deltalake==1.6.6 pyarrow==26.0.1
cd "$folder"
python/bin/python - <<'PYTHON'
from decimal import Decimal

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

write_deltalake("table", pa.table({"n": pa.array([1], pa.int64())}))
for values in ([1.9], [Decimal("2.5")], ["12"], ["007"]):
    write_deltalake("table", pa.table({"n": values}), mode="append")
rows = sorted(DeltaTable("table").to_pyarrow_table()["n"].to_pylist())
print("appended 1.9, 2.5, '12', '007' to a BIGINT column that held 1:", rows)
assert rows == [1, 1, 2, 7, 12], rows
try:
    write_deltalake("table", pa.table({"n": ["twelve"]}), mode="append")
except Exception as error:
    print("a text that is no number:", type(error).__name__)
else:
    raise SystemExit("'twelve' was taken")
PYTHON
