"""What is decided from the lake and the ledger is decided on one moment, also where the ledger is behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_assets.contracts import ContractError
from platform_assets.engine import publishing
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.results import StepResult
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.step import stage
from platform_assets.engine.step.compute import Computed
from platform_assets.operations.opening import open_platform
from platform_assets_tests.support.history import no_session
from platform_assets_tests.support.kills.paper import DAYS, RAW, SILVER, digest_of, put, settings
from platform_assets_tests.support.shelf import change, contents
from platform_assets_tests.support.shelf import stage as staged

OTHERS, MINE = [("others, newer", 20)], [("mine, older", 10)]


def publish_unindexed(other: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release whose publisher has died, or has yet to tell the ledger."""
    with monkeypatch.context() as dies:
        dies.setattr(publishing, "record", lambda *_: None)
        put(other, "others", {SILVER: {DAYS[0]: OTHERS}})


def with_one_day(platform: Platform) -> stage.Stage:
    """A stage in which a day of silver lies over what was released."""
    found = stage.Stage(platform, Author("mine", "a refresh"))
    with publishing.new_stage(platform, (SILVER,)) as (publication, _):
        staged(platform.lake, SILVER, {DAYS[0]: MINE}, publication)
        made = change(platform.lake, SILVER, publication)
        known = {"digest": digest_of(MINE), "fingerprint": "mine"}
        days = {day: content.model_copy(update=known) for day, content in made.days.items()}
        made = made.model_copy(update={"days": days, "reads": {RAW: 0}})
        found._add(Computed(publication, (made,), StepResult(SILVER, dict(days))))
    found.results[SILVER] = StepResult(SILVER)
    return found


def test_a_stage_does_not_overwrite_what_was_released_and_is_not_indexed_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_platform(settings(tmp_path)) as mine, open_platform(settings(tmp_path)) as other:
        put(mine, "delivery", {RAW: {day: [("r", 1)] for day in DAYS}})
        put(mine, "history", {SILVER: {day: [("old", 1)] for day in DAYS}})
        trial = with_one_day(mine)
        publish_unindexed(other, monkeypatch)
        # What was overtaken has to be computed again, for which there are no real rows here.
        with pytest.raises(ContractError, match=r"reads raw\.transactions, which is not yet as its contract says"):
            trial.publish(no_session)
        assert contents(mine.lake, SILVER)[DAYS[0]] == OTHERS


def test_days_are_known_by_what_the_release_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_platform(settings(tmp_path)) as mine, open_platform(settings(tmp_path)) as other:
        put(mine, "history", {SILVER: {day: [("old", 1)] for day in DAYS}})
        publish_unindexed(other, monkeypatch)
        snapshot = LakeSnapshot.now(mine)
        assert snapshot.number == 1
        assert snapshot.digests(SILVER)[DAYS[0]] == digest_of(OTHERS)
        assert snapshot.marks([SILVER])[SILVER][DAYS[0]].release == 1
