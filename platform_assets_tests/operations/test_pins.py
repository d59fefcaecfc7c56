"""A pinned release stays readable until it is unpinned; one that is no longer whole is not pinned. No Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from platform_assets.engine.platform import Author, Platform
from platform_assets.lakehouse.errors import BeyondWindowError, LockLostError
from platform_assets.lakehouse.horizon import horizon_of
from platform_assets.lakehouse.publish import publish
from platform_assets.ledger.ledger import Ledger
from platform_assets.operations import deletion, pins
from platform_assets.operations.deletion import delete, deletions
from platform_assets.operations.opening import open_platform
from platform_assets.operations.pins import Pin, pin, pinned_releases
from platform_assets.records.decisions import Decision
from platform_assets.settings import load_settings
from platform_assets_tests.support.meanwhile import once_at, usage_later
from platform_assets_tests.support.shelf import SALES, STORES, Days, age, contents, day, stage, staged_manifest

WINDOW, SAFE = timedelta(days=90), timedelta(days=7)
FIRST: Days = {day(0): [("as reported", 1)]}


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    with open_platform(load_settings(state=tmp_path / "state")) as opened:
        yield opened


def delete_history(platform: Platform) -> int:
    """In a year, when only the current release and pins stay."""

    def pinned() -> list[int]:
        return [*pinned_releases(platform.ledger)]

    found = usage_later(platform.lake, WINDOW, pinned)
    return len(delete(platform.lake, found, deletions(found, SAFE), pinned))


def pin_the_first(platform: Platform) -> Pin:
    return pin(platform, 0, Author("audit", "as reported", "Zoë"), "audit")


def replaced_twice(platform: Platform) -> None:
    """Two tables, each of which leaves a folder that nobody needs."""
    publish(platform.lake, staged_manifest(platform.lake, {SALES: FIRST}))
    publish(platform.lake, staged_manifest(platform.lake, {STORES: {day(0): [("s", 0)]}}))
    publish(platform.lake, staged_manifest(platform.lake, {SALES: {day(0): [("a", 1)]}}))
    publish(platform.lake, staged_manifest(platform.lake, {STORES: {day(0): [("s", 1)]}}))


def test_a_release_beyond_the_window_is_not_pinned_though_its_files_are_there(platform: Platform) -> None:
    """Later releases share them."""
    publish(platform.lake, staged_manifest(platform.lake, {SALES: FIRST}))
    publish(platform.lake, staged_manifest(platform.lake, {SALES: {day(1): [("x", 1)]}}))
    publish(platform.lake, staged_manifest(platform.lake, {SALES: {day(1): [("x", 2)]}}))
    assert delete_history(platform) == 1
    assert horizon_of(platform.lake).before == 2
    with pytest.raises(BeyondWindowError, match=r"Release 0 is beyond the rollback window.*\n.*release 2 or a later"):
        pin_the_first(platform)
    assert pinned_releases(platform.ledger) == {}


def test_a_release_whose_files_are_going_is_not_pinned(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two slices of a deletion, of which the second takes the files of the release."""
    replaced_twice(platform)
    refused: list[BeyondWindowError] = []

    def try_to_pin() -> None:
        with pytest.raises(BeyondWindowError) as caught:
            pin_the_first(platform)
        refused.append(caught.value)

    monkeypatch.setattr(deletion, "FILES_AT_ONCE", 1)
    once_at(monkeypatch, deletion, "delete.done", try_to_pin)
    assert delete_history(platform) == 2
    assert len(refused) == 1
    assert pinned_releases(platform.ledger) == {}


def test_a_release_pinned_before_history_is_deleted_is_kept(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two slices of a deletion, of which the first only takes what was never published."""
    replaced_twice(platform)
    stage(platform.lake, STORES, {day(5): [("never", 1)]}, "20200101T000000000000Z-00000000")
    age(platform.lake, STORES)
    monkeypatch.setattr(deletion, "FILES_AT_ONCE", 1)
    once_at(monkeypatch, deletion, "delete.done", lambda: pin_the_first(platform))
    delete_history(platform)
    assert list(pinned_releases(platform.ledger)) == [0]
    assert contents(platform.lake, SALES, 0) == FIRST


def test_who_lost_the_lock_while_pinning_has_pinned_nothing(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suspended between the look at the release and the decision; maintenance, which knew no pin, deletes it."""
    replaced_twice(platform)
    lost: list[bool] = []

    @contextmanager
    def lock(*_: object) -> Iterator[Callable[[], None]]:
        def still_held() -> None:
            if lost:
                raise LockLostError("The database session that held the lock was lost.", "Run it again.")

        yield still_held

    decide = Ledger.decide

    def suspended(self: Ledger, decision: Decision) -> None:
        if not lost:
            lost.append(True)
            assert delete_history(platform)
        decide(self, decision)

    monkeypatch.setattr(pins, "publish_lock", lock)
    monkeypatch.setattr(Ledger, "decide", suspended)
    with pytest.raises(LockLostError):
        pin_the_first(platform)
    assert not pinned_releases(platform.ledger)
