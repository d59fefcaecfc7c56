"""What is stale and why, what a refresh would do, and where tables stand, without Spark."""

from __future__ import annotations

import os
import shutil
import time
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from platform_assets.cli.commands.refresh import not_asked_for
from platform_assets.cli.console import UsageError, parse_days
from platform_assets.engine.day_contents import loaded_empty
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.operations.opening import open_platform
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.planning.selection import Request
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
    arrive,
    computed,
    deliver,
    publish_arrivals,
    publish_on_paper,
)


def test_days_that_are_what_they_would_be_are_not_stale(run, products):
    assert run("status", "stale", SILVER).out.startswith("Nothing is stale.")
    assert run("status", "stale", SILVER).code == 0
    said = run("refresh", SILVER)
    assert (said.code, said.out.strip()) == (0, "Nothing to do: no day is stale and no file waits.")


def test_a_stage_says_that_it_leaves_files_that_wait(run, products):
    file = products.landing_folder / "products" / "2017-01-02" / "a.csv"
    file.parent.mkdir(parents=True)
    file.write_text("product_id\n")
    os.utime(file, (1_000_000_000, 1_000_000_000))
    said = run("refresh", SILVER, "--stage", "try", "--explain").out
    assert "not taken 1 file waits, and a stage takes none" in said
    assert "No day is stale." in said
    assert "no file waits" not in said


def test_stale_days_have_reasons_ranges_and_a_place_in_the_calendar(run, products):
    deliver(products, DAYS[1], 5)
    assert run("status", "stale", SILVER, "--json").json["tables"][0]["ranges"] == [
        {"first": "2017-01-02", "last": "2017-01-02", "reasons": ["new arrival"], "waits_for_a_person": False}
    ]
    deliver(products, DAYS[1], 6)
    said = run("status", "stale", SILVER)
    assert said.code == 1
    assert "new arrival, correction" in said.out
    assert "Jan   ·a·" in said.out
    assert "a new arrival" in said.out
    assert run("status", "stale", SILVER, "--days", "2017-01-01").code == 0


def test_explain_shows_reasons_and_an_estimate_or_that_there_is_none(run, products):
    deliver(products, DAYS[1], 5)
    plan = run("refresh", SILVER, "--explain", "--json").json["plan"]
    assert plan["days"] == 1
    assert plan["steps"][0]["table"] == SILVER
    assert plan["estimate"]["seconds"] == pytest.approx(0.5 + 0.0)
    assert "1 day in all: about" in run("refresh", SILVER, "--explain").out
    with open_platform(products) as platform:
        publish_on_paper(platform, "raw.transactions", loaded_empty(DAYS))
    text = run("refresh", "silver.transactions", "--explain").out
    assert "never computed" in text
    assert "not known yet" in text


def test_what_is_stale_besides_what_was_asked_for_is_told_after_a_refresh(run, products):
    for day in DAYS[:2]:
        deliver(products, day, 5)
    with open_platform(products) as platform:
        assert not_asked_for(platform, Request(tables=frozenset({SILVER}))) == {}
        assert not_asked_for(platform, Request(days=frozenset({DAYS[1]}))) == {SILVER: [DAYS[0]]}
        other = Request(tables=frozenset({TABLE}), days=frozenset(DAYS))
        assert not_asked_for(platform, other) == {SILVER: [*DAYS[:2]]}


def test_days_computed_under_other_code_or_another_contract_wait_for_a_person(run, products):
    with open_platform(products) as platform:
        parts = platform.configurations[SILVER].parts
        parts = parts | {"rules": parts["rules"] | {"department_given": "true"}}
        days = computed(platform, SILVER)
        publish_on_paper(platform, SILVER, {DAYS[0]: days[DAYS[0]]}, code_version="old", configuration=parts)
    said = run("status", "stale", SILVER)
    assert "code, configuration; waits for a person" in said.out
    assert "rule 'department_given' changed from true to length(trim(department)) > 0" in said.out
    assert "1 day of these for a person to take" in said.out
    why = run("why", SILVER, "2017-01-01", "--diff")
    assert why.code == 1
    assert "code was old, is" in why.out
    assert "contract changed rule 'department_given'" in why.out


