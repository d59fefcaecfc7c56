"""What is done under the publish lock, and at the start of a command, does not grow; unpublished stages are dropped."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import table_snapshot
from platform_assets.lakehouse.delta.new_commit import CHECKPOINT_INTERVAL, write_checkpoint
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.releases import current_release
from platform_assets.lakehouse.staging_folders import discard, log_stage
from platform_assets.lakehouse.storage.disk import Disk
from platform_assets.ledger.ledger import Ledger
from platform_assets.ledger.sync import SyncResult, sync
from platform_assets.records.manifest import new_publication
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.shelf import (
    SALES,
    STORES,
    change,
    contents,
    day,
    in_process,
    killed,
    manifest,
    publish_elsewhere,
    rows_of,
    stage,
    staged_manifest,
)

SHORT, LONG = CHECKPOINT_INTERVAL + 3, 2 * CHECKPOINT_INTERVAL + 3
"""Publications; as many commits after the newest checkpoint in the one case as in the other."""


@pytest.fixture
def lake(disk_lake: Lake) -> Lake:
    """What is looked at here lies on a disk."""
    return disk_lake


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files of the lake that were read, as often as they were."""
    seen: list[Path] = []
    read = Disk.read

    def counted(file: Disk, last: int | None = None) -> bytes | None:
        seen.append(on_disk(file))
        return read(file, last)

    monkeypatch.setattr(Disk, "read", counted)
    return seen


def replaced(lake: Lake, up_to: int) -> None:
    """The same day published again and again."""
    for n in range(current_release(lake).number + 1, up_to):
        publish(lake, staged_manifest(lake, {SALES: {day(0): [("n", n)]}}))


def staged(lake: Lake, n: int) -> str:
    """A stage as Spark leaves it."""
    publication = new_publication()
    folder = lake.stage_path(SALES, publication)
    of_day = folder / f"event_date={day(n)}"
    on_disk(of_day).mkdir(parents=True)
    rows = rows_of({day(n): [("staged", n)]}).drop_columns(["event_date"])
    pq.write_table(rows, of_day / f"part-{len(list(on_disk(of_day).iterdir()))}.parquet")
    log_stage(folder, "")
    return publication


def counted(reads: list[Path], work: Callable[[], object]) -> int:
    reads.clear()
    work()
    return len(reads)


def test_a_checkpoint_holds_what_is_live_and_nothing_of_what_has_left(lake: Lake) -> None:
    replaced(lake, SHORT)
    for table, live in ((lake.table_path(SALES), 1), (lake.releases_path, 1)):
        log = table / "_delta_log"
        checkpoint = log / f"{CHECKPOINT_INTERVAL:020d}.checkpoint.parquet"
        rows = pq.read_table(checkpoint)
        assert [len(rows.column(name).drop_null()) for name in ("add", "remove", "metaData", "protocol")] == [
            live, 0, 1, 1
        ]  # fmt: skip
        hint = json.loads(on_disk(log / "_last_checkpoint").read_text())
        assert (hint["version"], hint["size"]) == (CHECKPOINT_INTERVAL, rows.num_rows)
        assert hint["sizeInBytes"] == on_disk(checkpoint).stat().st_size
    for number in (CHECKPOINT_INTERVAL - 1, CHECKPOINT_INTERVAL, SHORT - 1):
        found = DeltaTable(on_disk(lake.table_path(SALES)), version=number)
        assert found.to_pyarrow_table(columns=["cents"]).to_pylist() == [{"cents": number}]
        assert [Path(uri).name for uri in found.file_uris()] == [
            Path(path).name for path in table_snapshot(lake.table_path(SALES), number).files
        ]


@pytest.mark.proof
@pytest.mark.parametrize("point", ["checkpoint.written", "write.before_rename", "write.before_rename:2"])
def test_a_checkpoint_can_be_cut_short_anywhere(lake: Lake, point: str) -> None:
    replaced(lake, 5)
    table = lake.table_path(SALES)
    assert killed(in_process(write_checkpoint, table, 4, failpoint=point))
    assert commits.checkpoint_hint(table) == 4
    assert contents(lake, SALES) == {day(0): [("n", 4)]}
    replaced(lake, 7)
    assert contents(lake, SALES) == {day(0): [("n", 6)]}
    assert DeltaTable(on_disk(table)).to_pyarrow_table(columns=["cents"]).to_pylist() == [{"cents": 6}]


