"""Two writers of a day: one wins, the other is told. Disjoint days never conflict."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from platform_assets.lakehouse import publish as publishing
from platform_assets.lakehouse import releases
from platform_assets.lakehouse.delta import new_commit as difference
from platform_assets.lakehouse.errors import InterruptedPublicationError, LockLostError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.locks import publish_lock
from platform_assets.lakehouse.publish import publish, recover
from platform_assets.lakehouse.releases import published
from platform_assets.records.manifest import Manifest
from platform_assets_tests.support.shelf import (
    PUBLISHING,
    SALES,
    STORES,
    contents,
    day,
    everything,
    in_process,
    staged_manifest,
    try_to_publish,
)


def started(lake: Lake, folder: Path, *manifests: Manifest) -> list[tuple[BaseProcess, Path]]:
    """Publish each from a process of its own, all at the same moment; and the files where they say what came of it."""
    gate = folder / "gate"
    said = [folder / f"{n}" for n in range(len(manifests))]
    processes = [
        in_process(try_to_publish, lake, what, file, gate, wait=False)
        for what, file in zip(manifests, said, strict=True)
    ]
    deadline = time.monotonic() + 30
    while not all(file.with_suffix(".ready").exists() for file in said):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    gate.touch()
    return list(zip(processes, said, strict=True))


def race(lake: Lake, folder: Path, *manifests: Manifest) -> list[str]:
    """What each of the publishers said in the end."""
    found = started(lake, folder, *manifests)
    for process, _ in found:
        process.join(60)
    return [said.read_text() for _, said in found]


def test_of_two_publishers_of_one_day_one_wins_and_the_other_is_told_which_day(lake: Lake, tmp_path: Path) -> None:
    publish(lake, staged_manifest(lake, {SALES: {day(0): [("a", 0)], day(1): [("b", 0)]}}))
    both = [staged_manifest(lake, {SALES: {day(0): [("a", n)]}, STORES: {day(0): [("s", n)]}}) for n in (1, 2)]
    said = race(lake, tmp_path, *both)
    winner = next(n for n, text in enumerate(said) if text == "1")
    assert said[1 - winner].startswith("Conflict (datetime.date(2017, 1, 1),)")
    assert everything(lake) == {
        SALES: {day(0): [("a", winner + 1)], day(1): [("b", 0)]},
        STORES: {day(0): [("s", winner + 1)]},
    }


def test_one_publication_asked_for_by_two_processes_is_released_once(lake: Lake, tmp_path: Path) -> None:
    what = staged_manifest(lake, {SALES: {day(0): [("a", 1)]}})
    assert race(lake, tmp_path, what, what) == ["0", "0"]
    assert list(published(lake)) == [(0, what.publication)]


PASSED_WITH_LOCK = PUBLISHING[PUBLISHING.index("publish.locked") : PUBLISHING.index("publish.after_release")]


@pytest.mark.parametrize("point", PASSED_WITH_LOCK)
@pytest.mark.parametrize("table", [STORES, "gold.new"])
def test_a_publisher_whose_lock_was_lost_takes_nothing_back(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, point: str, table: str
) -> None:
    """It is suspended at a point of its publication, and another one publishes meanwhile."""
    before = {SALES: {day(0): [("a", 1)]}, STORES: {day(0): [("s", 1)]}}
    publish(lake, staged_manifest(lake, before))
    first = staged_manifest(lake, {SALES: {day(1): [("first", 1)]}, "gold.new": {day(0): [("first", 1)]}})
    second = staged_manifest(lake, {table: {day(2): [("second", 1)]}})
    at, _, turn = point.partition(":")
    to_come = [at] * int(turn or 1)

    @contextmanager
    def lost(*_: object) -> Iterator[Callable[[], None]]:
        yield lambda: None

    def meanwhile(name: str) -> None:
        if name not in to_come:
            return
        to_come.pop()
        if not to_come:
            monkeypatch.setattr(publishing, "publish_lock", publish_lock)
            publish(lake, second)

    for module in (publishing, difference, releases):
        monkeypatch.setattr(module, "failpoint", meanwhile)
    monkeypatch.setattr(publishing, "publish_lock", lost)
    with suppress(LockLostError, InterruptedPublicationError):
        publish(lake, first)
    assert not to_come
    assert contents(lake, table)[day(2)] == [("second", 1)]

    publish(lake, first)
    recover(lake)
    expected = {SALES: before[SALES] | {day(1): [("first", 1)]}, STORES: before[STORES]}
    expected["gold.new"] = {day(0): [("first", 1)]}
    assert everything(lake) == expected | {table: expected[table] | {day(2): [("second", 1)]}}
    released = [name for _, name in published(lake)]
    assert sorted(released[1:]) == sorted([first.publication, second.publication])
