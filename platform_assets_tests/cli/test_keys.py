"""Keys as people name them, in plans and in `refresh --only`: what cannot be is told with file, line and field."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from platform_assets.cli.console import UsageError
from platform_assets.cli.options import parse_keys
from platform_assets.operations.backfill.files import read_plan
from platform_assets.planning.selection import shown_keys
from platform_assets_tests.support.cli.commands import Run, Said, assert_refused
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.stores import DAYS, GOLD, published, scoped, twenty_stores


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        (["store_id=330, 337"], {"store_id": ["330", "337"]}),
        (["name=a", "day=2017-01-02", "name=b"], {"name": ["a", "b"], "day": ["2017-01-02"]}),
        (['name="Smith, J",Lee'], {"name": ["Smith, J", "Lee"]}),
        (['name="Smith, J"', "name=Lee"], {"name": ["Smith, J", "Lee"]}),
        (['name="""X"", he said",5" pipe'], {"name": ['"X", he said', '5" pipe']}),
        (['name= "Smith, J" ,"a"" ,b" , Lee '], {"name": ["Smith, J", 'a" ,b', "Lee"]}),
        (['name="two\nlines","or\r,two"'], {"name": ["two\nlines", "or\r,two"]}),
        (['name="one\ntwo"'], {"name": ["one\ntwo"]}),
        (["name=a=b"], {"name": ["a=b"]}),
    ],
)
def test_every_value_can_be_given(options: list[str], asked: dict[str, list[str]]) -> None:
    assert parse_keys(options) == asked
    assert parse_keys(shown_keys(asked).split(" and ")) == asked


