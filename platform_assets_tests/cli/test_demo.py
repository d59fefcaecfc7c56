"""The demo starts over only where all there is is its own, and never writes over somebody's settings."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import date
from pathlib import Path

import pytest

from platform_assets.cli.commands import demo as demo_command
from platform_assets.cli.commands.demo_state import set_clock
from platform_assets.cli.commands.summary import day_to_look_at, print_summary
from platform_assets.domains.retail.sample import Simulation, land
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.operations.opening import open_platform
from platform_assets.settings import load_settings
from platform_assets_tests.support.cli.commands import FIRST, LAST, TABLE
from platform_assets_tests.support.shelf import staged_manifest

FAILED, USAGE = 3, 2
OWN = "batch_days = 30\ncalendar_last = 2017-01-31\n"


@pytest.fixture(autouse=True)
def _no_computing(monkeypatch):
    """What is asked here is decided before anything is landed or computed."""

    def computed(*args):
        raise AssertionError("the demo went on")

    monkeypatch.setattr(demo_command, "_phase", computed)
    monkeypatch.setattr(demo_command, "session_on_demand", lambda *args, **kwargs: nullcontext())


@pytest.fixture
def earlier(state: Path) -> Path:
    """What a demo of three days leaves, without its lake's tables."""
    settings = load_settings()
    set_clock(settings, LAST, LAST)
    land(Simulation(seed=1, first=FIRST, days=3), settings.landing, date(2017, 1, 2))
    for folder in ("lake/_releases", "lake/gold/daily_sales", "dagster"):
        (state / folder).mkdir(parents=True)
    (state / "ledger.db").write_text("")
    return state


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def refused(run, folder: Path, *command: str, code: int = FAILED) -> str:
    """What a demo says that is refused, with everything as it was."""
    before = files(folder)
    said = run("demo", *command)
    assert said.code == code, said
    assert "What to do:" in said.err
    assert files(folder) == before
    return " ".join(said.err.split())


@pytest.mark.parametrize("command", [["--fresh"], [], ["--days", "3"], ["--days", "31"], ["--days", "31", "--fresh"]])
def test_settings_of_somebody_are_neither_removed_nor_replaced(run, earlier, command):
    (earlier / "settings.toml").write_text(OWN)
    said = refused(run, earlier, *command)
    assert f"{earlier / 'settings.toml'} is not as a demo writes it" in said
    assert "PLATFORM_STATE=" in said


def test_settings_that_somebody_added_to_are_their_own(run, earlier):
    with (earlier / "settings.toml").open("a") as file:
        file.write("batch_days = 30\n")
    assert "is not as a demo writes it" in refused(run, earlier, "--fresh", "--days", "3")


@pytest.mark.parametrize(
    "path",
    ["landing/tills/2017-01-01/a.csv", "landing/transactions/2017-01-01/mine.csv", "lake/gold/my_table/part.parquet"],
)
def test_a_state_with_anything_else_in_it_is_refused_by_name(run, earlier, path):
    file = earlier / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("mine")
    said = refused(run, earlier, "--fresh")
    assert "was not put there by a demo" in said
    assert str(file if "transactions" in path else file.parents[path.startswith("landing")]) in said


@pytest.mark.parametrize("name", ["LANDING", "LAKE", "LEDGER_URL"])
def test_what_lies_outside_the_state_is_not_removed(run, earlier, monkeypatch, tmp_path, name):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setenv(f"PLATFORM_{name}", f"sqlite:///{elsewhere}/l.db" if name == "LEDGER_URL" else str(elsewhere))
    assert f"{elsewhere}" in (said := refused(run, tmp_path, "--fresh"))
    assert "lies outside the state folder" in said


def test_a_landing_folder_that_is_a_link_to_elsewhere_is_not_removed(run, earlier, tmp_path):
    (earlier / "landing").rename(tmp_path / "elsewhere")
    (earlier / "landing").symlink_to(tmp_path / "elsewhere")
    assert "lies outside the state folder" in refused(run, tmp_path, "--fresh")


def test_arguments_are_looked_at_before_anything_is_removed(run, earlier, monkeypatch):
    monkeypatch.setenv("PLATFORM_CALENDAR_FIRST", "2016-12-01")
    assert "The source has sales from" in refused(run, earlier, "--fresh", "--days", "10")


def test_a_folder_with_files_of_somebody_is_no_place_for_a_demo(run, state):
    file = state / "landing" / "transactions" / "2017-01-01" / "mine.csv"
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    assert "was not put there by a demo" in refused(run, state)


def test_an_earlier_demo_is_removed_and_no_more(earlier, run):
    (earlier / "notes.txt").write_text("mine")
    with pytest.raises(AssertionError, match="went on"):
        run("demo", "--fresh")
    assert sorted(path.name for path in earlier.iterdir()) == ["notes.txt", "settings.toml"], "the clock of the new one"


@pytest.mark.parametrize(("days", "named"), [([2], "2017-01-02"), ([1, 3], "2017-01-03"), ([], None)])
def test_the_panel_names_a_day_that_is_there(state, monkeypatch, capsys, days, named):
    monkeypatch.setenv("COLUMNS", "200")
    settings = load_settings()
    lake = Lake.at(settings.lake)
    if days:
        rows = {date(2017, 1, number): [("a", 1)] for number in days}
        publish(lake, staged_manifest(lake, {TABLE: rows}))
    with open_platform(settings) as platform:
        day = day_to_look_at(platform)
    print_summary([], [], 1.0, day)
    shown = capsys.readouterr().out
    assert str(day) == str(named)
    assert (f"read {TABLE} --day {named}" in shown) == (f"why {TABLE} {named}" in shown) == bool(days)
    assert "None" not in shown


def test_another_number_of_days_is_refused_until_the_earlier_demo_is_removed(run, earlier):
    assert "holds a demo of 3 days" in refused(run, earlier, "--days", "4", code=USAGE)
