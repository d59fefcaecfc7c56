"""A lake that is not where it was is named with the repair, and nothing is written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import platform_assets
from platform_assets.lakehouse.errors import DamagedTableError, MovedLakeError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.operations.opening import open_platform
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.commands import TABLE, Run
from platform_assets_tests.support.shelf import day, staged_manifest

COMMANDS = (["releases"], ["release", "show", "0"], ["status"], ["refresh"], ["release", "pin", "0", "--reason", "x"])
READERS = (["read", TABLE], ["read", TABLE, "--release", "0"], ["views"])


def indexed(settings: Settings) -> dict[str, int]:
    with open_platform(settings) as platform:
        return platform.ledger.indexed()


@pytest.mark.parametrize("empty", [False, True])
def test_a_lake_that_is_gone_is_named_and_found_again_elsewhere(
    run: Run, published: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty: bool
) -> None:
    before, moved = indexed(published), tmp_path / "moved here"
    shutil.move(published.lake_folder, moved)
    if empty:
        published.lake_folder.mkdir()
    for command in (*COMMANDS, *READERS):
        said = run(*command)
        assert said.code == 3, command
        assert f"up to 1 (publication {max(before)}), and the lake {published.lake_folder} has no release" in said.err
        assert "name its folder in PLATFORM_LAKE" in said.err
    with pytest.raises(MovedLakeError, match="PLATFORM_LAKE"):
        platform_assets.read(TABLE)
    assert run("doctor").code == 1
    assert "PLATFORM_LAKE" in run("doctor", "--json").out
    assert list(published.lake_folder.rglob("*")) == []
    assert published.lake_folder.exists() == empty

    monkeypatch.setenv("PLATFORM_LAKE", str(moved))
    assert platform_assets.read(TABLE).num_rows == 3
    assert [one["release"] for one in run("releases", "--json").json] == [1, 0]


def test_another_lake_in_its_place_is_named_and_taken_only_if_asked_for(run: Run, published: Settings) -> None:
    before = indexed(published)
    shutil.rmtree(published.lake_folder)
    lake = Lake.at(published.lake_folder)
    publish(lake, staged_manifest(lake, {TABLE: {day(0): [("other", 1)]}}))
    for command in COMMANDS:
        said = run(*command)
        assert said.code == 3, command
        assert "none of these releases but others" in said.err
    assert run("ledger", "rebuild").code == 0
    assert len(indexed(published)) == 1
    assert not indexed(published).keys() & before.keys()


def test_a_lake_copied_without_a_table_or_its_files_says_which(run: Run, published: Settings) -> None:
    shutil.rmtree(published.lake_folder / "gold" / "daily_sales" / "_delta_log")
    said = run("read", TABLE)
    assert said.code == 3
    assert f"{TABLE} has no version 1" in said.err
    with pytest.raises(DamagedTableError, match="restore the table from a backup"):
        platform_assets.read(TABLE, engine="duckdb")


def test_a_lake_that_cannot_lie_where_it_is_named_is_told_by_the_doctor_too(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLATFORM_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PLATFORM_LAKE", str(tmp_path / "lake [1]"))
    [found] = [each for each in run("doctor", "--json").json if each["name"] == "Lake"]
    assert not found["ok"]
    assert "cannot lie in" in found["message"]
