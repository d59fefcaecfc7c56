"""What a living process is going to publish is not taken away from it, however long it takes."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.staging_folders import forget_dead_holders, kept_by_processes, staging
from platform_assets.lakehouse.storage.disk import Disk
from platform_assets.operations.deletion import delete, deletions, usage
from platform_assets_tests.support.empty_lake import only_on_disk
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.postgres import PostgresServer
from platform_assets_tests.support.shelf import (
    SALES,
    age,
    change,
    contents,
    day,
    in_process,
    manifest,
    stage,
    staged_manifest,
)

SAFE, WINDOW = timedelta(days=7), timedelta(days=90)


@pytest.fixture(params=["file", "postgresql"])
def either(tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    """A lake whose locks lie in files, and one whose locks a database holds."""
    if request.param == "file":
        return Lake.at(tmp_path / "lake")
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return Lake.at(tmp_path / "lake", server.url)


def maintained(lake: Lake) -> set[str]:
    """The folders that maintenance removes."""
    found = usage(lake, WINDOW, tuple)
    return {one.publication for one in delete(lake, found, deletions(found, SAFE), tuple)}


def test_the_first_batches_of_a_long_stage_stay_until_its_process_is_done(either: Lake) -> None:
    publish(either, staged_manifest(either, {SALES: {day(0): [("a", 1)]}}))
    with staging(either) as keep:
        assert not list(on_disk(either.locks_path).glob("stage-*")), (
            "nothing is locked before there is something to keep"
        )
        first = stage(either, SALES, {day(1): [("b", 1)]})
        keep([first])
        second = stage(either, SALES, {day(2): [("c", 1)]})
        keep([first, second])
        nobodys = stage(either, SALES, {day(3): [("d", 1)]})
        age(either, SALES)
        assert maintained(either) == {nobodys}
        publish(either, manifest(first, change(either, SALES, first)))
        assert contents(either, SALES)[day(1)] == [("b", 1)]
    assert maintained(either) == {second}
    assert not list(on_disk(either.locks_path).glob("stage-*"))


def _die_keeping(lake: Lake, publication: str) -> None:
    with staging(lake) as keep:
        keep([publication])
        os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_dead_process_kept_is_nobodys(lake: Lake) -> None:
    left = stage(lake, SALES, {day(1): [("b", 1)]})
    in_process(_die_keeping, lake, left)
    assert len(list(on_disk(lake.locks_path).glob("stage-*.batches.json"))) == 1
    forget_dead_holders(lake)
    assert kept_by_processes(lake) == frozenset()
    assert not list(on_disk(lake.locks_path).glob("stage-*"))


@only_on_disk
def test_the_earlier_of_two_clocks_says_how_old_a_stage_is(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system on another machine, whose clock is behind; or this machine's, which is ahead."""
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)]}}))
    left = stage(lake, SALES, {day(1): [("b", 1)]})
    now = Disk.now
    written = lake.root.now()

    def age_of(folder: Path, days: int) -> None:
        then = (written - timedelta(days=days)).timestamp()
        for path in (folder, *folder.rglob("*")):
            os.utime(path, (then, then))

    age_of(on_disk(lake.stage_path(SALES, left)), 8)
    monkeypatch.setattr(Disk, "now", lambda folder: now(folder) - timedelta(days=2))
    assert maintained(lake) == set()
    monkeypatch.setattr(Disk, "now", lambda folder: now(folder) + timedelta(days=400))
    assert maintained(lake) == {left}
    assert not list(on_disk(lake.root).glob(".*.now"))
