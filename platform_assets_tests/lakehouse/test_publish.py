"""One operation changes a table: days get exactly the files they are given."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest

from platform_assets.lakehouse import publish as publishing
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import head_of, live_files
from platform_assets.lakehouse.delta.new_commit import replace
from platform_assets.lakehouse.delta.statistics import staged_files
from platform_assets.lakehouse.errors import (
    Conflict,
    ManifestError,
    NullDayError,
    SchemaMismatchError,
    StagedFileError,
)
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.releases import current_release, published
from platform_assets.records.manifest import Manifest, new_publication
from platform_assets_tests.support.empty_lake import only_on_disk
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.shelf import (
    SALES,
    STORES,
    change,
    content,
    contents,
    day,
    everything,
    live,
    manifest,
    rows_of,
    stage,
    staged_manifest,
)


def head(lake: Lake, table: str = SALES) -> int:
    return commits.head_version(lake.table_path(table))


def test_a_publication_shows_all_its_tables_in_one_release(lake: Lake) -> None:
    assert publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)]}, STORES: {day(1): [("b", 2)]}})) == 0
    assert everything(lake) == {SALES: {day(0): [("a", 1)]}, STORES: {day(1): [("b", 2)]}}
    assert current_release(lake).versions == {SALES: 0, STORES: 0}


@only_on_disk
def test_what_was_staged_is_on_the_disk_before_anybody_refers_to_it(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a machine that goes down keeps the commit and loses the rows."""
    forced: set[tuple[int, int]] = set()
    at_the_lock: list[set[tuple[int, int]]] = []
    sync = os.fsync

    def noted(file: int) -> None:
        sync(file)
        there = os.fstat(file)
        forced.add((there.st_dev, there.st_ino))

    def look(point: str) -> None:
        if point == "publish.locked":
            at_the_lock.append(set(forced))

    made = staged_manifest(lake, {SALES: {day(0): [("a", 1)]}, STORES: {day(1): [("b", 2)]}})
    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(publishing, "failpoint", look)
    publish(lake, made)
    files = [
        lake.table_path(one.table) / file.path for one in made.tables for c in one.days.values() for file in c.files
    ]
    assert len(files) == 2
    needed = {path for file in files for path in (file, file.parent, file.parent.parent, file.parent.parent.parent)}
    assert {(there.st_dev, there.st_ino) for there in (on_disk(path).stat() for path in needed)} <= at_the_lock[0]


@pytest.mark.parametrize(
    ("rows", "named", "left"),
    [
        pytest.param([("a", 7), ("c", 3)], [0], {0: [("a", 7), ("c", 3)], 1: [("b", 2)]}, id="other rows"),
        pytest.param([("a", 7)], [0, 1], {0: [("a", 7)]}, id="none of one day"),
        pytest.param([], [0], {1: [("b", 2)]}, id="none at all"),
    ],
)
def test_a_replaced_day_has_only_its_new_rows_and_other_days_keep_theirs(
    lake: Lake, rows: list[tuple[str, int]], named: list[int], left: dict[int, list[tuple[str, int]]]
) -> None:
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)], day(1): [("b", 2)]}}))
    new = {day(0): rows} if rows else {}
    publish(lake, staged_manifest(lake, {SALES: new}, days=[day(n) for n in named]))
    assert contents(lake, SALES) == {day(n): of for n, of in left.items()}


def test_a_table_whose_days_are_all_empty_is_published_and_readable(lake: Lake) -> None:
    publish(lake, staged_manifest(lake, {SALES: {}}, days=[day(0)]))
    assert contents(lake, SALES) == {}
    assert current_release(lake).versions == {SALES: 0}


def test_a_publication_without_tables_is_a_release_of_its_own(lake: Lake) -> None:
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)]}}))
    nothing = manifest(new_publication())
    assert publish(lake, nothing) == 1
    assert [name for _, name in published(lake)][1] == nothing.publication
    assert contents(lake, SALES) == {day(0): [("a", 1)]}


def test_publishing_again_releases_nothing_twice(lake: Lake) -> None:
    first = staged_manifest(lake, {SALES: {day(0): [("a", 1)]}})
    assert [publish(lake, first), publish(lake, first)] == [0, 0]
    assert (head(lake), current_release(lake).number) == (0, 0)


def test_publishing_again_does_not_undo_who_came_later(lake: Lake) -> None:
    first = staged_manifest(lake, {SALES: {day(0): [("a", 1)]}})
    publish(lake, first)
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 2)]}}))
    assert publish(lake, first) == 0
    assert contents(lake, SALES) == {day(0): [("a", 2)]}


def test_publishing_again_what_a_clock_made_that_was_ahead_releases_nothing_twice(lake: Lake) -> None:
    ahead = {"created_at": datetime.now(UTC) + timedelta(days=2)}
    first = staged_manifest(lake, {SALES: {day(0): [("a", 1)]}}).model_copy(update=ahead)
    publish(lake, first)
    second = staged_manifest(lake, {STORES: {day(0): [("s", 1)]}})
    publish(lake, second)
    assert publish(lake, first) == 0
    assert [name for _, name in published(lake)] == [first.publication, second.publication]


