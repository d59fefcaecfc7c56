"""A copy of a lake is a whole release, whenever it was taken and however it ended; a backup keeps what is good."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from platform_assets.errors import PlatformError
from platform_assets.lakehouse.errors import DamagedTableError, ErasedError, LakeError
from platform_assets.lakehouse.horizon import Cut, Horizon
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish, recover
from platform_assets.lakehouse.releases import current_release, manifest_file, published
from platform_assets.lakehouse.storage.disk import Disk
from platform_assets.operations.audit import audit
from platform_assets.operations.audit_logs import Findings, Scope
from platform_assets.operations.backup import BackupFolder, Generation
from platform_assets.operations.backup_copy import LakeCopied, copy_lake, forget_deleted
from platform_assets.progress import Progress, no_progress
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


@pytest.mark.parametrize("name", HALF_WAY)
def test_what_is_begun_and_not_released_is_left_out(lake: Lake, copy: Lake, tmp_path: Path, name: str) -> None:
    publish(lake, staged_manifest(lake, SEEN))
    publish_elsewhere(lake, staged_manifest(lake, both(3)), tmp_path, name)
    copied(lake, copy)
    assert everything(copy) == SEEN
    assert recover(copy) == []


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
        with pytest.raises(LakeError, match="is inside the lake"):
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
    with pytest.raises(DamagedTableError, match=r"ahead of release 0(?s:.*)platform-assets admin backup"):
        publish(copy, staged_manifest(copy, both(3)))
    clean = Lake.at(tmp_path / "clean")
    copied(copy, clean)
    publish(clean, staged_manifest(clean, both(3)))
    assert everything(clean) == both(3)


@pytest.fixture
def backup(tmp_path: Path) -> BackupFolder:
    return BackupFolder(tmp_path / "elsewhere")


def taken(lake: Lake, backup: BackupFolder, keep: int = 7) -> tuple[Generation, LakeCopied]:
    with backup.begun(lake) as draft:
        done = copy_lake(lake, Lake.at(draft.lake), no_progress)
        forget_deleted(Lake.at(draft.lake))
        return backup.show(draft, keep), done


def shown(backup: BackupFolder) -> Lake:
    return Lake.at(backup.folder / "lake")


def faults_read(lake: Lake) -> list[str]:
    findings = Findings()
    audit(lake, Scope(every_release=True, read_bytes=None), findings, no_progress)
    return [fault.what for fault in findings.faults]


def file_of(lake: Lake, table: str) -> Path:
    [file] = live(lake, table)[day(0)]
    return on_disk(lake.table_path(table) / file.path)


def damage(file: Path, how: str) -> None:
    if how == "gone":
        file.unlink()
    else:
        os.truncate(file, 200)


@pytest.mark.parametrize("how", ["gone", "cut short"])
def test_a_good_copy_stays_whatever_becomes_of_the_file_and_the_backup_goes_on(
    lake: Lake, backup: BackupFolder, how: str
) -> None:
    publish(lake, staged_manifest(lake, both(1)))
    taken(lake, backup)
    damage(file_of(lake, SALES), how)
    publish(lake, staged_manifest(lake, {STORES: {day(1): [("new", 1)]}}))
    _, done = taken(lake, backup)
    [said] = done.damaged
    assert SALES in said
    assert "The backup keeps the good one" in said
    assert everything(shown(backup))[SALES] == both(1)[SALES]
    assert current_release(shown(backup)).number == 1
    assert faults_read(shown(backup)) == []


@pytest.mark.parametrize("how", ["gone", "cut short"])
def test_a_damaged_file_without_a_good_copy_is_refused_by_name_and_what_was_there_stays(
    lake: Lake, backup: BackupFolder, how: str
) -> None:
    publish(lake, staged_manifest(lake, both(1)))
    first, _ = taken(lake, backup)
    publish(lake, staged_manifest(lake, both(2)))
    damage(file_of(lake, SALES), how)
    with pytest.raises(DamagedTableError, match=f"{file_of(lake, SALES).name} of {SALES} .*release 1 needs it"):
        taken(lake, backup)
    assert backup.generations() == [first]
    assert everything(shown(backup)) == both(1)
    assert faults_read(shown(backup)) == []


def test_a_generation_is_never_changed_by_later_ones_and_the_oldest_go(lake: Lake, backup: BackupFolder) -> None:
    for n in range(5):
        publish(lake, staged_manifest(lake, both(n)))
        taken(lake, backup, keep=3)
    generations = backup.generations()
    assert [each.release for each in generations] == [2, 3, 4]
    for n, each in zip((2, 3, 4), generations, strict=True):
        assert everything(Lake.at(each.lake)) == both(n)
        assert faults_read(Lake.at(each.lake)) == []
    assert everything(shown(backup)) == both(4)
    assert sorted(path.name for path in backup.folder.joinpath("generations").iterdir()) == [
        each.name for each in generations
    ]
    inodes = {file_of(Lake.at(each.lake), SALES).stat().st_nlink for each in generations[:1]}
    assert inodes == {3}, "a file is on disk once for all generations"


STEPS = {"copy": ((Disk, "copy_to"),), "move": ((Path, "rename"), (Path, "replace"))}


def killed_at(place: int, lake: Lake, folder: Path, step: str) -> None:
    """Take a backup in a process that dies at its n-th step of a kind."""
    left = [place]

    def dying(original: Callable[..., object]) -> Callable[..., object]:
        def do(*arguments: object, **named: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments, **named)

        return do

    for owner, name in STEPS[step]:
        setattr(owner, name, dying(getattr(owner, name)))
    taken(lake, BackupFolder(folder), keep=1)


@pytest.mark.parametrize(
    ("step", "places"), [("copy", range(0, 8, 2)), ("move", (*range(4), *range(12, 24, 2)))], ids=("copy", "move")
)
def test_a_killed_backup_shows_what_it_showed_before_or_the_new_state_and_is_completed(
    lake: Lake, backup: BackupFolder, step: str, places: range
) -> None:
    publish(lake, staged_manifest(lake, both(0)))
    taken(lake, backup)
    for n, place in enumerate(places, start=1):
        before = everything(shown(backup))
        publish(lake, staged_manifest(lake, both(n)))
        in_process(killed_at, place, lake, backup.folder, step)
        assert everything(shown(backup)) in (before, both(n))
        assert faults_read(shown(backup)) == []
        taken(lake, backup)
        assert everything(shown(backup)) == both(n)
        assert not list(backup.folder.glob("generations/.*"))


def test_what_somebody_did_in_the_backup_is_in_no_later_generation(
    lake: Lake, backup: BackupFolder, tmp_path: Path
) -> None:
    publish(lake, staged_manifest(lake, both(1)))
    taken(lake, backup)
    publish_elsewhere(shown(backup), staged_manifest(shown(backup), both(66)), tmp_path, "publish.before_release")
    DeltaTable(on_disk(shown(backup).table_path(STORES))).delete("cents = 66")
    write_deltalake(on_disk(shown(backup).releases_path), pa.table({"table": ["x"], "version": [3]}), mode="append")
    publish(lake, staged_manifest(lake, both(2)))
    _, done = taken(lake, backup)
    assert done.damaged == ()
    assert everything(shown(backup)) == both(2)
    assert faults_read(shown(backup)) == []


def test_a_pinned_releases_files_stay_though_the_lake_lost_them(lake: Lake, backup: BackupFolder) -> None:
    publish(lake, staged_manifest(lake, both(0)))
    pinned = file_of(lake, SALES)
    for n in (1, 2, 3):
        publish(lake, staged_manifest(lake, both(n)))
    taken(lake, backup)
    lake.horizon_file.replace(Horizon(before=2, kept=(0,)).model_dump_json().encode())
    pinned.unlink()
    publish(lake, staged_manifest(lake, both(4)))
    newest, _ = taken(lake, backup, keep=1)
    assert pinned.name in {path.name for path in newest.lake.rglob("*.parquet")}


def test_a_damaged_manifest_is_refused_and_one_of_the_backup_is_copied_again(lake: Lake, backup: BackupFolder) -> None:
    publish(lake, staged_manifest(lake, both(1)))
    first, _ = taken(lake, backup, keep=1)
    manifest = on_disk(manifest_file(Lake.at(first.lake), dict(published(lake))[0]))
    manifest.unlink()
    manifest.write_text("garbage")
    _, done = taken(lake, backup, keep=1)
    assert (done.files, done.damaged) == (1, ())
    publish(lake, staged_manifest(lake, both(2)))
    own = on_disk(manifest_file(lake, dict(published(lake))[1]))
    content = own.read_bytes()
    own.write_text("garbage")
    with pytest.raises(DamagedTableError, match="The backup shows what it showed before"):
        taken(lake, backup, keep=1)
    assert everything(shown(backup)) == both(1)
    assert faults_read(shown(backup)) == []
    own.write_bytes(content)
    taken(lake, backup, keep=1)
    assert everything(shown(backup)) == both(2)


def test_two_backups_at_once_are_refused(lake: Lake, backup: BackupFolder) -> None:
    publish(lake, staged_manifest(lake, both(1)))
    with backup.begun(lake), pytest.raises(PlatformError, match="Another backup"):
        taken(lake, backup)
    assert backup.generations() == []


def test_what_the_lake_deleted_leaves_the_backup_what_it_lost_does_not(lake: Lake, backup: BackupFolder) -> None:
    files = []
    for n in range(4):
        publish(lake, staged_manifest(lake, both(n)))
        files.append(file_of(lake, SALES))
    taken(lake, backup)
    lake.horizon_file.replace(Horizon(before=2).model_dump_json().encode())
    for gone in (files[0], files[1], files[2]):  # release 2 is to be whole: its file was lost
        gone.unlink()
    publish(lake, staged_manifest(lake, both(9)))
    newest, _ = taken(lake, backup)
    there = {path.name for path in newest.lake.rglob("*.parquet")}
    assert [file.name in there for file in files] == [False, False, True, True]
    assert faults_read(Lake.at(newest.lake)) == []