@pytest.mark.parametrize(
    "option", ["", "name", "name=", "=a", "name=a,", "name=,a", 'name="a', 'name="a"b', "name=a\nb"]
)
def test_what_is_no_key_is_refused_with_what_was_read(option: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_keys(["store_id=330", option])
    assert repr(option) in error.value.what
    assert "read as column" in error.value.what or "cannot be separated" in error.value.what


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


def test_keys_that_cannot_be_are_told_with_line_and_field(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    for old, new, says in (
        ("daily_sales", "household_28d", "line 8, only.store_id: gold.household_28d does not promise"),
        ("store_id: [330", "department: [MEAT", "line 8, only.department: gold.daily_sales does not promise"),
        ("330", "some", "line 8, only.store_id: 'some' is no long"),
        ("330", "330", "line 7, only: gold.daily_sales 2017-01-01 reads a day that is missing"),
    ):
        file.write_text(PLAN.replace(old, new))
        for command in (["explain"], ["apply"], ["approve", "--hash", "0", "--reason", "looked", "--by", "bob"]):
            said = run("backfill", *command, str(file))
            assert said.code in (2, 3), command
            assert f"{file}, {says}" in said.error


def new(run: Run, file: Path, *only: str, table: str = "gold.sales_month_to_date") -> Said:
    keys = [part for one in only for part in ("--only", one)]
    days = ("--days", "2017-01-01", "--out", str(file))
    return run("backfill", "new", "two", table, *days, "--reason", "a", "--by", "ada", *keys)


def test_a_new_plan_has_the_keys_that_were_named(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    made = new(run, file, 'department="MEAT, COLD",007', "store_id=330")
    assert made.code == 0, made.err
    plan = read_plan(file)
    assert plan.only == {"department": ("MEAT, COLD", "007"), "store_id": ("330",)}
    assert not plan.downstream


def test_what_explaining_refuses_a_new_plan_refuses(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    for table, only, says in (
        ("gold.daily_sales", "store_id", "is not COLUMN=VALUE"),
        ("gold.daily_sales", "1=1", "only.1"),
        ("gold.daily_sales", "store_id=some", "only.store_id: 'some' is no long"),
        ("gold.daily_sales", "department=MEAT", "only.department: gold.daily_sales does not promise"),
        ("gold.daily_sale", "store_id=330", "Did you mean gold.daily_sales?"),
    ):
        refused = new(run, file, only, table=table)
        assert refused.code == 2, only
        assert says in refused.error
        assert not file.exists()


FILE = {"name": "good", "reason": "a", "owner": "ada", "tables": ["gold.daily_sales"], "days": {"stale": True}}
RECORD = {"name": "good", "hash": "25ae4916c48caffb", "file": FILE, "steps": [], "state": "cancelled"}


def test_a_record_that_cannot_be_read_hides_no_other(run: Run, state: Path) -> None:
    run("status", "backfills")
    folder = state / "lake" / "_plans"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "good.json").write_text(json.dumps(RECORD))
    (folder / "newer.json").write_text(json.dumps(RECORD | {"name": "newer", "waves": 3}))
    (folder / "torn.json").write_text(json.dumps(RECORD)[:40])
    said = run("status", "backfills")
    assert said.code == 1, said.err
    out = said.words
    assert "good cancelled" in out
    assert "The record of the plan torn cannot be read" in out
    assert "undo stage:plan-torn" in out
    assert "The record of the plan newer cannot be read" in out
    assert "waves" in out
    good, *damaged = run("status", "backfills", "--json").json
    assert good["name"] == "good"
    assert [set(one) for one in damaged] == [{"damaged", "do"}] * 2
    assert run("status", "backfills", "good").code == 0
    assert run("status", "backfills", "torn").code == 3


def test_what_cannot_be_compared_is_told(run: Run) -> None:
    cases = (
        (("plans/none.yaml",), "plans/none.yaml cannot be read: No such file"),
        (("none.yaml",), "none.yaml cannot be read: No such file"),
        (("none",), "No plan 'none' was ever applied"),
        (("none", "--days", "2017-01-01"), "--days works only with the file of a backfill"),
    )
    assert_refused(run, "diff", cases=[((f"backfill:{args[0]}", *args[1:]), says) for args, says in cases])


DAY = str(DAYS[0])


def test_what_cannot_be_is_refused_with_what_to_do(run: Run) -> None:
    cases = (
        (("--days", "2017-01-02", "--only", "store_id=330"), "into a stage"),
        (("--stage", "keys", "--only", "store_id=330"), "into a stage"),
        (("--stage", "keys", "--days", "2017-01-02", "--only", "store_id"), "is not COLUMN=VALUE"),
        (("--stage", "keys", "--days", "2017-01-02", "--only", "store_id=330,"), "is not COLUMN=VALUE"),
        (("--stage", "keys", "--days", "2017-01-02", "--only", "store_id=330,"), "the values ['330', '']"),
        (("--stage", "keys", "--days", "2017-01-02", "--only", 'store_id="330'), "cannot be separated"),
        (("--stage", "keys", "--days", "2017-01-02", "--only", "department=MEAT"), "does not promise"),
        (("--stage", "keys", "--days", "2017-01-02", "--only", "store_id=some"), "is no long"),
        (("--stage", "keys", "--days", "2017-01-02", "--only", "store_id=330"), "missing or not good"),
    )
    assert_refused(run, "refresh", GOLD, cases=cases)


@pytest.mark.proof
def test_it_is_explained_before_and_why_tells_it_after(
    run: Run, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = prepared(twenty_stores)
    settings = world.settings
    for name in ("state", "calendar_last", "today"):
        monkeypatch.setenv(f"PLATFORM_{name.upper()}", str(getattr(settings, name)))
    monkeypatch.setenv("PLATFORM_DOMAINS", ",".join(settings.domains))
    asked = ("refresh", "--stage", "keys", GOLD, "--days", DAY, "--only", "store_id=331,330", "--explain")
    explained = run(*asked)
    assert explained.code == 0, explained.err
    assert "only rows of store_id=330,331; the others are carried over" in explained.out
    shown = run(*asked, "--json").json
    assert shown["only"] == {"store_id": ["330", "331"]}
    assert [(step["table"], step["days"]) for step in shown["plan"]["steps"]] == [(GOLD, 1)]
    with world.open() as platform:
        platform.code_versions[GOLD] = "other"
        scoped(platform, world, [330], DAYS[:1])
        assert (
            f"only store_id=330 of {GOLD} {DAY}; the other rows are carried over" in run("status", "stages", "keys").out
        )
        published(platform, world)
    said = run("why", GOLD, DAY)
    assert said.code == 1
    assert f"stale {GOLD} {DAY}: code" in said.out
    assert "in part computed last, only store_id=330 (2 rows)" in said.out
    assert run("why", GOLD, DAY, "--json").json["only"] == {"store_id": ["330"]}