def test_replacing_a_day_by_the_files_it_has_commits_nothing(lake: Lake) -> None:
    first = staged_manifest(lake, {SALES: {day(0): [("a", 1)], day(1): [("b", 2)]}})
    publish(lake, first)
    assert replace(lake, first.tables[0], first, head_of(lake.table_path(SALES))) == 0
    assert head(lake) == 0


def test_a_live_file_named_again_beside_a_new_one_is_added_once(lake: Lake) -> None:
    first = staged_manifest(lake, {SALES: {day(0): [("a", 1)]}})
    publish(lake, first)
    more = stage(lake, SALES, {day(0): [("b", 2)]})
    _, staged = staged_files(lake, SALES, more)
    both = (*live(lake, SALES)[day(0)], *staged[day(0)])
    again = first.tables[0].model_copy(update={"days": {day(0): content(both)}})
    replace(lake, again, manifest(more), head_of(lake.table_path(SALES)))
    actions = commits.actions(lake.table_path(SALES), 1)
    assert [next(iter(action)) for action in actions] == ["commitInfo", "add"]
    assert live_files(lake.table_path(SALES))[day(0)] == tuple(sorted(both, key=lambda file: file.path))


def test_days_rolled_back_leave_later_publications_of_other_days_alone(lake: Lake) -> None:
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)], day(1): [("b", 1)]}}))
    before = live(lake, SALES)
    second = staged_manifest(lake, {SALES: {day(0): [("a", 2)]}})
    publish(lake, second)
    publish(lake, staged_manifest(lake, {SALES: {day(1): [("b", 3)]}}))
    back = second.tables[0].model_copy(update={"days": {day(0): content(before[day(0)], live(lake, SALES)[day(0)])}})
    publish(lake, manifest(new_publication(), back))
    assert contents(lake, SALES) == {day(0): [("a", 1)], day(1): [("b", 3)]}
    assert live(lake, SALES)[day(0)] == before[day(0)], "statistics and all"


def test_an_append_between_reading_and_publishing_is_a_conflict_and_is_kept(lake: Lake) -> None:
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)]}}))
    replacing = staged_manifest(lake, {SALES: {day(0): [("a", 9)]}})
    more = stage(lake, SALES, {day(0): [("b", 2)]})
    _, staged = staged_files(lake, SALES, more)
    old = live(lake, SALES)[day(0)]
    appended = replacing.tables[0].model_copy(update={"days": {day(0): content((*old, *staged[day(0)]), old)}})
    publish(lake, manifest(more, appended))
    with pytest.raises(Conflict, match=r"silver\.sales: 2017-01-01") as caught:
        publish(lake, replacing)
    assert caught.value.days == (day(0),)
    assert contents(lake, SALES) == {day(0): [("a", 1), ("b", 2)]}


def test_a_conflict_in_one_table_publishes_no_other(lake: Lake) -> None:
    tables = {SALES: {day(0): [("a", 1)]}, STORES: {day(0): [("s", 1)]}}
    one, other = staged_manifest(lake, tables), staged_manifest(lake, {STORES: {day(0): [("s", 2)]}})
    publish(lake, other)
    with pytest.raises(Conflict) as caught:
        publish(lake, one)
    assert caught.value.tables == {STORES: (day(0),)}
    assert everything(lake) == {STORES: {day(0): [("s", 2)]}}
    assert head(lake) == -1


def test_days_left_out_of_a_conflict_can_be_published_under_another_name(lake: Lake) -> None:
    one = staged_manifest(lake, {SALES: {day(0): [("a", 1)], day(1): [("b", 1)]}})
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 2)]}}))
    with pytest.raises(Conflict):
        publish(lake, one)
    rest = one.tables[0].model_copy(update={"days": {day(1): one.tables[0].days[day(1)]}})
    publish(lake, manifest(new_publication(), rest))
    assert contents(lake, SALES) == {day(0): [("a", 2)], day(1): [("b", 1)]}


def _without(rows: pa.Table) -> pa.Table:
    return rows.drop_columns(["price"])


def _with(rows: pa.Table) -> pa.Table:
    return rows.append_column("extra", pa.array(["x"]))


def _retyped(rows: pa.Table) -> pa.Table:
    return rows.set_column(1, "cents", pa.array(["1"]))


@pytest.mark.parametrize(
    ("altered", "message"),
    [
        (_without, "price is missing"),
        (_with, "extra is not in the table"),
        (_retyped, "cents is string, in the table long"),
    ],
)
def test_files_with_other_columns_are_refused_by_name(
    lake: Lake, altered: Callable[[pa.Table], pa.Table], message: str
) -> None:
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)]}}))
    publication = stage(lake, SALES, {}, rows=altered(rows_of({day(0): [("a", 1)]})))
    with pytest.raises(SchemaMismatchError, match=message):
        publish(lake, manifest(publication, change(lake, SALES, publication)))
    assert contents(lake, SALES) == {day(0): [("a", 1)]}


