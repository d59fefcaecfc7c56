"""All or nothing, also when the publisher dies at any instruction, really killed; a damaged log is refused by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import schema_string_at, table_snapshot
from platform_assets.lakehouse.delta.new_commit import write_checkpoint
from platform_assets.lakehouse.errors import DamagedTableError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish, recover
from platform_assets.lakehouse.releases import current_release, manifest_file, published
from platform_assets.lakehouse.revert import undo_unreleased
from platform_assets.lakehouse.staging_folders import discard
from platform_assets_tests.support.empty_lake import where_folders_are
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.shelf import (
    PUBLISHING,
    SALES,
    STORES,
    contents,
    day,
    everything,
    in_process,
    killed,
    publish_elsewhere,
    staged_manifest,
)

BEFORE = {SALES: {day(0): [("a", 1)], day(1): [("b", 1)]}, STORES: {day(0): [("s", 2)]}}


AFTER = {SALES: {day(0): [("a", 5)]}, STORES: {day(0): [("s", 5)]}}


REPLACES = [day(0), day(1)]


BEGUN = PUBLISHING.index("replace.after_commit")


@pytest.mark.parametrize("name", PUBLISHING)
def test_readers_see_all_or_nothing_of_a_killed_publication_and_the_next_finishes_it(
    lake: Lake, tmp_path: Path, name: str
) -> None:
    publish(lake, staged_manifest(lake, BEFORE))
    dying = staged_manifest(lake, AFTER, REPLACES)
    assert killed(publish_elsewhere(lake, dying, tmp_path, name))

    released = name in ("release.after_commit", "publish.after_release")
    assert everything(lake) == (AFTER if released else BEFORE)

    other = staged_manifest(lake, {"gold.other": {day(3): [("o", 1)]}})
    publish(lake, other)
    begun = PUBLISHING.index(name) >= BEGUN
    assert everything(lake) == (AFTER if begun else BEFORE) | {"gold.other": {day(3): [("o", 1)]}}

    # Who died asks again, and nothing happens twice.
    again = publish(lake, dying)
    assert again == (1 if begun else 2)
    assert everything(lake) == AFTER | {"gold.other": {day(3): [("o", 1)]}}
    assert sorted(name for _, name in published(lake)).count(dying.publication) == 1
    assert recover(lake) == []


@pytest.mark.parametrize("name", PUBLISHING)
def test_the_first_publication_of_a_lake_can_die_anywhere(lake: Lake, tmp_path: Path, name: str) -> None:
    dying = staged_manifest(lake, BEFORE)
    assert killed(publish_elsewhere(lake, dying, tmp_path, name))
    assert everything(lake) in ({}, BEFORE)
    assert publish(lake, dying) == 0
    assert everything(lake) == BEFORE
    assert len(list(published(lake))) == 1


@pytest.mark.parametrize(
    "name", ["publish.after_table", "replace.before_commit", "publish.before_release", "release.after_commit"]
)
def test_whoever_finishes_a_dead_publication_may_die_too(lake: Lake, tmp_path: Path, name: str) -> None:
    publish(lake, staged_manifest(lake, BEFORE))
    publish_elsewhere(lake, staged_manifest(lake, AFTER, REPLACES), tmp_path, "replace.after_commit")
    assert killed(in_process(recover, lake, failpoint=name))
    recover(lake)
    assert everything(lake) == AFTER
    assert len(list(published(lake))) == 2


def test_recovery_says_what_it_did(lake: Lake, tmp_path: Path) -> None:
    dying = staged_manifest(lake, BEFORE)
    publish_elsewhere(lake, dying, tmp_path, "publish.after_table")
    assert recover(lake) == [f"Finished publication {dying.publication} as release 0."]


@pytest.mark.parametrize("left", [0, 40])
@pytest.mark.parametrize("table", [SALES, "_releases"])
def test_a_commit_torn_by_a_power_cut_is_removed_and_done_again(
    lake: Lake, tmp_path: Path, table: str, left: int
) -> None:
    publish(lake, staged_manifest(lake, BEFORE))
    dying = staged_manifest(lake, AFTER, REPLACES)
    point = "release.after_commit" if table == "_releases" else "replace.after_commit"
    publish_elsewhere(lake, dying, tmp_path, point)
    path = lake.releases_path if table == "_releases" else lake.table_path(table)
    torn = commits.commit_file(path, 1)
    on_disk(torn).write_bytes(on_disk(torn).read_bytes()[:left])
    assert everything(lake) == BEFORE
    assert recover(lake)[0] == f"Removed the torn commit 1 of {table}."
    publish(lake, dying)
    assert everything(lake) == AFTER


@pytest.mark.parametrize("left", [None, 0, 40])
@pytest.mark.parametrize("hinted", [True, False])
def test_a_checkpoint_torn_by_a_power_cut_is_removed(lake: Lake, left: int | None, hinted: bool) -> None:
    for n in range(3):
        publish(lake, staged_manifest(lake, {SALES: {day(n): [("n", n)]}}))
    log, before = lake.table_path(SALES) / "_delta_log", everything(lake)
    write_checkpoint(lake.table_path(SALES), 2)
    assert recover(lake) == []
    torn = log / f"{2:020d}.checkpoint.parquet"
    on_disk(torn).write_bytes(on_disk(torn).read_bytes()[: left or 0])
    if left is None:
        on_disk(torn).unlink()
    if not hinted:
        on_disk(log / "_last_checkpoint").unlink()
    done = recover(lake)
    assert done == ([f"Removed the torn checkpoint 2 of {SALES}."] if hinted or left is not None else [])
    assert everything(lake) == before
    publish(lake, staged_manifest(lake, {SALES: {day(3): [("n", 3)]}}))
    assert recover(lake) == []


def test_a_released_commit_that_is_torn_is_damage_and_is_not_hidden(lake: Lake) -> None:
    publish(lake, staged_manifest(lake, BEFORE))
    on_disk(commits.commit_file(lake.table_path(SALES), 0)).write_bytes(b"{")
    with pytest.raises(DamagedTableError, match=r"Commit 0 of silver\.sales is torn"):
        publish(lake, staged_manifest(lake, AFTER | {SALES: {}}))


@where_folders_are
def test_a_failure_half_way_says_so_and_is_finished_later(lake: Lake) -> None:
    from platform_assets.lakehouse.errors import InterruptedPublicationError

    publish(lake, staged_manifest(lake, BEFORE))
    failing = staged_manifest(lake, AFTER, REPLACES)
    on_disk(
        lake.releases_path / f"{1:020d}-{failing.publication}.parquet"
    ).mkdir()  # where the release is to be written
    with pytest.raises(InterruptedPublicationError, match="Keep its staged files"):
        publish(lake, failing)
    assert everything(lake) == BEFORE
    on_disk(lake.releases_path / f"{1:020d}-{failing.publication}.parquet").rmdir()
    publish(lake, staged_manifest(lake, {SALES: {day(7): [("z", 1)]}}))
    assert everything(lake) == {SALES: AFTER[SALES] | {day(7): [("z", 1)]}, STORES: AFTER[STORES]}
    assert contents(lake, SALES, current_release(lake).number - 1) == AFTER[SALES]


@where_folders_are
def test_a_commit_that_a_store_makes_after_its_publisher_gave_up_is_told_and_can_be_undone(
    lake: Lake, tmp_path: Path
) -> None:
    """Its files are gone by then, so that it can be finished by nobody."""
    publish(lake, staged_manifest(lake, BEFORE))
    late = staged_manifest(lake, AFTER)
    elsewhere = shutil.copytree(on_disk(lake.root), tmp_path / "elsewhere")
    publish(Lake.at(elsewhere), late)
    for table in (SALES, STORES):
        assert discard(lake, table, late.publication)
    for path in (manifest_file(lake, late.publication), commits.commit_file(lake.table_path(SALES), 1)):
        on_disk(path.parent).mkdir(exist_ok=True)
        shutil.copy(elsewhere / (path.below(lake.root) or ""), on_disk(path))
    assert everything(lake) == BEFORE
    with pytest.raises(DamagedTableError, match="a store did what it had said that it failed to do"):
        publish(lake, staged_manifest(lake, AFTER))
    assert undo_unreleased(lake) == [f"Undid {late.publication} in {SALES}, which no release shows."]
    publish(lake, staged_manifest(lake, AFTER))
    assert everything(lake)[STORES] == AFTER[STORES]


Actions = list[dict[str, Any]]


def without(kind: str, field: str | None = None) -> Any:
    def spoil(actions: Actions) -> Actions:
        if field is None:
            return [action for action in actions if kind not in action]
        return [
            {k: {f: v for f, v in said.items() if (k, f) != (kind, field)} for k, said in a.items()} for a in actions
        ]

    return spoil


def with_schema(text: object) -> Any:
    def spoil(actions: Actions) -> Actions:
        return [a if "metaData" not in a else {"metaData": a["metaData"] | {"schemaString": text}} for a in actions]

    return spoil


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (without("metaData"), "no metaData action"),
        (without("protocol"), "no protocol action"),
        (without("metaData", "schemaString"), "an action without 'schemaString'"),
        (without("metaData", "partitionColumns"), "an action without 'partitionColumns'"),
        (without("protocol", "minReaderVersion"), "an action without 'minReaderVersion'"),
        (without("add", "path"), "an action without 'path'"),
        (with_schema(""), "no schema in its metaData"),
        (with_schema("{}"), "no schema in its metaData"),
        (with_schema(None), "no schema in its metaData"),
        (lambda actions: [*actions, {"add": "a.parquet"}], "an action that Delta does not have"),
    ],
)
def test_a_log_without_what_every_log_has_is_refused_by_name(disk_lake: Lake, spoil: Any, says: str) -> None:
    publish(disk_lake, staged_manifest(disk_lake, {SALES: {day(0): [("a", 1)]}}))
    table = disk_lake.table_path(SALES)
    commit = table / "_delta_log" / f"{0:020d}.json"
    actions = spoil([json.loads(line) for line in (commit.read() or b"").splitlines()])
    commit.replace("".join(json.dumps(action) + "\n" for action in actions).encode())
    with pytest.raises(DamagedTableError, match=f"The log of {SALES} has {says}, at version 0: .*_delta_log"):
        table_snapshot(table)
    if "etaData" in says or "schemaString" in says:
        with pytest.raises(DamagedTableError, match=says):
            schema_string_at(table, 0)
