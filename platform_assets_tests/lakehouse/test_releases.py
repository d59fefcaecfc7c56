"""Releases are numbered, kept, chained by hashes, and fast to resolve; each says what a person asks first."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import live_files, table_snapshot
from platform_assets.lakehouse.delta.new_commit import CHECKPOINT_INTERVAL
from platform_assets.lakehouse.errors import ManifestError, UnknownReleaseError
from platform_assets.lakehouse.layout import Lake, located
from platform_assets.lakehouse.publish import publish, recover
from platform_assets.lakehouse.releases import (
    Release,
    current_release,
    manifest_file,
    manifest_of,
    published,
    release,
)
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.shelf import (
    PUBLISHING,
    SALES,
    STORES,
    contents,
    day,
    publish_elsewhere,
    staged_manifest,
    unchain,
)

MANY = 2 * CHECKPOINT_INTERVAL + 3


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with so many publications that checkpoints were written."""
    lake = Lake.at(tmp_path_factory.mktemp("busy"))
    for n in range(MANY):
        publish(lake, staged_manifest(lake, {SALES: {day(n % 3): [("n", n)]}}))
    return lake


def expected(n: int) -> dict[object, list[tuple[str, int]]]:
    return {day(d): [("n", last)] for d in range(3) if (last := n - (n - d) % 3) >= 0}


def test_nothing_published_is_release_minus_one(lake: Lake) -> None:
    assert current_release(lake) == Release(-1, {})
    assert list(published(lake)) == []


@pytest.mark.parametrize("number", [-1, 0, 7])
def test_an_unknown_release_is_refused(lake: Lake, number: int) -> None:
    with pytest.raises(UnknownReleaseError, match=f"no release {number}"):
        release(lake, number)


@pytest.mark.parametrize("n", [0, 1, CHECKPOINT_INTERVAL - 1, CHECKPOINT_INTERVAL, CHECKPOINT_INTERVAL + 1, MANY - 1])
def test_every_release_stays_readable_across_checkpoints(busy: Lake, n: int) -> None:
    assert contents(busy, SALES, n) == expected(n)
    version = release(busy, n).versions[SALES]
    assert {file.path for files in live_files(busy.table_path(SALES), version).values() for file in files} == {
        Path(uri).relative_to(on_disk(busy.table_path(SALES))).as_posix()
        for uri in DeltaTable(on_disk(busy.table_path(SALES)), version=version).file_uris()
    }


def test_checkpoints_are_written_and_no_log_is_deleted(busy: Lake) -> None:
    for table in (busy.table_path(SALES), busy.releases_path):
        names = {file.name for file in on_disk(table / "_delta_log").iterdir()}
        assert {f"{n:020d}.json" for n in range(MANY)} <= names
        assert f"{CHECKPOINT_INTERVAL:020d}.checkpoint.parquet" in names
        assert commits.checkpoint_hint(table) == 2 * CHECKPOINT_INTERVAL


def test_files_read_from_a_checkpoint_are_those_read_from_its_commits(busy: Lake) -> None:
    table = busy.table_path(SALES)
    with_checkpoints = [table_snapshot(table, n) for n in range(MANY)]
    aside = [file for file in on_disk(table / "_delta_log").iterdir() if "checkpoint" in file.name]
    for file in aside:
        file.rename(on_disk(table / file.name))
    try:
        assert [table_snapshot(table, n).files for n in range(MANY)] == [found.files for found in with_checkpoints]
        assert [table_snapshot(table, n).metadata for n in range(MANY)] == [
            found.metadata for found in with_checkpoints
        ]
        assert commits.head_version(table) == MANY - 1
    finally:
        for file in aside:
            on_disk(table / file.name).rename(file)


