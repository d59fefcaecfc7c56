"""No reader leaves out a file that holds what it looks for: bounds in the log are never tighter than the values."""

from __future__ import annotations

import json
import math
import operator
import re
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from itertools import cycle, islice
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.lakehouse.delta.statistics import may_hold, may_share_keys, trustworthy
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.reading import dataset
from platform_assets.lakehouse.staging_folders import log_stage
from platform_assets.records.manifest import DataFile, new_publication
from platform_assets_tests.support.empty_lake import only_on_disk
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.shelf import SALES, change, day, manifest

MICROSECOND = datetime(2017, 1, 1, 0, 0, 0, 123457, UTC)


CUT = "2017-01-01T00:00:00.123Z"


LAST_MOMENT = datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)


TINY = Decimal("0.0001")
"""Less than that is written with an exponent."""


YEAR_18029, YEAR_12921, YEAR_BEFORE_0 = 2 * 253_402_300_800_000_000, 4_000_000, -900_000
"""Microseconds and days since 1970 that Python has no date for."""


COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "whole": (pa.int64(), [2**63 - 1, 2**53 + 1, 2**53, -(2**63), 0]),
    "money": (pa.decimal128(18, 2), [Decimal("45035996273704.97"), Decimal("9999999999999.99"), Decimal("-0.01")]),
    "tiny": (pa.decimal128(18, 6), [Decimal("0.000050"), Decimal("2.5"), Decimal("-0.000001")]),
    "huge": (pa.decimal128(38, 2), [Decimal("12345678901234567.00"), Decimal(1), Decimal("-1E20")]),
    "exact": (pa.decimal128(38, 37), [Decimal("0.123456789012345"), Decimal("0.1"), Decimal("-1E-37")]),
    "real": (pa.float64(), [math.nan, 1.5, math.inf, -0.0, -math.inf, 0.1]),
    "moment": (pa.timestamp("us", "UTC"), [MICROSECOND, LAST_MOMENT, YEAR_18029, datetime(1969, 12, 31, tzinfo=UTC)]),
    "date": (pa.date32(), [date(2017, 1, 1), YEAR_12921, YEAR_BEFORE_0, date(1, 1, 1)]),
    "text": (pa.string(), ["", "a" * 100, "é\0", "\U0010ffff" * 40, "+20170-01-01"]),
    "truth": (pa.bool_(), [True, False, None]),
}


FILES = max(len(values) for _, values in COLUMNS.values())


ASKED = [
    (name, compare, value)
    for name, (_, values) in COLUMNS.items()
    for value in values
    if value not in (None, YEAR_18029, YEAR_12921, YEAR_BEFORE_0)
    for compare in (operator.eq, operator.ge, operator.le)
]


SQL = {operator.eq: "=", operator.ge: ">=", operator.le: "<="}


@pytest.fixture(scope="module")
def rows() -> list[pa.Table]:
    """A row for each file."""
    columns = {name: pa.array(list(islice(cycle(values), FILES)), type_) for name, (type_, values) in COLUMNS.items()}
    every = pa.table(columns)
    return [every.slice(number, 1) for number in range(FILES)]


def put(lake: Lake, files: list[pa.Table], row_group_size: int | None = None) -> str:
    """Stage files of one day, each with some rows."""
    publication = new_publication()
    folder = lake.stage_path(SALES, publication) / f"event_date={day(0)}"
    on_disk(folder).mkdir(parents=True)
    for number, rows in enumerate(files):
        pq.write_table(rows, folder / f"part-{number}.parquet", row_group_size=row_group_size)
    log_stage(lake.stage_path(SALES, publication), "")
    return publication


