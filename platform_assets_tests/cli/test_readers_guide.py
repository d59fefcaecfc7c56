"""Every example of docs/readers.md runs, and readers of all kinds see the same."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish
from platform_assets.operations.opening import open_platform
from platform_assets.settings import load_settings, project_root
from platform_assets_tests.support.cli.commands import TABLE, Run
from platform_assets_tests.support.shelf import day, staged_manifest

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
    pinned = [block for _, block in blocks if "unpin first-quarter" in block]
    assert len(pinned) == 1
    for language, block in blocks:
        if language == "sh":
            for line in block.splitlines():
                if "unpin" not in line:
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