def test_a_torn_checkpoint_costs_time_and_nothing_else(busy: Lake) -> None:
    table = busy.table_path(SALES)
    torn = table / "_delta_log" / f"{2 * CHECKPOINT_INTERVAL:020d}.checkpoint.parquet"
    good, whole = table_snapshot(table), on_disk(torn).read_bytes()
    on_disk(torn).write_bytes(whole[: len(whole) // 2])
    try:
        assert table_snapshot(table) == good
    finally:
        on_disk(torn).write_bytes(whole)


def test_publications_are_listed_oldest_first_and_from_where_one_stopped(busy: Lake) -> None:
    names = [name for _, name in published(busy)]
    assert names == sorted(names)
    assert list(published(busy, after=MANY - 3)) == [(n, names[n]) for n in (MANY - 2, MANY - 1)]
    assert manifest_of(busy, names[5]).tables[0].table == SALES


def test_any_delta_reader_can_read_the_releases(busy: Lake) -> None:
    assert DeltaTable(on_disk(busy.releases_path)).to_pyarrow_table().to_pylist() == [
        {"table": SALES, "version": MANY - 1}
    ]


def test_a_manifest_that_is_not_there_is_named(lake: Lake) -> None:
    with pytest.raises(ManifestError, match="p1"):
        manifest_of(lake, "p1")


DAYS = {SALES: {day(0): [("a", 1)]}, STORES: {day(0): [("s", 2)]}}


ESSENTIALS = {
    "platform.kind": "withdrawal",
    "platform.run": "run-7",
    "platform.who": "Zoë",
    "platform.why": "x" * 199 + "…",
    "platform.git_commit": "abc123",
    "platform.version": "1.2",
}


def info(path: Path, version: int) -> dict[str, Any]:
    """What a commit says of itself, as any Delta reader finds it."""
    return next(a["commitInfo"] for a in commits.actions(located(path), version) if "commitInfo" in a)


def said(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ESSENTIALS if name in found}


def signed(lake: Lake) -> Any:
    changes = {"kind": "withdrawal", "run": "run-7", "who": "Zoë", "why": "x" * 500, "git_commit": "abc123"}
    return staged_manifest(lake, DAYS).model_copy(update={**changes, "platform_version": "1.2"})


def links(lake: Lake) -> list[commits.Commit]:
    return [commits.commit(lake.releases_path, n) for n in commits.listed_versions(lake.releases_path)]


def is_chained(lake: Lake) -> bool:
    found = links(lake)
    stored = [on_disk(manifest_file(lake, str(one.publication))).read_bytes() for one in found]
    return [sha256(content).hexdigest() for content in stored] == [one.manifest_hash for one in found] and all(
        new.chain == sha256(f"{old.chain}{new.manifest_hash}".encode()).hexdigest() for old, new in pairwise(found)
    )


def test_every_commit_of_a_publication_says_who_why_and_by_which_code(lake: Lake) -> None:
    publish(lake, signed(lake))
    for path in (lake.table_path(SALES), lake.table_path(STORES), lake.releases_path):
        assert said(info(on_disk(path), 0)) == ESSENTIALS


def test_releases_form_a_chain(lake: Lake) -> None:
    for _ in range(3):
        publish(lake, staged_manifest(lake, DAYS))
    assert is_chained(lake)
    assert links(lake)[0].chain == sha256(links(lake)[0].manifest_hash.encode()).hexdigest()


@pytest.mark.parametrize("name", PUBLISHING[PUBLISHING.index("replace.after_commit") :])
def test_whoever_finishes_a_dead_publication_writes_what_it_would_have(lake: Lake, tmp_path: Path, name: str) -> None:
    publish(lake, staged_manifest(lake, DAYS))
    publish_elsewhere(lake, signed(lake), tmp_path, name)
    recover(lake)
    for path in (lake.table_path(SALES), lake.table_path(STORES), lake.releases_path):
        assert said(info(on_disk(path), 1)) == ESSENTIALS
    assert is_chained(lake)


def test_the_chain_goes_on_from_releases_that_have_none(lake: Lake) -> None:
    publish(lake, staged_manifest(lake, DAYS))
    unchain(lake, 0)
    publish(lake, staged_manifest(lake, DAYS))
    assert [bool(one.chain) for one in links(lake)] == [False, True]
    assert links(lake)[1].chain == sha256(links(lake)[1].manifest_hash.encode()).hexdigest()
