"""Where the records of a raw day have gone, and which come back, from its files alone."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from platform_assets.engine.moves.ties import moved, sent_home
from platform_assets.lakehouse.layout import located
from platform_assets.records.manifest import DataFile

NEAR, FAR = date(2017, 1, 5), date(2017, 1, 9)
Row = tuple[str, str, date]
"""Kind, arrival, day of the version."""


def raw_file(table: Path, name: str, *rows: Row, told: bool = True) -> DataFile:
    """A file of a raw day, with statistics or without."""
    kinds, arrivals, days = zip(*rows, strict=True)
    pq.write_table(pa.table({"_kind": kinds, "_arrival": arrivals, "_order_day": days}), table / name)
    stats = {"minValues": {"_kind": min(kinds)}, "maxValues": {"_kind": max(kinds)}} if told else {}
    return DataFile(path=name, size=(table / name).stat().st_size, modified_ms=0, stats=json.dumps(stats))


@pytest.mark.parametrize("told", [True, False])
def test_records_move_with_the_tombstones_that_came_since(tmp_path: Path, told: bool) -> None:
    known = raw_file(tmp_path, "known", ("record", "a", NEAR), ("tombstone", "b", NEAR), told=told)
    new = raw_file(tmp_path, "new", ("tombstone", "c", FAR), told=told)
    assert moved(located(tmp_path), [known], [known, new]) == {FAR}
    assert moved(located(tmp_path), [], [known, new]) == {NEAR, FAR}
    assert moved(located(tmp_path), [known, new], [known, new]) == set()


def test_a_withdrawal_sends_home_what_its_arrival_had_taken_away(tmp_path: Path) -> None:
    known = raw_file(tmp_path, "known", ("tombstone", "b", NEAR), ("tombstone", "c", FAR))
    back = raw_file(tmp_path, "back", ("withdrawal", "b", NEAR))
    assert moved(located(tmp_path), [known], [known, back]) == {NEAR}
    assert sent_home(located(tmp_path), [known], [known, back]) == {NEAR}
    assert sent_home(located(tmp_path), [], [known, back]) == {NEAR}, "whenever its tombstone came"
    assert sent_home(located(tmp_path), [known, back], [known, back]) == set()
    assert sent_home(located(tmp_path), [], [known]) == set()


def test_what_moved_is_read_without_pandas(tmp_path: Path) -> None:
    """To import it takes longer than a rollback of a year; Arrow does where a value of Python's is asked for."""
    raw_file(tmp_path, "new", ("record", "a", NEAR), ("tombstone", "b", FAR))
    said = """
import sys
from pathlib import Path
from platform_assets.engine.moves.ties import moved
from platform_assets.lakehouse.layout import located
from platform_assets.lakehouse.releases import _vector
from platform_assets.records.manifest import DataFile
print(moved(located(sys.argv[1]), [], [DataFile(path="new", size=1, modified_ms=0, stats="{}")]))
print(len(_vector({"gold.sales": 3})) > 0, sorted({"pandas"} & sys.modules.keys()))
"""
    ended = subprocess.run(
        [sys.executable, "-c", said, str(tmp_path)], capture_output=True, text=True, timeout=120, check=True
    )
    assert ended.stdout.splitlines() == ["{datetime.date(2017, 1, 9)}", "True []"]
