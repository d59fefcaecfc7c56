"""A copy of a lake is a whole release, whenever it was taken and however it ended; another copy is refused by name."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.errors import DamagedTableError, ErasedError, LakeError
from platform_assets.lakehouse.horizon import Cut, Horizon
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.recovery import recover
from platform_assets.lakehouse.releases import current_release, manifest_file
from platform_assets.lakehouse.revert import undo_unreleased
from platform_assets.lakehouse.storage.disk import Disk
from platform_assets.lakehouse.storage.location import Location
from platform_assets.operations.audit.faults import Findings, Scope
from platform_assets.operations.audit.lake import audit
from platform_assets.operations.backup.copying import LakeCopied, copy_lake, forget_deleted
from platform_assets.progress import Progress
from platform_assets.records.manifest import Erasure, Manifest
from platform_assets_tests.support.empty_lake import only_on_disk
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.shelf import (
    HALF_WAY,
    SALES,
    STORES,
    Days,
    contents,
    day,
    everything,
    in_process,
    live,
    publish_elsewhere,
    staged_manifest,
)

SEEN: dict[str, Days] = {SALES: {day(0): [("a", 0)]}, STORES: {day(0): [("a", 0)]}}


def copied(lake: Lake, copy: Lake) -> LakeCopied:
    return copy_lake(lake, copy, lambda *_: None)


def faults(lake: Lake) -> list[str]:
    found = Findings()
    audit(lake, Scope(every_release=True), found, lambda *_: None)
    return [fault.what for fault in found.faults] + found.notes


def both(n: int) -> dict[str, Days]:
    return {SALES: {day(0): [("a", n)]}, STORES: {day(0): [("a", n)]}}


def publish_until(lake: Lake, stop: Path) -> None:
    """Both tables get the same number, over and over; the older also alone, so that logs differ in length."""
    n = 0
    while not stop.exists():
        n += 1
        publish(lake, staged_manifest(lake, both(n)))
        publish(lake, staged_manifest(lake, {STORES: {day(n % 5 + 1): [("b", n)]}}))


@pytest.fixture
def copy(tmp_path: Path) -> Lake:
    return Lake.at(tmp_path / "elsewhere" / "lake")


def test_copies_taken_while_another_process_publishes_are_whole_releases(
    lake: Lake, copy: Lake, tmp_path: Path
) -> None:
    publish(lake, staged_manifest(lake, SEEN))
    stop = tmp_path / "stop"
    publisher = in_process(publish_until, lake, stop, wait=False)
    try:
        while current_release(lake).number < 3:
            pass
        for _ in range(4):
            done = copied(lake, copy)
            assert current_release(copy).number == done.release
            assert faults(copy) == []
            rows = everything(copy)
            assert rows == {table: contents(lake, table, done.release) for table in rows}
            assert rows[SALES][day(0)] == rows[STORES][day(0)], "all of a publication or nothing"
    finally:
        stop.touch()
        publisher.join(60)
    assert current_release(copy).number > 3
    assert current_release(lake).number > current_release(copy).number
    # And work goes on in the copy as it would have in the lake.
    publish(copy, staged_manifest(copy, both(-1)))
    assert everything(copy)[SALES] == both(-1)[SALES]
    assert faults(copy) == []


def test_a_second_copy_takes_only_what_is_new(lake: Lake, copy: Lake) -> None:
    publish(lake, staged_manifest(lake, SEEN))
    first = copied(lake, copy)
    assert (first.before, first.release, first.gone) == (-1, 0, 0)
    assert copied(lake, copy).files == 0
    publish(lake, staged_manifest(lake, {SALES: {day(1): [("b", 1)]}}))
    assert (again := copied(lake, copy)).release == 1
    assert again.files == 3, "a data file, its commit and its manifest"
    assert everything(copy) == everything(lake)


@pytest.mark.parametrize("place", range(1, 10, 2))
def test_a_copy_cut_short_shows_what_it_showed_before_and_is_completed(
    lake: Lake, copy: Lake, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(lake, staged_manifest(lake, SEEN))
    copied(lake, copy)
    publish(lake, staged_manifest(lake, both(7)))
    copy_to, left = Disk.copy_to, [place]

    def full(source: Disk, target: Location) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device", str(target))
        copy_to(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(Disk, "copy_to", full)
        try:
            copied(lake, copy)
        except OSError:
            assert everything(copy) == SEEN
    copied(lake, copy)
    assert everything(copy) == both(7)
    assert faults(copy) == []


@pytest.mark.parametrize("name", HALF_WAY)
def test_what_is_begun_and_not_released_is_left_out(lake: Lake, copy: Lake, tmp_path: Path, name: str) -> None:
    publish(lake, staged_manifest(lake, SEEN))
    publish_elsewhere(lake, staged_manifest(lake, both(3)), tmp_path, name)
    copied(lake, copy)
    assert everything(copy) == SEEN
    assert recover(copy) == []


def test_a_lake_moved_or_copied_back_works_on(lake: Lake, copy: Lake, tmp_path: Path) -> None:
    publish(lake, staged_manifest(lake, SEEN))
    copied(lake, copy)
    shutil.rmtree(on_disk(lake.root))
    moved = Lake.at(tmp_path / "another place" / "lake")
    shutil.copytree(on_disk(copy.root), on_disk(moved.root))
    assert everything(moved) == SEEN
    publish(moved, staged_manifest(moved, both(4)))
    assert everything(moved) == both(4)
    assert faults(moved) == []


def test_files_of_older_releases_may_be_gone_those_of_the_newest_not(lake: Lake, copy: Lake) -> None:
    publish(lake, staged_manifest(lake, SEEN))
    [old] = [lake.table_path(SALES) / file.path for file in live(lake, SALES)[day(0)]]
    publish(lake, staged_manifest(lake, both(1)))
    on_disk(old).unlink()
    assert copied(lake, copy).gone == 1
    assert everything(copy) == both(1)
    publish(lake, staged_manifest(lake, both(2)))
    [needed] = [lake.table_path(SALES) / file.path for file in live(lake, SALES)[day(0)]]
    on_disk(needed).unlink()
    with pytest.raises(DamagedTableError, match=f"{needed.name} of {SALES} is missing, and release 2 needs it"):
        copied(lake, copy)
    assert everything(copy) == both(1)


def test_a_copy_of_rows_that_are_erased_meanwhile_is_not_kept(lake: Lake, copy: Lake) -> None:
    publish(lake, staged_manifest(lake, SEEN))
    copied(lake, copy)
    publish(lake, staged_manifest(lake, both(1)))
    erasures = iter([staged_manifest(lake, both(2)).model_copy(update={"kind": "erasure"})])

    def erase_once(progress: Progress) -> None:
        if erasure := next(erasures, None):
            publish(lake, erasure)

    with pytest.raises(ErasedError, match="while it was copied; the backup shows what it showed before"):
        copy_lake(lake, copy, erase_once)
    assert current_release(copy).number == 0
    assert copied(lake, copy).release == 2


def erasure(lake: Lake, n: int) -> Manifest:
    """Publishes everything anew, as if rows of the first table had been erased."""
    said = Erasure(table=SALES, key={"store": "hash"}, secret="of a test")
    update = {"kind": "erasure", "erasures": (said,)}
    made = staged_manifest(lake, both(n)).model_copy(update=update)
    publish(lake, made)
    return made


def test_no_copy_is_kept_of_erased_rows_whose_files_still_lie_there_nor_of_those_that_it_had(
    lake: Lake, copy: Lake
) -> None:
    """Whoever erases may be killed before history is cut, or after that and before the files are deleted."""
    publish(lake, staged_manifest(lake, SEEN))
    copied(lake, copy)
    publish(lake, staged_manifest(lake, both(1)))
    before = {*copy.table_path(SALES).files(), *lake.table_path(SALES).files()}
    done = erasure(lake, 2)
    with pytest.raises(ErasedError, match=f"by publication {done.publication}, and the files .* are not deleted yet"):
        copied(lake, copy)
    assert current_release(copy).number == 0
    lake.horizon_file.replace(
        Horizon(before=2, cut=Cut(before=2, publication=done.publication)).model_dump_json().encode()
    )
    assert copied(lake, copy).release == 2
    forget_deleted(copy)
    files = {name for name in copy.table_path(SALES).files() if name.endswith(".parquet")}
    assert files
    assert not files & before, "neither those of the copy before, nor those that still lie in the lake"
    assert everything(copy) == both(2)
    assert faults(copy) == []


def test_that_an_erasure_was_lifted_keeps_no_copy_back(lake: Lake, copy: Lake) -> None:
    publish(lake, staged_manifest(lake, SEEN))
    lifts = Erasure(table=SALES, key={"store": "hash"}, secret="of a test", lifts=True)
    update = {"kind": "erasure", "erasures": (lifts,)}
    publish(lake, staged_manifest(lake, both(1)).model_copy(update=update))
    assert copied(lake, copy).release == 1


@only_on_disk
def test_a_folder_that_is_no_copy_of_this_lake_is_refused(lake: Lake, copy: Lake, tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="Nothing was published"):
        copied(lake, copy)
    publish(lake, staged_manifest(lake, SEEN))
    for inside in (lake, Lake.at(on_disk(lake.root / "backup"))):
        with pytest.raises(LakeError, match="lies in the lake"):
            copied(lake, inside)
    other = Lake.at(tmp_path / "other")
    publish(other, staged_manifest(other, SEEN))
    copied(other, copy)
    with pytest.raises(LakeError, match="is a copy of another lake"):
        copied(lake, copy)
    publish(other, staged_manifest(other, both(1)))
    older = Lake.at(tmp_path / "older")
    copied(other, older)
    publish(other, staged_manifest(other, both(2)))
    copied(other, copy)
    with pytest.raises(LakeError, match=r"which \S+older does not have"):
        copied(older, copy)


@pytest.mark.parametrize(
    "later",
    [
        pytest.param((both(1), both(2)), id="the same days"),
        pytest.param(({SALES: {day(7): [("a", 1)]}}, {STORES: {day(7): [("s", 1)]}}), id="days of other tables"),
    ],
)
def test_a_plain_copy_whose_tables_are_ahead_of_its_release_is_refused_and_can_be_cleaned(
    lake: Lake, copy: Lake, tmp_path: Path, later: Iterable[dict[str, Days]]
) -> None:
    """What `cp` leaves if others publish between the copy of `_releases` and that of the tables."""
    publish(lake, staged_manifest(lake, SEEN))
    shutil.copytree(on_disk(lake.releases_path), on_disk(copy.releases_path))
    for tables in later:
        publish(lake, staged_manifest(lake, tables))
    shutil.copytree(
        on_disk(lake.root), on_disk(copy.root), dirs_exist_ok=True, ignore=shutil.ignore_patterns("_releases")
    )
    assert everything(copy) == SEEN, "readers see the older release, whole"
    with pytest.raises(DamagedTableError, match=r"ahead of release 0(?s:.*)platform-assets backup"):
        publish(copy, staged_manifest(copy, both(3)))
    clean = Lake.at(tmp_path / "clean")
    copied(copy, clean)
    publish(clean, staged_manifest(clean, both(3)))
    assert everything(clean) == both(3)


def test_a_publication_made_from_what_the_release_does_not_show_is_not_finished(lake: Lake) -> None:
    publish(lake, staged_manifest(lake, {SALES: SEEN[SALES]}))
    what = staged_manifest(lake, {STORES: SEEN[STORES]})
    [change] = what.tables
    later = what.model_copy(update={"tables": (change.model_copy(update={"reads": {SALES: 1}}),)})
    publish(lake, later)
    for file in on_disk(lake.releases_path).glob("_delta_log/*1.json"):
        file.unlink()
    assert commits.head_version(lake.releases_path) == 0
    assert manifest_file(lake, later.publication).exists()
    with pytest.raises(DamagedTableError, match="ahead of release 0"):
        recover(lake)


def test_a_copy_has_the_manifests_that_its_logs_name_also_of_what_no_release_shows(
    lake: Lake, copy: Lake, tmp_path: Path
) -> None:
    """A publication died half-way and was undone; its commit stays in the table's log."""
    publish(lake, staged_manifest(lake, SEEN))
    copied(lake, copy)
    publish_elsewhere(lake, staged_manifest(lake, both(1)), tmp_path, "replace.after_commit")
    assert undo_unreleased(lake)
    assert faults(lake) == []
    copied(lake, copy)
    assert everything(copy) == everything(lake)
    assert faults(copy) == []
