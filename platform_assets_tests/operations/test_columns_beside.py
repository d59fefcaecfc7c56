"""Two versions of days beside each other: counted as plain Python does, sensitive values never shown. No Spark."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from platform_assets.contracts import Column, Contract, Input, same_day
from platform_assets.contracts.columns import why_no_sum
from platform_assets.contracts.table import amounts
from platform_assets.lakehouse.layout import Lake
from platform_assets.operations.stages.compare import ColumnBeside, Example, Files, StagedDay, columns_beside, compared
from platform_assets.quality.findings import Masking
from platform_assets.records.manifest import DataFile

TABLE = Contract(
    "gold.t",
    "",
    "",
    (
        Column("k", "long", "", nullable=False),
        Column("n", "long", ""),
        Column("f", "double", ""),
        Column("who", "string", "", sensitive=True),
    ),
    ("k",),
    inputs=(Input("silver.t", same_day()),),
)

SCHEMA = {"k": pl.Int64, "n": pl.Int64, "f": pl.Float64, "who": pl.String}
Rows = Mapping[int, Mapping[str, Any]]

values = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(-5, 5),
        "f": st.none() | st.sampled_from([0.0, 0.5, -1.5, float("nan"), float("inf")]),
        "who": st.none() | st.sampled_from(["ada", "bob"]),
    }
)

rows = st.dictionaries(st.integers(0, 6), values, max_size=6)

days = st.dictionaries(st.dates(date(2017, 1, 1), date(2017, 1, 3)), st.tuples(rows, rows), min_size=1, max_size=3)

MASKING = Masking(b"secret")


def written(lake: Lake, side: str, of_days: Mapping[date, Rows]) -> Files:
    files = {}
    for day, of_day in of_days.items():
        name = f"{side}/event_date={day}/part-0.parquet"
        file = Path(str(lake.table_path(TABLE.name))) / name
        file.parent.mkdir(parents=True)
        pl.DataFrame([{"k": key, **row} for key, row in of_day.items()], SCHEMA).write_parquet(file)
        files[day] = (DataFile(path=name, size=file.stat().st_size, modified_ms=0, stats=""),) if of_day else ()
    return files


def beside(sides: Mapping[date, tuple[Rows, Rows]], most: int = 100) -> tuple[dict[str, ColumnBeside], list[Example]]:
    with TemporaryDirectory() as folder:
        lake = Lake.at(folder)
        before, after = (
            written(lake, name, {day: pair[at] for day, pair in sides.items()}) for at, name in enumerate(("a", "b"))
        )
        columns, examples = columns_beside(lake, TABLE, (before, after), MASKING, most)
    return {column.name: column for column in columns}, list(examples)


def is_same(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))


@settings(max_examples=25)
@given(days)
@example({date(2017, 1, 1): ({}, {})})
@example({date(2017, 1, 1): ({1: {"n": None, "f": float("nan"), "who": None}},) * 2})
def test_what_differs_is_what_plain_python_finds(sides):
    columns, examples = beside(sides)
    pairs = [(old[key], new[key]) for old, new in sides.values() for key in old.keys() & new.keys()]
    for name in ("n", "f", "who"):
        assert columns[name].changed == sum(not is_same(old[name], new[name]) for old, new in pairs)
        for at, spread in enumerate((columns[name].before, columns[name].after)):
            all_values = [row[name] for pair in sides.values() for row in pair[at].values()]
            known = [value for value in all_values if value is not None]
            if not all_values:
                assert spread is None or spread.rows == 0
                continue
            assert spread is not None
            assert (spread.rows, spread.nulls) == (len(all_values), len(all_values) - len(known))
            if name == "n" and known:
                assert (spread.lowest, spread.highest) == (min(known), max(known))
                assert spread.mean is not None
                assert abs(spread.mean - statistics.fmean(known)) < 1e-9
                assert abs(spread.quantiles[2] - statistics.median(known)) < 1e-9
            if name == "who":
                assert (spread.lowest, spread.highest, spread.mean, spread.quantiles) == (None, None, None, ())
    by_how = {how: sum(found.how == how for found in examples) for how in ("added", "removed", "changed")}
    assert by_how == {
        "added": sum(len(new.keys() - old.keys()) for old, new in sides.values()),
        "removed": sum(len(old.keys() - new.keys()) for old, new in sides.values()),
        "changed": sum(any(not is_same(old[name], new[name]) for name in old) for old, new in pairs),
    }
    assert not any(is_same(*pair) for found in examples for pair in found.values.values())
    assert not any({"ada", "bob"} & set(map(str, pair)) for found in examples for pair in found.values.values())


def furthest(before: list[Any], after: list[Any]) -> float:
    """How far the shares of values up to one and the same are apart at most, by definition; NaN after all others."""
    if not before or not after:
        return 100.0 * bool(before or after)

    def rank(value: Any) -> Any:
        return (value != value, 0 if value != value else value)

    def share(values: list[Any], up_to: Any) -> float:
        return sum(bool(rank(value) <= rank(up_to)) for value in values) / len(values)

    return max(abs(share(before, value) - share(after, value)) for value in before + after) * 100


@settings(max_examples=25)
@given(rows, rows)
@example({1: {"n": 1, "f": 0.5, "who": None}}, {})
def test_nulls_and_how_far_values_are_spread_otherwise_are_what_plain_python_finds(old, new):
    day = date(2017, 1, 1)
    with TemporaryDirectory() as folder:
        lake = Lake.at(folder)
        sides = written(lake, "a", {day: old}).get(day, ()), written(lake, "b", {day: new}).get(day, ())
        found = compared(lake, TABLE.name, day, TABLE.key, (), sides, ("n", "f", "who"))
    for name in ("n", "f", "who"):
        known = [[row[name] for row in side.values() if row[name] is not None] for side in (old, new)]
        assert found.nulls[name] == (len(old) - len(known[0]), len(new) - len(known[1]))
        assert abs(found.shifts[name] - furthest(*known)) < 1e-5


@pytest.mark.parametrize(
    ("was", "became", "old", "new"),
    [
        (pl.Int32, pl.Int64, [1, 2], [1, 3]),
        (pl.Decimal(12, 2), pl.Decimal(14, 4), ["1.00", "2.00"], ["1.0000", "2.0001"]),
        (pl.Int64, pl.String, [1, 2], ["1", "two"]),
        (
            pl.Date,
            pl.Datetime("us", "UTC"),
            [date(2017, 1, 1)] * 2,
            [datetime(2017, 1, day, tzinfo=UTC) for day in (1, 2)],
        ),
    ],
)
def test_keys_of_a_column_that_got_another_type_are_changed_where_its_values_are(tmp_path, was, became, old, new):
    lake, day, sides = Lake.at(tmp_path), date(2017, 1, 1), []
    for name, type_, values in (("a", was, old), ("b", became, new)):
        file = Path(str(lake.table_path(TABLE.name))) / f"{name}/event_date={day}/part-0.parquet"
        file.parent.mkdir(parents=True)
        pl.DataFrame({"k": [1, 2], "n": pl.Series(values).cast(type_)}).write_parquet(file)
        sides.append((DataFile(path=f"{name}/event_date={day}/part-0.parquet", size=1, modified_ms=0, stats=""),))
    found = compared(lake, TABLE.name, day, TABLE.key, (), (sides[0], sides[1]))
    assert (found.added, found.removed, found.changed) == (0, 0, 1)
    columns, examples = columns_beside(lake, TABLE, ({day: sides[0]}, {day: sides[1]}), MASKING, most=5)
    assert next(column for column in columns if column.name == "n").changed == 1
    assert [(each.how, each.key, list(each.values)) for each in examples] == [("changed", "k 2", ["n"])]


def test_examples_are_as_many_as_wanted_of_each_way_and_say_what_was_and_is():
    bare = {"n": 1, "f": 0.5, "who": "ada"}
    old = dict.fromkeys(range(8), bare)
    new = {key: {**bare, "n": 2, "who": "bob"} for key in range(4, 12)}
    _, examples = beside({date(2017, 1, 1): (old, new)}, most=2)
    assert [(found.how, found.key) for found in examples] == [
        ("added", "k 8"),
        ("added", "k 9"),
        ("removed", "k 0"),
        ("removed", "k 1"),
        ("changed", "k 4"),
        ("changed", "k 5"),
    ]
    assert examples[-1].values == {"n": (1, 2), "who": (MASKING.masked("ada"), MASKING.masked("bob"))}


DAY = date(2017, 1, 1)
WEATHER = Contract(
    "gold.weather",
    "",
    "",
    (
        Column("k", "long", "", nullable=False),
        Column("rain", "long", "Millimetres."),
        Column("max_f", "long", "Degrees.", additive=False),
        Column("station_id", "long", ""),
    ),
    ("k",),
    inputs=(Input("silver.weather", same_day()),),
)

BEFORE = [{"k": 1, "rain": 3, "max_f": 70, "station_id": 8}, {"k": 2, "rain": 0, "max_f": 71, "station_id": 9}]
AFTER = [{"k": 1, "rain": 4, "max_f": 72, "station_id": 7}, {"k": 2, "rain": 0, "max_f": 71, "station_id": 9}]


def day_beside(
    folder: Path, key: Sequence[str], summed: Sequence[str], after: Sequence[Mapping[str, int]]
) -> StagedDay:
    lake = Lake.at(folder)
    sides = []
    for side, rows in (("before", BEFORE), ("after", after)):
        name = f"{side}/event_date={DAY}/part-0.parquet"
        file = folder / "gold" / "weather" / name
        file.parent.mkdir(parents=True)
        pl.DataFrame(rows).write_parquet(file)
        sides.append((DataFile(path=name, size=file.stat().st_size, modified_ms=0, stats=""),))
    return compared(lake, WEATHER.name, DAY, key, summed, (sides[0], sides[1]))


def test_only_amounts_are_summed_and_what_a_gate_names(tmp_path: Path) -> None:
    assert amounts(WEATHER) == ("rain",), "no key, no id, and nothing that is declared not additive"
    assert why_no_sum(WEATHER.column("max_f")) == "its contract declares it additive=False"
    assert why_no_sum(WEATHER.column("station_id")) is None, "who names it wants it"
    found = day_beside(tmp_path, WEATHER.key, amounts(WEATHER), AFTER)
    assert (found.changed, found.sums) == (1, {"rain": (3, 4)})
    named = day_beside(tmp_path / "more", WEATHER.key, ("rain", "station_id"), AFTER)
    assert named.sums == {"rain": (3, 4), "station_id": (17, 16)}


def test_without_a_key_rows_are_told_apart_by_all_that_they_hold(tmp_path: Path) -> None:
    found = day_beside(tmp_path, (), (), AFTER)
    assert (found.keys, found.added, found.removed, found.changed, found.is_equal) == (None, 1, 1, 0, False)
    assert day_beside(tmp_path / "same", (), (), BEFORE).is_equal
