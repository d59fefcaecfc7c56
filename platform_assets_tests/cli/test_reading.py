"""Commands that only look: right answers, in forms that people and programs can use."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from decimal import Decimal

import pytest

from platform_assets_tests.support.cli.commands import REASON, TABLE


def test_status_of_a_new_installation_says_what_is_missing(run):
    said = run("status", "--json")
    assert said.code == 1
    assert {table["missing"] for table in said.json["tables"]} == {3}
    assert said.json["refused_files"] == []
    assert "gold.daily_sales" in run("status").out


def test_status_shows_refused_files_with_their_reasons_whatever_they_contain(run, published):
    said = run("status", "--json")
    assert said.code == 1
    assert said.json["refused_files"] == [{"path": "transactions/2017-01-01/a[/b].csv", "reason": REASON}]
    [sales] = [table for table in said.json["tables"] if table["table"] == TABLE]
    assert (sales["newest"], sales["days"], sales["missing"]) == ("2017-01-02", 2, 1)
    text = run("status")
    assert text.code == 1
    assert f"refused transactions/2017-01-01/a[/b].csv {REASON}" in text.out


def test_status_names_what_lies_in_the_landing_area_and_cannot_be_taken(run, published):
    folder = published.landing / "transactions" / "2017-01-01"
    folder.mkdir(parents=True)
    (folder / "notes [b].txt").write_text("")
    (folder / "growing.csv").write_text("")
    (folder / "whole.csv").write_text("")
    os.utime(folder / "whole.csv", (time.time() - 60,) * 2)
    (published.landing / "products").write_text("")
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
    assert "1 files wait" in text


def test_rows_as_csv_parse_back(run, published):
    said = run("read", TABLE, "--day", "2017-01-01", "--format", "csv")
    assert said.code == 0
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert {row["key"]: Decimal(row["price"]) for row in rows} == {"a": Decimal("1.50"), 'b "[/c]", d': Decimal("0.01")}
    assert {row["event_date"] for row in rows} == {"2017-01-01"}


def test_rows_as_json_lines_parse_back_and_money_stays_exact(run, published):
    said = run("read", TABLE, "--format", "json")
    rows = [json.loads(line, parse_float=Decimal) for line in said.out.splitlines()]
    assert {row["key"]: Decimal(row["price"]) for row in rows} == {
        "a": Decimal("1.50"),
        'b "[/c]", d': Decimal("0.01"),
        "é": Decimal("1.99"),
    }


def test_rows_as_a_table_show_what_is_there_and_no_markup(run, published):
    said = run("read", TABLE)
    assert said.code == 0
    for text in ("3 rows", 'b "[/c]", d', "1.99", "2017-01-02"):
        assert text in said.out


def test_limit_and_day_bound_what_is_printed(run, published):
    assert "the first 1 rows; more with --limit" in run("read", TABLE, "--limit", "1").out
    assert "0 rows" in run("read", TABLE, "--day", "2017-01-03").out
    header = run("read", TABLE, "--day", "2017-01-03", "--format", "csv").out
    assert next(csv.reader([header])) == ["key", "cents", "price", "event_date"]


def test_doctor_of_a_new_installation_finds_nothing_to_do(run):
    said = run("doctor", "--json")
    assert {finding["name"] for finding in said.json if not finding["ok"]} <= {"Free disk", "Delta jars"}
    assert run("doctor").code == said.code


@pytest.mark.parametrize("command", [["status"], ["doctor"], ["ledger", "rebuild"]])
def test_what_programs_may_read_is_one_json_document(run, published, command):
    assert run(*command, "--json").json


def test_help_says_what_the_exit_codes_mean(run):
    assert "Exit codes: 0 done; 1 done, and something needs a look" in run("--help").out
