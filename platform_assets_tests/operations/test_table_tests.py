"""Tests of tables: what is wrong with a file is told with its line, what differs row by row; pytest runs them, too."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from platform_assets.contracts import Catalogue, LandingFiles
from platform_assets.engine.catalogue import load_catalogue
from platform_assets.operations.table_tests.files import TableTestError, test_files, tests_in
from platform_assets.operations.table_tests.run import TableTests, _Outcome, with_deliveries
from platform_assets.settings import Settings, load_settings, project_root
from platform_assets_tests.support import shop
from platform_assets_tests.support.cli.commands import Run, run, run_apart, state
from platform_assets_tests.support.installation import JARS, OWN_PROCESS
from platform_assets_tests.support.own_domain import PACKAGE, importable, write_domain

__all__ = ["run", "state"]
test_files.__test__ = tests_in.__test__ = False  # type: ignore[attr-defined]

GIVEN = """\
given:
  raw.sales:
    2017-01-01: |
      till, at,                   paid
      1,    2017-01-01T01:00:00Z, 1.50
      1,    2017-01-01T02:00:00Z, 2
      2,    2017-01-01T03:00:00Z, -1
    2017-01-08: [{till: 3, at: 2017-01-07T23:59:59Z, paid: 4}, {till: 4, at: 2017-01-08T00:00:00Z}]
"""
WEEK = """\
a week:
  expect:
    2017-01-07: [{till: 1, paid: 3.50}, {till: 3, paid: 4.00}]
    2017-01-08: [{till: 3, paid: 4}]
others differ:
  expect:
    2017-01-07:
      - {till: 1, paid: 3.51}
      - {till: 9, paid: null}
    2017-01-06: []
without the key:
  expect:
    2017-01-07: [{paid: 3.5}, {paid: 3.5}]
"""
CSV = "a:\n  expect:\n    2017-01-01: |\n      "
DIFFERENCES = {
    "a week": [],
    "others differ": [
        "2017-01-06 unexpected: till=1, paid=3.50",
        "2017-01-07 till=1: paid is 3.50, expected 3.51 (line 16)",
        "2017-01-07 missing: till=9, paid=null (line 17)",
        "2017-01-07 unexpected: till=3, paid=4.00",
    ],
    "without the key": [
        "2017-01-07 missing: paid=3.5 (line 21)",
        "2017-01-07 unexpected: paid=4.00",
    ],
}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Where a domain lies."""
    with importable(write_domain(tmp_path)):
        yield tmp_path


def write(home: Path, table: str, text: str) -> Path:
    """A file of tests in the domain's package."""
    file = home / PACKAGE / f"{table}.test.yaml"
    file.write_text(text)
    return file


def results(settings: Settings, spark: SparkSession, files: list[Path]) -> dict[str, list[str]]:
    """What differs in each test of some files, by its name."""
    catalogue = load_catalogue(settings)
    found = [each for file in files for each in tests_in(file, catalogue)]
    tests = TableTests(settings, lambda: spark, catalogue, tests=found)
    return {f"{each.table} {each.name}": tests.differences(each) for each in found}


def test_differences_are_shown_row_by_row(home: Path, tmp_path: Path, spark: SparkSession) -> None:
    """Days without a delivery are empty ones; a window sees seven of them."""
    settings = load_settings(domains=PACKAGE, state=tmp_path / "state", jars=JARS)
    file = write(home, "gold.week", GIVEN + WEEK)
    assert results(settings, spark, [file]) == {f"gold.week {name}": lines for name, lines in DIFFERENCES.items()}
    assert not (tmp_path / "state").exists()


