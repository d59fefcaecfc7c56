"""A file that is as long as it was and holds something else: found by reading its pages, a part of all every day."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from zlib import crc32

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import table_snapshot
from platform_assets.lakehouse.errors import DamagedTableError
from platform_assets.lakehouse.layout import Lake, located
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.lakehouse.storage import parquet
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import row_batches
from platform_assets.operations.audit import lake as audit_module
from platform_assets.operations.audit.faults import Fault, Findings, Scope
from platform_assets.operations.audit.lake import audit, read_contents, turns_for
from platform_assets.operations.backup.copying import copy_lake
from platform_assets.progress import no_progress
from platform_assets_tests.support.history import History
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.recipes import two_lines_a_day

TABLE = "silver.transactions"


@pytest.fixture
def lake(prepared: Prepared) -> Lake:
    story: History = prepared(two_lines_a_day)
    return Lake.at(story.world.settings.lake)


def data_files(lake: Lake) -> list[Path]:
    return sorted(on_disk(lake.table_path(TABLE)).glob("*/event_date=*/*.parquet"))


def flip(file: Path) -> None:
    """One bit in the middle of the first page's values."""
    content = bytearray(file.read_bytes())
    content[40] ^= 1
    file.write_bytes(content)


def faults(lake: Lake, read_bytes: int | None) -> list[Fault]:
    findings = Findings()
    audit(lake, Scope(read_bytes=read_bytes), findings, no_progress)
    return findings.faults


def test_a_flipped_bit_is_found_where_pages_are_read_and_not_copied(lake: Lake, tmp_path: Path) -> None:
    assert faults(lake, None) == []
    file = data_files(lake)[3]
    flip(file)
    assert faults(lake, 0) == [], "its length, its footer and its number of rows are as they were"
    [fault] = faults(lake, None)
    assert (fault.check, fault.table, fault.file) == ("contents", TABLE, str(file))
    assert f"event_date={fault.day}" in str(file)
    assert f"refresh {TABLE} --days {fault.day} --force" in fault.todo
    with pytest.raises(DamagedTableError, match=f"{file.name} of {TABLE} is damaged .*CRC"):
        copy_lake(lake, Lake.at(tmp_path / "copy"), no_progress)


@pytest.mark.parametrize("how", [flip, lambda file: os.truncate(file, 700)], ids=["a bit flipped", "cut short"])
def test_readers_of_a_damaged_file_are_told_which_and_others_read_on(lake: Lake, how: Callable[[Path], None]) -> None:
    file = data_files(lake)[3]
    whole = date.fromisoformat(data_files(lake)[0].parent.name.partition("=")[2])
    how(file)
    with pytest.raises(DamagedTableError, match=f"{file.parent.name}/{file.name}(?s:.*)audit verify"):
        read_arrow(lake, TABLE)
    with pytest.raises(DamagedTableError, match=file.name):
        list(row_batches(located(file), 10))
    assert read_arrow(lake, TABLE, [whole]).num_rows > 0


def test_within_as_many_days_as_it_takes_every_file_is_read_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = list(audit(lake, Scope(), Findings(), no_progress).tables.values())
    every = {str(table.lake.table_path(table.table) / path) for table in tables for path in table.live}
    size = sum(file.size for table in tables for file, _ in table.live.values())
    read: Counter[str] = Counter()

    def told(file: Location, size: int) -> str:
        read[file.address] += 1
        return parquet.damage(file, size)

    monkeypatch.setattr(audit_module, "damage", told)
    turns = turns_for(size, size // 5)
    assert turns == 8
    for turn in range(730_000, 730_000 + turns):
        before = read.total()
        said = read_contents(tables, size // 5, turn, no_progress)
        assert read.total() - before < len(every)
        assert "within 8 days" in said
    assert read == Counter(every)


def test_a_lake_that_grows_is_read_within_three_times_the_days_that_were_promised() -> None:
    for growth in (1, 20, 60):  # MB a day, of which 200 are read
        unread, worst = set(range(3000)), 0
        promised = turns_for(6000, 200)
        for day in range(739_000, 739_000 + 3 * promised):
            turns = turns_for(6000 + growth * (day - 739_000), 200)
            unread = {number for number in unread if crc32(str(number).encode()) % turns != day % turns}
            worst = day - 739_000
            if not unread:
                break
        assert not unread, (growth, worst)


@pytest.mark.parametrize("how", ["half", "flipped"])
def test_a_checkpoint_that_says_something_else_than_its_commits_is_a_fault(lake: Lake, how: str) -> None:
    path = lake.table_path(TABLE)
    version = commits.head_version(path)
    DeltaTable(on_disk(path)).create_checkpoint()
    [file] = on_disk(path / "_delta_log").glob(f"{version:020d}.checkpoint.parquet")
    if how == "half":
        whole = pq.read_table(file)
        pq.write_table(whole.slice(0, len(whole) - 1), file)
        assert [fault.check for fault in faults(lake, 0)][:1] == ["logs"]
    else:
        flip(file)
        assert table_snapshot(path).version == version


@pytest.mark.parametrize(
    ("size", "budget", "turns"),
    [(0, 10, 1), (10, 10, 1), (11, 10, 2), (21, 10, 4), (100, 10, 16), (5, None, 1), (5, 0, 8)],
)
def test_as_many_turns_as_fit(size: int, budget: int | None, turns: int) -> None:
    assert turns_for(size, budget) == turns
