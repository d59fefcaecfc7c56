"""Held over the whole tree of commands: what is the same is told alike, and nothing is imported that is not needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from inspect import unwrap
from types import FunctionType
from typing import Any

import pytest
from typer.testing import CliRunner

from platform_assets.cli.app import COMMANDS, build, module_of
from platform_assets_tests.support.cli.commands import PROBE, TABLE
from platform_assets_tests.support.cli.tree import ALL, DECIDED, EXAMPLES, options

MAKE_DAYS = {"demo", "land"}
"""They make so many days of sales; all others choose among days that there are."""

MOMENTARY = {
    "audit decisions", "audit head", "audit show", "breaker close", "breaker list", "breaker open",
    "breaker override", "breaker show", "doctor", "engine list", "init", "late list", "late refuse", "outbox drop",
    "outbox list", "outbox retry", "plan approve", "plan cancel", "plan explain", "plan history", "plan new",
    "plan pause", "plan report", "plan resume", "plan status", "quarantine discard", "quarantine list",
    "quarantine show", "read", "release diff", "release pin", "release show", "release unpin", "releases",
    "stage drop", "stage list", "stage read", "stage show", "stale", "status", "views", "why",
}  # fmt: skip
"""They read the ledger, logs and footers, or print rows as they read them; all others tell how far they are."""

STARTS_NOTHING = sorted(
    {*EXAMPLES}
    - {"accept", "check", "demo", "erase", "up", "verify", "late approve", "late refuse", "withdraw", "land"}
    - {name for name in EXAMPLES if name.startswith("stage ") and name != "stage list"}
    - {
        name
        for name in EXAMPLES
        if name.startswith("plan ") and name not in ("plan history", "plan new", "plan status")
    }
    - {
        "breaker close",
        "breaker override",
        "engine compare",
        "engine verify",
        "ledger move",
        "maintenance delete",
        "outbox drop",
        "quarantine replay",
        "reconcile",
        "release unpin",
        "restore",
    }
)
"""Those of which the example can be carried out on what the tests have published, without Spark."""


def test_every_command_has_an_example() -> None:
    assert sorted(EXAMPLES) == sorted(ALL)


@pytest.mark.parametrize("name", ALL)
def test_what_is_the_same_is_asked_for_and_told_in_one_way(name: str) -> None:
    asked, callback = options(name), unwrap(ALL[name].callback)
    assert asked["--json"].is_flag
    assert asked["--json"].help == "For programs: JSON, also of an error."
    assert tells(callback) == (name not in MOMENTARY), "it tells how far it is"
    assert ("--reason" in asked) == ("--by" in asked) or name == "reconcile"  # whose sides are compared by columns
    if "--reason" in asked:
        assert asked["--reason"].help == "Why, for the next person."
        assert asked["--by"].help == "Who decides; the user by default, who is recorded in any case."
        assert not asked["--reason"].required  # a missing one is explained in words
    if name in MAKE_DAYS:
        assert "int" in str(callback.__annotations__["days"])
        return
    days = asked.get("--days")
    assert days is asked.get("--day", days)
    assert days is None or (days.metavar, days.help) == (
        "DAYS",
        "Only these days: YYYY-MM-DD, A..B with both ends, or several with commas.",
    )
    assert "day" not in asked or (asked["day"].metavar, asked["day"].help) == ("DAY", "YYYY-MM-DD.")


def tells(command: FunctionType) -> bool:
    """Whether a command, or a function of its module that it calls, tells how far it is."""
    reached = [command]
    for function in reached:
        called = (function.__globals__.get(name) for name in function.__code__.co_names)
        own = (one for one in called if isinstance(one, FunctionType) and one.__module__ == command.__module__)
        reached += [one for one in own if one not in reached]
    return any({"telling", "computing"} & {*function.__code__.co_names} for function in reached)


@pytest.mark.parametrize("name", [name for name in ALL if "--reason" in options(name) and name != "recover"])
def test_a_decision_needs_a_reason_and_a_name(run, name):
    example = [argument for argument in EXAMPLES[name] if argument not in ("--dry-run", *DECIDED)]
    for more, lacks in (((), "--reason"), (("--reason", " "), "--reason"), (("--reason", "x", "--by", " "), "--by")):
        said = run(*name.split(), *example, *more)
        assert (said.code, said.out) == (2, ""), said
        assert f"A decision needs {lacks}: it is kept for the next person." in said.error


@pytest.mark.parametrize("name", ALL)
def test_what_could_not_be_done_is_told_to_programs_in_their_way(run, monkeypatch, tmp_path, name):
    monkeypatch.setenv("PLATFORM_SETTLE_S", "-1")
    monkeypatch.chdir(tmp_path)
    said = run(*name.split(), *EXAMPLES[name], "--no-such-option", "--json")
    assert (said.code, said.out) == (2, "")
    assert error_in(said) == {
        "what": "No such option: --no-such-option",
        "do": "Add --help to see what it takes.",
        "code": 2,
    }
    said = run(*name.split(), *EXAMPLES[name], "--json")
    assert (said.code, said.out) == (3, "")
    error = error_in(said)
    assert error["code"] == 3
    assert all(isinstance(error[part], str) and error[part] for part in ("what", "do"))


@pytest.mark.parametrize("name", STARTS_NOTHING)
def test_what_is_printed_for_programs_is_one_json_document(run, published, monkeypatch, tmp_path, name):
    monkeypatch.chdir(tmp_path)
    said = run(*name.split(), *EXAMPLES[name], *(DECIDED if name == "rollback" else ()), "--json")
    assert said.code in (0, 1), said.err
    json.loads(said.out)


def test_a_day_that_is_none_is_told_to_programs_in_their_way(run, published):
    said = run("read", TABLE, "--days", "soon", "--json")
    assert (said.code, said.out) == (2, "")
    assert error_in(said)["what"] == "'soon' is not a day."


def error_in(said: Any) -> dict[str, Any]:
    [error] = json.loads(said.err.splitlines()[-1]).values()
    return dict(error)


COMPUTE = {"check", "demo", "reconcile", "up", "verify", "withdraw"}
"""Commands that start Spark or Dagster whatever is asked of them, or have no other use."""

CASES: list[Any] = [
    (["--help"], ()),
    (["status"], ()),
    pytest.param(["init", "own_tills"], (), marks=pytest.mark.proof),
    pytest.param(["engine", "list"], (), marks=pytest.mark.proof),
    (["read", TABLE], ()),
    pytest.param(["read", TABLE, "--format", "csv"], (), marks=pytest.mark.proof),
    pytest.param(["read", TABLE, "--format", "json"], (), marks=pytest.mark.proof),
    pytest.param(["doctor"], (), marks=pytest.mark.proof),
    pytest.param(["recover"], (), marks=pytest.mark.proof),
    pytest.param(["ledger", "rebuild"], (), marks=pytest.mark.proof),
    pytest.param(["stale"], (), marks=pytest.mark.proof),
    pytest.param(["stale", TABLE, "--days", "2017-01-01..2017-01-02", "--json"], (), marks=pytest.mark.proof),
    pytest.param(["why", TABLE, "2017-01-01", "--diff"], (), marks=pytest.mark.proof),
    (["refresh", "silver.products", "--explain"], ()),
    pytest.param(["reload", "raw.transactions", "--dry-run"], (), marks=pytest.mark.proof),
    pytest.param(["stage", "list"], (), marks=pytest.mark.proof),
    pytest.param(["plan", "status"], (), marks=pytest.mark.proof),
    pytest.param(["late", "list"], (), marks=pytest.mark.proof),
    pytest.param(["breaker", "list"], (), marks=pytest.mark.proof),
    pytest.param(["breaker", "open", TABLE, "--reason", "x"], (), marks=pytest.mark.proof),
    pytest.param(["quarantine", "show", "raw.transactions"], (), marks=pytest.mark.proof),
    pytest.param(["outbox", "list"], (), marks=pytest.mark.proof),
    pytest.param(["outbox", "send"], (), marks=pytest.mark.proof),
    pytest.param(["releases"], (), marks=pytest.mark.proof),
    pytest.param(["release", "show"], (), marks=pytest.mark.proof),
    pytest.param(["release", "diff", "0"], (), marks=pytest.mark.proof),
    pytest.param(["release", "pin", "0", "--reason", "x"], (), marks=pytest.mark.proof),
    pytest.param(["views"], (), marks=pytest.mark.proof),
    pytest.param(["views", "--engine", "spark"], (), marks=pytest.mark.proof),
    (["rollback", "--to", "0", "--dry-run"], ()),
    pytest.param(["erase", "--help"], (), marks=pytest.mark.proof),
    pytest.param(["accept", "--help"], (), marks=pytest.mark.proof),
    pytest.param(["late", "--help"], (), marks=pytest.mark.proof),
    pytest.param(["audit", "verify"], ("numpy",), marks=pytest.mark.proof),
    pytest.param(["audit", "show", TABLE, "2017-01-01"], (), marks=pytest.mark.proof),
    pytest.param(["backup", "A FOLDER"], ("numpy",), marks=pytest.mark.proof),
    pytest.param(["restore", "A FOLDER", "--help"], (), marks=pytest.mark.proof),
    pytest.param(["maintenance", "run", "--dry-run"], (), marks=pytest.mark.proof),
    pytest.param(["maintenance", "run", "--only", "deletion", "--dry-run", "--json"], (), marks=pytest.mark.proof),
    pytest.param(
        ["land", "--until", "2017-01-01", "--days", "1"], ("numpy", "pandas", "polars"), marks=pytest.mark.proof
    ),
]


def test_every_command_is_looked_at() -> None:
    looked_at = {next(iter(getattr(case, "values", case)))[0] for case in CASES}
    assert {*looked_at, *COMPUTE} - {"--help"} == set(COMMANDS)


@pytest.mark.parametrize(("command", "allowed"), CASES, ids=" ".join)
def test_a_command_that_only_reads_imports_neither_dagster_nor_pyspark(published, tmp_path, command, allowed):
    ended = subprocess.run(
        [sys.executable, "-c", PROBE, *command],
        capture_output=True,
        text=True,
        env=os.environ,
        cwd=tmp_path,
        timeout=120,
    )
    assert ended.returncode in (0, 1), ended.stderr
    assert ended.stderr.splitlines()[-1].split()[1:] == sorted(allowed)


def test_the_help_of_a_command_imports_neither_sql_nor_arrow_nor_spark_nor_dagster() -> None:
    """Each takes longer to import than all of the help; `doctor`, `ledger`, `recover` are about the ledger."""
    names = [module_of(name) for name in COMMANDS if name not in ("doctor", "ledger", "recover")]
    script = (
        "import sys; from importlib import import_module\n"
        f"for name in {names}: import_module(name)\n"
        "print(sorted({'sqlalchemy', 'pyarrow', 'numpy', 'pyspark', 'dagster'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "[]\n"


def test_the_list_of_all_commands_says_of_each_what_its_own_help_says() -> None:
    """It is made without importing them."""
    runner = CliRunner(env={"COLUMNS": "400"})
    listed = runner.invoke(build(only_described=True), ["--help"]).output
    for name in COMMANDS:
        whole = runner.invoke(build([name]), [name, "--help"]).output
        [line] = [line for line in listed.splitlines() if line.lstrip("│ ").startswith(f"{name} ")]
        described = " ".join(line.strip("│ ").removeprefix(name).split())
        assert described[:60] in " ".join(whole.split()), name
