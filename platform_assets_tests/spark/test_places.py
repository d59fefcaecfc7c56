"""The rows of a file are numbered in their order, into however many parts and tasks Spark cuts it."""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from platform_assets.contracts import Column, Contract, LandingFiles
from platform_assets.contracts.landing import Format
from platform_assets.planning import replays
from platform_assets.spark.raw.parsing import Layout, parse
from platform_assets.spark.raw.versions import file_order

ROWS = 1500
RAW = Contract(
    name="raw.lines",
    description="Numbered lines.",
    owner="tests@example.com",
    columns=(
        Column("n", "long", "Which line.", nullable=False),
        Column("at", "date", "When.", nullable=False),
        Column("text", "string", "As long as the number says."),
    ),
    key=("n",),
    source=LandingFiles("lines"),
    event_time="at",
)
NAMES = RAW.column_names


@pytest.fixture
def cut_small(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    chosen = {"spark.sql.files.maxPartitionBytes": "2000b", "spark.sql.files.openCostInBytes": "100b", **request.param}
    before = {name: spark.conf.get(name, None) for name in chosen}
    for name, value in chosen.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def landed(folder: Path) -> dict[Format, list[str]]:
    """Files of every format, of sizes that leave parts of their ends to share a task."""
    folder = folder / "lines" / "2024-03-01"
    folder.mkdir(parents=True)
    rows = [(n, "2024-03-01", "x" * (n % 40)) for n in range(ROWS)]
    csv = ["n,at,text", *(",".join(map(str, row)) for row in rows)]
    json = [f'{{"n": {n}, "at": "{at}", "text": "{text}"}}' + "\n " * (n % 3) for n, at, text in rows]
    for name, lines in (("a.csv", csv), ("b.csv", csv[:200]), ("c.csv", csv[:333]), ("d.jsonl", json)):
        (folder / name).write_text("\n".join(lines))
        (folder / f"{name}.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    table = pa.table({name: list(values) for name, values in zip(NAMES, zip(*rows, strict=True), strict=True)})
    pq.write_table(table, folder / "e.parquet", row_group_size=100)
    kinds: dict[Format, str] = {"csv": "*.csv*", "json": "*.jsonl*", "parquet": "*.parquet"}
    return {kind: sorted(map(str, folder.glob(pattern))) for kind, pattern in kinds.items()}


@pytest.mark.parametrize("cut_small", [{}, {"spark.sql.files.maxPartitionNum": "3"}], indirect=True, ids=str)
def test_rows_are_numbered_in_the_order_of_their_file(spark: SparkSession, tmp_path: Path, cut_small: None) -> None:
    layouts = [Layout(kind, NAMES, tuple(files)) for kind, files in landed(tmp_path).items()]
    found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in parse(spark, layouts, RAW).select("_arrival", "_place", "n").collect():
        found[row["_arrival"].rpartition("/")[2]].append((row["_place"], row["n"]))
    assert len(found) == 9
    for file, places in found.items():
        assert len({place for place, _ in places}) == len(places), file
        assert [n for _, n in sorted(places)] == list(range(len(places))), file


@pytest.mark.parametrize(
    "names",
    [
        ["part-2.csv", "part-10.csv", "0.csv", "000.csv", "a", "v1.02.csv", f"{'0' * 3}{'7' * 25}.csv", "9" * 20],
        ["ä-1_2017-01-02.csv", "b-2_2017-01-03.jsonl", "b-0_0000-00-00.parquet"],
        ["9" * 21, "8" * 21],
        ["7", "9"],
        ["a.csv", "b.csv"],
    ],
)
def test_files_are_ordered_by_name_in_spark_as_without_it(spark: SparkSession, names: list[str]) -> None:
    paths = [f"f/2024-03-01/{name}" for name in names]
    rows = spark.createDataFrame([(path,) for path in paths], "_arrival string").select("_arrival", file_order(names))
    assert {row[0]: row[1] for row in rows.collect()} == {path: replays.file_order(path) for path in paths}
