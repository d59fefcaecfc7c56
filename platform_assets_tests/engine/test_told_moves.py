"""Where the records of a raw day have gone, and which come back, from its files alone."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from platform_assets.engine.told_moves import moved, sent_home
from platform_assets.lakehouse.manifest import DataFile

NEAR, FAR = date(2017, 1, 5), date(2017, 1, 9)
Row = tuple[str, str, date]
"""Kind, arrival, day of the version."""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path


def raw_file(table: Path, name: str, *rows: Row, told: bool = True) -> DataFile:
    """A file of a raw day, with statistics or without."""
    kinds, arrivals, days = zip(*rows, strict=True)
    pq.write_table(pa.table({"_kind": kinds, "_arrival": arrivals, "_order_day": days}), table / name)
    stats = {"minValues": {"_kind": min(kinds)}, "maxValues": {"_kind": max(kinds)}} if told else {}
    return DataFile(path=name, size=(table / name).stat().st_size, modified_ms=0, stats=json.dumps(stats))


@pytest.mark.parametrize("told", [True, False])
def test_records_move_with_the_tombstones_that_came_since(table: Path, told: bool) -> None:
    known = raw_file(table, "known", ("record", "a", NEAR), ("tombstone", "b", NEAR), told=told)
    new = raw_file(table, "new", ("tombstone", "c", FAR), told=told)
    assert set(moved(table, [known], [known, new])) == {FAR}
    assert set(moved(table, [], [known, new])) == {NEAR, FAR}
    assert set(moved(table, [known, new], [known, new])) == set()


def test_a_withdrawal_sends_home_what_its_arrival_had_taken_away(table: Path) -> None:
    known = raw_file(table, "known", ("tombstone", "b", NEAR), ("tombstone", "c", FAR))
    back = raw_file(table, "back", ("withdrawal", "b", NEAR))
    assert set(moved(table, [known], [known, back])) == {NEAR}
    assert sent_home(table, [known], [known, back]) == {NEAR}
    assert sent_home(table, [], [known, back]) == {NEAR}, "whenever its tombstone came"
    assert sent_home(table, [known, back], [known, back]) == set()
    assert sent_home(table, [], [known]) == set()
