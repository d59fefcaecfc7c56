"""The demo starts over only where all there is is its own, and never writes over somebody's settings."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from platform_assets.cli.commands import demo as demo_command
from platform_assets.cli.commands.demo import begin_demo, is_half_removed, remove_demo, set_clock
from platform_assets.domains.retail.sample import Simulation, land
from platform_assets.engine.platform import lake_to_write
from platform_assets.lakehouse.layout import Lake, located
from platform_assets.lakehouse.publish import publish
from platform_assets.operations.opening import open_platform
from platform_assets.progress import no_progress
from platform_assets.records.manifest import Arrival, Manifest
from platform_assets.settings import load_settings
from platform_assets_tests.support.cli.commands import FIRST, LAST, TABLE
from platform_assets_tests.support.object_store import ObjectStore
from platform_assets_tests.support.shelf import staged_manifest

FAILED, USAGE = 3, 2
DELIVERED = datetime(2017, 1, 1, 6, tzinfo=UTC)
"""When the sample says that its files of the first day were last changed."""
OWN = "batch_days = 30\ncalendar_last = 2017-01-31\n"


@pytest.fixture(autouse=True)
def _no_computing(state, monkeypatch):
    """What is asked here is decided before anything is landed or computed."""
    for name in ("CALENDAR_LAST", "TODAY"):
        monkeypatch.delenv(f"PLATFORM_{name}")

    def computed(*args):
        raise AssertionError("the demo went on")

    monkeypatch.setattr(demo_command, "_phase", computed)
    monkeypatch.setattr(demo_command, "computing", lambda *args, **kwargs: nullcontext((None, no_progress)))


@pytest.fixture
def earlier(state: Path) -> Path:
    """What a demo of three days leaves, without its lake's tables."""
    settings = load_settings()
    begin_demo(settings)
    settings = set_clock(settings, LAST, LAST)
    land(Simulation(seed=1, first=FIRST, days=3), settings.landing_folder, FIRST)
    publish(Lake.at(settings.lake), manifest_of_arrivals("transactions/2017-01-01/tills-2.csv"))
    with open_platform(settings):
        return state


def manifest_of_arrivals(path: str, modified: datetime = DELIVERED) -> Manifest:
    """A publication for which one file was taken."""
    manifest = staged_manifest(Lake.at(load_settings().lake), {TABLE: {FIRST: [("a", 1)]}})
    moment = int(modified.timestamp()) * 1_000_000_000
    arrival = Arrival(
        table="raw.transactions", path=path, arrival_date=FIRST, size=1, sha256="0" * 64, modified_ns=moment
    )
    return manifest.model_copy(update={"arrivals": (arrival,)})


def files(folder: Path) -> dict[Path, bytes]:
    return {
        path: path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix[-4:] not in ("-wal", "-shm")
    }


def refused(run, folder: Path, *command: str, code: int = FAILED) -> str:
    """What a demo says that is refused, with everything as it was."""
    before = files(folder)  # but for what SQLite keeps beside a ledger that is looked at
    said = run("demo", *command)
    assert said.code == code, said
    assert "What to do:" in said.err
    assert files(folder) == before
    return str(said.error)


@pytest.mark.parametrize("name", ["PLATFORM_CALENDAR_LAST", "PLATFORM_TODAY"])
def test_a_clock_that_is_set_from_outside_is_refused_before_any_work(run, state, monkeypatch, name):
    monkeypatch.setenv(name, "2017-01-03")
    assert f"{name} is set, and the demo keeps a calendar of its own" in refused(run, state, code=USAGE)


@pytest.mark.parametrize("command", [["--fresh"], ["--days", "3"]])
def test_settings_of_somebody_are_neither_removed_nor_replaced(run, earlier, command):
    (earlier / "settings.toml").write_text(OWN)
    said = refused(run, earlier, *command)
    assert f"{earlier / 'settings.toml'} was not written by a demo" in said
    assert "PLATFORM_STATE=" in said


@pytest.mark.parametrize("name", ["LANDING", "LAKE", "LEDGER_URL"])
def test_what_lies_outside_the_state_is_not_removed(run, earlier, monkeypatch, tmp_path, name):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setenv(f"PLATFORM_{name}", f"sqlite:///{elsewhere}/l.db" if name == "LEDGER_URL" else str(elsewhere))
    assert f"{elsewhere}" in (said := refused(run, tmp_path, "--fresh"))
    assert "is outside the state folder" in said