def test_a_table_with_other_columns_than_its_contract_says_what_it_needs(run, published):
    said = run("status", "stale")
    assert said.code == 1
    needs = "column 'cents' dropped: another content; enters with all days of the table in one publication"
    assert f"contract changed gold.daily_sales: {needs}" in said.out
    [change, *_] = run("status", "stale", "--json").json["contract_changes"][TABLE]
    assert change == {"change": "column 'baskets' (long, no nulls) added", "compatible": False, "needs": "all days"}
    refused = run("refresh", TABLE, "--days", "2017-01-01")
    assert refused.code == 3
    assert "gold.daily_sales follows its contract (column" in refused.err
    assert "only with all its 2 days in one publication, and 2017-01-02 would be left out" in refused.err
    assert "Run `platform-assets refresh gold.daily_sales`, which publishes all days together" in refused.err
    assert refused.out == ""
    everything = run("refresh", "--explain")
    assert (everything.code, everything.err) == (0, "")
    assert (
        "cannot be computed gold.daily_sales 2017-01-01..2017-01-02, 2 days (configuration): raw.transactions"
        in everything.out
    )


def test_days_named_that_lack_an_input_are_refused_before_any_work(run, products):
    with open_platform(products) as platform:
        publish_on_paper(platform, "raw.transactions", loaded_empty(DAYS[:1]))
    lacks = (
        "Cannot be computed: silver.transactions 2017-01-02..2017-01-03, 2 days (never computed): raw.transactions is"
    )
    refused = run("refresh", "silver.transactions", "--days", "2017-01-01..2017-01-03")
    assert refused.code == 3
    assert f"{lacks} not delivered yet for 2017-01-02" in refused.error
    said = run("refresh", "silver.transactions", "--explain")
    assert said.code == 0
    assert "cannot be computed silver.transactions 2017-01-02..2017-01-03, 2 days" in said.out
    assert run("refresh", "--explain", "--json").json["plan"]["cannot_be_computed"] == []


def test_held_days_are_left_alone_and_named(run, products):
    deliver(products, DAYS[1], 5)
    with open_platform(products) as platform:
        digests = {RAW: LakeSnapshot.now(platform).digests(RAW)}
        mark = fingerprints(platform.catalogue[SILVER], [DAYS[1]], digests, platform.calendar, {})[DAYS[1]]
        refused = Hold(SILVER, DAYS[1], Attempt(mark), "volume", "far too few", "r", datetime.now(UTC))
        platform.ledger.hold([refused])
    said = run("status", "stale", SILVER)
    refreshed = run("refresh", SILVER)
    for command in (said, refreshed, run("why", SILVER, "2017-01-02"), run("status")):
        assert command.code == 1
        assert "held silver.products 2017-01-02 since " in command.out
        assert "far too few; readers see its last good content, 0 rows of release 1 of " in command.out
    assert "Nothing is stale" not in said.out
    assert "Nothing to do" not in refreshed.out
    [held] = run("status", "stale", SILVER, "--json").json["held"]
    assert (held["day"], held["gate"], held["readers_see"]["release"]) == ("2017-01-02", "volume", 1)
    assert run("status", "stale", SILVER, "--days", "2017-01-01").code == 0
    forced = run("refresh", SILVER, "--days", "2017-01-02", "--force", "--explain").out
    assert "asked for" in forced


def hold(platform: Platform, table: str, reason: str, gate: str = "volume") -> None:
    """A gate refused what the second day would be made of now."""
    contract = platform.catalogue[table]
    digests = {read.table: LakeSnapshot.now(platform).digests(read.table) for read in contract.inputs}
    mark = fingerprints(contract, [DAYS[1]], digests, platform.calendar, {})[DAYS[1]]
    platform.ledger.hold([Hold(table, DAYS[1], Attempt(mark), gate, reason, "r", datetime.now(UTC))])


