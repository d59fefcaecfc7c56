"""`status`: what is loaded, missing, stale, held and set aside, as every other command has it."""

from __future__ import annotations

import os
import shutil
import time
from datetime import UTC, date, datetime
from pathlib import Path

from platform_assets.engine.day_contents import loaded_empty
from platform_assets.operations.opening import open_platform
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import Hold
from platform_assets.records.manifest import Arrival
from platform_assets.settings import Settings, load_settings
from platform_assets_tests.support.cli.commands import REASON, TABLE, Run
from platform_assets_tests.support.cli.products import (
    DAY,
    DAYS,
    RAW,
    SILVER,
    computed,
    deliver,
    publish_arrivals,
    publish_on_paper,
)


def test_status_of_a_new_installation_says_what_is_missing(run):
    said = run("status", "--json")
    assert said.code == 1
    assert {table["missing"] for table in said.json["tables"]} == {3}
    assert said.json["refused_files"] == []
    assert "gold.daily_sales" in run("status").out


REFUSED = {"table": "raw.transactions", "path": "transactions/2017-01-01/a[/b].csv", "reason": REASON}


def land_refused(published: Settings) -> Path:
    """The refused file where it was landed, as it was then."""
    file = published.landing_folder / "transactions" / "2017-01-01" / "a[" / "b].csv"
    file.parent.mkdir(parents=True)
    file.write_text("x")
    os.utime(file, ns=(1, 1))
    return file


def test_status_shows_refused_files_with_their_reasons_whatever_they_contain(run, published):
    land_refused(published)
    said = run("status", "--json")
    assert said.code == 1
    assert said.json["refused_files"] == [REFUSED]
    [sales] = [table for table in said.json["tables"] if table["table"] == TABLE]
    assert (sales["newest"], sales["days"], sales["missing"]) == ("2017-01-02", 2, 1)
    text = run("status")
    assert text.code == 1
    assert f"refused transactions/2017-01-01/a[/b].csv {REASON}" in text.out


def test_a_refused_file_that_was_taken_away_asks_for_no_look_and_is_not_forgotten(run, published):
    file = land_refused(published)
    assert run("status", "--json").json["refused_files_gone"] == []
    shutil.rmtree(file.parent)
    said = run("status", "--json")
    assert (said.json["refused_files"], said.json["refused_files_gone"]) == ([], [REFUSED])
    text = run("status").out
    assert "taken away 1 refused file, no longer in the landing area" in text
    assert REASON not in text
    shutil.rmtree(published.landing_folder)  # perhaps only not mounted
    assert run("status", "--json").json["refused_files"] == [REFUSED]


def test_status_names_what_lies_in_the_landing_area_and_cannot_be_taken(run, published):
    folder = published.landing_folder / "transactions" / "2017-01-01"
    folder.mkdir(parents=True)
    (folder / "notes [b].txt").write_text("")
    (folder / "growing.csv").write_text("")
    (folder / "whole.csv").write_text("")
    os.utime(folder / "whole.csv", (time.time() - 60,) * 2)
    (published.landing_folder / "products").write_text("")
    said = run("status", "--json")
    assert {problem["path"] for problem in said.json["landing"]} == {
        "transactions/2017-01-01/notes [b].txt",
        "transactions/2017-01-01/growing.csv",
        "products",
    }
    assert said.json["pending_files"] == 1
    text = run("status").out
    assert "not taken transactions/2017-01-01/notes [b].txt has the unknown ending '.txt'" in text
    assert "not taken products cannot be listed: Not a directory" in text
    assert "1 file waits" in text


def test_status_names_folders_of_the_landing_area_that_no_table_reads(run, published):
    for folder in ("transactons/2017-01-01", "transactions/2017-01-01", "zz/archive", ".hidden"):
        (published.landing_folder / folder).mkdir(parents=True)
    assert run("status", "--json").json["unread_folders"] == ["transactons", "zz"]
    text = run("status").out
    assert "not read transactons: no table takes files from this folder" in text
    assert "did you mean transactions?" in text


def counts(run: Run, table: str) -> dict[str, int]:
    [found] = [found for found in run("status", "--json").json["tables"] if found["table"] == table]
    return {name: found[name] for name in ("days", "missing", "stale", "held", "blocked")}


def deliver_other_rows(products: Settings) -> None:
    with open_platform(products) as platform:
        other = loaded_empty([DAY])[DAY].model_copy(update={"digest": "0-1-1-1-1"})
        publish_on_paper(platform, RAW, {DAY: other})


def hold_what_would_come(products: Settings) -> None:
    """A gate refused of a day what it would be made from today."""
    with open_platform(products) as platform:
        refused = platform.ledger.current_days(SILVER)[DAY].fingerprint
        now = datetime.now(UTC)
        platform.ledger.hold([Hold(SILVER, DAY, Attempt(refused), "volume", "half of the rows are lost", "a run", now)])


def test_days_are_in_the_state_in_which_stale_has_them(run: Run, products: Settings) -> None:
    assert counts(run, SILVER) == {"days": 3, "missing": 0, "stale": 0, "held": 0, "blocked": 0}
    deliver_other_rows(products)
    assert counts(run, SILVER) == {"days": 3, "missing": 0, "stale": 1, "held": 0, "blocked": 0}
    [table] = run("stale", SILVER, "--json").json["tables"]
    assert table["days"] == 1
    said = run("status")
    assert said.code == 1
    assert f"stale {SILVER}: 1 day; platform-assets stale says why" in said.out


