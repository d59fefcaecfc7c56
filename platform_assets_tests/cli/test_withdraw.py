"""`withdraw`: several arrivals at once, by name or by a pattern; all of them or none."""

from __future__ import annotations

import pytest

from platform_assets.operations.opening import open_platform
from platform_assets.records.manifest import Arrival
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.commands import Run
from platform_assets_tests.support.cli.products import DAY, RAW, SILVER, compute, deliver, publish_arrivals

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
    said = run("withdraw", f"{FOLDER}/a.csv", "products/2017-01-03/a.csv", f"{FOLDER}/a.csv", "--reason", "bad")
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
    [would] = run("withdraw", path, "--dry-run", "--json").json
    assert (would["days"], would["stale"]) == ([str(DAY)], {SILVER: [str(DAY)]})
    said = run("withdraw", path, "--dry-run").out
    changes, stale = said[said.index("Days that it changes") :].split("Stale through it, at most")
    assert f"{RAW}     1  {DAY}" in changes
    assert f"{SILVER}     1  {DAY}" in stale
    assert "Nothing was changed: this was a dry run." in stale
    assert withdrawals(products) == {}


def test_a_pattern_is_of_files_of_one_folder_that_count(run: Run, files: Settings) -> None:
    would = run("withdraw", f"{FOLDER}/*.csv", "--dry-run", "--json").json
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
    assert run("withdraw", f"{FOLDER}/*.csv", "--reason", "bad").code == 0
    assert withdrawals(files).keys() == {f"{FOLDER}/{name}" for name in ("a.csv", "b.csv", ODD)}
    again = run("withdraw", f"{FOLDER}/*.csv", "--reason", "bad")
    assert again.code == 3
    assert "No file that was taken and still counts is like" in again.err


def test_a_name_that_is_on_record_is_no_pattern(run: Run, files: Settings) -> None:
    [would] = run("withdraw", f"{FOLDER}/{ODD}", "--dry-run", "--json").json
    assert would["arrivals"] == [f"{FOLDER}/{ODD}"]


@pytest.mark.parametrize("pattern", ["*", "*/*/*", "prod*/2017-01-02/*", "../products/*/*", "/products/*/*"])
def test_a_pattern_reaches_no_further_than_the_folder_of_a_table(run: Run, files: Settings, pattern: str) -> None:
    said = run("withdraw", pattern, "--reason", "bad")
    assert said.code == 3
    assert "is not of the files of one table" in said.err
    assert "products/" in said.err
    assert withdrawals(files) == {}


def test_nothing_is_withdrawn_where_one_of_the_names_is_wrong(run: Run, files: Settings) -> None:
    for wrong in ("nothing.csv", "broken.csv", "*.parquet"):
        assert run("withdraw", f"{FOLDER}/a.csv", f"{FOLDER}/{wrong}", "--reason", "bad").code == 3
    assert withdrawals(files) == {}


def test_a_misspelt_name_with_brackets_is_told_what_it_may_mean(run: Run, files: Settings) -> None:
    said = run("withdraw", f"{FOLDER}/a[1]*.cvs", "--reason", "bad")
    assert said.code == 3
    assert f"Did you mean {FOLDER}/{ODD}?" in said.err
