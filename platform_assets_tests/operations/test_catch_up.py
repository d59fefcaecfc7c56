"""Lake or ledger restored older than the other: refused by name or mended, and nothing is lost that can be told."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest

from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.layout import Lake
from platform_assets.ledger.database import copy_ledger
from platform_assets.ledger.ledger import Ledger
from platform_assets.ledger.sync import rebuild
from platform_assets.operations.audit import audit_installation
from platform_assets.operations.audit_logs import Scope
from platform_assets.operations.backup_copy import copy_lake
from platform_assets.operations.opening import held_again, open_platform
from platform_assets.operations.rollback import rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.records.decisions import LateDecision
from platform_assets.records.history import ROLL_BACK
from platform_assets.settings import Settings, load_settings
from platform_assets_tests.support import days_on_paper as readings
from platform_assets_tests.support.history import History, Version, person, two_lines_a_day
from platform_assets_tests.support.ledger_records import approval
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.shelf import in_process, killed

SILVER, DAY = "silver.transactions", date(2017, 1, 3)


@pytest.fixture
def story(prepared: Prepared) -> History:
    return prepared(two_lines_a_day)


def back_up(settings: Settings, folder: Path) -> None:
    assert copy_ledger(settings.ledger_url.get_secret_value(), folder / "ledger.db")
    copy_lake(Lake.at(settings.lake), Lake.at(folder / "lake"), lambda *_: None)


def restore_ledger(settings: Settings, folder: Path | None = None) -> None:
    for file in settings.state.glob("ledger.db*"):
        file.unlink()
    if folder is not None:
        shutil.copy(folder / "ledger.db", settings.state / "ledger.db")


def correct(story: History, day: int = 3) -> None:
    story.deliver("2017-01-05", f"more{day}.jsonl", Version(90 + day, day, 1, "9.00"))
    story.refresh()


def rolled_back(state: Path, copy: Path) -> Settings:
    """An installation on paper whose ledger was copied before a correction was rolled back, and restored since."""
    with readings.opened(state) as platform:
        readings.publish_all(platform)
        bad = readings.correct(platform)
        copy.mkdir()
        assert copy_ledger(platform.settings.ledger_url.get_secret_value(), copy / "ledger.db")
        readings.put_back(platform, bad)
        assert readings.taken(platform) == {}, "with the ledger that was there"
        restore_ledger(platform.settings, copy)
        return platform.settings


def is_undone_by_a_tick(state: Path) -> bool:
    with readings.opened(state) as platform:
        return readings.taken(platform) != {}


def noticed(settings: Settings) -> list[str]:
    said: list[str] = []
    with open_platform(settings, said.append):
        return said


def state_of(platform: Platform) -> object:
    return platform.ledger.indexed(), platform.ledger.holds(), platform.ledger.decisions(LateDecision)


@pytest.mark.proof
def test_a_backup_of_both_put_elsewhere_is_the_installation_it_was(story: History, tmp_path: Path) -> None:
    with story.world.open() as platform:
        platform.ledger.decide(approval())
        before = state_of(platform)
    digests = story.world.digests()
    back_up(story.world.settings, tmp_path / "backup")
    correct(story)
    later = story.world.digests()

    shutil.rmtree(story.world.settings.lake)
    elsewhere = load_settings(
        **{
            **story.world.settings.model_dump(exclude={"ledger_url"}),
            "state": tmp_path / "moved",
            "lake": tmp_path / "moved" / "the lake",
        }
    )
    shutil.copytree(tmp_path / "backup" / "lake", elsewhere.lake)
    shutil.copy(tmp_path / "backup" / "ledger.db", elsewhere.state / "ledger.db")
    moved = History(**{**vars(story), "world": type(story.world)(elsewhere, story.world.spark)})
    with moved.world.open() as platform:
        assert state_of(platform) == before
    assert moved.world.digests() == digests
    assert audit_installation(elsewhere, Scope(every_release=True), lambda *_: None).findings.faults == []
    # What was delivered since is still in the landing area, and is taken again.
    moved.world.refresh()
    assert moved.world.digests() == later


@pytest.mark.parametrize(
    "ledger", ["lost", *(pytest.param(each, marks=pytest.mark.proof) for each in ("older", "rebuilt"))]
)
def test_a_ledger_older_than_its_lake_catches_up_and_keeps_what_was_rolled_back(
    story: History, tmp_path: Path, ledger: str
) -> None:
    settings = story.world.settings
    good = story.world.digests()[SILVER]
    back_up(settings, tmp_path)
    correct(story)
    with story.world.open() as platform:
        bad = platform.ledger.current_days(SILVER)[DAY].publication
        rollback(platform, chosen_publications(platform, bad), person("a wrong till"))
    restore_ledger(settings, tmp_path if ledger == "older" else None)
    if ledger == "rebuilt":
        with Ledger.open(settings.ledger_url.get_secret_value()) as opened:
            said = list(held_again(opened, rebuild(Lake.at(settings.lake), opened).added))
    else:
        said = noticed(settings)
        assert "The ledger lacked releases" in said[0]
    assert "Held again, as Zoë had rolled back: 1 day of silver.transactions; a wrong till." in said
    assert noticed(settings) == []
    with story.world.open() as platform:
        [hold] = platform.ledger.holds()
        assert (hold.table, hold.day, hold.gate) == (SILVER, DAY, ROLL_BACK)
        assert len(platform.ledger.notes.catch_ups()) == (ledger != "rebuilt")
    assert SILVER not in story.refresh(), "no tick undoes the rollback"
    assert story.world.digests()[SILVER] == good


def test_a_process_that_died_before_it_indexed_is_nothing_to_speak_of(story: History) -> None:
    with story.world.open() as platform:
        newest = list(platform.ledger.indexed())[-1]
        platform.ledger.reindex([newest], ())
    assert noticed(story.world.settings) == []


@pytest.mark.parametrize("point", ["ledger.holding", "ledger.recording", "ledger.behind"])
def test_killed_while_it_catches_up_it_catches_up_the_next_time(tmp_path: Path, point: str) -> None:
    settings = rolled_back(tmp_path / "state", tmp_path / "copy")
    assert killed(in_process(noticed, settings, failpoint=point))
    assert not is_undone_by_a_tick(tmp_path / "state")


def test_everything_that_a_cascade_rolled_back_is_held_again(tmp_path: Path) -> None:
    """A correction is rolled back; then what the day was before, too. The ledger is lost."""
    with readings.opened(tmp_path / "state") as platform:
        readings.publish_all(platform)
        readings.put_back(platform, readings.correct(platform))
        first = platform.ledger.history(readings.SILVER, readings.DAY)[-1].publication
        readings.put_back(platform, first, days={readings.DAY})
        assert readings.digest(platform) == "", "as if it had never been computed"
        assert readings.taken(platform) == {}, "with the ledger that was there"
        held = platform.ledger.holds()
    restore_ledger(platform.settings)
    with readings.opened(tmp_path / "state") as platform:
        assert platform.ledger.holds() == held
        assert readings.taken(platform) == {}, "nor the correction that was rolled back first"
