"""What a killed publication began is finished on demand, and told; again there is nothing to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_assets.lakehouse import commits
from platform_assets.lakehouse.lake import Lake
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.commands import TABLE, Run
from platform_assets_tests.support.shelf import contents, day, publish_elsewhere, staged_manifest


@pytest.mark.parametrize("point", ["replace.after_commit", "release.after_commit"])
def test_a_dead_publication_is_finished_indexed_and_named(
    run: Run, published: Settings, tmp_path: Path, point: str
) -> None:
    lake = Lake(published.lake)
    dying = staged_manifest(lake, {TABLE: {day(2): [("x", 1)]}, "gold.other": {day(2): [("y", 2)]}})
    publish_elsewhere(lake, dying, tmp_path, point)
    said = run("recover")
    assert (said.code, said.err) == (0, "")
    if point == "replace.after_commit":
        assert f"Finished publication {dying.publication} as release 2." in said.out
    assert f"The ledger is up to date; it lacked {dying.publication} (release 2)." in said.out
    assert contents(lake, "gold.other") == {day(2): [("y", 2)]}
    assert run("recover").out == "Nothing to recover: release 2 shows all that was begun.\n"
    assert run("audit", "verify").code == 0


def test_programs_are_told_too(run: Run, published: Settings, tmp_path: Path) -> None:
    lake = Lake(published.lake)
    dying = staged_manifest(lake, {TABLE: {day(2): [("x", 1)]}})
    publish_elsewhere(lake, dying, tmp_path, "replace.after_commit")
    torn = commits.commit_file(lake.table_path(TABLE), 2)
    torn.write_bytes(torn.read_bytes()[:40])
    done = run("recover", "--json").json
    assert done == {"release": 1, "done": [f"Removed the torn commit 2 of {TABLE}."], "indexed": {}, "mended": []}


def test_where_nothing_was_published_there_is_nothing_to_recover(run: Run) -> None:
    assert run("recover").out == "Nothing to recover: nothing was published yet.\n"
