"""What is in the rollback window, pinned or open stays readable, whatever is deleted and wherever that dies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from platform_assets.lakehouse.delta.log import live_files
from platform_assets.lakehouse.errors import (
    BeyondWindowError,
    ErasedError,
    LockLostError,
    StagedFileError,
    StillNeededError,
)
from platform_assets.lakehouse.horizon import Cut, horizon_of, require_whole
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.locks import stage_lock
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.lakehouse.releases import current_release, release
from platform_assets.operations import deletion
from platform_assets.operations.deletion import Usage, delete, deletions, deletions_asked_for, released_at, usage
from platform_assets.records.manifest import Manifest, new_publication
from platform_assets_tests.support.meanwhile import once_at
from platform_assets_tests.support.places import on_disk
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
DELETING = (
    "delete.locked",
    "delete.before_horizon",
    "delete.after_horizon",
    "delete.after_file",
    "delete.before_folder",
    "delete.after_folder",
    "delete.done",
)


def when(lake: Lake, first: int) -> datetime:
    """A moment at which the release is the oldest of the window."""
    times = dict(released_at(lake, current_release(lake).number))
    return times.get(first + 1, times[first] + WINDOW) + WINDOW - timedelta(milliseconds=1)


def look(lake: Lake, first: int, pins: Collection[int] = ()) -> Usage:
    return usage(lake, WINDOW, lambda: pins, now=when(lake, first))


def delete_before(lake: Lake, first: int, pins: Collection[int] = ()) -> int:
    """Delete what only releases before one need; the number of files."""
    found = look(lake, first, pins)
    return sum(len(one.files) for one in delete(lake, found, deletions(found, SAFE), lambda: pins))


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
    assert [path.name for path in on_disk(lake.table_path(SALES)).glob("*/event_date=*")].count(
        "event_date=2017-01-01"
    ) == 2
    assert len(list(on_disk(lake.root / "_publications").iterdir())) == 4, "manifests stay"
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
    assert (horizon_of(lake).before, horizon_of(lake).kept) == (2, (0,))
    delete_before(lake, 3)
    with pytest.raises(BeyondWindowError, match="Release 0"):
        require_whole(lake, 0)


def test_an_erasure_cuts_what_window_and_pins_would_keep(lake: Lake) -> None:
    corrected(lake, 4)
    resolved_before = release(lake, 1)
    found = usage(lake, WINDOW, lambda: (0, 2), cut=Cut(before=2, publication="p"))
    assert (found.kept.first, found.kept.pinned) == (2, ())
    assert delete(lake, found, deletions(found, SAFE), lambda: (0, 2))
    for asked in (0, 1, resolved_before):
        with pytest.raises(
            ErasedError, match=r"rows that it may show were erased for good by publication p, .* before 2"
        ):
            read_arrow(lake, SALES, release=asked)
    assert contents(lake, SALES, 2)
    delete_before(lake, 3)
    with pytest.raises(ErasedError, match="Release 1"):
        require_whole(lake, 1)
    with pytest.raises(BeyondWindowError, match="Release 2 is beyond the rollback window"):
        require_whole(lake, 2)


@limits(max_examples=12)
@given(st.data())
def test_every_release_in_the_window_and_every_pin_stays_readable_whatever_happens(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        lake = Lake.at(Path(folder))
        publish(lake, staged_manifest(lake, {SALES: {day(n): [("k", 0)] for n in range(3)}}))
        seen = {0: contents(lake, SALES, 0)}
        pins: set[int] = set()
        for step in range(data.draw(st.integers(2, 7))):
            whole = [number for number in seen if horizon_of(lake).has(number)]
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
                    assert all(horizon_of(lake).has(number) for number in seen if number >= first and number in whole)
                    assert all(horizon_of(lake).has(pin) for pin in pins & {*whole})
            newest = current_release(lake).number
            seen[newest] = contents(lake, SALES, newest)
            for number, rows in seen.items():
                if horizon_of(lake).has(number):
                    assert contents(lake, SALES, number) == rows


def _delete(lake: Lake, first: int) -> None:
    delete_before(lake, first, pins=[0])


@pytest.mark.parametrize(
    "name", [DELETING[0], DELETING[-1], *(pytest.param(each, marks=pytest.mark.proof) for each in DELETING[1:-1])]
)
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
            assert name not in DELETING[: DELETING.index("delete.after_horizon")]
    publish(lake, staged_manifest(lake, {SALES: {day(2): [("c", 0)]}}))
    _delete(lake, 3)
    assert {number: contents(lake, SALES, number) for number in kept} == kept
    left = {path.parent.parent.name for path in on_disk(lake.table_path(SALES)).glob("*/event_date=*/*.parquet")}
    assert {path.name for path in on_disk(lake.table_path(SALES)).iterdir()} == left | {"_delta_log"}
    assert len(list(on_disk(lake.table_path(SALES)).glob("*/event_date=*/*.parquet"))) == 5
    assert not lake.table_path(STORES).names()
    assert delete_before(lake, 3, pins=[0]) == 0


def test_a_stage_that_was_left_behind_goes_and_one_that_is_worked_on_or_fresh_stays(lake: Lake) -> None:
    corrected(lake, 1)
    left, held = (stage(lake, SALES, {day(2): [("x", 1)]}) for _ in range(2))
    age(lake, SALES)
    fresh = stage(lake, SALES, {day(2): [("x", 1)]})
    with stage_lock(lake, held):
        found = usage(lake, WINDOW, tuple)
        assert {one.publication for one in deletions(found, SAFE)} == {left}
        with pytest.raises(StillNeededError, match=rf"{held} is staged in {SALES} and not.*, a process is work"):
            deletions_asked_for(lake, found, held, WINDOW, SAFE)
        with pytest.raises(StillNeededError, match=rf"{fresh} is staged in {SALES} and not.*, last.*\n.*7 days"):
            deletions_asked_for(lake, found, fresh, WINDOW, SAFE)
        delete(lake, found, deletions(found, SAFE), tuple)
    assert not lake.stage_path(SALES, left).exists()
    publish(lake, manifest(held, change(lake, SALES, held)))
    assert contents(lake, SALES)[day(2)] == [("x", 1)]
    assert not list(on_disk(lake.locks_path).glob("stage-*")), "a lock leaves nothing behind"


def test_a_stage_of_a_dead_process_is_nobodys(lake: Lake) -> None:
    corrected(lake, 1)
    left = stage(lake, SALES, {day(2): [("x", 1)]})
    age(lake, SALES)
    in_process(_die_staging, lake, left, failpoint="publish.before_manifest")
    assert list(on_disk(lake.locks_path).glob("stage-*"))
    found = usage(lake, WINDOW, tuple)
    assert [one.publication for one in delete(lake, found, deletions(found, SAFE), tuple)] == [left]
    assert not list(on_disk(lake.locks_path).glob("stage-*"))


def _die_staging(lake: Lake, publication: str) -> None:
    with stage_lock(lake, publication):
        publish(lake, manifest(publication, change(lake, SALES, publication)))


def test_early_deletion_is_refused_by_name(lake: Lake) -> None:
    corrected(lake, 4)
    publications = [path.partition("/")[0] for path in _first_files(lake)]
    found = look(lake, 2, pins=[1])

    def refused(number: int) -> str:
        with pytest.raises(StillNeededError) as said:
            deletions_asked_for(lake, found, publications[number], WINDOW, SAFE)
        return str(said.value)

    assert "Release 3, the current one, needs 1 of the" in refused(0)
    assert "Release 1, which is pinned, needs" in refused(1)
    assert "Release 2, which is inside the rollback window until" in refused(2)
    with pytest.raises(StillNeededError, match="No table has files of publication 'nothing'"):
        deletions_asked_for(lake, found, "nothing", WINDOW, SAFE)
    unpinned = look(lake, 2)
    [one] = deletions_asked_for(lake, unpinned, publications[1], WINDOW, SAFE)
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
    gone = deletions(found, SAFE)
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
            on_disk(gone).unlink(missing_ok=True)

    monkeypatch.setattr("platform_assets.lakehouse.publish.failpoint", deleted_meanwhile)
    with pytest.raises(StagedFileError, match="is missing"):
        publish(lake, back)
    assert current_release(lake).number == 2
    publish(lake, staged_manifest(lake, {SALES: {day(5): [("e", 1)]}}))


def lock_lost_at(monkeypatch: pytest.MonkeyPatch, asked: int, meanwhile: Callable[[], object]) -> None:
    """Who deletes is suspended right after it was told for the n-th time that it holds the lock; others take it."""
    times = count(1)

    @contextmanager
    def lock(*_: object) -> Iterator[Callable[[], None]]:
        def still_held() -> None:
            match next(times):
                case number if number == asked:
                    meanwhile()
                case number if number > asked:
                    raise LockLostError("The database session that held the lock was lost.", "Run it again.")

        yield still_held

    monkeypatch.setattr(deletion, "publish_lock", lock)


@pytest.mark.parametrize("asked", [1, 2])
def test_who_lost_the_lock_before_the_first_file_deletes_nothing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, asked: int
) -> None:
    corrected(lake, 3)
    was = contents(lake, SALES, 0)
    back = put_back(lake, SALES, 0)
    found = look(lake, 2)
    lock_lost_at(monkeypatch, asked, lambda: publish(lake, back))
    with pytest.raises(LockLostError):
        delete(lake, found, deletions(found, SAFE), tuple)
    assert contents(lake, SALES) == was
    assert horizon_of(lake).before == (0 if asked == 1 else 2), "the cut is moved by who holds the lock, or not at all"
    assert not lake.deletions_path.names()


def test_who_lost_the_lock_between_two_files_takes_nothing_from_what_is_put_back_meanwhile(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(lake, staged_manifest(lake, {SALES: {day(n): [("old", n)] for n in range(3)}}))
    publish(lake, staged_manifest(lake, {SALES: {day(n): [("new", n)] for n in range(3)}}))
    path = lake.table_path(SALES)
    old = live_files(path, release(lake, 0).versions[SALES])
    refused: list[date] = []

    def some_of_it_is_put_back() -> None:
        back, now = put_back(lake, SALES, 0), live(lake, SALES)
        for when, files in old.items():
            if all((path / file.path).exists() for file in files):
                only = back.tables[0].model_copy(update={"days": {when: content(files, now[when])}})
                with pytest.raises(StagedFileError, match=f"{SALES} {when}: .* is being deleted"):
                    publish(lake, manifest(new_publication(), only))
                refused.append(when)

    once_at(monkeypatch, deletion, "delete.after_file", some_of_it_is_put_back)
    found = look(lake, 1)
    delete(lake, found, deletions(found, SAFE), tuple)
    assert len(refused) >= 2, "files that were still there"
    assert contents(lake, SALES) == {day(n): [("new", n)] for n in range(3)}
    assert not lake.deletions_path.names()


def test_what_a_dead_deleter_announced_is_refused_until_it_is_gone_and_live_days_are_not(lake: Lake) -> None:
    corrected(lake, 3)
    back = put_back(lake, SALES, 0)
    assert killed(in_process(delete_before, lake, 2, failpoint="delete.after_file"))
    with pytest.raises(StagedFileError, match=r"is being deleted|is missing"):
        publish(lake, back)
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 9)]}}))
    assert lake.deletions_path.names()
    delete_before(lake, 3)
    assert not lake.deletions_path.names()
    assert contents(lake, SALES) == {day(0): [("a", 9)], day(1): [("b", 0)]}


def test_what_a_dead_publisher_began_is_finished_before_anything_is_deleted(lake: Lake, tmp_path: Path) -> None:
    corrected(lake, 3)
    found = look(lake, 2)
    gone = deletions(found, SAFE)
    publish_elsewhere(lake, put_back(lake, SALES, 0), tmp_path, "replace.after_commit")
    delete(lake, found, gone, tuple)
    assert contents(lake, SALES)[day(0)] == [("a", 0)]


def test_a_pin_made_meanwhile_counts(lake: Lake) -> None:
    corrected(lake, 3)
    was = contents(lake, SALES, 0)
    found = look(lake, 2)
    delete(lake, found, deletions(found, SAFE), lambda: [0])
    assert contents(lake, SALES, 0) == was


def test_the_folders_of_others_are_left_alone(lake: Lake) -> None:
    corrected(lake, 2)
    other = lake.table_path(SALES) / "notes"
    on_disk(other).mkdir()
    on_disk(other / "read me.txt").write_text("somebody's")
    age(lake, SALES)
    found = usage(lake, WINDOW, tuple, now=datetime.now(UTC) + timedelta(days=400))
    delete(lake, found, deletions(found, SAFE), tuple)
    assert (other / "read me.txt").exists()
