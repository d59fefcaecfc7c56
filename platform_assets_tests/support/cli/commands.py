"""The command line as the console script starts it: in this process, or in one of its own where it starts Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from platform_assets.cli.app import main
from platform_assets_tests.support.installation import JARS, OWN_PROCESS

FIRST, LAST = date(2017, 1, 1), date(2017, 1, 3)
TABLE = "gold.daily_sales"
REASON = "lacks the column [/week]; expected are [bold]"
"""What a file's name or a source's words hold must not be taken for markup."""


@dataclass(frozen=True)
class Said:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def words(self) -> str:
        """What it printed, without line breaks and columns."""
        return " ".join(self.out.split())

    @property
    def error(self) -> str:
        """What it said on standard error, in one line."""
        return " ".join(self.err.split())


Run = Callable[..., Said]


def assert_refused(run: Run, *command: str, cases: Iterable[tuple[Sequence[str], str]]) -> None:
    """A command refuses each of these arguments by name, and says what to do."""
    for args, says in cases:
        said = run(*command, *args)
        assert said.code in (2, 3), args
        assert says in said.error, args
        assert "What to do:" in said.error or "--help" in said.error, args


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """State folder of the installation that commands see."""
    folders = {"STATE": tmp_path / "state", "JARS": JARS, "PLANS": tmp_path / "plans"}
    values = folders | {"CALENDAR_FIRST": FIRST, "CALENDAR_LAST": LAST, "TODAY": LAST}
    for name, value in values.items():
        monkeypatch.setenv(f"PLATFORM_{name}", str(value))
    return tmp_path / "state"


@pytest.fixture
def run(state: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Runs a command as the console script does."""
    monkeypatch.setenv("COLUMNS", "200")

    def command(*args: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["platform-assets", *args])
        capfdbinary.readouterr()
        umask = os.umask(0o022)
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        finally:
            os.umask(umask)
        out, err = capfdbinary.readouterr()
        said = Said(code, out.decode(), err.decode())
        assert "Traceback" not in said.out + said.err
        for_programs = {"--json", "--format"}.intersection(args)  # which have what others wrote as it is
        assert "\x1b" not in said.err + ("" if for_programs else said.out), "this is no terminal"
        return said

    return command


def run_apart(*args: str, **environment: str) -> Said:
    """Run a command that starts Spark, as a process of its own, with settings of its own for it.

    Args:
        args: the command.
        environment: what it sees besides the variables of this process.
    """
    own = {"PLATFORM_SPARK_DRIVER_MEMORY": "1g", "PLATFORM_SPARK_CONF": OWN_PROCESS, "COLUMNS": "200"} | environment
    started = [sys.executable, "-c", "from platform_assets.cli import main; main()", *args]
    ended = subprocess.run(started, capture_output=True, text=True, env=os.environ | own, timeout=300, check=False)
    assert "Traceback" not in ended.stdout + ended.stderr, ended.stderr
    assert "\x1b" not in ended.stdout + ended.stderr, "this is no terminal"
    return Said(ended.returncode, ended.stdout, ended.stderr)


PROBE = """
import sys
from platform_assets.cli import main
sys.argv = ["platform-assets", *sys.argv[1:]]
try:
    main()
finally:
    heavy = {"dagster", "pyspark", "py4j", "pandas", "polars", "duckdb", "numpy"} & set(sys.modules)
    print("imported", *sorted(heavy), file=sys.stderr)
"""