def test_a_publication_reads_no_more_after_many_than_after_few(lake: Lake, reads: list[Path]) -> None:
    replaced(lake, SHORT)
    few = counted(reads, lambda: replaced(lake, SHORT + 1))
    replaced(lake, LONG)
    assert counted(reads, lambda: replaced(lake, LONG + 1)) == few


@pytest.mark.proof
def test_a_stage_is_dropped_without_reading_what_was_published_before_it(lake: Lake, reads: list[Path]) -> None:
    replaced(lake, SHORT)
    publication = staged(lake, 1)
    few = counted(reads, lambda: discard(lake, SALES, publication))
    replaced(lake, LONG)
    publication = staged(lake, 1)
    assert counted(reads, lambda: discard(lake, SALES, publication)) == few
    assert not lake.stage_path(SALES, publication).exists()


def test_a_stage_that_is_written_to_again_is_as_old_as_its_first_file(lake: Lake) -> None:
    replaced(lake, 3)
    publication = staged(lake, 1)
    publish(lake, manifest(new_publication(), change(lake, SALES, publication)))
    log_stage(lake.stage_path(SALES, publication), "")
    assert not discard(lake, SALES, publication)


def test_a_stage_whose_log_says_nothing_is_looked_for_everywhere(lake: Lake) -> None:
    replaced(lake, 3)
    publication = staged(lake, 1)
    publish(lake, manifest(new_publication(), change(lake, SALES, publication)))
    log = commits.commit_file(lake.stage_path(SALES, publication), 0)
    on_disk(log).write_text(on_disk(log).read_text()[:20])
    replaced(lake, 6)
    assert not discard(lake, SALES, publication)


def test_a_command_starts_with_what_is_new(lake: Lake, reads: list[Path], tmp_path: Path) -> None:
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        replaced(lake, SHORT)
        assert len(sync(lake, ledger).added) == SHORT
        few = counted(reads, lambda: sync(lake, ledger))
        replaced(lake, LONG)
        sync(lake, ledger)
        assert counted(reads, lambda: sync(lake, ledger)) == few
        replaced(lake, LONG + 2)
        newest = tuple(ledger.indexed())[-1]
        done = sync(lake, ledger)
        assert (len(done.added), done.known, newest < min(done.added)) == (2, LONG, True)
        assert sync(lake, ledger) == SyncResult((), LONG + 2)


def test_a_stage_nobody_published_is_dropped(lake: Lake) -> None:
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)]}}))
    publication = stage(lake, SALES, {day(0): [("a", 2)]})
    assert discard(lake, SALES, publication)
    assert not lake.stage_path(SALES, publication).exists()
    assert contents(lake, SALES) == {day(0): [("a", 1)]}
    assert discard(lake, SALES, publication)


def test_a_published_stage_stays_also_after_it_was_replaced(lake: Lake) -> None:
    first = staged_manifest(lake, {SALES: {day(0): [("a", 1)]}})
    publish(lake, first)
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 2)]}}))
    assert not discard(lake, SALES, first.publication)
    assert contents(lake, SALES, 0) == {day(0): [("a", 1)]}


def test_a_stage_published_under_another_name_stays(lake: Lake) -> None:
    staged = stage(lake, SALES, {day(0): [("a", 1)]})
    publish(lake, manifest(new_publication(), change(lake, SALES, staged)))
    assert not discard(lake, SALES, staged)


def test_a_stage_whose_publication_was_begun_is_finished_instead(lake: Lake, tmp_path: Path) -> None:
    dying = staged_manifest(lake, {SALES: {day(0): [("a", 1)]}, STORES: {day(0): [("s", 1)]}})
    publish_elsewhere(lake, dying, tmp_path, "publish.after_table.0")
    assert not discard(lake, STORES, dying.publication)
    assert contents(lake, STORES) == {day(0): [("s", 1)]}
