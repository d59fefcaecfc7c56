"""What plans say as commands of keys, of comparisons and of a damaged record: with file, line and field."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from platform_assets.operations.backfill.files import read_plan
from platform_assets_tests.support.cli.commands import Run, Said

PLAN = """\
name: two-stores
reason: Their tills were set up wrong.
owner: ada
tables: [gold.daily_sales]
days: {range: 2017-01-01..2017-01-03}
downstream: false
only:
  store_id: [330, 337]
"""


@pytest.mark.parametrize("command", ["explain", "apply", "approve"])
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("daily_sales", "household_28d", "line 8, only.store_id: gold.household_28d does not promise"),
        ("store_id: [330", "department: [MEAT", "line 8, only.department: gold.daily_sales does not promise"),
        ("330", "some", "line 8, only.store_id: 'some' is no long"),
        ("330", "330", "line 7, only: gold.daily_sales of 2017-01-01 reads silver.transactions"),
    ],
)
def test_keys_that_cannot_be_are_told_with_line_and_field(
    run: Run, tmp_path: Path, command: str, old: str, new: str, says: str
) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(PLAN.replace(old, new))
    decides = ("--hash", "0", "--reason", "looked", "--by", "bob") if command == "approve" else ()
    said = run("plan", command, str(file), *decides)
    assert said.code in (2, 3)
    assert f"{file}, {says}" in " ".join(said.err.split())


def new(run: Run, file: Path, *only: str, table: str = "gold.sales_month_to_date") -> Said:
    keys = [part for one in only for part in ("--only", one)]
    days = ("--days", "2017-01-01", "--out", str(file))
    return run("plan", "new", "two", "--table", table, *days, "--reason", "a", "--by", "ada", *keys)


def test_a_new_plan_has_the_keys_that_were_named(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    made = new(run, file, 'department="MEAT, COLD",007', "store_id=330")
    assert made.code == 0, made.err
    plan = read_plan(file)
    assert plan.only == {"department": ("MEAT, COLD", "007"), "store_id": ("330",)}
    assert not plan.downstream


@pytest.mark.parametrize(("only", "says"), [("store_id", "is not COLUMN=VALUE"), ("1=1", "only.1")])
def test_a_new_plan_of_what_is_no_key_is_not_written(run: Run, tmp_path: Path, only: str, says: str) -> None:
    file = tmp_path / "plan.yaml"
    refused = new(run, file, only)
    assert refused.code == 2
    assert says in refused.err
    assert not file.exists()


@pytest.mark.parametrize(
    ("table", "only", "says"),
    [
        ("gold.daily_sales", "store_id=some", "only.store_id: 'some' is no long"),
        ("gold.daily_sales", "department=MEAT", "only.department: gold.daily_sales does not promise"),
        ("gold.daily_sale", "store_id=330", "Did you mean gold.daily_sales?"),
    ],
)
def test_what_explaining_refuses_a_new_plan_refuses(run: Run, tmp_path: Path, table: str, only: str, says: str) -> None:
    file = tmp_path / "plan.yaml"
    refused = new(run, file, only, table=table)
    assert refused.code == 2
    assert says in " ".join(refused.err.split())
    assert not file.exists()


FILE = {"name": "good", "reason": "a", "owner": "ada", "tables": ["gold.daily_sales"], "days": {"stale": True}}
RECORD = {"name": "good", "hash": "25ae4916c48caffb", "file": FILE, "steps": [], "state": "cancelled"}


def test_a_record_that_cannot_be_read_hides_no_other(run: Run, state: Path) -> None:
    run("plan", "status")
    folder = state / "lake" / "_plans"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "good.json").write_text(json.dumps(RECORD))
    (folder / "newer.json").write_text(json.dumps(RECORD | {"name": "newer", "waves": 3}))
    (folder / "torn.json").write_text(json.dumps(RECORD)[:40])
    said = run("plan", "status")
    assert said.code == 1, said.err
    out = " ".join(said.out.split())
    assert "good cancelled" in out
    assert "The record of the plan torn is damaged" in out
    assert "stage drop plan-torn" in out
    assert "newer is of a newer version of the platform" in out
    assert "waves" in out
    good, *damaged = run("plan", "status", "--json").json
    assert good["name"] == "good"
    assert [set(one) for one in damaged] == [{"damaged", "do"}] * 2
    assert run("plan", "status", "good").code == 0
    assert run("plan", "status", "torn").code == 3


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("plans/none.yaml",), "plans/none.yaml cannot be read: No such file"),
        (("none.yaml",), "none.yaml cannot be read: No such file"),
        (("none",), "No plan 'none' was ever applied"),
        (("none", "--days", "2017-01-01"), "--days chooses what is computed of a plan file"),
    ],
)
def test_what_cannot_be_compared_is_told(run: Run, args: tuple[str, ...], says: str) -> None:
    said = run("plan", "compare", *args)
    assert said.code in (2, 3)
    assert says in " ".join(said.err.split())
