"""Maintenance from the command line, where nothing has to be compacted, so without Spark."""

from __future__ import annotations

import pytest

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.operations.maintenance import maintenance
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.commands import TABLE, Run
from platform_assets_tests.support.later import usage_later
from platform_assets_tests.support.shelf import age, contents, day, stage, staged_manifest


@pytest.fixture
def untidy(published: Settings) -> tuple[str, str]:
    """A day published twice, and a stage left behind; the names of the first publication and of the stage."""
    lake = Lake.at(published.lake)
    first = staged_manifest(lake, {TABLE: {day(2): [("x", 1)]}})
    publish(lake, first)
    publish(lake, staged_manifest(lake, {TABLE: {day(2): [("x", 2)]}}))
    left = stage(lake, TABLE, {day(0): [("y", 1)]})
    age(lake, TABLE)
    return first.publication, left


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rollback window has passed."""
    monkeypatch.setattr(maintenance, "usage", usage_later)


@pytest.mark.usefixtures("later")
def test_a_dry_run_shows_what_a_run_then_does(run: Run, published: Settings, untidy: tuple[str, str]) -> None:
    lake, (first, left) = Lake.at(published.lake), untidy
    before = contents(lake, TABLE)
    due = run("maintenance", "run", "--dry-run", "--json")
    assert due.code == 0, due.err
    assert [one["publication"] for one in due.json["stages"]] == [left]
    assert [one["publication"] for one in due.json["deletion"]] == [first]
    shown = run("maintenance", "run", "--dry-run").out
    assert "1 orphaned stage" in shown
    assert "Nothing was changed" in shown
    assert lake.stage_path(TABLE, first).exists()

    done = run("maintenance", "run", "--only", "stages", "--json").json
    assert (done["stages"], done["deletion"]) == (due.json["stages"], [])
    assert run("maintenance", "run", "--json").json["deletion"] == due.json["deletion"]
    assert not lake.stage_path(TABLE, first).exists()
    assert contents(lake, TABLE) == before
    assert run("maintenance", "run").out.startswith("Nothing to do: releases of the last 90 days")


def test_early_deletion_is_refused_by_name(run: Run, untidy: tuple[str, str]) -> None:
    first, left = untidy
    for name, code, says in (
        (first, 3, "Release 2, which is inside the rollback window until"),
        ("nothing", 3, "No table has files of a publication 'nothing'"),
    ):
        said = run("maintenance", "delete", name)
        assert said.code == code
        assert says in said.err
        assert "What to do" in said.err
    assert run("maintenance", "delete", left, "--dry-run", "--json").json["deleted"][0]["publication"] == left
    assert "1 orphaned stage" in run("maintenance", "delete", left).out
    assert run("maintenance", "delete", left).code == 3


def test_a_task_that_does_not_exist_is_a_mistake(run: Run, published: Settings) -> None:
    assert run("maintenance", "run", "--only", "vacuum").code == 2