def test_a_held_day_is_stale_and_held_no_more_once_it_would_be_made_from_something_else(
    run: Run, products: Settings
) -> None:
    hold_what_would_come(products)
    assert counts(run, SILVER) == {"days": 3, "missing": 0, "stale": 0, "held": 1, "blocked": 0}
    said = run("status").out
    assert f"held {SILVER} {DAY} since " in said
    assert "half of the rows are lost; readers see its last good content, 0 rows of release 1" in said
    deliver_other_rows(products)
    assert counts(run, SILVER) == {"days": 3, "missing": 0, "stale": 1, "held": 0, "blocked": 0}


def test_a_held_day_that_was_never_published_counts_once(run: Run, state: Path) -> None:
    with open_platform(load_settings()) as platform:
        publish_on_paper(platform, RAW, loaded_empty(DAYS))
        refused = Attempt(computed(platform, SILVER)[DAY].fingerprint, platform.version(SILVER))
        platform.ledger.hold([Hold(SILVER, DAY, refused, "volume", "too few rows", "a run", datetime.now(UTC))])
    assert counts(run, SILVER) == {"days": 0, "missing": 2, "stale": 2, "held": 1, "blocked": 0}


def test_rows_outside_the_calendar_are_told_by_their_days_and_not_among_the_rows(run: Run, products: Settings) -> None:
    deliver(products, DAY, 4)
    for number, day in enumerate((date(2017, 1, 5), date(2017, 1, 20))):
        deliver(products, day, 2 + number)
    said = f"outside {RAW} has rows of 2 days that the calendar does not have, 2017-01-05, 2017-01-20"
    assert said in run("status").out
    [table] = [table for table in run("status", "--json").json["tables"] if table["table"] == RAW]
    assert (table["rows"], table["days"], table["days_outside"]) == (4, 3, ["2017-01-05", "2017-01-20"])


def test_days_that_wait_for_what_they_read_are_blocked(run: Run, products: Settings) -> None:
    assert counts(run, TABLE) == {"days": 0, "missing": len(DAYS), "stale": 0, "held": 0, "blocked": len(DAYS)}
    assert f"blocked {TABLE}: 3 days cannot be computed" in run("status").out


def test_files_that_are_too_new_are_named_with_the_time_from_which_they_can_be_taken(run, products, monkeypatch):
    """Whoever has just copied a file and asks for it must not be told that there is none."""
    monkeypatch.setenv("PLATFORM_SETTLE_S", "600")
    folder = products.landing_folder / "products" / "2017-01-02"
    folder.mkdir(parents=True)
    for name, age_s in (("a.csv", 100), ("b.csv", 10)):
        (folder / name).write_text("product_id\n")
        os.utime(folder / name, (time.time() - age_s,) * 2)
    for command in (["status"], ["refresh", SILVER], ["refresh", SILVER, "--explain"]):
        said = run(*command)
        line = next(line for line in said.out.splitlines() if line.startswith("not taken yet"))
        assert "products/2017-01-02/a.csv and 1 other file changed a moment ago and may still grow" in line
        wait_s = int(line.split(" in ")[1].split(" s if nobody")[0])
        assert 570 < wait_s <= 590
        assert "no file waits" not in said.out
    assert run("refresh", SILVER).code == 0
    assert "Nothing to do yet" in run("refresh", SILVER).out
    told = run("refresh", SILVER, "--json").json["landing"]
    assert [problem["path"] for problem in told] == [f"products/2017-01-02/{name}" for name in ("a.csv", "b.csv")]


def test_status_has_metrics_of_each_table_for_programs(run: Run, products: Settings) -> None:
    file = {"table": RAW, "size": 1, "sha256": "0" * 64, "modified_ns": 1, "landed": 10, "taken": 7, "refused": 3}
    counted = {"raw": 7, "keys": 5, "quarantined": 1, "mismatches": 2}
    with open_platform(products) as platform:
        publish_arrivals(platform, RAW, Arrival(path="products/2017-01-02/a.csv", arrival_date=DAY, **file))
        whole = {**file, "taken": 0, "refused": 0, "reason": "another header"}
        publish_arrivals(platform, RAW, Arrival(path="products/2017-01-02/b.csv", arrival_date=DAY, **whole))
        day = computed(platform, SILVER)[DAY].model_copy(update={"digest": "0-1-1-1-1", "figures": counted})
        publish_on_paper(platform, SILVER, {DAY: day})
    metrics = run("status", "--json").json["metrics"]
    assert metrics[RAW]["refused_share"] == {"2017-01-02": 0.65}
    assert metrics[SILVER]["days"]["2017-01-02"] == {
        "duplicates_per_1000": 285.714286,
        "quarantined_share": 0.142857,
        "mismatches": 2.0,
        "seconds": 1.5,
    }
    assert metrics[SILVER]["duration_s_p95"] == 1.5
    assert metrics[RAW]["lag_of_arrival_days_p95"] is None
    assert not metrics.keys() & {"gold.daily_sales"}, "a table without a day has none"
