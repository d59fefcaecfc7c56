"""A backup keeps what is good, however it ends and whatever becomes of the lake."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from platform_assets.lakehouse.errors import DamagedTableError
from platform_assets.lakehouse.horizon import Horizon
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.releases import current_release, manifest_file, published
from platform_assets.lakehouse.storage.disk import Disk
from platform_assets.operations.audit.faults import Findings, Scope
from platform_assets.operations.audit.lake import audit
from platform_assets.operations.backup.copying import LakeCopied, copy_lake, forget_deleted
from platform_assets.operations.backup.generations import BackupError, BackupFolder, Generation
from platform_assets.progress import no_progress
from platform_assets_tests.support.empty_lake import only_on_disk
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.shelf import (
    SALES,
    STORES,
    Days,
    day,
    everything,
    in_process,
    live,
    publish_elsewhere,
    staged_manifest,
)


@pytest.fixture
def backup(tmp_path: Path) -> BackupFolder:
    return BackupFolder(tmp_path / "elsewhere")


def both(n: int) -> dict[str, Days]:
    return {SALES: {day(0): [("a", n)]}, STORES: {day(0): [("a", n)]}}


def taken(lake: Lake, backup: BackupFolder, keep: int = 7) -> tuple[Generation, LakeCopied]:
    with backup.begun(lake) as draft:
        before = backup.generations()
        done = copy_lake(lake, Lake.at(draft.lake), no_progress, before[-1].lacking if before else {})
        draft.note_lacking(done.lacking)
        forget_deleted(Lake.at(draft.lake))
        return backup.show(draft, keep), done


def shown(backup: BackupFolder) -> Lake:
    return Lake.at(backup.folder / "lake")


def faults(lake: Lake) -> list[str]:
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
    assert faults(shown(backup)) == []


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
    assert faults(shown(backup)) == []


def test_a_generation_is_never_changed_by_later_ones_and_the_oldest_go(lake: Lake, backup: BackupFolder) -> None:
    for n in range(5):
        publish(lake, staged_manifest(lake, both(n)))
        taken(lake, backup, keep=3)
    generations = backup.generations()
    assert [each.release for each in generations] == [2, 3, 4]
    for n, each in zip((2, 3, 4), generations, strict=True):
        assert everything(Lake.at(each.lake)) == both(n)
        assert faults(Lake.at(each.lake)) == []
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
        assert faults(shown(backup)) == []
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
    assert faults(shown(backup)) == []


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
    assert faults(shown(backup)) == []
    own.write_bytes(content)
    taken(lake, backup, keep=1)
    assert everything(shown(backup)) == both(2)


def test_what_was_damaged_is_copied_when_it_is_good_again(lake: Lake, backup: BackupFolder) -> None:
    publish(lake, staged_manifest(lake, both(1)))
    old = file_of(lake, SALES)
    content = old.read_bytes()
    publish(lake, staged_manifest(lake, both(2)))
    damage(old, "cut short")
    for _ in range(2):
        _, done = taken(lake, backup)
        assert old.name in done.damaged[0]
    old.write_bytes(content)
    _, done = taken(lake, backup)
    assert (done.files, done.damaged) == (1, ())
    assert faults(shown(backup)) == []


def test_whoever_finds_the_links_missing_makes_them(lake: Lake, backup: BackupFolder) -> None:
    publish(lake, staged_manifest(lake, both(1)))
    taken(lake, backup)
    for name in ("current", "lake"):
        (backup.folder / name).unlink()
    (backup.folder / "generations" / ".DS_Store").touch()
    (backup.folder / "generations" / "0foo").mkdir()
    backup.lead_to_newest()
    assert everything(shown(backup)) == both(1)
    publish(lake, staged_manifest(lake, both(2)))
    taken(lake, backup)
    assert everything(shown(backup)) == both(2)


def test_two_backups_at_once_are_refused(lake: Lake, backup: BackupFolder) -> None:
    publish(lake, staged_manifest(lake, both(1)))
    with backup.begun(lake), pytest.raises(BackupError, match="Another backup"):
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
    assert faults(Lake.at(newest.lake)) == []


@only_on_disk
def test_what_was_not_made_by_a_backup_is_left_alone(lake: Lake, tmp_path: Path) -> None:
    publish(lake, staged_manifest(lake, both(1)))
    (tmp_path / "own" / "lake").mkdir(parents=True)
    with pytest.raises(BackupError, match="holds something else than a backup"):
        taken(lake, BackupFolder(tmp_path / "own"))
    with pytest.raises(BackupError, match="lies in the lake"):
        taken(lake, BackupFolder(on_disk(lake.root) / "backup"))
    with pytest.raises(BackupError, match="There is no backup in"):
        BackupFolder(tmp_path / "nothing").generation()
