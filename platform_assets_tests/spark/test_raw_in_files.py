"""What ingest counts and looks up in files of few rows is what Spark counts and finds, over values that may differ."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from platform_assets.contracts import Column, Contract, LandingFiles
from platform_assets.lakehouse.layout import located
from platform_assets.lakehouse.storage.location import Location
from platform_assets.spark.compare import in_files
from platform_assets.spark.compare.in_files import may_move, staged_at_hand
from platform_assets.spark.compare.profiles import fates_without_day, profile_raw, profile_staged
from platform_assets.spark.raw.markers import tombstones
from platform_assets.spark.tables.reading import kept_frames, read_staged
from platform_assets.spark.tables.staging import stage
from platform_assets_tests.support.installation import rows_as_frame

A, B, C = (date(2017, 1, day) for day in (3, 4, 5))
SCHEMA = (
    "k long, name string, at timestamp, _arrival string, _arrival_date date, _rescued string, _kind string, "
    "_version timestamp, _file_order string, _place long, _row_hash long, _order_day date, event_date date"
)
NAMES = ["", "a", "A", "a ", "ß", "é", "e\u0301", "x" * 40, "\x00", "NULL"]


def row(n: int, day: date | None, kind: str = "record", arrival: str = "t/2017-01-04/a.csv", **other: Any) -> tuple:
    """A raw row; of a withdrawal nothing but where it lies."""
    is_marker = kind == "withdrawal"
    values: dict[str, Any] = {
        "k": n % 3, "name": NAMES[n % len(NAMES)], "at": datetime(2017, 1, 3, n % 24, tzinfo=UTC),
        "_arrival": arrival, "_arrival_date": date.fromisoformat(arrival[2:12]), "_rescued": "{}" if n % 2 else None,
        "_kind": kind, "_version": None, "_file_order": "a", "_place": n, "_row_hash": n * 2**40 - 7,
        "_order_day": day, "event_date": day,
    }  # fmt: skip
    kept = ("_arrival", "_kind", "event_date")
    return tuple({n: v if not is_marker or n in kept else None for n, v in (values | other).items()}.values())


def staged(spark: SparkSession, folder: Path, rows: list[tuple], schema: str = SCHEMA) -> Location:
    """A stage with some rows."""
    place = located(folder / "live" / "stage")
    stage(rows_as_frame(spark, rows, schema), place)
    return place


def test_raw_rows_are_counted_by_day_and_arrival_as_spark_does(spark: SparkSession, tmp_path: Path) -> None:
    other = "t/2017-01-09/b c%20é.csv"
    rows = [
        row(n, day, arrival=arrival) for n, day in enumerate((A, B, C) * 9) for arrival in ("t/2017-01-04/a", other)
    ]
    rows += [row(n, A, "tombstone") for n in range(3)] + [row(7, C, "void"), row(0, B, "withdrawal", other)]
    place = staged(spark, tmp_path, rows)
    found, right = profile_staged(spark, place), profile_raw(read_staged(spark, place))
    assert found == right
    assert (right.tombstones, right.withdrawals[B], right.ahead[C], right.ahead[B]) == ({A: 3, B: 0, C: 0}, 1, 10, 0)
    assert (right.lags[A], right.taken[other]) == (9 + 9 * 6, 27)
    letters = "_arrival string, _reason string, _payload string, _row long, _place long, _attempts int, event_date date"
    some = [("a", f"r{n}", None if n % 2 else "é\x00", n, None, 1, A) for n in range(5)]
    place = staged(spark, tmp_path / "letters", some, letters)
    assert profile_staged(spark, place) == profile_raw(read_staged(spark, place))


def test_rows_without_a_day_are_told_apart_as_spark_does(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = ("record", "void", "erased", "k: no value", "broken line: 'record'", "RECORD")
    rows = [row(n, None, kind, f"t/2017-01-04/{n % 5}") for n, kind in enumerate(kinds * 4)] + [row(1, A)]
    place = staged(spark, tmp_path, rows)
    found = fates_without_day(spark, place)
    assert {fate: counts.total() for fate, counts in found.items()} == {"late": 8, "erased": 4, "refused": 12}
    monkeypatch.setattr(in_files, "MOST_BYTES", -1)
    assert fates_without_day(spark, place) == found


HOURS = [datetime(2017, 1, 3, hour, 0, 0, micro, UTC) for hour in (0, 1) for micro in (0, 1)]
WIDE = [Decimal("1"), Decimal("1.0000000001"), Decimal("-1"), Decimal("9" * 27 + "." + "9" * 10)]


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("string", NAMES),
        ("long", [0, -1, 2**63 - 1, -(2**63), 2**53, 2**53 + 1]),
        ("boolean", [True, False]),
        ("date", [date(1, 1, 1), date(9999, 12, 31)]),
        ("timestamp", HOURS),
        ("decimal(38,10)", WIDE),
        ("double", [0.0, -0.0, float("nan"), 5e-324]),
    ],
)
def test_a_key_on_two_days_is_found_just_where_spark_finds_it(
    spark: SparkSession, tmp_path: Path, type_: str, values: list[Any]
) -> None:
    """The first value is looked for among the others, and then among all."""
    contract = Contract(
        name="raw.t",
        description="",
        owner="",
        columns=(*(Column(n, t, "", nullable=False) for n, t in (("k", "long"), ("x", type_), ("at", "timestamp"))),),
        key=("k", "x"),
        source=LandingFiles("t"),
        event_time="at",
        updated_at="at",
        moves_within_days=9,
    )
    schema = SCHEMA.replace("name string", f"x {type_}")
    first = values[0]
    new = staged(spark, tmp_path / "new", [row(0, B, name=first, k=1), row(0, C, name=first, k=2)], schema)
    others = [row(0, A, name=value, k=1) for value in values[1:]]
    others += [row(0, B, name=first, k=1), row(0, A, "tombstone", name=first, k=1), row(0, A, name=first, k=3)]
    for number, some in enumerate((others, [*others, row(0, A, "void", name=first, k=2)])):
        old = staged(spark, tmp_path / str(number), some, schema)
        (arriving, few), (present, there) = (
            (read_staged(spark, place), staged_at_hand(spark, place)) for place in (new, old)
        )
        assert few is not None
        assert there is not None
        with kept_frames() as keep:
            found = tombstones(arriving, present.where("_kind <> 'tombstone'"), contract, keep, few=True)
        is_left_to_spark = type_ == "double"
        assert may_move(few, there, contract) == (found is not None or is_left_to_spark)
        assert (found is not None) == (number == 1 or is_left_to_spark)  # of doubles one is equal: there is one zero
        assert may_move(few, in_files.FileRows(few.folder, {}), contract) == is_left_to_spark
