"""Commits that are written without deltalake say what deltalake's say, and are read by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema
from deltalake.transaction import AddAction, RemoveAction

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.commit_text import Entry, is_plain
from platform_assets.lakehouse.delta.log import table_snapshot
from platform_assets.lakehouse.delta.new_commit import commit_difference
from platform_assets.lakehouse.errors import ForeignCommitError, LockLostError
from platform_assets.lakehouse.layout import Lake, located
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.storage.location import Location
from platform_assets.records.manifest import DataFile
from platform_assets_tests.support.shelf import SALES, contents, day, staged_manifest

SAID = {commits.PUBLICATION: "20170101T000000000000Z-00000000", "platform.why": 'Größe "100 %"\n'}
_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


@pytest.fixture
def table(tmp_path: Path) -> Location:
    """A table with two days, at version 0."""
    lake = Lake.at(tmp_path / "lake")
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)], day(1): [("b", 2)]}}))
    return lake.table_path(SALES)


def entries(table: Location, leaving: int, entering: str) -> tuple[list[Entry], list[Entry]]:
    """The first file of a table that leaves, and another one of that day."""
    snapshot = table_snapshot(table)
    path = sorted(snapshot.files)[leaving]
    values = {"event_date": str(snapshot.days[path])}
    stats = snapshot.files[path].stats
    return [(snapshot.files[path], values)], [(DataFile(path=entering, size=7, modified_ms=5, stats=stats), values)]


def committed_by_deltalake(
    table: Location, removes: list[Entry], adds: list[Entry], said: dict[str, str] = SAID
) -> None:
    """The same difference as deltalake commits it."""
    snapshot = table_snapshot(table)
    leaving = [RemoveAction(file.path, True, 1, file.size, dict(values)) for file, values in removes]
    entering = [AddAction(f.path, f.size, dict(values), f.modified_ms, True, f.stats) for f, values in adds]
    DeltaTable(str(table)).create_write_transaction(
        [*leaving, *entering],
        mode="append",
        schema=Schema.from_json(snapshot.schema_string),
        partition_by=["event_date"],
        commit_properties=CommitProperties(custom_metadata=said, max_commit_retries=0),
        post_commithook_properties=_HOOKS,
    )


def said_by(table: Location, version: int) -> list[dict[str, Any]]:
    """Actions without moments, names of programs and what is null, which says nothing."""
    of_their_own = {"timestamp", "engineInfo", "clientVersion", "deletionTimestamp"}
    return [
        {
            kind: {name: value for name, value in said.items() if name not in of_their_own and value is not None}
            for kind, said in json.loads(line).items()
        }
        for line in Path(str(commits.commit_file(table, version))).read_text(encoding="utf-8").splitlines()
    ]


def test_a_commit_says_what_deltalake_says_of_the_same_difference(table: Location, tmp_path: Path) -> None:
    there, back = entries(table, 0, "p/event_date=2017-01-01/new-a_b.parquet")
    schema = table_snapshot(table).schema_string
    assert commit_difference(table, 0, there, back, schema, SAID, ["event_date"]) == 1
    files = DeltaTable(str(table)).file_uris()
    assert sorted(uri.rpartition("/")[2] for uri in files)[0].startswith("new-a_b")
    assert len(files) == 2
    committed_by_deltalake(table, back, there)
    ours, theirs = said_by(table, 1), said_by(table, 2)
    assert ours[0] == theirs[0], "who and why"
    assert {kind: sorted(said) for action in ours[1:] for kind, said in action.items()} == {
        kind: sorted(said) for action in theirs[1:] for kind, said in action.items()
    }
    assert commit_difference(table, 2, there, back, schema, SAID, ["event_date"]) == 3
    assert said_by(table, 3)[1:] == ours[1:]


def test_deltalake_undoes_what_was_written_here_and_the_other_way_round(table: Location) -> None:
    before = table_snapshot(table).files
    removes, adds = entries(table, 1, "p/event_date=2017-01-02/new.parquet")
    schema = table_snapshot(table).schema_string
    commit_difference(table, 0, removes, adds, schema, SAID, ["event_date"])
    committed_by_deltalake(table, adds, removes)
    assert table_snapshot(table).files == before
    committed_by_deltalake(table, removes, adds)
    commit_difference(table, 3, adds, removes, schema, SAID, ["event_date"])
    assert table_snapshot(table).files == before
    assert DeltaTable(str(table)).to_pyarrow_table().num_rows == 2


def test_paths_that_libraries_encode_are_left_to_deltalake(table: Location) -> None:
    """Who encodes one otherwise than it entered would have it leave in the eyes of some readers only."""
    removes, adds = entries(table, 0, "p/event_date=2017-01-01/ä b%20{c}.parquet")
    assert not is_plain(adds)
    schema = table_snapshot(table).schema_string
    commit_difference(table, 0, removes, adds, schema, SAID, ["event_date"])
    commit_difference(table, 1, adds, removes, schema, SAID, ["event_date"])
    assert len(DeltaTable(str(table)).file_uris()) == 2
    assert table_snapshot(table).files == table_snapshot(table, 0).files


@pytest.mark.parametrize("ours", [True, False])
def test_who_took_the_place_of_a_commit_is_named_and_keeps_it(table: Location, ours: bool) -> None:
    removes, adds = entries(table, 0, "p/event_date=2017-01-01/new.parquet")
    schema = table_snapshot(table).schema_string
    committed_by_deltalake(table, removes, [], SAID if ours else {})
    first = commits.commit_file(table, 1).read()
    with pytest.raises(LockLostError if ours else ForeignCommitError):
        commit_difference(table, 0, removes, adds, schema, SAID | {commits.PUBLICATION: "another"}, ["event_date"])
    assert commits.commit_file(table, 1).read() == first


def test_a_table_reads_the_same_after_many_commits_and_a_checkpoint(tmp_path: Path) -> None:
    lake = Lake.at(tmp_path / "lake")
    for n in range(25):
        publish(lake, staged_manifest(lake, {SALES: {day(n % 3): [("a", n)]}}))
    assert contents(lake, SALES) == {day(0): [("a", 24)], day(1): [("a", 22)], day(2): [("a", 23)]}
    assert located(str(lake.table_path(SALES) / "_delta_log")).names()[-1] == "_last_checkpoint"
    assert not [name for name in (lake.table_path(SALES) / "_delta_log").names() if name.endswith(".tmp")]