def test_held_days_quarantined_rows_and_refused_ones_are_compared(tmp_path: Path, spark: SparkSession) -> None:
    rule = (
        ', rules=(Rule("paid_known", "paid >= 0", "No refunds."), Rule("one", unique("till"), "x", severity="block"))'
    )
    changed = ((', rules=(Rule("paid_known", "paid >= 0", "No refunds."),)', rule), ("span,\n", "span, unique,\n"))
    settings = load_settings(domains=PACKAGE, state=tmp_path / "state", jars=JARS)
    texts = (
        "right:\n  held: {2017-01-01: rules}\n  quarantined: {2017-01-08: [{till: 4, rule: paid_known}]}\n"
        "wrong:\n  held: {2017-01-07: ''}\n  quarantined: {}\n"
    )
    refused = GIVEN.replace("paid: 4}", "paid: x}") + "refused:\n  expect: {2017-01-07: []}\n"
    with importable(write_domain(tmp_path, contracts=changed)):
        found = results(settings, spark, [write(tmp_path, "silver.sales", GIVEN + texts)])
        assert found["silver.sales right"] == []
        differs = found["silver.sales wrong"]
        assert differs[0].startswith("2017-01-01 is held by rules: ")
        assert differs[1] == "2017-01-07 is published, expected: held by a check"
        assert "quarantine of 2017-01-08 unexpected: till=4" in differs[-1]
        found = results(settings, spark, [write(tmp_path, "silver.sales", refused)])
        assert "1 of 2 rows are refused" in found["silver.sales refused"][0]
        no_number = GIVEN + "a:\n  expect:\n    2017-01-08: [{till: one}]\n"
        with pytest.raises(TableTestError, match=r"silver\.sales\.test\.yaml, line 11: till is long, and 'one' is not"):
            results(settings, spark, [write(tmp_path, "silver.sales", no_number)])


@pytest.mark.parametrize(
    ("table", "text", "line", "says"),
    [
        ("gold.weak", "a: {}", 1, "that it tests 'gold.weak', which is no table. Did you mean gold.week?"),
        ("gold.week", "", 1, "it is empty"),
        ("gold.week", "a: [", 1, "expected the node content"),
        ("gold.week", "a:\n  expect: {}", 1, "the test 'a' lacks rows"),
        ("gold.week", GIVEN + "a:\n  expected: {}", 10, "'expected' is no part of a test. Did you mean expect?"),
        ("gold.week", GIVEN + "a:\n  expect:\n    soon: []", 11, "'soon' is no day"),
        ("gold.week", GIVEN + "a:\n  expect:\n    2017-01-01: 3", 11, "here are no rows"),
        (
            "gold.week",
            GIVEN + "a:\n  expect:\n    2017-01-01:\n    - {till: 1}\n    - {till: 1, payed: 2}",
            13,
            "'payed' is no column here. Did you mean paid?",
        ),
        ("gold.week", GIVEN + CSV + "till, payed\n      1, 2\n", 12, "'payed' is no column"),
        ("gold.week", GIVEN + CSV + "till, paid\n      1\n", 13, "1 values, and 2 columns"),
        ("gold.week", GIVEN + "a:\n  expect:\n    2017-01-01: no.csv", 11, "here are no rows"),
        ("gold.week", "a:\n  given: no.yaml\n  expect: {2017-01-01: []}", 2, "there is no file"),
        ("gold.week", "a:\n  given: {silver.sales: {}}\n  expect: {}", 2, "no raw table. Did you mean raw.sales?"),
        ("gold.week", GIVEN + "a:\n  quarantined: {}\n", 10, "gold.week quarantines nothing"),
        ("gold.week", GIVEN + "a:\n  expect: {}\n  expect: {}\n", 11, "'expect' is here twice"),
        ("gold.week", GIVEN + "a:\n  expect: {}\n", 9, "the test 'a' compares no day"),
        ("silver.sales", "a:\n  given: {}\n  quarantined: {}\n", 1, "the test 'a' compares no day"),
    ],
)  # fmt: skip
def test_what_cannot_be_in_a_file_is_told_with_line_and_remedy(
    table: str, text: str, line: int, says: str, home: Path, tmp_path: Path
) -> None:
    catalogue = load_catalogue(load_settings(domains=PACKAGE, state=tmp_path / "state"))
    file = write(home, table, text)
    with pytest.raises(TableTestError) as caught:
        list(tests_in(file, catalogue))
    assert f"{file}, line {line}: " in caught.value.what
    assert says in f"{caught.value.what} {caught.value.todo}"
    assert caught.value.todo


