"""That no two rows of a day have one key is never said of days where Spark would find two."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from platform_assets.lakehouse.delta.statistics import days_of_unique_keys
from platform_assets.lakehouse.errors import DamagedTableError
from platform_assets.lakehouse.layout import located
from platform_assets.lakehouse.staging_folders import log_stage
from platform_assets.lakehouse.storage.location import Location

FIRST, SECOND = date(2017, 1, 1), date(2017, 1, 2)
NOON = datetime(2017, 1, 1, 12, tzinfo=UTC)
NONE = '{"type":"struct","fields":[{"name":"event_date","type":"date","nullable":true,"metadata":{}}]}'


def staged(folder: Path, *files: tuple[date, pa.Table]) -> Location:
    """A stage with these files."""
    for number, (day, rows) in enumerate(files):
        of_day = folder / f"event_date={day}"
        of_day.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, of_day / f"part-{number}.parquet", write_page_checksum=True)
    log_stage(located(folder), NONE)
    return located(folder)


def keys(*values: object, type_: pa.DataType | None = None) -> pa.Table:
    return pa.table({"a": pa.array([1] * len(values)), "k": pa.array(values, type_), "x": pa.array([0] * len(values))})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (True, False),
        ("é", "e"),
        ("", None),
        (FIRST, SECOND),
        (NOON, NOON.replace(microsecond=1)),
        (Decimal("1.10"), Decimal("1.11")),
        (Decimal("-" + "9" * 38), Decimal("9" * 38)),
    ],
)
def test_days_are_told_apart_by_whether_a_key_is_there_twice(tmp_path: Path, one: object, other: object) -> None:
    type_ = pa.array([one]).type
    folder = staged(
        tmp_path / "p",
        (FIRST, keys(one, other, type_=type_)),
        (SECOND, keys(one, other, one, type_=type_)),
    )
    assert days_of_unique_keys(folder, ["a", "k"]) == {FIRST}
    assert days_of_unique_keys(folder, ["event_date", "k", "a"]) == {FIRST}, "all rows of a file have its day"
    assert days_of_unique_keys(folder, ["a"]) == set()


def test_two_rows_without_a_value_have_one_key(tmp_path: Path) -> None:
    folder = staged(tmp_path / "p", (FIRST, keys(1, None, None)), (SECOND, keys(1, None)))
    assert days_of_unique_keys(folder, ["k"]) == {SECOND}


def test_a_key_in_two_files_of_a_day_is_there_twice(tmp_path: Path) -> None:
    folder = staged(tmp_path / "p", (FIRST, keys(1, 2)), (FIRST, keys(3, 1)), (SECOND, keys(1)), (SECOND, keys(2)))
    assert days_of_unique_keys(folder, ["k"]) == {SECOND}


def test_files_that_differ_in_whether_a_column_can_be_null_are_one_day(tmp_path: Path) -> None:
    """As those of rows that were computed, and of rows that were carried over."""
    strict = pa.schema(
        [pa.field("a", pa.int64(), nullable=False), pa.field("k", pa.int64()), pa.field("x", pa.int64())]
    )
    folder = staged(
        tmp_path / "p",
        (FIRST, keys(1, 2)),
        (FIRST, keys(3).cast(strict)),
        (SECOND, keys(1).cast(strict)),
        (SECOND, keys(1)),
    )
    assert days_of_unique_keys(folder, ["a", "k"]) == {FIRST}


def test_of_numbers_that_are_equal_in_several_forms_nothing_is_said(tmp_path: Path) -> None:
    """To Spark a minus zero is a zero, and one thing that is no number is the other."""
    folder = staged(tmp_path / "p", (FIRST, keys(0.0, 1.0)))
    assert days_of_unique_keys(folder, ["k"]) == set()
    assert days_of_unique_keys(folder, ["a", "k"]) == set()
    assert days_of_unique_keys(folder, ["event_date"]) == set()


def test_of_columns_that_are_not_there_nothing_is_said(tmp_path: Path) -> None:
    assert days_of_unique_keys(staged(tmp_path / "p", (FIRST, keys(1))), ["k", "gone"]) == set()


def test_a_day_whose_keys_take_much_memory_is_left_to_spark(tmp_path: Path) -> None:
    folder = staged(tmp_path / "p", (FIRST, keys(*range(1_000))), (SECOND, keys(*range(100))))
    assert days_of_unique_keys(folder, ["k"], most_bytes=1_600) == {SECOND}


def test_a_stage_without_rows_has_no_days(tmp_path: Path) -> None:
    Path(tmp_path / "p").mkdir()
    assert days_of_unique_keys(staged(tmp_path / "p"), ["k"]) == set()


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    folder = staged(tmp_path / "p", (FIRST, keys(*range(100))))
    [file] = (tmp_path / "p" / f"event_date={FIRST}").iterdir()
    content = file.read_bytes()
    file.write_bytes(content[:4] + b"?" * 200 + content[204:])
    with pytest.raises(DamagedTableError, match="cannot be read"):
        days_of_unique_keys(folder, ["a", "k", "x"])
