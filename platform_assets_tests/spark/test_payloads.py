"""A row that broke a rule is kept as the same text, to the byte, whichever engine wrote it."""

from __future__ import annotations

import os
import random
import unicodedata
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.settings import Settings
from platform_assets.spark.raw.dead_letters import as_json, payload
from platform_assets.spark.sail.session import columns_for, sail_session, stop_sail
from platform_assets_tests.support.installation import rows_as_frame

DECIMALS = (
    (1, 0), (1, 1), (6, 6), (7, 7), (12, 2), (18, 0), (18, 6), (18, 7), (18, 18), (20, 12), (38, 0), (38, 2), (38, 6),
    (38, 7), (38, 18), (38, 37), (38, 38),
)  # fmt: skip
"""Digits, and how many of them after the point: from 7 of these on Java writes some with an exponent."""
TYPES = {
    "n": "bigint",
    "t": "string",
    "u": "string",
    "i": "int",
    "b": "boolean",
    "day": "date",
    "at": "timestamp",
    **{f"d_{digits}_{decimals}": f"decimal({digits},{decimals})" for digits, decimals in DECIMALS},
}
SCHEMA = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())

LONGS = (0, 1, -1, 2**31, 2**63 - 1, -(2**63))
INTS = (0, 1, -1, 2**31 - 1, -(2**31))
TEXTS = (
    "", " ", '"', "\\", '\\"', "\\\\", "\\u0041", "\\n", "{}", '{"t":"x"}', "null", "a,b", "'", "/", "</script>", "%s",
    "straße", "日本語", "e\u0301", "\u202eabc", "\u2028\u2029", "\ufeff", "\ufffd", "\uffff",
    "\U0010ffff", "😀👩‍👩‍👧", "\x7f\x80\x9f",
    "".join(map(chr, range(0x100))), "x" * 70_000, "\x00", "\x00" * 40, "\x1f", "\x0b\x0c\x08", "\r\n\t",
)  # fmt: skip
ALPHABET = [*map(chr, range(0x20)), *'"\\/{}[]:,u0n ab', *"\x7f\x85ß漢\u2028\ufffe😀\U000e0001"]
FIRST, LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)
NEARLY = timedelta(microseconds=-1)
MOMENTS = (
    FIRST, LAST, FIRST - NEARLY, FIRST.replace(year=99, microsecond=999), FIRST.replace(year=1000),
    datetime(1582, 10, 5, tzinfo=UTC) + NEARLY, datetime(1582, 10, 10, tzinfo=UTC), datetime(1582, 10, 15, tzinfo=UTC),
    datetime(1899, 12, 31, 23, 59, 59, 500, UTC), datetime(1970, 1, 1, tzinfo=UTC) + NEARLY,
    datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, 0, 0, 0, 999, UTC),
    datetime(2017, 1, 1, tzinfo=UTC) + NEARLY, datetime(2017, 3, 26, 2, 30, tzinfo=UTC),
    datetime(2400, 2, 29, 12, 0, 0, 100_000, UTC),
)  # fmt: skip


def odd_rows(seed: int, rows: int) -> list[list[Any]]:
    """Rows of all types: what is odd by itself, then whatever comes; a third of the fields is null."""
    draw = random.Random(seed)
    made = []
    for n in range(rows):
        row: list[Any] = [
            draw.choice(LONGS) if n % 3 else draw.randint(-(2**63), 2**63 - 1),
            TEXTS[n % len(TEXTS)] if n < 3 * len(TEXTS) else "".join(draw.choices(ALPHABET, k=draw.randrange(12))),
            any_text(draw),
            draw.choice(INTS) if n % 3 else draw.randint(-(2**31), 2**31 - 1),
            draw.random() < 0.5,
            date.fromordinal(draw.randint(1, date.max.toordinal())) if n % 2 else any_moment(draw, n).date(),
            any_moment(draw, n),
            *(any_decimal(draw, digits, decimals) for digits, decimals in DECIMALS),
        ]
        made.append([n, *(value if draw.random() < 0.67 else None for value in row)])
    return [*made, [rows, *[None] * len(TYPES)]]


def any_text(draw: random.Random) -> str:
    """Of any characters but halves of one, which no delivery brings in."""
    points = (draw.randrange(0x110000) for _ in range(draw.randrange(6)))
    return "".join(char for point in points if unicodedata.category(char := chr(point)) != "Cs")


def any_moment(draw: random.Random, n: int) -> datetime:
    if n < 3 * len(MOMENTS):
        return MOMENTS[n % len(MOMENTS)]
    return FIRST + timedelta(microseconds=draw.randrange((LAST - FIRST) // timedelta(microseconds=1)))


def any_decimal(draw: random.Random, digits: int, decimals: int) -> Decimal:
    """Zero, the greatest, the least, and numbers of every length, below zero and above."""
    most = 10**digits - 1
    unscaled = draw.choice((0, 1, 9, 10, most, 10 ** (digits - 1), draw.randrange(10 ** draw.randint(1, digits))))
    text = f"{min(unscaled, most) * draw.choice((1, -1))}E-{decimals}"
    return Decimal(text)


def on_disk(spark: SparkSession, folder: Path, seed: int, rows: int) -> str:
    """The rows as Spark keeps those of raw."""
    path = str(folder / f"{seed}.parquet")
    rows_as_frame(spark, odd_rows(seed, rows), f"row int, {SCHEMA}").coalesce(1).write.parquet(path)
    return path


def by_row(frame: DataFrame) -> dict[int, str]:
    return {row["row"]: row["text"] for row in frame.collect()}


def told(expected: dict[int, str], found: dict[int, str]) -> list[tuple[str, str]]:
    """The first that differ."""
    assert expected.keys() == found.keys()
    return [(expected[row], found[row]) for row in expected if expected[row] != found[row]][:3]


def test_the_text_put_together_is_that_of_to_json(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.read.parquet(on_disk(spark, tmp_path, seed=1, rows=500))
    types = {field.name: field.dataType for field in rows.schema.fields if field.name in TYPES}
    assert types.keys() == TYPES.keys()
    texts = {"kept": payload(rows, list(TYPES)), "made": as_json(types), "text": F.to_json(F.struct(*TYPES))}
    found = rows.select("row", *(text.alias(name) for name, text in texts.items())).collect()
    assert not [row for row in found if row["made"] != row["text"]][:3]
    assert not [row for row in found if row["kept"] != row["text"]][:3]


@pytest.mark.proof
def test_sail_writes_what_spark_writes(spark: SparkSession, settings: Settings, tmp_path: Path) -> None:
    if find_spec("pysail") is None and "CI" not in os.environ:
        pytest.skip("pysail is not installed: uv sync --extra sail")
    for seed in range(2, 12):
        path = on_disk(spark, tmp_path, seed, rows=2_000)
        rows = spark.read.parquet(path)
        expected = by_row(rows.select("row", F.to_json(F.struct(*TYPES)).alias("text")))
        assert expected[max(expected)] == "{}"
        with columns_for("sail"):
            of_sail = sail_session(settings).read.schema(rows.schema).parquet(path)
            found = by_row(of_sail.select("row", payload(of_sail, list(TYPES)).alias("text")))
        assert not told(expected, found)
    stop_sail()
