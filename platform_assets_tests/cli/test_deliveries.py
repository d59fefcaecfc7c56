"""withdraw, late and reload: what was delivered is taken out, decided about, or taken anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from platform_assets.failpoints import VARIABLE
from platform_assets.operations.opening import open_platform
from platform_assets.records.manifest import Arrival
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.commands import PROBE, TABLE, Run, run, state
from platform_assets_tests.support.cli.products import DAY, RAW, SILVER, compute, deliver, publish_arrivals
from platform_assets_tests.support.history import GOODS
from platform_assets_tests.support.prepared import Lakes
from platform_assets_tests.support.world import World, product

__all__ = ["run", "state"]
"""Fixtures."""


FOLDER = f"products/{DAY}"
ODD = "a[1]*.csv"


def came(name: str, reason: str | None = None) -> Arrival:
    """A file without rows, so that nothing has to be computed to take it out."""
    return Arrival(table=RAW, path=name, arrival_date=DAY, size=1, sha256="0" * 64, modified_ns=1, reason=reason)


@pytest.fixture
def files(products: Settings) -> Settings:
    names = (f"{FOLDER}/a.csv", f"{FOLDER}/b.csv", f"{FOLDER}/{ODD}", f"{FOLDER}/c.jsonl", "products/2017-01-03/a.csv")
    with open_platform(products) as platform:
        publish_arrivals(platform, RAW, *map(came, names), came(f"{FOLDER}/broken.csv", "is empty"))
    return products


def withdrawals(settings: Settings) -> dict[str, str]:
    """What was withdrawn, and by which publication."""
    with open_platform(settings) as platform:
        arrivals = platform.ledger.arrivals(RAW)
    return {arrival.origin or "": arrival.publication for arrival in arrivals if arrival.kind == "withdrawal"}


def test_several_arrivals_are_taken_out_by_one_publication(run: Run, files: Settings) -> None:
    said = run(
        "undo",
        f"arrival:{FOLDER}/a.csv",
        "arrival:products/2017-01-03/a.csv",
        f"arrival:{FOLDER}/a.csv",
        "--reason",
        "bad",
    )
    assert said.code == 0, said.err
    assert "0 rows of 2 arrivals taken out of raw.products; 0 days changed." in said.out
    gone = withdrawals(files)
    assert gone.keys() == {f"{FOLDER}/a.csv", "products/2017-01-03/a.csv"}
    assert len(set(gone.values())) == 1


def test_a_dry_run_names_the_days_that_change_and_those_that_are_stale_through_them(
    run: Run, products: Settings
) -> None:
    path = f"{FOLDER}/a.csv"
    deliver(products, DAY, 5, path, [came(path).model_copy(update={"landed": 5, "taken": 5})])
    compute(products)
    [would] = run("undo", f"arrival:{path}", "--dry-run", "--json").json
    assert (would["days"], would["stale"]) == ([str(DAY)], {SILVER: [str(DAY)]})
    said = run("undo", f"arrival:{path}", "--dry-run").out
    changes, stale = said[said.index("Days that it changes") :].split("Stale through it, at most")
    assert f"{RAW}     1  {DAY}" in changes
    assert f"{SILVER}     1  {DAY}" in stale
    assert "Nothing was changed: this was a dry run." in stale
    assert withdrawals(products) == {}


def test_a_pattern_is_of_files_of_one_folder_that_count(run: Run, files: Settings) -> None:
    would = run("undo", f"arrival:{FOLDER}/*.csv", "--dry-run", "--json").json
    assert would == [
        {
            "table": RAW,
            "arrivals": [f"{FOLDER}/{name}" for name in sorted(("a.csv", "b.csv", ODD))],
            "rows": 0,
            "days": [],
            "stale": {},
        }
    ]
    assert withdrawals(files) == {}
    assert run("undo", f"arrival:{FOLDER}/*.csv", "--reason", "bad").code == 0
    assert withdrawals(files).keys() == {f"{FOLDER}/{name}" for name in ("a.csv", "b.csv", ODD)}
    again = run("undo", f"arrival:{FOLDER}/*.csv", "--reason", "bad")
    assert again.code == 3
    assert "No ingested file matches" in again.err


def test_a_name_that_is_on_record_is_no_pattern(run: Run, files: Settings) -> None:
    [would] = run("undo", f"arrival:{FOLDER}/{ODD}", "--dry-run", "--json").json
    assert would["arrivals"] == [f"{FOLDER}/{ODD}"]


@pytest.mark.parametrize("pattern", ["*", "*/*/*", "prod*/2017-01-02/*", "../products/*/*", "/products/*/*"])
def test_a_pattern_reaches_no_further_than_the_folder_of_a_table(run: Run, files: Settings, pattern: str) -> None:
    said = run("undo", f"arrival:{pattern}", "--reason", "bad")
    assert said.code == 3
    assert "is not of the files of one table" in said.err
    assert "products/" in said.err
    assert withdrawals(files) == {}


def test_nothing_is_withdrawn_where_one_of_the_names_is_wrong(run: Run, files: Settings) -> None:
    for wrong in ("nothing.csv", "broken.csv", "*.parquet"):
        assert run("undo", f"arrival:{FOLDER}/a.csv", f"arrival:{FOLDER}/{wrong}", "--reason", "bad").code == 3
    assert withdrawals(files) == {}


DECIDED = ("--reason", "a slip of the pen", "--by", "Zoë")


def late_and_ahead(lakes: Lakes) -> World:
    """One row a year late, one a year ahead, and one of the day after tomorrow, which the contract takes."""
    world = lakes.new(days=3, calendar_last=None, domains=GOODS)
    rows = [product(number, day, "MEAT") for number, day in enumerate(("2016-01-03", "2017-01-05", "2018-01-03"))]
    world.deliver_rows("products", "2017-01-03", "p.jsonl", rows)
    world.refresh()
    return world


@pytest.fixture
def world(state: Path, lakes: Lakes, monkeypatch: pytest.MonkeyPatch) -> World:
    """The installation that commands see, on the 3rd of January."""
    for name, value in {"CALENDAR_LAST": "", "TODAY": "2017-01-03", "DOMAINS": GOODS}.items():
        monkeypatch.setenv(f"PLATFORM_{name}", value)
    monkeypatch.setenv("COLUMNS", "250")
    return lakes.copy(state, late_and_ahead)


@pytest.mark.usefixtures("world")
def test_rows_are_listed_with_how_late_or_how_far_ahead_they_came(run: Run) -> None:
    shown = run("status", "late").out
    assert "366 days late" in shown
    assert "365 days ahead" in shown
    assert "1 row waits: late approve" in shown
    assert "1 row waits till the day comes" in shown
    states = {row["day"]: (row["state"], row["days_late"]) for row in run("status", "late", "--json").json}
    assert states == {"2016-01-03": ("waiting", 366), "2018-01-03": ("ahead", -365)}


@pytest.mark.usefixtures("world")
def test_status_says_what_waits_for_whom_and_what_lies_outside_the_calendar(run: Run) -> None:
    shown = run("status").out
    assert "1 row waits for a decision" in shown
    assert "1 row waits for the day to come" in shown
    assert "raw.products has rows of 1 day that the calendar does not have, 2017-01-05" in shown


@pytest.mark.usefixtures("world")
def test_a_plan_names_the_days_that_have_come_and_a_person_keeps_their_rows_out(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "far ahead" not in run("refresh", "--explain").out
    monkeypatch.setenv("PLATFORM_TODAY", "2018-01-03")
    due = "1 day with rows that arrived far ahead (2018-01-03) to take first, since their day has come"
    assert due in run("refresh", "--explain").out
    monkeypatch.setenv("PLATFORM_TODAY", "2017-01-03")
    refused = run("late", "refuse", "raw.products", "--days", "2018-01-03", *DECIDED)
    assert refused.code == 0, refused.err
    monkeypatch.setenv("PLATFORM_TODAY", "2018-01-03")
    assert "far ahead" not in run("refresh", "--explain").out


SALES = "raw.transactions"


@pytest.mark.usefixtures("published")
def test_a_dry_run_shows_and_a_reload_does(run: Run) -> None:
    before = run("admin", "reload", SALES, "--dry-run")
    assert before.code == 0, before.err
    assert TABLE in before.out
    assert "release 1 would still show them. Nothing was changed" in before.out
    assert run("status", "releases", "--json").json[0]["release"] == 1
    done = run("admin", "reload", SALES, "--reason", "the week [/b] was misspelt", "--by", "Zoë", "--json")
    assert done.code == 0, done.err
    assert done.json["days"] == {TABLE: ["2017-01-01", "2017-01-02"]}
    assert (done.json["before"], done.json["release"], done.json["taken"]) == (1, 2, {"arrivals": [], "days": []})
    [newest, *_] = run("status", "releases", "--json").json
    assert (newest["kind"], newest["who"], newest["why"]) == ("reload", "Zoë", "the week [/b] was misspelt")
    assert "reload" in run("status", "releases", "current").out
    assert "reload" in run("why", "--history", TABLE, "2017-01-01").out
    assert run("read", TABLE, "--json").json["rows"] == []
    assert "lacks the column" not in run("status").out


@pytest.mark.usefixtures("published")
@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        ([TABLE, "--dry-run"], 3, f"refresh {TABLE} --force"),
        (["raw.transaction", "--dry-run"], 2, SALES),
        (["raw.products", "--dry-run"], 3, "Nothing was ingested for raw.products yet"),
    ],
)
def test_what_cannot_be_reloaded_is_told(run: Run, args: list[str], code: int, says: str) -> None:
    said = run("admin", "reload", *args)
    assert (said.code, says in said.err) == (code, True), said.err


@pytest.mark.proof
@pytest.mark.usefixtures("published")
@pytest.mark.parametrize(
    "point",
    ["publish.written", "publish.checked", "replace.after_commit", "publish.after_table", "ledger.before_record"],
)
def test_killed_anywhere_it_is_done_whole_or_not_at_all(run: Run, point: str) -> None:
    """Five processes that die, each in an installation of its own."""
    command = [
        sys.executable,
        "-c",
        PROBE,
        "reload",
        SALES,
        "--reason",
        "the week was misspelt",
        "--by",
        "zoe",
    ]
    died = subprocess.run(command, env=os.environ | {VARIABLE: point}, capture_output=True, text=True, timeout=120)
    assert died.returncode == -9, died.stderr
    assert run("admin", "recover").code == 0
    newest, *_ = run("status", "releases", "--json").json
    days = {row["event_date"] for row in run("read", TABLE, "--json").json["rows"]}
    refused = "lacks the column" in run("status").out
    is_done = point not in ("publish.written", "publish.checked")
    assert (newest["kind"] == "reload", days == set(), not refused) == (is_done,) * 3
    again = run("admin", "reload", SALES, "--reason", "once more", "--by", "zoe")
    assert again.code == (3 if is_done else 0), again.err
