"""Rounds of a stage against a daily run, and four processes at once: one winner or all, never a mix."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Literal

import pytest

from platform_assets.engine.platform import Author
from platform_assets.engine.publishing import publish_changes
from platform_assets.lakehouse.errors import Conflict, OvertakenError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.releases import current_release, published
from platform_assets.ledger.sync import rebuild
from platform_assets.operations.opening import open_platform
from platform_assets.records.manifest import new_publication
from platform_assets.settings import load_settings
from platform_assets_tests.support.shelf import (
    SALES,
    STORES,
    change,
    contents,
    day,
    in_process,
    stage,
    staged_manifest,
)

TABLES = (SALES, STORES)
FEW, MANY = 10, 100
PROCESSES, EACH = 4, 25

Said = Literal["published", "Conflict", "OvertakenError"]


def wait_for(*files: Path) -> None:
    deadline = time.monotonic() + 60
    while not all(file.exists() for file in files):
        assert time.monotonic() < deadline
        time.sleep(0.0005)


def take_part(lake: Lake, who: str, other: str, folder: Path, rounds: int) -> None:
    """One side of every round: on the same day as the other in even rounds, on a day of its own in odd ones.

    The daily run publishes its days whoever published others meanwhile; the stage only on the release it lies over, and
    is put on the newest one where that was overtaken.
    """
    said: list[list[Said]] = []
    for number in range(rounds):
        first, second = (day(0), day(0)) if number % 2 == 0 else (day(1), day(2))
        when = first if who == "daily" else second
        tables = {table: {when: [(who, number)]} for table in TABLES}
        what, over = staged_manifest(lake, tables), current_release(lake).number
        (folder / f"{who}-{number}").touch()
        wait_for(folder / f"{other}-{number}")
        tries: list[Said] = []
        while True:
            try:
                publish(lake, what.model_copy(update={"on_release": over if who == "stage" else None}))
                tries.append("published")
                break
            except (Conflict, OvertakenError) as error:
                tries.append(type(error).__name__)  # type: ignore[arg-type]
                what, over = staged_manifest(lake, tables), current_release(lake).number
        said.append(tries)
        (folder / f"{who}-{number}-done").touch()
        wait_for(folder / f"{other}-{number}-done")
    (folder / f"{who}.json").write_text(json.dumps(said))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("rounds", [FEW, pytest.param(MANY, marks=pytest.mark.proof)])
def test_a_stage_and_a_daily_run_race_again_and_again_and_never_mix(lake: Lake, tmp_path: Path, rounds: int) -> None:
    publish(lake, staged_manifest(lake, {table: {day(n): [("nobody", -1)] for n in range(3)} for table in TABLES}))
    sides = [
        in_process(take_part, lake, who, other, tmp_path, rounds, wait=False)
        for who, other in (("daily", "stage"), ("stage", "daily"))
    ]
    reads = 0
    while any(side.is_alive() for side in sides):
        now = current_release(lake)
        assert contents(lake, SALES, now) == contents(lake, STORES, now)
        reads += 1
    assert [side.exitcode for side in sides] == [0, 0]
    assert reads > rounds / 2
    daily, staged = (json.loads((tmp_path / f"{who}.json").read_text()) for who in ("daily", "stage"))
    assert all(tries[-1] == "published" for tries in daily + staged)
    for number in range(rounds):
        lost = [*daily[number][:-1], *staged[number][:-1]]
        if number % 2 == 0:
            assert len(lost) == 1, f"of two writers of a day one was told, in round {number}"
        else:
            assert daily[number] == ["published"], f"a day of its own never conflicts, in round {number}"
            assert set(lost) <= {"OvertakenError"}
    releases = dict(published(lake))
    assert len(releases) == len(set(releases.values())) == 1 + 2 * rounds
    for number in range(0, len(releases), 10):
        assert contents(lake, SALES, number) == contents(lake, STORES, number)


def publish_many(lake: Path, process: int) -> None:
    """So many publications of days of its own, through ledger and lake, as an engine does it."""
    with open_platform(load_settings(state=lake.parent, lake=lake)) as platform:
        for number in range(EACH):
            publication = new_publication()
            days = {day(process * EACH + number): [("key", number)]}
            changes = []
            for table in TABLES:
                stage(platform.lake, table, days, publication)
                changes.append(change(platform.lake, table, publication))
            publish_changes(platform, publication, "recompute", changes, Author(f"process {process}", "a race"))


@pytest.mark.proof
@pytest.mark.parametrize("begun", [pytest.param(0, id="new_tables"), pytest.param(1, id="tables_with_days")])
def test_four_engine_processes_at_once_lose_no_publication(tmp_path: Path, begun: int) -> None:
    """Four processes that import the engine, and publish over and over."""
    lake = Lake.at(tmp_path / "lake")
    if begun:
        publish(lake, staged_manifest(lake, {table: {day(-1): [("key", -1)]} for table in TABLES}))
    with open_platform(load_settings(state=tmp_path, lake=tmp_path / "lake")) as platform:
        sides = [in_process(publish_many, tmp_path / "lake", number, wait=False) for number in range(PROCESSES)]
        for side in sides:
            side.join(120)
        assert [side.exitcode for side in sides] == [0] * PROCESSES
        wanted = {day(n): [("key", n % EACH)] for n in range(PROCESSES * EACH)} | (
            {day(-1): [("key", -1)]} if begun else {}
        )
        for table in TABLES:
            assert contents(lake, table) == wanted
        platform.sync()
        indexed = platform.ledger.indexed()
        assert {number: name for name, number in indexed.items()} == dict(published(lake))
        days = {table: platform.ledger.current_days(table) for table in TABLES}
        rebuild(platform.lake, platform.ledger)
        assert platform.ledger.indexed() == indexed
        assert {table: platform.ledger.current_days(table) for table in TABLES} == days
