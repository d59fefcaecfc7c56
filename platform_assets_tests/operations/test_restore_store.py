"""A backup restored into an object store: nothing is seen of it before all of it is, however often it is cut short."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.errors import PlatformError
from platform_assets.lakehouse.layout import Lake, located
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.releases import current_release, newest_release
from platform_assets.operations.backup import in_order, restore_lake
from platform_assets.progress import Progress
from platform_assets_tests.support.object_store import ObjectStore
from platform_assets_tests.support.shelf import SALES, STORES, day, everything, staged_manifest

RELEASES = 22
"""More than between two checkpoints."""


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake.at(tmp_path_factory.mktemp("backup") / "lake")
    for n in range(RELEASES):
        publish(lake, staged_manifest(lake, {table: {day(n % 3): [("a", n)]} for table in (SALES, STORES)}))
    return lake


@given(st.permutations([f"_releases/_delta_log/{n:020d}.json" for n in range(4)]))
def test_the_first_release_is_the_last_of_the_commits_and_all_others_come_before(commits: list[str]) -> None:
    others = ["silver/sales/p/event_date=2017-01-01/part.parquet", "_publications/p/manifest.json", "_horizon.json"]
    vector, hint = "_releases/00000000000000000003-p.parquet", "_releases/_delta_log/_last_checkpoint"
    summary = "_releases/_delta_log/00000000000000000003.checkpoint.parquet"
    assert in_order([hint, summary, *commits, vector, *others]) == [
        *sorted(others), vector, summary, *sorted(commits, reverse=True), hint
    ]  # fmt: skip


@pytest.mark.proof
def test_whoever_looks_sees_nothing_or_all_of_it_and_one_that_was_cut_short_goes_on(
    backup: Lake, object_store: ObjectStore, tmp_path: Path
) -> None:
    lake = Lake.at(f"{object_store.url}/{uuid4().hex}/lake", lock_folder=located(tmp_path / "locks"))
    files = sum(not path.startswith("_locks/") for path in backup.root.files())
    copied: list[int] = []

    def cut_short(after: int) -> None:
        def progress(done: Progress) -> None:
            copied.append(done.done)
            seen = newest_release(lake)
            assert seen in (-1, RELEASES - 1)
            assert seen < 0 or everything(lake) == everything(backup)
            if done.done == after:
                raise KeyboardInterrupt

        restore_lake(backup, lake, "one", progress)

    for after in (1, files // 2, files - 2, files):
        with pytest.raises(KeyboardInterrupt):
            cut_short(after)
    with pytest.raises(PlatformError, match="is there already, and a restore replaces nothing"):
        restore_lake(backup, lake, "another", lambda _: None)
    restore_lake(backup, lake, "one", lambda _: None)
    assert everything(lake) == everything(backup)
    assert {path for path in lake.root.files() if path not in backup.root.files()} == set()
    with pytest.raises(PlatformError, match="is there already"):
        restore_lake(backup, lake, "one", lambda _: None)
    publish(lake, staged_manifest(lake, {SALES: {day(9): [("b", 1)]}}))
    assert current_release(lake).number == RELEASES


@pytest.mark.proof
def test_what_somebody_published_after_a_restore_that_died_at_its_end_is_not_taken_for_a_leftover(
    backup: Lake, object_store: ObjectStore, tmp_path: Path
) -> None:
    lake = Lake.at(f"{object_store.url}/{uuid4().hex}/lake", lock_folder=located(tmp_path / "locks"))

    def died(done: Progress) -> None:
        if done.finished:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore_lake(backup, lake, "one", died)
    publish(lake, staged_manifest(lake, {SALES: {day(9): [("b", 1)]}}))
    with pytest.raises(PlatformError, match="is there already"):
        restore_lake(backup, lake, "one", lambda _: None)
    assert current_release(lake).number == RELEASES