def test_a_day_that_was_not_computed_is_not_one_without_rows(home: Path, tmp_path: Path) -> None:
    settings = load_settings(domains=PACKAGE, state=tmp_path / "state")
    catalogue = load_catalogue(settings)
    [test] = tests_in(write(home, "gold.week", GIVEN + "a:\n  expect: {2017-01-01: [], 2017-01-02: []}\n"), catalogue)
    blocked = {("gold.week", date(2017, 1, 1)): "silver.sales is held"}
    outcome = _Outcome({"gold.week": []}, {}, (), blocked)
    tests = TableTests(settings, _no_spark, catalogue, _outcomes={repr(test.given): outcome})
    assert tests.differences(test) == ["2017-01-01 was not computed: silver.sales is held"]


def _no_spark() -> SparkSession:
    raise AssertionError("started")


def test_no_source_is_read_by_a_test() -> None:
    catalogue = Catalogue.of([shop.DOMAIN])
    given = with_deliveries(catalogue)
    assert given["raw.orders"].source == LandingFiles("orders", order="name", resent="anew")
    assert given["silver.orders"] == catalogue["silver.orders"]
    assert given["raw.orders"].columns == catalogue["raw.orders"].columns
    assert with_deliveries(given) is given


def test_every_shipped_table_has_tests_and_they_hold(tmp_path: Path, spark: SparkSession) -> None:
    settings = load_settings(state=tmp_path / "state", jars=JARS)
    files = list(test_files(settings.domains))
    assert {file.name.removesuffix(".test.yaml") for file in files} == {*load_catalogue(settings).names}
    assert {name: lines for name, lines in results(settings, spark, files).items() if lines} == {}


def test_tables_without_tests_are_told(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_DOMAINS", PACKAGE)
    said = run("test", "gold.week")
    assert said.code == 2
    assert "There is no test of gold.week. What to do: Write one into <table>.test.yaml" in said.error


@pytest.mark.proof
@pytest.mark.timeout(900)
def test_a_new_domain_is_tested_by_the_command_and_by_pytest(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each starts Spark."""
    assert run("init", "shop", "--into", str(tmp_path)).code == 0
    project = tmp_path / "shop"
    monkeypatch.chdir(project)
    monkeypatch.setenv("PLATFORM_DOMAINS", "shop")
    said = run_apart("test", "--json", COLUMNS="200")
    assert said.code == 0, said.out + said.err
    assert {(each["table"], len(each["differences"])) for each in said.json} == {
        (f"{name}", 0) for name in ("raw.shop", "silver.shop", "gold.shop_item_sales", "gold.shop_item_week")
    }
    file = project / "shop" / "tests" / "gold.shop_item_week.test.yaml"
    file.write_text(file.read_text().replace("12.50", "12.51"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "shop"], capture_output=True, text=True,
        env={"PATH": "/usr/bin:/bin", "PLATFORM_JARS": str(JARS), "PLATFORM_SPARK_CONF": OWN_PROCESS}, check=False,
    )  # fmt: skip
    assert "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    assert f"{file}, line 1\n" in done.stdout
    assert "2024-03-07 item=tea: amount is 12.50, expected 12.51 (line 6)" in done.stdout
    assert "Traceback" not in done.stdout


def test_the_page_of_tests_shows_files_that_hold(run: Run, tmp_path: Path) -> None:
    """The docs' examples are the files that init writes."""
    assert run("init", "shop", "--into", str(tmp_path)).code == 0
    page = (project_root() / "docs" / "table-tests.md").read_text(encoding="utf-8")
    blocks = page.split("<!-- example: ")[1:]
    assert len(blocks) == 2
    for block in blocks:
        name, _, rest = block.partition(" -->\n```yaml\n")
        assert rest.partition("```")[0] in (tmp_path / "shop" / name).read_text(encoding="utf-8")
