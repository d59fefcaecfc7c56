"""What a living process is going to publish is not taken away from it, however long it takes."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest

from platform_assets.lakehouse import storage
from platform_assets.lakehouse.at_work import kept_by_processes, staging
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.staging_folders import forget_dead_holders
from platform_assets.operations.maintenance.deletion import delete, deletions
from platform_assets.operations.maintenance.usage import usage
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
def lock_url(request: pytest.FixtureRequest) -> str | None:
    if request.param == "file":
        return None
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.url


def maintained(lake: Lake, lock_url: str | None) -> set[str]:
    """The folders that maintenance removes."""
    found = usage(lake, WINDOW, tuple, lock_url)
    return {one.publication for one in delete(lake, found, deletions(found, SAFE), tuple, lock_url)}


def test_the_first_batches_of_a_long_stage_stay_until_its_process_is_done(lake: Lake, lock_url: str | None) -> None:
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)]}}), lock_url)
    with staging(lake, lock_url) as keep:
        assert not list(lake.locks_path.glob("stage-*")), "nothing is locked before there is something to keep"
        first = stage(lake, SALES, {day(1): [("b", 1)]})
        keep([first])
        second = stage(lake, SALES, {day(2): [("c", 1)]})
        keep([first, second])
        nobodys = stage(lake, SALES, {day(3): [("d", 1)]})
        age(lake, SALES)
        assert maintained(lake, lock_url) == {nobodys}
        publish(lake, manifest(first, change(lake, SALES, first)), lock_url)
        assert contents(lake, SALES)[day(1)] == [("b", 1)]
    assert maintained(lake, lock_url) == {second}
    assert not list(lake.locks_path.glob("stage-*"))


def _die_keeping(lake: Lake, publication: str) -> None:
    with staging(lake) as keep:
        keep([publication])
        os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_dead_process_kept_is_nobodys(lake: Lake) -> None:
    left = stage(lake, SALES, {day(1): [("b", 1)]})
    in_process(_die_keeping, lake, left)
    assert len(list(lake.locks_path.glob("stage-*.batches.json"))) == 1
    forget_dead_holders(lake)
    assert kept_by_processes(lake) == frozenset()
    assert not list(lake.locks_path.glob("stage-*"))


def test_the_earlier_of_two_clocks_says_how_old_a_stage_is(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system on another machine, whose clock is behind; or this machine's, which is ahead."""
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)]}}))
    left = stage(lake, SALES, {day(1): [("b", 1)]})
    clock_of = storage.clock_of
    written = clock_of(lake.root)

    def age_of(folder: Path, days: int) -> None:
        then = (written - timedelta(days=days)).timestamp()
        for path in (folder, *folder.rglob("*")):
            os.utime(path, (then, then))

    age_of(lake.stage_path(SALES, left), 8)
    monkeypatch.setattr(storage, "clock_of", lambda folder: clock_of(folder) - timedelta(days=2))
    assert maintained(lake, None) == set()
    monkeypatch.setattr(storage, "clock_of", lambda folder: clock_of(folder) + timedelta(days=400))
    assert maintained(lake, None) == {left}
    assert not list(lake.root.glob(".*.now"))
