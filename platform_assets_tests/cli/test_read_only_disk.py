"""Where nothing can be written, one can look all the same, and is told so."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import pytest

from platform_assets.settings import Settings
from platform_assets_tests.support.cli.commands import Run
from platform_assets_tests.support.cli.products import SILVER


@pytest.fixture
def read_only(products: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The installation on a disk that cannot be written."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", mounted], check=True)
    copytree(products.state, mounted / "state", symlinks=True)
    subprocess.run(["mount", "-o", "remount,ro", mounted], check=True)
    monkeypatch.setenv("PLATFORM_STATE", str(mounted / "state"))
    yield
    subprocess.run(["umount", "--lazy", mounted], check=True)


if os.geteuid() == 0:  # not skipped but left out: only root can mount a disk

    @pytest.mark.parametrize("args", [["status"], ["stale"], ["why", SILVER, "2017-01-02"], ["releases"]])
    def test_what_only_looks_works_on_a_disk_that_cannot_be_written(args: list[str], run: Run, read_only: None) -> None:
        done = run(*args)
        assert done.code in (0, 1), done.err
        assert "nothing can be written, so this is only what is there" in done.err
