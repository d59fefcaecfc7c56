"""A delivered field becomes a value of its column's type, or is refused with what came: one column at a time."""

from __future__ import annotations

import csv
import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from platform_assets.contracts import DAY, Column, Contract, LandingFiles
from platform_assets.contracts.landing import Format
from platform_assets.engine.ingest.file_rows import described_by
from platform_assets.spark.raw.parsing import Layout, parse

ARRIVAL = "2017-01-02"
KEY = (Column("id", "long", "A value.", nullable=False), Column("at", "timestamp", "A value.", nullable=False))
TYPES = ("int", "decimal(12,2)", "decimal(38,2)", "decimal(20,12)", "boolean", "date", "string", "double")


def of_columns(types: list[str]) -> Contract:
    """Columns c0, c1 and so on beside the key."""
    return Contract(
        name="raw.kinds",
        description="A column of each type.",
        owner="tests@example.com",
        columns=(*KEY, *(Column(f"c{n}", type_, "A value.") for n, type_ in enumerate(types))),
        key=("id",),
        source=LandingFiles("kinds"),
        event_time="at",
    )


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_a_file_that_holds_what_its_contract_describes_can_be_taken(spark, tmp_path, kind):
    contract = of_columns([*TYPES])
    file = tmp_path / contract.table / "2000-01-01" / f"described.{kind}"
    file.parent.mkdir(parents=True)
    file.write_bytes(described_by(contract, kind))
    (row,) = parse(spark, [Layout(kind, contract.column_names, (str(file),))], contract).collect()
    assert row[DAY] == date(2000, 1, 1)
    assert None not in [row[name] for name in contract.column_names]


PRECISE = [
    ("decimal(12,2)", "16767.215"),
    ("decimal(38,2)", "16767.215"),
    ("decimal(38,0)", "0.5"),
    ("decimal(38,10)", "1.12345678905"),
    ("decimal(38,18)", "1.1234567890123456785"),
    ("decimal(30,1)", "5.25"),
    ("decimal(15,0)", "561017208785252.99"),
    ("decimal(15,2)", "9999999999999.9901"),
    ("decimal(14,1)", "1234567890123.4001"),
    ("decimal(10,4)", "123456.78901"),
]
"""A column, and an amount with more decimals than it has."""


def test_an_amount_with_more_decimals_than_its_column_is_refused_however_it_came(spark, tmp_path):
    contract = of_columns([type_ for type_, _ in PRECISE])
    folder = tmp_path / "kinds" / ARRIVAL
    folder.mkdir(parents=True)
    rows = [{"id": n, "at": ARRIVAL, f"c{n}": amount} for n, (_, amount) in enumerate(PRECISE)]
    csv_file, texts, numbers, table = (folder / name for name in ("a.csv", "b.jsonl", "c.jsonl", "d.parquet"))
    with csv_file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, contract.column_names)
        writer.writeheader()
        writer.writerows(rows)
    texts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    # A number in the JSON, digit for digit
    numbers.write_text("".join(re.sub(r': "([\d.]+)"', r": \1", json.dumps(row)) + "\n" for row in rows))
    amounts = {
        f"c{n}": pa.array([Decimal(amount) if at == n else None for at in range(len(rows))])
        for n, (_, amount) in enumerate(PRECISE)
    }
    moments = pa.array([datetime(2017, 1, 2, tzinfo=UTC)] * len(rows), pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"id": range(len(rows)), "at": moments, **amounts}), table)
    files: list[tuple[Format, Path]]
    files = [("csv", csv_file), ("json", texts), ("json", numbers), ("parquet", table)]
    assert {kind for kind, _ in files} == set(get_args(Format))
    for kind, file in files:
        refused = parse(spark, [Layout(kind, contract.column_names, (str(file),))], contract).where(f"{DAY} IS NULL")
        reasons = {row["_kind"] for row in refused.select("_kind").collect()}
        assert reasons == {f"c{n}: not {type_}: {amount}" for n, (type_, amount) in enumerate(PRECISE)}, file


def test_the_first_number_beyond_all_whole_ones_is_refused(spark, tmp_path):
    contract = of_columns([])
    file = tmp_path / "kinds" / ARRIVAL / "a.parquet"
    file.parent.mkdir(parents=True)
    moment = datetime(2017, 1, 2, tzinfo=UTC)
    ids = [2.0**63, -(2.0**63), 2.0**53]
    pq.write_table(pa.table({"id": ids, "at": pa.array([moment] * 3, pa.timestamp("us", "UTC"))}), file)
    rows = parse(spark, [Layout("parquet", contract.column_names, (str(file),))], contract).collect()
    assert {row["id"] for row in rows if row[DAY]} == {-(2**63), 2**53}
    assert [row["_kind"] for row in rows if not row[DAY]] == ["id: not long: 9.223372036854776E18"]
