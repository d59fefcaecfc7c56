"""What is in the rollback window, pinned or open stays readable, whatever is deleted and wherever that dies."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from platform_assets.failpoints import POINTS
from platform_assets.lakehouse.cut import cut_of, require_whole
from platform_assets.lakehouse.deletion import delete, removals, removals_asked_for
from platform_assets.lakehouse.errors import BeyondWindowError, StagedFileError, StillNeededError
from platform_assets.lakehouse.lake import Lake
from platform_assets.lakehouse.lock import stage_lock
from platform_assets.lakehouse.log import live_files
from platform_assets.lakehouse.manifest import Manifest, new_publication
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.read import read_arrow
from platform_assets.lakehouse.releases import current_release, release
from platform_assets.lakehouse.usage import Usage, released_at, usage
from platform_assets_tests.support.shelf import (
    SALES,
    STORES,
    age,
    change,
    content,
    contents,
    day,
    in_process,
    killed,
    live,
    manifest,
    publish_elsewhere,
    stage,
    staged_manifest,
)

SAFE = timedelta(days=7)
WINDOW = timedelta(days=7)
DELETING = POINTS["deletion"]


def when(lake: Lake, first: int) -> datetime:
    """A moment at which the release is the oldest of the window."""
    times = dict(released_at(lake, current_release(lake).number))
    return times.get(first + 1, times[first] + WINDOW) + WINDOW - timedelta(milliseconds=1)


def look(lake: Lake, first: int, pins: Collection[int] = ()) -> Usage:
    return usage(lake, WINDOW, lambda: pins, now=when(lake, first))


def delete_before(lake: Lake, first: int, pins: Collection[int] = ()) -> int:
    """Delete what only releases before one need; the number of files."""
    found = look(lake, first, pins)
    return sum(len(one.files) for one in delete(lake, found, removals(found, SAFE), lambda: pins))


def corrected(lake: Lake, count: int) -> None:
    """Releases of which each replaces the first day and leaves the second alone."""
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 0)], day(1): [("b", 0)]}}))
    for n in range(1, count):
        publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", n)]}}))


def put_back(lake: Lake, table: str, number: int) -> Manifest:
    """The days of a table as they were at a release."""
    then, now = live_files(lake.table_path(table), release(lake, number).versions[table]), live(lake, table)
    days = {when: content(then.get(when, ()), now.get(when, ())) for when in {*then, *now}}
    one = change(lake, table, live(lake, table)[day(1)][0].path.partition("/")[0])
    return manifest(new_publication(), one.model_copy(update={"days": days}))


def test_history_before_the_window_goes_and_what_later_releases_share_stays(lake: Lake) -> None:
    corrected(lake, 4)
    kept = {number: contents(lake, SALES, number) for number in (2, 3)}
    # Of release 0 the second day is still shown; its folder stays with that file.
    assert delete_before(lake, 2) > 0
    assert {number: contents(lake, SALES, number) for number in (2, 3)} == kept
    assert [path.name for path in lake.table_path(SALES).glob("*/event_date=*")].count("event_date=2017-01-01") == 2
    assert len(list(lake.publications_path.iterdir())) == 4, "manifests stay"
    assert delete_before(lake, 2) == 0


def test_a_release_beyond_the_window_is_refused_by_name_whether_or_not_its_files_are_gone(lake: Lake) -> None:
    corrected(lake, 4)
    resolved_before = release(lake, 1)
    delete_before(lake, 2, pins=[0])
    for asked in (1, resolved_before):
        with pytest.raises(BeyondWindowError, match=r"Release 1 is beyond the rollback window.*\n.*release 2 .*\(0\)"):
            read_arrow(lake, SALES, release=asked)
    assert contents(lake, SALES, 0) == {day(0): [("a", 0)], day(1): [("b", 0)]}, "pinned"
    # A longer window, or a pin, brings nothing back.
    delete_before(lake, 0, pins=[0, 1])
    assert (cut_of(lake).before, cut_of(lake).kept) == (2, (0,))
    delete_before(lake, 3)
    with pytest.raises(BeyondWindowError, match="Release 0"):
        require_whole(lake, 0)


def test_nothing_deleted_cuts_nothing(lake: Lake) -> None:
    corrected(lake, 1)
    publish(lake, staged_manifest(lake, {STORES: {day(0): [("s", 1)]}}))
    assert delete_before(lake, 1) == 0
    assert not lake.cut_file.exists()
    assert contents(lake, SALES, 0)


@limits(max_examples=12)
@given(st.data())
def test_every_release_in_the_window_and_every_pin_stays_readable_whatever_happens(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        lake = Lake(Path(folder))
        publish(lake, staged_manifest(lake, {SALES: {day(n): [("k", 0)] for n in range(3)}}))
        seen = {0: contents(lake, SALES, 0)}
        pins: set[int] = set()
        for step in range(data.draw(st.integers(2, 7))):
            whole = [number for number in seen if cut_of(lake).has(number)]
            match data.draw(st.sampled_from(["publish", "publish", "put back", "pin", "unpin", "delete", "delete"])):
                case "publish":
                    days = data.draw(st.sets(st.integers(0, 2), min_size=1))
                    publish(lake, staged_manifest(lake, {SALES: {day(n): [("k", step + 1)] for n in days}}))
                case "put back":
                    publish(lake, put_back(lake, SALES, data.draw(st.sampled_from(whole))))
                case "pin":
                    pins.add(data.draw(st.sampled_from(whole)))
                case "unpin":
                    pins -= {data.draw(st.sampled_from(sorted(seen)))}
                case "delete":
                    first = data.draw(st.sampled_from(sorted(seen)))
                    delete_before(lake, first, sorted(pins))
                    assert all(cut_of(lake).has(number) for number in seen if number >= first and number in whole)
                    assert all(cut_of(lake).has(pin) for pin in pins & {*whole})
            newest = current_release(lake).number
            seen[newest] = contents(lake, SALES, newest)
            for number, rows in seen.items():
                if cut_of(lake).has(number):
                    assert contents(lake, SALES, number) == rows


def _delete(lake: Lake, first: int) -> None:
    delete_before(lake, first, pins=[0])


@pytest.mark.parametrize("name", DELETING)
def test_a_deletion_can_die_anywhere_and_the_next_one_finishes_it(lake: Lake, name: str) -> None:
    corrected(lake, 5)
    stage(lake, STORES, {day(0): [("s", 1)]}, "20200101T000000000000Z-00000000")
    age(lake, STORES)
    kept = {number: contents(lake, SALES, number) for number in (0, 3, 4)}
    assert killed(in_process(_delete, lake, 3, failpoint=name))
    assert {number: contents(lake, SALES, number) for number in kept} == kept
    for number in (1, 2):
        # Either whole, or refused by name.
        try:
            assert contents(lake, SALES, number)[day(1)] == [("b", 0)]
        except BeyondWindowError:
            assert name not in DELETING[: DELETING.index("delete.after_cut")]
    publish(lake, staged_manifest(lake, {SALES: {day(2): [("c", 0)]}}))
    _delete(lake, 3)
    assert {number: contents(lake, SALES, number) for number in kept} == kept
    left = {path.parent.parent.name for path in lake.table_path(SALES).glob("*/event_date=*/*.parquet")}
    assert {path.name for path in lake.table_path(SALES).iterdir()} == left | {"_delta_log"}
    assert len(list(lake.table_path(SALES).glob("*/event_date=*/*.parquet"))) == 5
    assert not any(lake.table_path(STORES).iterdir())
    assert delete_before(lake, 3, pins=[0]) == 0


def test_a_stage_that_was_left_behind_goes_and_one_that_is_worked_on_or_fresh_stays(lake: Lake) -> None:
    corrected(lake, 1)
    left, held = (stage(lake, SALES, {day(2): [("x", 1)]}) for _ in range(2))
    age(lake, SALES)
    fresh = stage(lake, SALES, {day(2): [("x", 1)]})
    with stage_lock(lake, held):
        found = usage(lake, WINDOW, tuple)
        assert {one.publication for one in removals(found, SAFE)} == {left}
        with pytest.raises(StillNeededError, match=rf"{held} is an open stage of {SALES}, a process is working on it"):
            removals_asked_for(lake, found, held, WINDOW, SAFE)
        with pytest.raises(StillNeededError, match=rf"{fresh} is an open stage of {SALES}, last written.*\n.*7 days"):
            removals_asked_for(lake, found, fresh, WINDOW, SAFE)
        delete(lake, found, removals(found, SAFE), tuple)
    assert not lake.stage_path(SALES, left).exists()
    publish(lake, manifest(held, change(lake, SALES, held)))
    assert contents(lake, SALES)[day(2)] == [("x", 1)]
    assert not list(lake.locks_path.glob("stage-*")), "a lock leaves nothing behind"


def test_a_stage_of_a_dead_process_is_nobodys(lake: Lake) -> None:
    corrected(lake, 1)
    left = stage(lake, SALES, {day(2): [("x", 1)]})
    age(lake, SALES)
    in_process(_die_staging, lake, left, failpoint="publish.before_manifest")
    assert list(lake.locks_path.glob("stage-*"))
    found = usage(lake, WINDOW, tuple)
    assert [one.publication for one in delete(lake, found, removals(found, SAFE), tuple)] == [left]
    assert not list(lake.locks_path.glob("stage-*"))


def _die_staging(lake: Lake, publication: str) -> None:
    with stage_lock(lake, publication):
        publish(lake, manifest(publication, change(lake, SALES, publication)))


def test_early_deletion_is_refused_by_name(lake: Lake) -> None:
    corrected(lake, 4)
    publications = [path.partition("/")[0] for path in _first_files(lake)]
    found = look(lake, 2, pins=[1])

    def refused(number: int) -> str:
        with pytest.raises(StillNeededError) as said:
            removals_asked_for(lake, found, publications[number], WINDOW, SAFE)
        return str(said.value)

    assert "Release 3, the current one, needs 1 of the" in refused(0)
    assert "Release 1, which is pinned or lies under an open stage, needs" in refused(1)
    assert "Release 2, which is inside the rollback window until" in refused(2)
    with pytest.raises(StillNeededError, match="No table has files of a publication 'nothing'"):
        removals_asked_for(lake, found, "nothing", WINDOW, SAFE)
    unpinned = look(lake, 2)
    [one] = removals_asked_for(lake, unpinned, publications[1], WINDOW, SAFE)
    delete(lake, unpinned, [one], tuple)
    assert not lake.stage_path(SALES, publications[1]).exists()
    with pytest.raises(BeyondWindowError):
        contents(lake, SALES, 1)


def _first_files(lake: Lake) -> list[str]:
    """The file of the first day at every release."""
    path, newest = lake.table_path(SALES), current_release(lake).number
    return [live_files(path, release(lake, n).versions[SALES])[day(0)][0].path for n in range(newest + 1)]


@pytest.mark.parametrize("first", ["deletion", "rollback"])
def test_a_file_is_either_deleted_or_put_back(lake: Lake, first: str) -> None:
    corrected(lake, 3)
    was = contents(lake, SALES, 0)
    back = put_back(lake, SALES, 0)
    found = look(lake, 2)
    gone = removals(found, SAFE)
    if first == "rollback":
        publish(lake, back)
        assert sum(len(one.files) for one in delete(lake, found, gone, tuple)) < sum(len(one.files) for one in gone)
        assert contents(lake, SALES) == was
    else:
        delete(lake, found, gone, tuple)
        with pytest.raises(StagedFileError, match="is missing"):
            publish(lake, back)
        assert contents(lake, SALES)[day(0)] == [("a", 2)]


def test_a_publication_that_waited_for_the_lock_looks_for_its_files_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    corrected(lake, 3)
    back = put_back(lake, SALES, 0)
    gone = lake.table_path(SALES) / _first_files(lake)[0]

    def deleted_meanwhile(name: str) -> None:
        if name == "publish.locked":
            gone.unlink(missing_ok=True)

    monkeypatch.setattr("platform_assets.lakehouse.publish.failpoint", deleted_meanwhile)
    with pytest.raises(StagedFileError, match="is missing"):
        publish(lake, back)
    assert current_release(lake).number == 2
    publish(lake, staged_manifest(lake, {SALES: {day(5): [("e", 1)]}}))


def test_what_a_dead_publisher_began_is_finished_before_anything_is_deleted(lake: Lake, tmp_path: Path) -> None:
    corrected(lake, 3)
    found = look(lake, 2)
    gone = removals(found, SAFE)
    publish_elsewhere(lake, put_back(lake, SALES, 0), tmp_path, "replace.after_commit")
    delete(lake, found, gone, tuple)
    assert contents(lake, SALES)[day(0)] == [("a", 0)]


def test_a_pin_made_meanwhile_counts(lake: Lake) -> None:
    corrected(lake, 3)
    was = contents(lake, SALES, 0)
    found = look(lake, 2)
    delete(lake, found, removals(found, SAFE), lambda: [0])
    assert contents(lake, SALES, 0) == was


def test_the_folders_of_others_are_left_alone(lake: Lake) -> None:
    corrected(lake, 2)
    other = lake.table_path(SALES) / "notes"
    other.mkdir()
    (other / "read me.txt").write_text("somebody's")
    age(lake, SALES)
    found = usage(lake, WINDOW, tuple, now=datetime.now(UTC) + timedelta(days=400))
    delete(lake, found, removals(found, SAFE), tuple)
    assert (other / "read me.txt").exists()
