"""Commands that only read start neither Dagster nor Spark, nor even import them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from platform_assets_tests.support.cli.commands import TABLE
from platform_assets_tests.support.cli.probe import PROBE


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        (["--help"], ()),
        (["status"], ()),
        (["read", TABLE], ()),
        (["read", TABLE, "--format", "csv"], ()),
        (["read", TABLE, "--format", "json"], ()),
        (["doctor"], ()),
        (["recover"], ()),
        (["ledger", "rebuild"], ()),
        (["stale"], ()),
        (["stale", TABLE, "--days", "2017-01-01..2017-01-02", "--json"], ()),
        (["why", TABLE, "2017-01-01", "--diff"], ()),
        (["refresh", "silver.products", "--explain"], ()),
        (["late", "list"], ()),
        (["releases"], ()),
        (["release", "show"], ()),
        (["release", "diff", "0"], ()),
        (["release", "pin", "0", "--reason", "x"], ()),
        (["views"], ()),
        (["views", "--engine", "spark"], ()),
        (["rollback", "--to", "0", "--dry-run"], ()),
        (["late", "--help"], ()),
        (["audit", "verify"], ()),
        (["audit", "show", TABLE, "2017-01-01"], ()),
        (["backup", "A FOLDER"], ()),
        (["maintenance", "run", "--dry-run"], ()),
        (["maintenance", "run", "--only", "deletion", "--dry-run", "--json"], ()),
        (["land", "--until", "2017-01-01", "--days", "1"], ("pandas", "polars")),
    ],
    ids=lambda value: " ".join(value),
)
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