@pytest.mark.parametrize("null", [None, date(1, 1, 1)])
def test_rows_without_a_day_are_refused(lake: Lake, null: date | None) -> None:
    rows = rows_of({day(0): [("a", 1)]}).set_column(3, "event_date", pa.array([null], pa.date32()))
    publication = stage(lake, SALES, {}, rows=rows)
    if null is None:
        with pytest.raises(NullDayError, match=r"silver\.sales has rows without event_date"):
            staged_files(lake, SALES, publication)
    else:
        assert set(staged_files(lake, SALES, publication)[1]) == {null}


def _gone(lake: Lake, what: Manifest) -> Manifest:
    file = what.tables[0].days[day(0)].files[0]
    on_disk(lake.table_path(SALES) / file.path).unlink()
    return what


def _short(lake: Lake, what: Manifest) -> Manifest:
    path = lake.table_path(SALES) / what.tables[0].days[day(0)].files[0].path
    on_disk(path).write_bytes(on_disk(path).read_bytes()[:-1])
    return what


def _altered(what: Manifest, when: date, path: Callable[[str], str] = lambda path: path) -> Manifest:
    table = what.tables[0]
    found = table.days[day(0)]
    moved = tuple(file.model_copy(update={"path": path(file.path)}) for file in found.files)
    days = {when: found.model_copy(update={"files": moved})}
    return what.model_copy(update={"tables": (table.model_copy(update={"days": days}),)})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_gone, "is missing"),
        (_short, "bytes, recorded were"),
        (lambda _, what: _altered(what, day(1)), r"2017-01-02: .* does not lie in"),
        (lambda _, what: _altered(what, day(0), lambda path: f"../{path}"), "does not lie in"),
        (lambda _, what: _altered(what, day(0), lambda path: f"/{path}"), "does not lie in"),
        (lambda _, what: _altered(what, day(0), lambda path: path.split("/", 1)[1]), "does not lie in"),
    ],
    ids=["missing", "short", "of another day", "outside", "absolute", "of no publication"],
)
def test_a_file_that_is_not_what_its_manifest_says_is_refused_by_name(
    lake: Lake, spoil: Callable[[Lake, Manifest], Manifest], message: str
) -> None:
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("old", 1)]}}))
    with pytest.raises(StagedFileError, match=message):
        publish(lake, spoil(lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)]}})))
    assert contents(lake, SALES) == {day(0): [("old", 1)]}


def test_two_changes_of_one_table_in_a_manifest_are_refused(lake: Lake) -> None:
    one = staged_manifest(lake, {SALES: {day(0): [("a", 1)]}})
    with pytest.raises(ManifestError, match="twice"):
        publish(lake, one.model_copy(update={"tables": one.tables * 2}))


def test_another_manifest_of_the_same_name_is_refused(lake: Lake) -> None:
    one = staged_manifest(lake, {SALES: {day(0): [("a", 1)]}})
    publish(lake, one)
    with pytest.raises(ManifestError, match="Another manifest"):
        publish(lake, one.model_copy(update={"why": "another reason"}))


def test_statistics_are_in_the_log_to_the_letter_of_the_writer(lake: Lake) -> None:
    publication = stage(lake, SALES, {day(0): [("ä b%20\"'\n/c", 1)], day(1): [("€", 2)]})
    staged = [a["add"] for a in commits.actions(lake.stage_path(SALES, publication), 0) if "add" in a]
    publish(lake, manifest(publication, change(lake, SALES, publication)))
    added = [a["add"] for a in commits.actions(lake.table_path(SALES), 0) if "add" in a]
    assert sorted(add["stats"] for add in added) == sorted(add["stats"] for add in staged)
    assert {json.loads(add["stats"])["minValues"]["cents"] for add in added} == {1, 2}
    assert contents(lake, SALES) == {day(0): [("ä b%20\"'\n/c", 1)], day(1): [("€", 2)]}


def test_a_table_is_made_so_that_no_tool_cleans_it_up(lake: Lake) -> None:
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 1)]}}))
    for table in (lake.table_path(SALES), lake.releases_path):
        actions = commits.actions(table, 0)
        (protocol,) = (a["protocol"] for a in actions if "protocol" in a)
        assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (1, 2)
        (made,) = (a["metaData"] for a in actions if "metaData" in a)
        assert made["configuration"]["delta.logRetentionDuration"] == "interval 36500 days"
        assert made["configuration"]["delta.deletedFileRetentionDuration"] == "interval 36500 days"
        assert made["configuration"]["delta.enableExpiredLogCleanup"] == "false"


def test_what_was_staged_in_two_writes_is_one_publication(lake: Lake) -> None:
    publication = stage(lake, SALES, {day(0): [("a", 1)]})
    from deltalake import write_deltalake

    write_deltalake(str(lake.stage_path(SALES, publication)), rows_of({day(1): [("b", 2)]}), mode="append")
    publish(lake, manifest(publication, change(lake, SALES, publication)))
    assert contents(lake, SALES) == {day(0): [("a", 1)], day(1): [("b", 2)]}


def test_a_stage_that_was_never_written_is_said_so(lake: Lake) -> None:
    with pytest.raises(StagedFileError, match="staged nothing"):
        staged_files(lake, SALES, "p1")
