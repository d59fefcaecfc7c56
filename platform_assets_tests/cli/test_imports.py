"""Commands that only read start neither Dagster nor Spark, nor even import them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from platform_assets.cli.app import COMMANDS, build, module_of
from platform_assets_tests.support.cli.commands import PROBE, TABLE

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