def test_arguments_are_looked_at_before_anything_is_removed(run, earlier, monkeypatch):
    monkeypatch.setenv("PLATFORM_CALENDAR_FIRST", "2016-12-01")
    assert "The source has sales from" in refused(run, earlier, "--fresh", "--days", "10")


def test_a_folder_with_files_of_somebody_is_no_place_for_a_demo(run, state):
    file = state / "landing" / "transactions" / "2017-01-01" / "mine.csv"
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    assert "was not put there by a demo" in refused(run, state)


def test_an_earlier_demo_is_removed_with_all_that_was_delivered_to_it_and_no_more(earlier, run, tmp_path):
    (earlier / "notes.txt").write_text("mine")
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (elsewhere / "mine.csv").write_text("mine")
    (earlier / "landing" / "link").symlink_to(elsewhere)
    with pytest.raises(AssertionError, match="went on"):
        run("demo", "--fresh")
    assert names(earlier) == [".demo.json", "notes.txt", "settings.toml"]
    assert names(elsewhere) == ["mine.csv"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_settings_as_a_demo_writes_them_do_not_make_an_installation_a_demo(run, earlier):
    (earlier / ".demo.json").unlink()
    for command in ([], ["--fresh"]):
        assert "No demo marked" in refused(run, earlier, *command, "--days", "3")


def test_a_removal_that_is_killed_anywhere_is_finished_by_the_next_demo(earlier, tmp_path):
    shutil.copytree(earlier, whole := tmp_path / "whole")
    for kills in itertools.count():
        shutil.rmtree(earlier)
        shutil.copytree(whole, earlier)
        if killed := _dies_at_step(kills, lambda: remove_demo(load_settings())):
            there = {path.relative_to(earlier) for path in files(earlier)}
            assert is_half_removed(load_settings()) or there >= {path.relative_to(whole) for path in files(whole)}
            remove_demo(load_settings())
        assert names(earlier) == []
        if not killed:
            break
    assert kills > 30, "once for each file and folder"


def test_a_demo_that_is_killed_while_it_begins_begins_the_next_time(state):
    for kills in itertools.count():
        killed = _dies_at_step(kills, lambda: begin_demo(load_settings()))
        begin_demo(load_settings())
        assert ".demo.json" in names(state)
        shutil.rmtree(state)
        if not killed:
            break
    assert kills >= 2


class KilledError(BaseException):
    """Stands for a kill: nobody catches it, so nothing that comes after it is done."""


def _dies_at_step(number: int, work: Callable[[], None]) -> bool:
    """Whether work is killed before it changes the disk for this time."""
    left = itertools.count(number, -1)

    def mortal(change: Callable[..., None]) -> Callable[..., None]:
        def dies(*args, **options):
            if next(left) == 0:
                raise KilledError
            return change(*args, **options)

        return dies

    with pytest.MonkeyPatch.context() as patched:
        for name in ("rename", "replace", "unlink", "rmdir", "mkdir"):
            patched.setattr(os, name, mortal(getattr(os, name)))
        try:
            work()
        except KilledError:
            return True
    return False


@pytest.fixture
def bucket(object_store: ObjectStore, state: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the lake of an installation lies that has nothing yet."""
    lake = f"{object_store.url}/{uuid4().hex}/lake"
    monkeypatch.setenv("PLATFORM_LAKE", lake)
    return lake


def test_a_demo_with_its_lake_in_a_bucket_knows_it_again_and_does_not_remove_it(run, bucket, state):
    begin_demo(load_settings())
    set_clock(load_settings(), LAST, LAST)
    publish(lake_to_write(load_settings()), manifest_of_arrivals("transactions/2017-01-01/tills-2.csv"))
    with pytest.raises(AssertionError, match="went on"):
        run("demo", "--days", "3")
    held = located(bucket).files()
    assert f"{bucket} is outside the state folder" in refused(run, state, "--fresh")
    assert located(bucket).files() == held


def test_another_number_of_days_is_refused_until_the_earlier_demo_is_removed(run, earlier):
    assert "holds a demo of 3 days" in refused(run, earlier, "--days", "4", code=USAGE)
