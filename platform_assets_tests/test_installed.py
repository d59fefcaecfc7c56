"""PySpark of another Spark, which machines with one have in PYTHONPATH, is named before anything of it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_assets.spark import refuse_another_pyspark
from platform_assets_tests.support.cli.commands import run_apart, state

__all__ = ["state"]


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder with another PySpark, as Spark's own archives have it."""
    (tmp_path / "other" / "pyspark").mkdir(parents=True)
    (tmp_path / "other" / "pyspark" / "__init__.py").write_text('__version__ = "3.5.3"\n')
    return tmp_path / "other"


def install(folder: Path) -> None:
    """As pip installs it into a folder."""
    (folder / "pyspark-3.5.3.dist-info").mkdir()
    said = "Metadata-Version: 2.1\nName: pyspark\nVersion: 3.5.3\n"
    (folder / "pyspark-3.5.3.dist-info" / "METADATA").write_text(said)


@pytest.mark.parametrize(("command", "is_package"), [("doctor", False), ("up", True), ("refresh", False)])
def test_another_pyspark_is_refused_with_the_folder_to_take_out(
    command: str, is_package: bool, elsewhere: Path, state: Path
) -> None:
    if is_package:
        install(elsewhere)
    said = run_apart(command, PYTHONPATH=str(elsewhere))
    assert (said.code, "Traceback" in said.err) == (3, False)
    assert str(elsewhere / "pyspark") in " ".join(said.err.split())
    assert "out of PYTHONPATH" in said.err


def test_the_one_that_was_installed_is_taken() -> None:
    refuse_another_pyspark()
