"""A commit by somebody else's tool is named, kept from readers, and undone by one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import head_of
from platform_assets.lakehouse.errors import (
    DamagedTableError,
    ForeignCommitError,
    NeverPublishedError,
)
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish, recover
from platform_assets.lakehouse.releases import current_release, manifest_of, published
from platform_assets.lakehouse.revert import PutBack, revert_foreign
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.shelf import (
    SALES,
    STORES,
    contents,
    day,
    everything,
    live,
    rows_of,
    staged_manifest,
)

Tool = Callable[[str], Any]
ROWS = rows_of({day(0): [("foreign", 66)], day(5): [("foreign", 77)]})


def _append(path: str) -> None:
    write_deltalake(path, ROWS, mode="append")


def _overwrite(path: str) -> None:
    write_deltalake(path, ROWS, mode="overwrite")


def _polars(path: str) -> None:
    pl.DataFrame(ROWS).write_delta(path, mode="append")


def _delete(path: str) -> None:
    DeltaTable(path).delete("cents = 1")


def _compact(path: str) -> None:
    _append(path)
    DeltaTable(path).optimize.compact()


def _null_day(path: str) -> None:
    write_deltalake(path, ROWS.set_column(3, "event_date", pa.nulls(2, pa.date32())), mode="append")


def _wider(path: str) -> None:
    write_deltalake(path, ROWS.append_column("extra", pa.array(["x", "y"])), mode="append", schema_mode="merge")


def _properties(path: str) -> None:
    DeltaTable(path).alter.set_table_properties({"delta.checkpointInterval": "1"})


TOOLS = [_append, _overwrite, _polars, _delete, _compact, _null_day, _wider, _properties]


@pytest.fixture
def filled(lake: Lake) -> Lake:
    publish(
        lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)], day(1): [("b", 2)]}, STORES: {day(0): [("s", 3)]}})
    )
    return lake


@pytest.mark.parametrize("tool", TOOLS)
def test_a_foreign_commit_is_named_unseen_by_readers_and_stops_nobody_from_publishing_other_tables(
    filled: Lake, tool: Tool
) -> None:
    before = everything(filled)
    same = staged_manifest(filled, {SALES: {day(0): [("a", 4)]}, STORES: {day(0): [("s", 4)]}})
    tool(str(filled.table_path(SALES)))
    with pytest.raises(
        ForeignCommitError, match=r"Version 1 of silver\.sales .* of delta-rs:py-(?s:.*)undo foreign:silver\.sales"
    ) as caught:
        publish(filled, same)
    assert (caught.value.table, caught.value.version) == (SALES, 1)
    assert everything(filled) == before
    publish(filled, staged_manifest(filled, {STORES: {day(0): [("s", 4)]}}))
    assert everything(filled) == {SALES: before[SALES], STORES: {day(0): [("s", 4)]}}
    with pytest.raises(ForeignCommitError):
        recover(filled)
    assert revert_foreign(filled, SALES) == PutBack(2, ())


@pytest.mark.parametrize("tool", TOOLS)
def test_a_table_put_back_has_its_released_files_again_and_work_goes_on(filled: Lake, tool: Tool) -> None:
    before, files = everything(filled), live(filled, SALES)
    columns = DeltaTable(on_disk(filled.table_path(SALES))).schema()
    tool(str(filled.table_path(SALES)))
    assert revert_foreign(filled, SALES, why="not by the rules") == PutBack(1, ())
    assert everything(filled) == before
    assert {when: [file.path for file in found] for when, found in live(filled, SALES).items()} == {
        when: [file.path for file in found] for when, found in files.items()
    }
    head = DeltaTable(on_disk(filled.table_path(SALES)))
    assert head.schema() == columns
    assert head.metadata().configuration["delta.checkpointInterval"] == "20"
    assert manifest_of(filled, list(published(filled))[1][1]).why == "not by the rules"
    publish(filled, staged_manifest(filled, {SALES: {day(0): [("a", 8)]}}))
    assert contents(filled, SALES) == {day(0): [("a", 8)], day(1): [("b", 2)]}


def test_nothing_foreign_is_nothing_to_put_back(filled: Lake) -> None:
    assert revert_foreign(filled, SALES) is None
    assert current_release(filled).number == 0


def test_a_table_that_no_release_has_cannot_be_put_back(lake: Lake) -> None:
    with pytest.raises(NeverPublishedError):
        revert_foreign(lake, SALES)


def test_days_whose_files_a_tool_deleted_are_named_and_can_be_published_again(filled: Lake) -> None:
    """An overwrite and its VACUUM: there is a way back, by computing the days that are gone."""
    before, path = everything(filled), filled.table_path(SALES)
    _overwrite(str(path))
    [gone] = on_disk(path).glob(f"*/event_date={day(0)}/*.parquet")
    gone.unlink()
    assert revert_foreign(filled, SALES) == PutBack(1, (day(0),))
    with pytest.raises(DamagedTableError, match=gone.name):
        contents(filled, SALES)
    assert contents(filled, STORES) == before[STORES]
    publish(filled, staged_manifest(filled, {SALES: {day(0): [("a", 1)]}}))
    assert everything(filled) == before


def test_a_folder_of_somebody_else_that_no_release_knows_disturbs_nobody(filled: Lake) -> None:
    write_deltalake(str(filled.table_path("gold.mine")), ROWS, partition_by=["event_date"])
    publish(filled, staged_manifest(filled, {SALES: {day(0): [("a", 8)]}}))
    assert set(current_release(filled).versions) == {SALES, STORES}


def test_a_folder_of_somebody_else_is_not_taken_over(filled: Lake) -> None:
    what = staged_manifest(filled, {"gold.mine": {day(0): [("a", 8)]}})
    write_deltalake(str(filled.table_path("gold.mine")), ROWS, partition_by=["event_date"])
    with pytest.raises(ForeignCommitError, match=r"gold\.mine"):
        publish(filled, what)


def test_a_table_whose_folder_was_deleted_is_not_begun_anew(filled: Lake) -> None:
    for n in (1, 2):
        publish(filled, staged_manifest(filled, {SALES: {day(0): [("a", n)]}}))
    for file in on_disk(filled.table_path(SALES) / "_delta_log").iterdir():
        file.unlink()
    with pytest.raises(DamagedTableError, match=r"silver\.sales has no version 2, which release 2 shows"):
        publish(filled, staged_manifest(filled, {STORES: {day(0): [("s", 9)]}}))


def test_a_foreign_commit_on_a_half_published_table_is_undone_and_the_publication_finished(filled: Lake) -> None:
    what = staged_manifest(filled, {SALES: {day(0): [("a", 9)]}, STORES: {day(0): [("s", 9)]}})
    from platform_assets.lakehouse.delta.new_commit import replace
    from platform_assets.lakehouse.releases import manifest_file

    file = manifest_file(filled, what.publication)
    on_disk(file.parent).mkdir(parents=True)
    on_disk(file).write_text(what.model_dump_json())
    for change in what.tables:
        replace(filled, change, what, head_of(filled.table_path(change.table)))
    _append(str(filled.table_path(SALES)))
    with pytest.raises(ForeignCommitError):
        recover(filled)
    revert_foreign(filled, SALES)
    assert everything(filled) == {SALES: {day(0): [("a", 9)], day(1): [("b", 2)]}, STORES: {day(0): [("s", 9)]}}
    assert recover(filled) == []
    assert [c.publication for c in commits.commits_after(filled.table_path(SALES), 0)].count(what.publication) == 2