@pytest.fixture(scope="module")
def published(rows: list[pa.Table], tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A table of such files, all of one day."""
    lake = Lake.at(tmp_path_factory.mktemp("bounds"))
    staged = put(lake, rows)
    publish(lake, manifest(staged, change(lake, SALES, staged)))
    return lake


@pytest.mark.parametrize("reader", ["the platform's", "deltalake's"])
def test_arrow_finds_every_row(published: Lake, rows: list[pa.Table], reader: str) -> None:
    found = DeltaTable(on_disk(published.table_path(SALES)))
    delta = dataset(published, SALES) if reader == "the platform's" else found.to_pyarrow_dataset()
    plain = ds.dataset(pa.concat_tables(rows))
    for name, compare, value in ASKED:
        predicate = compare(ds.field(name), pa.scalar(value, COLUMNS[name][0]))
        # Some more at comparisons with what is no number: Arrow turns them around when it knows bounds.
        assert delta.count_rows(filter=predicate) >= plain.count_rows(filter=predicate), (name, compare, value)


def test_duckdb_finds_every_row(published: Lake, rows: list[pa.Table]) -> None:
    connection = duckdb.connect()
    connection.register("delta", dataset(published, SALES))
    connection.register("plain", pa.concat_tables(rows))
    for name, compare, value in ASKED:
        counts = [
            connection.execute(f"SELECT count(*) FROM {source} WHERE {name} {SQL[compare]} ?", [value]).fetchone()
            for source in ("delta", "plain")
        ]
        assert counts[0] == counts[1], (name, compare, value)


def test_polars_finds_every_row(published: Lake, rows: list[pa.Table]) -> None:
    delta = pl.scan_delta(str(published.table_path(SALES)))
    plain = pl.DataFrame(pa.concat_tables(rows)).lazy()
    for name, compare, value in ASKED:
        predicate = compare(pl.col(name), pl.lit(value))
        counts = [frame.filter(predicate).select(pl.len()).collect().item() for frame in (delta, plain)]
        assert counts[0] == counts[1], (name, compare, value)


@only_on_disk
def test_what_older_logs_say_hides_no_row_from_the_platform(lake: Lake, rows: list[pa.Table]) -> None:
    """Bounds cut to milliseconds, rounded to a double, or of some columns only."""
    staged = put(lake, rows)
    made = change(lake, SALES, staged)
    content = made.days[day(0)]
    said = {"minValues": {"moment": CUT, "money": 45035996273704.9}, "maxValues": {"moment": CUT, "money": -0.01}}
    files = tuple(
        file.model_copy(update={"stats": json.dumps(json.loads(file.stats) | said)}) for file in content.files
    )
    as_before = content.model_copy(update={"files": files})
    publish(lake, manifest(staged, made.model_copy(update={"days": {day(0): as_before}})))
    found = dataset(lake, SALES)
    assert found.count_rows(filter=ds.field("moment") == pa.scalar(MICROSECOND)) == 2
    assert found.count_rows(filter=ds.field("real") == 1.5) == 1
    assert found.count_rows(filter=ds.field("money") == COLUMNS["money"][1][0]) == 2


@only_on_disk
def test_bounds_that_can_be_trusted_stay(lake: Lake) -> None:
    columns = {
        "whole": pa.array([-(2**63), 2**63 - 1]),
        "money": pa.array([Decimal("-0.01"), Decimal("9999999999999.99")], pa.decimal128(18, 2)),
        "real": pa.array([-0.0, 0.1]),
        "moment": pa.array([MICROSECOND, LAST_MOMENT], pa.timestamp("us", "UTC")),
        "text": pa.array(["", "z"]),
        "nothing": pa.array([None, None], pa.string()),
    }
    [file] = change(lake, SALES, put(lake, [pa.table(columns)])).days[day(0)].files
    said = json.loads(file.stats)
    assert said["minValues"] == {
        "whole": -(2**63), "money": -0.01, "real": 0, "moment": "2017-01-01T00:00:00.123Z", "text": ""
    }  # fmt: skip
    assert math.copysign(1, said["minValues"]["real"]) == -1
    assert said["maxValues"] == {
        "whole": 2**63 - 1, "money": 9999999999999.99, "real": 0.1, "moment": "9999-12-31T23:59:59.999999Z", "text": "z"
    }  # fmt: skip


@only_on_disk
def test_what_is_no_number_in_one_part_of_a_file_is_not_passed_over(lake: Lake) -> None:
    """Spark's writer says so of the part, and the log would have the bounds of the others."""
    rows = pa.table({"real": pa.array([1.5, math.nan])})
    [small] = change(lake, SALES, put(lake, [rows])).days[day(0)].files
    [large] = change(lake, SALES, put(lake, [rows], row_group_size=1)).days[day(0)].files
    assert [("maxValues" in json.loads(file.stats)) for file in (small, large)] == [True, False]


decimals = st.tuples(st.integers(0, 20), st.integers(-(10**30), 10**30), st.integers(0, 25))


@given(decimals)
def test_a_decimal_lies_within_its_bounds_whatever_a_double_makes_of_them(drawn: tuple[int, int, int]) -> None:
    scale, units, shorter = drawn
    value = Decimal(units // 10**shorter).scaleb(-scale, Context(prec=60))
    written = json.dumps({"numRecords": 1, "minValues": {"x": float(value)}, "maxValues": {"x": float(value)}})
    text = trustworthy(written, {"x": f"decimal(38,{scale})"})
    assert not re.search(r"\d[eE]", text), "deltalake makes no number of it"
    said = json.loads(text)
    low, high = (Decimal(said[side]["x"]) for side in ("minValues", "maxValues"))
    unit = Decimal(1).scaleb(-scale)
    assert round_(low, unit) <= value <= round_(high, unit)
    if 0 < abs(value) < TINY:
        assert round_(high, TINY) - round_(low, TINY) == TINY
    elif len(str(abs(units // 10**shorter))) <= 15:
        assert round_(low, unit) == round_(high, unit) == value


def round_(value: Decimal, unit: Decimal) -> Decimal:
    return value.quantize(unit, context=Context(prec=60))


@pytest.mark.parametrize(
    ("type_", "bound"),
    [
        ("long", 1.0), ("long", True), ("date", "+12921-08-18"), ("date", "-0495-11-20"), ("double", None),
        ("timestamp", "+18029-12-31T00:00:00Z"), ("decimal(18,2)", 9999999999999999.99),
        ('{"type": "struct"}', {"a": 1}), ("string", None), ("binary", "x"),
    ],
)  # fmt: skip
def test_a_file_has_no_bounds_where_one_of_them_says_nothing(type_: Any, bound: Any) -> None:
    said = {"numRecords": 3, "nullCount": {"x": 0, "y": 0}}
    written = json.dumps(said | {"minValues": {"x": bound, "y": 1}, "maxValues": {"x": bound, "y": 2}})
    assert json.loads(trustworthy(written, {"x": type_, "y": "long"})) == said


def test_statistics_that_can_all_stay_stay_to_the_letter() -> None:
    written = '{"numRecords": 1,"minValues":{"n":1,"d":0.10},"maxValues":{"n":2,"d":2},"nullCount":{"n":0,"d":0,"e":1}}'
    assert trustworthy(written, {"n": "long", "d": "decimal(12,2)", "e": "date"}) is written
    assert trustworthy("{}", {"n": "long"}) == "{}"


keys = st.tuples(st.integers(0, 5), st.text("ab", max_size=1))


some_files = st.lists(st.tuples(st.sets(keys, min_size=1, max_size=4), st.booleans()), max_size=6)


def as_files(held: list[tuple[set[tuple[int, str]], bool]], name: str) -> dict[date, list[DataFile]]:
    """A file for each set of keys, some without statistics, spread over three days."""
    found: dict[date, list[DataFile]] = {}
    for number, (rows, told) in enumerate(held):
        columns = list(zip(*rows, strict=True))
        low, high = ({"n": f(columns[0]), "s": f(columns[1])} for f in (min, max))
        stats = {"minValues": low, "maxValues": high} if told else {}
        file = DataFile(path=f"{name}{number}", size=1, modified_ms=0, stats=json.dumps(stats))
        found.setdefault(date(2017, 1, 1 + number % 3), []).append(file)
    return found


@given(some_files, some_files)
def test_what_shares_a_key_stays(files, others):
    found = may_share_keys(as_files(files, "f"), as_files(others, "o"), ["n", "s"])
    left = {file.path for of_day in found.values() for file in of_day}
    sought = {key for rows, _ in others for key in rows}
    assert {f"f{number}" for number, (rows, _) in enumerate(files) if rows & sought} <= left
    assert all(found.values())


@given(some_files, st.text("abc", max_size=3))
def test_a_file_with_a_value_may_hold_it(files, value):
    found = {file.path for of_day in as_files(files, "f").values() for file in of_day if may_hold(file, "s", value)}
    holders = {f"f{number}" for number, (rows, _) in enumerate(files) if value in {text for _, text in rows}}
    certain = {f"f{number}" for number, (rows, told) in enumerate(files) if told and min(rows, key=_text)[1] > value}
    assert holders <= found
    assert not certain & found


def _text(key: tuple[int, str]) -> str:
    return key[1]


def test_what_cannot_is_left_out():
    files = as_files([({(1, "a"), (5, "b")}, True), ({(20, "a"), (30, "b")}, True), ({(35, "a")}, False)], "f")
    others = as_files([({(4, "a")}, True), ({(31, "a"), (40, "b")}, True)], "o")
    left = may_share_keys(files, others, ["n"])
    assert {file.path for of_day in left.values() for file in of_day} == {"f0", "f2"}
    assert may_share_keys(files, as_files([({(4, "a")}, False)], "o"), ["n"]) == {
        day: tuple(of_day) for day, of_day in files.items()
    }


@pytest.mark.parametrize("bounds", [(1.0, 2.0), (1, 2.5), ("+12921-08-18", "+12922-01-01"), (None, 3), ([1], [2])])
def test_bounds_that_may_have_lost_digits_or_are_in_another_order_leave_nothing_out(bounds):
    stats = {"minValues": {"n": bounds[0]}, "maxValues": {"n": bounds[1]}}
    file = DataFile(path="f", size=1, modified_ms=0, stats=json.dumps(stats))
    others = as_files([({(40, "a")}, True)], "o")
    assert may_share_keys({date(2017, 1, 1): [file]}, others, ["n"]) == {date(2017, 1, 1): (file,)}
    assert may_share_keys(others, {date(2017, 1, 1): [file]}, ["n"]) == {
        day: tuple(of_day) for day, of_day in others.items()
    }
