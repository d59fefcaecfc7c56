#!/usr/bin/env bash
# duckdb 2.0.0: read_json with a column declared DECIMAL reads numbers of 16 digits or more as other numbers.
#
# Expected: `read_json(…, columns = {amount: 'DECIMAL(38,2)'})` reads the digits that the file has, as read_csv with the same
# type does; a declared decimal is asked for because a double would not do.
# Seen: numbers pass through a double. Of random amounts with two decimals, one in seven of 16 digits, most of 17 and nearly
# all of 18 come out as others, without an error: 9292274061189325.61 becomes 9292274061189326.08. `->>` loses digits alike,
# and 10.10 is '10.1'; a column read as VARCHAR has them lost already. `from_json` of the same text and type is exact.
# For a user: read lines with read_json_objects and take them apart by from_json(json, '{"amount": "DECIMAL(38,2)"}').
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check duckdb==2.0.0
cd "$folder"
"$folder/python/bin/python" - <<'PYTHON'
import random
from decimal import Decimal
from pathlib import Path

import duckdb

ROWS, KIND = 2_000, "DECIMAL(38,2)"
READ = {
    "read_json": f"SELECT amount FROM read_json('a.jsonl', columns = {{amount: '{KIND}'}})",
    "from_json": f"""SELECT from_json(json, '{{"amount": "{KIND}"}}').amount FROM read_json_objects('a.jsonl')""",
    "read_csv": f"SELECT amount FROM read_csv('a.csv', columns = {{amount: '{KIND}'}})",
}
random.seed(1)
wrong: dict[str, dict[int, int]] = {name: {} for name in READ}
for digits in (15, 16, 17, 18):
    amounts = [Decimal(random.randrange(10 ** (digits - 1), 10**digits)) / 100 for _ in range(ROWS)]
    Path("a.jsonl").write_text("".join(f'{{"amount": {amount}}}\n' for amount in amounts))
    Path("a.csv").write_text("amount\n" + "".join(f"{amount}\n" for amount in amounts))
    for name, query in READ.items():
        read = [row[0] for row in duckdb.sql(query).fetchall()]
        wrong[name][digits] = sum(one != other for one, other in zip(amounts, read, strict=True))
for name, counts in wrong.items():
    print(f"{name}: wrong of {ROWS:,} amounts, by digits: {counts}")
text = duckdb.sql("""SELECT '{"amount": 10.10}'::JSON ->> '$.amount'""").fetchall()[0][0]
print(f"10.10 by ->>: {text}")
assert wrong["read_json"][15] == 0 and 0 < wrong["read_json"][16] < wrong["read_json"][17] < wrong["read_json"][18]
assert not any(wrong["from_json"].values()) and not any(wrong["read_csv"].values())
assert text == "10.1"
PYTHON
