#!/usr/bin/env bash
# datacompy 1.1.0 with pandas 3.0.6 and with Polars 1.44.2: exact comparison of longs and decimals goes through doubles.
#
# Expected: two frames of 64-bit integers, or of decimals, with abs_tol=0 and rel_tol=0 match only where each value is
# the same, because nothing in them is a floating-point number.
# Seen: 9007199254740992 and 9007199254740993 match, and so do 12345678901234567.01 and .02, in both back ends: values
# are cast to doubles before the tolerances are applied. Ids beyond 2^53 and large sums are not reconciled.
# For a reconciliation: compare such columns as text, or join on them and compare with `=`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check datacompy==1.1.0 pandas==3.0.6 polars==1.44.2
cd "$folder"
python/bin/python - <<'PYTHON'
from decimal import Decimal

import pandas as pd
import polars as pl
from datacompy import PandasCompare, PolarsCompare

PAIRS = {
    "longs": (2**53, 2**53 + 1, True),
    "small longs": (1, 2, False),
    "decimals": (Decimal("12345678901234567.01"), Decimal("12345678901234567.02"), True),
    "small decimals": (Decimal("1.01"), Decimal("1.02"), False),
    "longs as text": (str(2**53), str(2**53 + 1), False),
}
for name, (left, right, seen) in PAIRS.items():
    for compare, frame in ((PandasCompare, pd.DataFrame), (PolarsCompare, pl.DataFrame)):
        frames = (frame({"key": [1], "value": [value]}) for value in (left, right))
        matches = compare(*frames, join_columns="key", abs_tol=0, rel_tol=0).matches()
        print(f"{compare.__name__:13} {name}: {left} and {right} match: {matches}")
        assert matches == seen, name
PYTHON
