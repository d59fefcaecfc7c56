#!/usr/bin/env bash
# zstandard 0.25.0 and pandas 2.3.3: a compressed CSV that was cut short is read as a shorter table, without an error.
#
# Expected: EOFError or the like, as gzip, bz2 and lzma of Python raise for a stream without its end, and pandas with
# them.
# Seen: `zstandard` ends at the last whole block as if it were the end of the file. `pandas.read_csv` of half a `.csv.zst`
# returns some of the rows; with `.csv.gz` it raises. Arrow's stream reader says that the stream is truncated.
# For a user: read `.zst` by Arrow, or compare the number of rows with the sender's.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check zstandard==0.25.0 pandas==2.3.3 pyarrow==26.0.1
cd "$folder"
"$folder/python/bin/python" - <<'PYTHON'
import gzip
from pathlib import Path

import pandas
import pyarrow
import zstandard

ROWS = 40_000
content = "n,square\n" + "".join(f"{n},{n * n}\n" for n in range(ROWS))
for name, packed in (
    ("half.csv.zst", zstandard.ZstdCompressor().compress(content.encode())),
    ("half.csv.gz", gzip.compress(content.encode())),
):
    Path(name).write_bytes(packed[: len(packed) // 2])

rows = len(pandas.read_csv("half.csv.zst", on_bad_lines="skip"))
print(f"pandas reads {rows:,} of {ROWS:,} rows of half a .csv.zst, without an error")
assert 0 < rows < ROWS
try:
    pandas.read_csv("half.csv.gz")
except EOFError as error:
    print(f"of half a .csv.gz it says: {error}")
else:
    raise AssertionError("half a .csv.gz was read")
try:
    with pyarrow.CompressedInputStream("half.csv.zst", "zstd") as stream:
        stream.read()
except OSError as error:
    print(f"Arrow says: {error}")
else:
    raise AssertionError("Arrow read half a .csv.zst")
PYTHON
