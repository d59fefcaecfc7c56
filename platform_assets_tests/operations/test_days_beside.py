"""Two versions of a day beside each other: keys and amounts, and of tables without a key, rows. No Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import polars as pl

from platform_assets.contracts import Column, Contract, Input, same_day
from platform_assets.contracts.columns import why_no_sum
from platform_assets.contracts.table import amounts
from platform_assets.lakehouse.layout import Lake
from platform_assets.operations.stages.compare import StagedDay, compared
from platform_assets.records.manifest import DataFile

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


def beside(folder: Path, key: Sequence[str], summed: Sequence[str], after: Sequence[Mapping[str, int]]) -> StagedDay:
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
    found = beside(tmp_path, WEATHER.key, amounts(WEATHER), AFTER)
    assert (found.changed, found.sums) == (1, {"rain": (3, 4)})
    named = beside(tmp_path / "more", WEATHER.key, ("rain", "station_id"), AFTER)
    assert named.sums == {"rain": (3, 4), "station_id": (17, 16)}


def test_without_a_key_rows_are_told_apart_by_all_that_they_hold(tmp_path: Path) -> None:
    found = beside(tmp_path, (), (), AFTER)
    assert (found.keys, found.added, found.removed, found.changed, found.is_equal) == (None, 1, 1, 0, False)
    assert beside(tmp_path / "same", (), (), BEFORE).is_equal
