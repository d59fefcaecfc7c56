"""What a killed publication began is finished on demand, and told; again there is nothing to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_assets.lakehouse import publish as publishing
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.layout import Lake
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.commands import TABLE, Run
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.shelf import contents, day, publish_elsewhere, staged_manifest


@pytest.mark.parametrize("point", ["replace.after_commit", "release.after_commit"])
def test_a_dead_publication_is_finished_indexed_and_named(
    run: Run, published: Settings, tmp_path: Path, point: str
) -> None:
    lake = Lake.at(published.lake)
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
    lake = Lake.at(published.lake)
    dying = staged_manifest(lake, {TABLE: {day(2): [("x", 1)]}})
    publish_elsewhere(lake, dying, tmp_path, "replace.after_commit")
    torn = commits.commit_file(lake.table_path(TABLE), 2)
    on_disk(torn).write_bytes(on_disk(torn).read_bytes()[:40])
    done = run("recover", "--json").json
    assert done == {"release": 1, "done": [f"Removed the torn commit 2 of {TABLE}."], "indexed": {}, "mended": []}


def test_what_cannot_be_finished_is_undone_where_a_person_says_so(
    run: Run, published: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody died half-way who had lost the lock, and was to publish on a release that others went beyond."""
    lake = Lake.at(published.lake)
    shown = contents(lake, TABLE)
    dying = staged_manifest(lake, {TABLE: {day(2): [("x", 1)]}, "gold.new": {day(2): [("y", 2)]}})
    dying = dying.model_copy(update={"on_release": 1})
    publish_elsewhere(lake, dying, tmp_path, "publish.before_release")
    with monkeypatch.context() as lost:
        lost.setattr(publishing, "finish_pending", lambda *_: None)  # it had looked before the other one began
        publishing.publish(lake, staged_manifest(lake, {"gold.other": {day(0): [("z", 3)]}}))
    refused = run("recover")
    assert refused.code == 3
    assert f"ahead of release 2, by publications {dying.publication}" in refused.err
    assert "platform-assets recover --undo" in " ".join(refused.err.split())
    assert run("recover", "--undo").code == 2, "a decision needs a reason"

    said = run("recover", "--undo", "--reason", "the file server was restarted")
    assert (said.code, said.err) == (0, "")
    assert run("audit", "decisions", "--json").json[0]["decision"]["kind"] == "recovery"
    assert f"Undid {dying.publication} in {TABLE}, which no release shows." in said.out
    assert contents(lake, TABLE) == shown
    assert contents(lake, "gold.other") == {day(0): [("z", 3)]}
    assert run("recover").out == "Nothing to recover: release 3 shows all that was begun.\n"
    assert publishing.publish(lake, staged_manifest(lake, {TABLE: {day(2): [("x", 2)]}})) == 4


def test_where_nothing_was_published_there_is_nothing_to_recover(run: Run) -> None:
    assert run("recover").out == "Nothing to recover: nothing was published yet.\n"
