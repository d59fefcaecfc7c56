#!/usr/bin/env bash
# duckdb 2.0.0: hash(a, b) of two columns is linear: values that rows exchange crosswise cancel out in sums by XOR.
#
# Expected: a hash of two columns mixes them, so that the rows (1, 5), (1, 9), (7, 5), (7, 9) have four unrelated hashes,
# and their XOR is 0 with a chance of 1 in 10^19. Checksums of tables by bit_xor(hash(key, amount)) rest on that.
# Seen: the hash of two columns is the XOR of one function of each, so that these four always cancel out: two tables in
# which four rows were exchanged for their opposites have the same checksum. Hashed once more, or with a third column,
# they have not.
# For a user: bit_xor(hash(hash(key, amount))), or sum() in place of bit_xor().
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check duckdb==2.0.0
cd "$folder"
"$folder/python/bin/python" - <<'PYTHON'
import duckdb

ROWS = "(VALUES (1, 5), (1, 9), (7, 5), (7, 9)) AS t(a, b)"
sums = {
    checksum: duckdb.sql(f"SELECT bit_xor({checksum}) FROM {ROWS}").fetchall()[0][0]
    for checksum in ("hash(a, b)", "hash(hash(a, b))", "hash(a, b, 0)")
}
for checksum, value in sums.items():
    print(f"bit_xor({checksum}): {value}")
assert sums["hash(a, b)"] == 0
assert sums["hash(hash(a, b))"] and sums["hash(a, b, 0)"]
PYTHON
