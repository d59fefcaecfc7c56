"""The disk gets full, or cannot be written any more, at any moment of a publication: told, and nothing is half."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish, recover
from platform_assets.lakehouse.releases import current_release, published
from platform_assets.lakehouse.staging_folders import discard, log_stage
from platform_assets.operations.opening import open_platform
from platform_assets.records.manifest import Manifest
from platform_assets.settings import load_settings
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.shelf import (
    PUBLISHING,
    SALES,
    STORES,
    day,
    everything,
    in_process,
    stage,
    staged_manifest,
)

BEFORE = {table: {day(0): [("a", 1)]} for table in (SALES, STORES)}
SAMPLE = PUBLISHING[::3]
"""The moments that are looked at every time."""

AFTER = {table: {day(0): [("a", 5)]} for table in (SALES, STORES)}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own; locks lie on another one, as a reader of the disk would not notice."""
    mounted = tmp_path / "disk"
    locks = mounted / "lake" / "_locks"
    _mount(mounted, "16m")
    _mount(locks, "1m")
    yield mounted
    for one in (locks, mounted):
        subprocess.run(["umount", "--lazy", one], check=True)


def _mount(folder: Path, size: str) -> None:
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)


def fill(disk: Path) -> None:
    """Take all room, to the last byte."""
    with (disk / "ballast").open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while file.write(b"\0" * size):
                    pass
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


def make_room(disk: Path) -> None:
    (disk / "ballast").unlink(missing_ok=True)


def forbid_writing(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)


def allow_writing(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A small file system that holds the locks too."""
    mounted = tmp_path / "full"
    _mount(mounted, "16m")
    yield mounted
    subprocess.run(["umount", "--lazy", mounted], check=True)


def test_what_was_staged_can_be_removed_from_a_full_disk(full: Path) -> None:
    """Or there would be no way to make room."""
    lake = Lake.at(full / "lake")
    publish(lake, staged_manifest(lake, BEFORE))
    left = stage(lake, SALES, {day(1): [("b", 1)]})
    fill(full)
    assert discard(lake, SALES, left)
    assert not lake.stage_path(SALES, left).exists()
    assert everything(lake) == BEFORE


def try_to_publish(
    disk: Path, ledger: Path, what: Manifest, name: str, harm: Callable[[Path], None], said: Path
) -> None:
    """Publish as the engine does, and have something happen to the disk on the way."""

    passed_by: Counter[str] = Counter()

    def happens(passed: str) -> None:
        passed_by[passed] += 1
        if name in (passed, f"{passed}:{passed_by[passed]}"):
            harm(disk)

    # Every module has its own name for it.
    for name_of, module in list(sys.modules.items()):
        if name_of.startswith("platform_assets.") and hasattr(module, "failpoint"):
            vars(module)["failpoint"] = happens
    with platform_on(disk, ledger) as platform:
        try:
            publish_changes(platform, what.publication, "recompute", what.tables, Author("r", "a test"))
            said.write_text("published")
        except PlatformError as error:
            said.write_text(f"{error.what} {error.todo}")
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EROFS):
                raise
            said.write_text(os.strerror(error.errno))


def platform_on(disk: Path, ledger: Path) -> AbstractContextManager[Platform]:
    return open_platform(load_settings(state=disk, lake=disk / "lake", ledger_url=f"sqlite:///{ledger / 'ledger.db'}"))


if os.geteuid() == 0:  # not skipped but left out: only root can mount a disk that is small enough to fill

    @pytest.mark.parametrize(
        ("harm", "mend"), [(fill, make_room), (forbid_writing, allow_writing)], ids=["full", "read_only"]
    )
    @pytest.mark.parametrize(
        "name", [pytest.param(n, marks=() if n in SAMPLE else pytest.mark.proof) for n in PUBLISHING]
    )
    def test_a_disk_that_cannot_be_written_leaves_all_or_nothing(
        disk: Path, tmp_path: Path, name: str, harm: Callable[[Path], None], mend: Callable[[Path], None]
    ) -> None:
        lake = Lake.at(disk / "lake")
        # A file system with a file that is open for writing cannot be made read-only.
        ledger = disk if harm is fill else tmp_path
        with platform_on(disk, ledger) as platform:
            first = staged_manifest(lake, BEFORE)
            publish_changes(platform, first.publication, "recompute", first.tables, Author("r", "a test"))
        what, said = staged_manifest(lake, AFTER), tmp_path / "said"
        child = in_process(try_to_publish, disk, ledger, what, name, harm, said)
        assert child.exitcode == 0
        assert said.read_text()
        seen = everything(lake)
        assert seen in (BEFORE, AFTER)
        assert (seen == AFTER) == (current_release(lake).number == 1)
        mend(disk)
        recover(lake)
        with platform_on(disk, ledger) as platform:
            if everything(lake) == BEFORE:
                again = staged_manifest(lake, AFTER)
                publish_changes(platform, again.publication, "recompute", again.tables, Author("r", "a test"))
            assert platform.ledger.indexed() == {name: number for number, name in published(lake)}
        assert everything(lake) == AFTER
        assert len(list(published(lake))) == 2


def test_a_stage_for_whose_log_there_is_no_room_says_so_by_number(disk: Path) -> None:
    lake = Lake.at(disk / "lake")
    folder = lake.stage_path(SALES, "20170101T000000000000Z-00000000")
    rows = folder / "event_date=2017-01-01"
    on_disk(rows).mkdir(parents=True)
    pq.write_table(pa.table({"key": ["a"], "price": [1]}), rows / "part-0.parquet")
    fill(disk)
    with pytest.raises(OSError, match="No space left") as told:
        log_stage(folder, "{}")
    assert told.value.errno == errno.ENOSPC
    make_room(disk)
    log_stage(folder, "{}")
