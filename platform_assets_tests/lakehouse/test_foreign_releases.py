"""What another tool writes into `_releases` no reader sees and no publisher builds on; one command takes it out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.errors import ForeignCommitError, UnknownReleaseError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish, recover
from platform_assets.lakehouse.releases import current_release, manifest_of, publication_of, published, release
from platform_assets.lakehouse.revert import remove_foreign_releases
from platform_assets.operations.audit import audit
from platform_assets.operations.audit_logs import Findings, Scope
from platform_assets.progress import no_progress
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.shelf import (
    SALES,
    STORES,
    Days,
    contents,
    day,
    everything,
    in_process,
    publish_elsewhere,
    staged_manifest,
)

ROWS = pa.table({"table": [SALES], "version": pa.array([0], pa.int64())})


def append(folder: str) -> None:
    write_deltalake(folder, ROWS, mode="append")


def overwrite_and_checkpoint(folder: str) -> None:
    write_deltalake(folder, ROWS, mode="overwrite")
    write_deltalake(folder, ROWS, mode="append")
    table = DeltaTable(folder)
    table.create_checkpoint()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


WRITERS = pytest.mark.parametrize("write", [append, overwrite_and_checkpoint])


def both(n: int) -> dict[str, Days]:
    return {SALES: {day(0): [("a", n)]}, STORES: {day(0): [("a", n)]}}


def faults(lake: Lake) -> list[str]:
    findings = Findings()
    audit(lake, Scope(every_release=True), findings, no_progress)
    return [fault.what for fault in findings.faults]


@pytest.fixture
def filled(lake: Lake) -> Lake:
    publish(lake, staged_manifest(lake, both(1)))
    publish(lake, staged_manifest(lake, both(2)))
    return lake


@WRITERS
def test_readers_see_the_newest_release_and_publishers_stop_before_they_begin(
    filled: Lake, write: Callable[[str], None]
) -> None:
    write(str(filled.releases_path))
    assert everything(filled) == both(2)
    assert [number for number, _ in published(filled)] == [0, 1]
    assert publication_of(filled, 2) is None
    with pytest.raises(UnknownReleaseError, match="written by another tool"):
        release(filled, 2)
    heads = {table: commits.head_version(filled.table_path(table)) for table in (SALES, STORES)}
    with pytest.raises(ForeignCommitError, match="undo foreign:_releases"):
        publish(filled, staged_manifest(filled, both(3)))
    assert {table: commits.head_version(filled.table_path(table)) for table in heads} == heads
    assert any("Version 2 of `_releases` was not made by a publication" in fault for fault in faults(filled))


@WRITERS
def test_what_another_tool_wrote_is_taken_out_kept_aside_and_told(filled: Lake, write: Callable[[str], None]) -> None:
    assert remove_foreign_releases(filled) is None
    write(str(filled.releases_path))
    assert remove_foreign_releases(filled, "somebody's notebook", "Zoë") == 2
    told = manifest_of(filled, publication_of(filled, 2) or "")
    assert (told.who, told.why, told.tables) == ("Zoë", "somebody's notebook", ())
    assert everything(filled) == both(2)
    assert list((filled.releases_path / "_foreign").names()) != []
    publish(filled, staged_manifest(filled, both(3)))
    assert everything(filled) == both(3)
    assert contents(filled, SALES, 2) == both(2)[SALES]
    rows = DeltaTable(str(filled.releases_path)).to_pyarrow_table().to_pylist()
    assert {row["table"]: row["version"] for row in rows} == current_release(filled).versions
    # Older releases' own files, which only readers of `_releases` as a Delta table need, another tool's VACUUM took.
    assert [fault for fault in faults(filled) if "The file of release" not in fault] == []


@pytest.mark.parametrize(
    "said", ['{"timestamp":null}', '{"timestamp":"2017-01-01T00:00:00Z","userId":7}', "null", "[]"]
)
def test_whatever_another_tool_says_of_itself_stops_no_reader(filled: Lake, said: str) -> None:
    file = commits.commit_file(filled.releases_path, 2)
    on_disk(file).write_text(f'{{"commitInfo":{said}}}\n')
    assert everything(filled) == both(2)
    assert remove_foreign_releases(filled) == 2
    assert everything(filled) == both(2)


def dies_taking_out(lake: Lake) -> None:
    remove_foreign_releases(lake)


@pytest.mark.parametrize("point", ["write.before_rename", "release.after_file", "release.after_commit"])
def test_whoever_dies_taking_it_out_is_followed_by_another(filled: Lake, point: str) -> None:
    overwrite_and_checkpoint(str(filled.releases_path))
    died = in_process(dies_taking_out, filled, failpoint=point)
    assert died.exitcode != 0
    assert everything(filled) == both(2)
    remove_foreign_releases(filled)
    publish(filled, staged_manifest(filled, both(4)))
    assert everything(filled) == both(4)


def test_a_publication_that_was_under_way_is_finished(filled: Lake, tmp_path: Path) -> None:
    publish_elsewhere(filled, staged_manifest(filled, both(5)), tmp_path, "publish.before_release")
    append(str(filled.releases_path))
    with pytest.raises(ForeignCommitError):
        recover(filled)
    assert everything(filled) == both(2)
    assert remove_foreign_releases(filled) == 3
    assert everything(filled) == both(5)
