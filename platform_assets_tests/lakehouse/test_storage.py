"""What a location promises of files, whatever keeps them: this machine's disk, or an object store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.errors import LakeError, LockLostError
from platform_assets.lakehouse.layout import Lake, located
from platform_assets.lakehouse.storage import location
from platform_assets.lakehouse.storage.location import Location, sync
from platform_assets_tests.support.empty_lake import only_on_disk
from platform_assets_tests.support.places import on_disk


@pytest.fixture
def root(lake: Lake) -> Location:
    return lake.root


def everything(root: Location) -> set[str]:
    return set(root.files())


def test_a_file_that_is_new_has_exactly_one_writer(root: Location) -> None:
    file = root / "_publications/one/manifest.json"
    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(lambda n: file.write_new(b"%d" % n), range(32)))
    assert won.count(True) == 1
    assert file.read() == b"%d" % won.index(True)
    assert everything(root) == {"_publications/one/manifest.json"}


def test_whoever_reads_a_file_that_is_replaced_sees_one_content_or_the_other(root: Location) -> None:
    file, contents = root / "file", {b"a" * 100_000, b"b" * 100_000}
    file.replace(b"a" * 100_000)
    with ThreadPoolExecutor(2) as threads:
        writing = threads.submit(lambda: [file.replace(content) for _ in range(20) for content in contents])
        while not writing.done():
            assert file.read() in contents
    assert everything(root) == {"file"}


@only_on_disk
@pytest.mark.parametrize("write", ["write_new", "replace"])
def test_a_write_that_fails_leaves_what_was_there_and_nothing_else(
    root: Location, write: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "other").replace(b"old")

    def full(point: str) -> None:
        failpoint(point)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(location, "failpoint", full)
    for name in ("new", "other"):
        with pytest.raises(OSError, match="No space"):
            getattr(root / name, write)(b"new")
    assert everything(root) == {"other"}
    assert (root / "other").read() == b"old"


def test_a_file_is_replaced_only_while_the_lock_is_held(root: Location) -> None:
    file, draft = root / "file", root / "_deletions/x.draft"
    file.replace(b"old")

    def lost() -> None:
        raise LockLostError("lost", "run it again")

    with pytest.raises(LockLostError):
        file.replace_if_held(b"new", lost, draft)
    assert not file.replace_if_held(b"new", draft.remove, draft), "who took the lock has removed the draft"
    assert (file.read(), everything(root)) == (b"old", {"file"})
    assert file.replace_if_held(b"new", lambda: None, draft)
    assert (file.read(), everything(root)) == (b"new", {"file"})


def test_the_end_of_a_file_is_read_without_the_rest(root: Location) -> None:
    (root / "file").replace(b"0123456789")
    assert [(root / "file").read(last) for last in (0, 4, 10, 99, None)] == [
        b"",
        b"6789",
        b"0123456789",
        b"0123456789",
        b"0123456789",
    ]
    assert (root / "none").read(4) is None


def test_what_is_not_there_is_told_without_an_error(root: Location) -> None:
    missing = root / "a/b"
    assert (missing.exists(), missing.size(), missing.read(), missing.names(), missing.folders(), missing.files()) == (
        False,
        None,
        None,
        [],
        [],
        {},
    )
    with pytest.raises(FileNotFoundError):
        missing.written()
    with pytest.raises(FileNotFoundError):
        missing.sync()
    with pytest.raises(FileNotFoundError):
        missing.copy_to(root / "copy")
    missing.tidy()


@only_on_disk
def test_folders_are_listed_without_files_and_links(root: Location) -> None:
    for path in ("b/file", "a/deep/file", "file"):
        (root / path).replace(path.encode())
    on_disk(root / "link").symlink_to(on_disk(root / "a"))
    assert [folder.name for folder in root.folders()] == ["a", "b"]
    assert root.names() == ["a", "b", "file", "link"]
    assert {name: entry.size for name, entry in root.files().items()} == {"b/file": 6, "a/deep/file": 11, "file": 4}
    assert (root / "a").size() is None


@only_on_disk
def test_a_tidied_folder_keeps_whatever_has_a_file(root: Location) -> None:
    (root / "kept/file").replace(b"")
    for path in ("kept/empty", "gone/deep/deeper"):
        (root / path).make()
    root.tidy()
    assert [path.name for path in on_disk(root).rglob("*")] == ["kept", "file"]


def test_many_files_are_forced_to_disk_and_a_missing_one_is_an_error(root: Location) -> None:
    for n in range(20):
        (root / f"{n}").write_in_place([b""])
    sync(root / f"{n}" for n in range(20))
    with pytest.raises(FileNotFoundError):
        sync(root / f"{n}" for n in range(21))


def test_the_clock_of_a_folder_is_that_of_its_files(root: Location) -> None:
    root.make()
    assert abs(root.now() - datetime.now(UTC)) < timedelta(seconds=30)
    assert root.names() == []


@pytest.mark.parametrize("path", ["/etc/passwd", "../elsewhere", "a/../../elsewhere", ".."])
def test_a_path_in_a_log_never_leads_out_of_its_folder(root: Location, path: str) -> None:
    with pytest.raises(LakeError, match="does not lie below"):
        root / path


@given(st.lists(st.text("ab.-_ é", min_size=1).filter(lambda name: name != ".."), min_size=1, max_size=4))
def test_the_way_down_is_the_way_back_up(names: list[str]) -> None:
    root = located("/lake")
    place = root / "/".join(names)
    assert place.below(root) == "/".join(names)
    assert place.name == names[-1]
    assert place.parent == (root / "/".join(names[:-1]) if names[:-1] else root)
    assert root.holds(place)
    assert root.below(place) is None


def test_what_lies_directly_below_the_topmost_folder_has_it_as_its_parent() -> None:
    """As a volume of a container does."""
    lake = located("/lake")
    assert str(lake.parent) == "/"
    assert str(lake.parent.parent) == "/"
    assert located("/") / "lake" == lake
    assert lake.below(located("/")) == "lake"


def test_a_folder_is_removed_though_others_still_remove_files_in_it(root: Location) -> None:
    """As the last tasks of a job that failed do."""
    for _ in range(5):
        for n in range(200):
            (root / f"folder/{n}/file").write_in_place([b""])
        with ThreadPoolExecutor(2) as threads:
            other = threads.submit(lambda: [(root / f"folder/{n}").remove(durable=False) for n in range(200)])
            (root / "folder").remove()
            other.result()
        assert not (root / "folder").exists()


@only_on_disk
def test_a_file_is_written_in_place_where_there_is_no_room_for_another(root: Location) -> None:
    file = root / "_locks/publish.holder.json"
    file.write_in_place([b"first"])
    there = on_disk(file).stat().st_ino
    file.write_in_place([b"second"])
    assert (file.read(), on_disk(file).stat().st_ino) == (b"second", there)


@only_on_disk
def test_a_place_is_the_same_under_another_name(root: Location, tmp_path: Path) -> None:
    root.make()
    (tmp_path / "link").symlink_to(on_disk(root))
    assert root.holds(located(tmp_path / "link" / "copy"))
    assert not root.holds(located(f"{root}2"))


@pytest.fixture
def in_folder(tmp_path: Path) -> Iterator[Path]:
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)


def test_a_place_is_named_by_a_path_or_as_spark_names_files(in_folder: Path) -> None:
    assert str(located("lake")) == f"{in_folder}/lake"
    assert str(located("file:///a%20b/c")) == "/a b/c"
    assert str(located("file:/a/b")) == "/a/b"
    assert str(located("/a%20b")) == "/a%20b", "a path is taken as it is"


@pytest.mark.parametrize("url", ["s3://", "abfss://a@b/lake", "hdfs://host:8020/lake", "file://host/lake"])
def test_a_lake_elsewhere_is_refused_and_not_taken_for_a_folder(url: str) -> None:
    with pytest.raises(LakeError, match="A lake cannot be in") as caught:
        Lake.at(url)
    assert "PLATFORM_LAKE" in caught.value.todo