def test_of_what_breaks_a_contract_the_function_is_named_as_a_cause(run, products):
    deliver(products, DAYS[1], 5)
    with open_platform(products) as platform:
        hold(platform, SILVER, "null in department", "contract")
    assert "the table's own function can have made, too" in run("status", "stale", SILVER).out


def test_a_held_day_that_was_never_published_is_not_called_one_that_a_refresh_takes(run, products):
    with open_platform(products) as platform:
        publish_on_paper(platform, "raw.transactions", loaded_empty(DAYS))
        hold(platform, "silver.transactions", "far too few")
    said = run("why", "silver.transactions", "2017-01-02")
    assert said.code == 1
    assert "held silver.transactions 2017-01-02 since " in said.out
    assert "far too few; readers see nothing of it" in said.out
    assert "accept silver.transactions --days 2017-01-02" in said.out
    assert "never computed" not in said.out
    found = run("why", "silver.transactions", "2017-01-02", "--json").json
    assert [one["reason"] for one in found["held"]] == ["far too few"]
    plan = run("refresh", "silver.transactions", "--explain", "--json").json["plan"]
    assert "2017-01-02" not in str(plan)
    [table] = run("status", "stale", "silver.transactions", "--json").json["tables"]
    assert [one["first"] for one in table["ranges"]] == ["2017-01-01", "2017-01-03"]
    other = run("why", "silver.transactions", "2017-01-01")
    assert "never computed silver.transactions 2017-01-01: its inputs are there, a refresh takes it" in other.out


def test_why_shows_the_chain_and_what_differs(run, products):
    said = run("why", SILVER, "2017-01-02")
    assert said.code == 0
    for text in (
        "up to date silver.products 2017-01-02",
        "raw.products 2017-01-02 through same_day",
        "run r: a test",
    ):
        assert text in said.out
    deliver(products, DAYS[1], 5)
    found = run("why", SILVER, "2017-01-02", "--diff", "--json").json
    assert found["stale"] == ["new arrival"]
    [changed] = found["diff"]["inputs"]
    assert (changed["table"], changed["day"]) == (RAW, "2017-01-02")
    assert changed["then"].startswith("0-")
    assert changed["now"].startswith("5-")
    told = run("why", SILVER, "2017-01-02", "--diff").out
    assert f"input {RAW} 2017-01-02: was 0 rows, is 5 rows" in told
    assert f"`platform-assets why {RAW} 2017-01-02` names the files" in told
    assert changed["now"] not in told, "which is for programs"
    assert "delivered since" not in told, "of which nobody wrote down a file"
    path = arrive(products, "more.csv", 7)
    told = run("why", SILVER, "2017-01-02", "--diff").out
    assert f"input {RAW} 2017-01-02: was 0 rows, is 7 rows\ndelivered since {path} (7 rows in all)" in told


def test_why_of_a_day_never_computed_says_what_it_lacks(run, products):
    said = run("why", TABLE, "2017-01-02")
    assert said.code == 1
    assert "raw.transactions is not delivered yet for 2017-01-02" in said.out


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("2017-01-02", [2]),
        ("2017-01-01..2017-01-03", [1, 2, 3]),
        ("2017-01-03, 2017-01-01", [1, 3]),
        ("2017-01-01..2017-01-02,2017-01-02", [1, 2]),
    ],
)
def test_days_are_named_one_by_one_in_ranges_or_both(state, text, numbers):
    assert sorted(parse_days(text, load_settings())) == [date(2017, 1, n) for n in numbers]


def test_a_range_written_with_three_dots_is_no_day(state):
    with pytest.raises(UsageError, match=r"'\.2017-01-03' is not a day"):
        parse_days("2017-01-01...2017-01-03", load_settings())


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
    [table] = run("status", "stale", SILVER, "--json").json["tables"]
    assert table["days"] == 1
    said = run("status")
    assert said.code == 1
    assert f"stale {SILVER}: 1 day; `status stale` says why" in said.out


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
        wait_s = int(line.split(" in ")[1].split(" s if there")[0])
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
