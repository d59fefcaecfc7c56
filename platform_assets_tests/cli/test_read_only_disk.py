"""Where nothing can be written, or nothing has room, one can look all the same, and is told so."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree

import pytest

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.ledger.errors import LedgerFullError
from platform_assets.operations.opening import open_platform
from platform_assets.settings import Settings, load_settings
from platform_assets_tests.support.cli.commands import TABLE, Run
from platform_assets_tests.support.cli.products import SILVER
from platform_assets_tests.support.shelf import day, staged_manifest

LOOKING = [["status"], ["stale"], ["why", SILVER, "2017-01-02"], ["releases"], ["late", "list"]]


@pytest.fixture
def disk(products: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The installation on a small disk of its own."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", mounted], check=True)
    copytree(products.state, mounted / "state", symlinks=True)
    monkeypatch.setenv("PLATFORM_STATE", str(mounted / "state"))
    yield mounted
    subprocess.run(["umount", "--lazy", mounted], check=True)


def forbid_writing(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)


def fill(disk: Path) -> None:
    with (disk / "ballast").open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while file.write(b"\0" * size):
                    pass
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


if os.geteuid() == 0:  # not skipped but left out: only root can mount a disk

    @pytest.mark.parametrize("harm", [forbid_writing, fill], ids=["read_only", "full"])
    def test_what_only_looks_works_where_nothing_can_be_written(
        run: Run, disk: Path, harm: Callable[[Path], None]
    ) -> None:
        before = [run(*args).out for args in LOOKING]
        harm(disk)
        for args, out in zip(LOOKING, before, strict=True):
            done = run(*args)
            assert done.code in (0, 1), done.err
            assert done.out == out
            assert "nothing can be written, so this is only what is there" in done.err

    @pytest.mark.parametrize("harm", [forbid_writing, fill], ids=["read_only", "full"])
    def test_what_the_ledger_had_no_room_for_any_more_is_shown(
        run: Run, disk: Path, harm: Callable[[Path], None]
    ) -> None:
        lake = Lake.at(load_settings().lake)
        manifest = staged_manifest(lake, {TABLE: {day(0): [("a", 150)]}})
        publish(lake, manifest)
        harm(disk)
        assert manifest.publication in run("releases").out

    def test_who_finds_the_disk_full_is_not_told_that_nothing_was_changed(run: Run, disk: Path) -> None:
        """The ledger comes last: what it has no room for may be published."""
        lake = Lake.at(load_settings().lake)
        publish(lake, staged_manifest(lake, {TABLE: {day(0): [("a", 150)]}}))
        fill(disk)
        with pytest.raises(LedgerFullError) as told, open_platform(load_settings()):
            pass
        assert "no room left" in told.value.what
        assert "nothing was changed" not in str(told.value)
        assert "What was published stays" in told.value.todo
        done = run("recover")
        assert done.code == 3
        assert "Free some disk space" in done.err
