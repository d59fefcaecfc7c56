"""Commands that only look: right answers in forms for people and programs; every example of docs/readers.md runs."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.operations.opening import open_platform
from platform_assets.settings import load_settings, project_root
from platform_assets_tests.support.cli.commands import TABLE, Run
from platform_assets_tests.support.shelf import change, day, manifest, rows_of, stage, staged_manifest


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


def test_limit_and_day_bound_what_is_printed(run, published):
    assert "the first 1 row; more with --limit" in run("read", TABLE, "--limit", "1").out
    assert "0 rows" in run("read", TABLE, "--day", "2017-01-03").out
    header = run("read", TABLE, "--day", "2017-01-03", "--format", "csv").out
    assert next(csv.reader([header])) == ["event_date", "key", "cents", "price"]


def test_columns_have_one_order_in_every_format(run, published):
    columns = ["event_date", "key", "cents", "price"]
    [heading] = [line for line in run("read", TABLE).out.splitlines() if "price" in line]
    assert heading.split() == columns
    header, *_ = csv.reader(io.StringIO(run("read", TABLE, "--format", "csv").out))
    assert header == columns
    assert list(json.loads(run("read", TABLE, "--format", "json").out.splitlines()[0])) == columns
    assert list(run("read", TABLE, "--json").json["rows"][0]) == columns


def test_only_the_columns_that_are_named_are_printed_in_their_order(run, published):
    table = run("read", TABLE, "--columns", "price, key")
    [heading] = [line for line in table.out.splitlines() if "price" in line]
    assert heading.split() == ["price", "key"]
    assert "3 rows" in table.out
    said = run("read", TABLE, "--columns", "key,event_date", "--format", "csv").out
    assert said.splitlines()[:2] == ["key,event_date", "a,2017-01-01"]
    document = run("read", TABLE, "--columns", "key", "--json").json
    assert (document["columns"], document["rows"][0]) == (["key"], {"key": "a"})
    assert len(run("read", TABLE, "--columns", "event_date", "--format", "json").out.splitlines()) == 3
    for args in (("--json",), (), ("--format", "csv")):
        refused = run("read", TABLE, "--columns", "key,prize", *args)
        assert (refused.code, "no column 'prize'" in refused.err, "cents" in refused.err, refused.out) == (
            2,
            True,
            True,
            "",
        )


def test_null_is_told_from_an_empty_text_where_people_read(run, published):
    lake = Lake.at(published.lake)
    rows = rows_of({day(2): [("", 1), ("null", 2)]})
    nulls = pa.Table.from_pylist([*rows.to_pylist(), {"key": None, "price": None, "event_date": day(2)}], rows.schema)
    publication = stage(lake, TABLE, {}, rows=nulls)
    publish(lake, manifest(publication, change(lake, TABLE, publication)))
    asked = ("read", TABLE, "--day", "2017-01-03")
    shown = [line.split() for line in run(*asked).out.splitlines() if line.startswith(" 2017")]
    assert shown == [["2017-01-03", "1", "0.01"], ["2017-01-03", "null", "2", "0.02"], ["2017-01-03", *["null"] * 3]]
    assert run(*asked, "--format", "csv").out.splitlines()[1:] == [
        "2017-01-03,,1,0.01",
        "2017-01-03,null,2,0.02",
        "2017-01-03,,,",
    ]
    assert [row["key"] for row in run(*asked, "--json").json["rows"]] == ["", "null", None]


def test_programs_get_all_rows_or_are_told_that_they_do_not(run, published):
    """Whatever people see of a table by default."""
    whole = run("read", TABLE, "--format", "json")
    assert (len(whole.out.splitlines()), whole.err) == (3, "")
    cut = run("read", TABLE, "--format", "csv", "--limit", "2")
    assert len(cut.out.splitlines()) == 3
    assert "Only the first 2 rows: leave out --limit for all of them." in cut.err
    assert run("read", TABLE, "--format", "csv", "--limit", "3").err == ""


def test_rows_as_one_document_say_of_what_they_are_and_whether_they_are_all(run, published):
    whole = run("read", TABLE, "--json")
    assert whole.err == ""
    assert {name: value for name, value in whole.json.items() if name != "rows"} == {
        "table": TABLE,
        "release": 1,
        "columns": ["event_date", "key", "cents", "price"],
        "is_complete": True,
    }
    assert [Decimal(row["price"]) for row in whole.json["rows"]] == [Decimal("1.50"), Decimal("0.01"), Decimal("1.99")]
    cut = run("read", TABLE, "--json", "--limit", "2")
    assert (len(cut.json["rows"]), cut.json["is_complete"]) == (2, False)
    assert "Only the first 2 rows" in cut.err
    assert run("read", TABLE, "--json", "--days", "2017-01-03").json["rows"] == []
    assert run("read", TABLE, "--json", "--format", "csv").code == 2


def test_doctor_of_a_new_installation_finds_nothing_to_do(run):
    said = run("admin", "doctor", "--json")
    assert {finding["name"] for finding in said.json if not finding["ok"]} <= {"Free disk", "Jars"}
    assert run("admin", "doctor").code == said.code


LINES = "silver.transactions"


@pytest.fixture
def lake(state: Path) -> Lake:
    """Four releases, the last of which corrects a day of one of the two tables."""
    settings = load_settings()
    lake = Lake.at(settings.lake)
    for n in range(3):
        lines = {LINES: {day(0): [("line", 1)]}} if n == 0 else {}
        publish(lake, staged_manifest(lake, {TABLE: {day(n): [(f"k{n}", n)]}, **lines}))
    publish(lake, staged_manifest(lake, {TABLE: {day(0): [("corrected", 9), ("more", 9)]}}))
    with open_platform(settings):
        return lake


def examples() -> list[tuple[str, str]]:
    """Language and text of every block, in order."""
    text = (project_root() / "docs" / "readers.md").read_text(encoding="utf-8")
    found = re.findall(r"^ *```(\w+)\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    return [(language, re.sub(r"^  (?=\S)", "", block, flags=re.MULTILINE)) for language, block in found]


@pytest.mark.proof
def test_every_example_runs(
    run: Run, lake: Lake, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"spark": spark}
    blocks = examples()
    pinned = [block for _, block in blocks if "undo pin:first-quarter" in block]
    assert len(pinned) == 1
    for language, block in blocks:
        if language == "sh":
            for line in block.splitlines():
                if "undo pin:" not in line:
                    shell(run, line)
        else:
            exec(compile(block.replace("/data/lake", str(lake.root)), "docs/readers.md", "exec"), names)
    shell(run, pinned[0].splitlines()[-1])

    assert names["sales"].num_rows == names["in_polars"].height == len(names["in_pandas"]) == 4
    assert names["in_duckdb"].aggregate("count(*)").fetchall() == [(4,)]
    assert names["in_spark"].count() == spark.table("gold_daily_sales").count() == 4
    assert (len(names["one_day"]), len(names["before"]), names["reported"].num_rows) == (1, 3, 3)
    assert names["connection"].sql(f"SELECT count(*) FROM {LINES}").fetchall() == [(1,)]
    follow(names["new_days"], tmp_path / "with")


def shell(run: Run, line: str) -> None:
    """A line of a shell, its output perhaps into a file."""
    command, _, file = line.partition(" > ")
    said = run(*shlex.split(command)[3:])
    assert said.code == 0, line + said.err
    if file:
        Path(file).write_text(said.out, encoding="utf-8")


def follow(stream: DataFrame, checkpoint: Path) -> None:
    """Read a stream up to where it is now."""
    writer = stream.writeStream.format("noop").trigger(availableNow=True)
    writer.option("checkpointLocation", str(checkpoint)).start().awaitTermination()


@pytest.mark.proof
def test_a_stream_fails_at_a_correction_unless_it_skips_it(lake: Lake, spark: SparkSession, tmp_path: Path) -> None:
    def stream(**options: str) -> DataFrame:
        return spark.readStream.format("delta").options(**options).load(str(lake.table_path(TABLE)))

    follow(stream(), tmp_path / "without")
    follow(stream(skipChangeCommits="true"), tmp_path / "with")
    publish(lake, staged_manifest(lake, {TABLE: {day(1): [("corrected", 9)]}}))
    follow(stream(skipChangeCommits="true"), tmp_path / "with")
    with pytest.raises(StreamingQueryException, match="skipChangeCommits"):
        follow(stream(), tmp_path / "without")
