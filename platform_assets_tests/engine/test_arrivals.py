"""What is on record of a delivery is what was read of it."""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.contracts import Contract
from platform_assets.engine.ingest import batch, file_rows
from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author
from platform_assets.engine.results import IngestResult
from platform_assets.sources import landing
from platform_assets.sources.landing import LandedFile, State, sha256_of
from platform_assets.spark.raw.parsing import Layout, parse
from platform_assets.spark.tables.failures import DiskFullError
from platform_assets_tests.support.history import DAILY
from platform_assets_tests.support.world import MakeWorld, World, sale

RAW, DAY = "raw.transactions", "2017-01-01"


def taken(world: World) -> IngestResult:
    with world.open() as platform:
        return ingest(platform, lambda: world.spark, platform.catalogue[RAW], Author("r", "a test"))


def test_a_file_that_is_refused_for_what_is_in_it_is_hashed_once_and_left_if_it_is_replaced_meanwhile(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark reads none of it, so that a large one is not read a third time; two ingests without a row."""
    world = make_world(days=1, domains=DAILY, settle_s=0)
    bad = world.deliver("transactions", DAY, "bad.csv", "nothing\n1\n")
    other = world.deliver("other", DAY, "other.csv", "nothing\n2\n")
    read: list[str] = []

    def noted(file: Path, path: str, state: State) -> str:
        read.append(path)
        return sha256_of(file, path, state)

    def meanwhile(point: str) -> None:
        if point == "ingest.staged" and other.exists():
            os.utime(other, ns=(bad.stat().st_mtime_ns,) * 2)
            other.replace(bad)

    monkeypatch.setattr(landing, "sha256_of", noted)
    monkeypatch.setattr(batch, "failpoint", meanwhile)
    first = taken(world)
    assert not first.arrivals
    assert [problem.path for problem in first.growing] == [f"transactions/{DAY}/bad.csv"]
    [refused] = taken(world).arrivals
    assert refused.sha256 == sha256(b"nothing\n2\n").hexdigest()
    assert "lacks the column" in (refused.reason or "")
    assert read == [f"transactions/{DAY}/bad.csv"] * 2, "once for each of its versions"


def failing_on(name: str, says: str) -> Callable[..., DataFrame]:
    """A parser whose rows make Spark fail as soon as it reads a file whose path has the name in it."""

    def failing(spark: SparkSession, layouts: Sequence[Layout], contract: Contract, *came: Any) -> DataFrame:
        rows = parse(spark, layouts, contract, *came)
        ill = F.when(F.col("_arrival").contains(name), F.raise_error(F.lit(says)).cast("string"))
        return rows.withColumn("_arrival", F.coalesce(ill, "_arrival"))

    return failing


@pytest.mark.proof
def test_files_that_change_while_spark_reads_them_are_left_and_the_others_are_taken(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One grows, one becomes a link to the very file that it was, one goes; two ingests."""
    world = make_world(days=1, domains=DAILY, settle_s=0)
    there = [
        world.deliver_rows("transactions", DAY, f"{name}.jsonl", [sale(number, 1, DAY)])
        for number, name in enumerate(("whole", "grows", "linked", "goes"), 1)
    ]

    def meanwhile(point: str) -> None:
        if point == "ingest.staged" and there[3].exists():
            with there[1].open("a") as stream:
                stream.write(json.dumps(sale(5, 1, DAY)) + "\n")
            there[2].rename(tmp_path / "elsewhere.jsonl")
            there[2].symlink_to(tmp_path / "elsewhere.jsonl")
            there[3].unlink()

    with monkeypatch.context() as patch:
        patch.setattr(batch, "failpoint", meanwhile)
        first = taken(world)
    assert [arrival.path for arrival in first.arrivals] == [f"transactions/{DAY}/whole.jsonl"]
    assert [problem.path for problem in first.growing] == [f"transactions/{DAY}/grows.jsonl"]
    assert {problem.path: problem.what for problem in first.problems} == {
        f"transactions/{DAY}/linked.jsonl": "is a symbolic link; only files inside the landing root are taken",
        f"transactions/{DAY}/goes.jsonl": "cannot be read: No such file or directory",
    }
    assert {row["basket_id"] for row in world.rows(RAW)} == {1}
    second = taken(world)
    assert [(arrival.path, arrival.taken) for arrival in second.arrivals] == [(f"transactions/{DAY}/grows.jsonl", 2)]
    assert {row["basket_id"] for row in world.rows(RAW)} == {1, 2, 5}


def test_of_a_folder_that_is_exchanged_while_spark_reads_nothing_is_taken_where_deliveries_are_copied(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And put back before anybody looks again, so that its files are what they were by every sign."""
    world, name = make_world(days=1, domains=DAILY, settle_s=0, copy_deliveries=True), "a b%20c.jsonl"
    folder = world.deliver_rows("transactions", DAY, name, [sale(1, 1, DAY)]).parent
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / name).write_text(json.dumps(sale(2, 1, DAY)) + "\n")

    def exchanged(spark: SparkSession, layouts: Sequence[Layout], contract: Contract, *came: Any) -> DataFrame:
        folder.rename(tmp_path / "meanwhile")
        (tmp_path / "others").rename(folder)
        return parse(spark, layouts, contract, *came)

    def put_back(point: str) -> None:
        if point == "ingest.staged":
            folder.rename(tmp_path / "others")
            (tmp_path / "meanwhile").rename(folder)

    monkeypatch.setattr(file_rows, "parse", exchanged)
    monkeypatch.setattr(batch, "failpoint", put_back)
    (arrival,) = taken(world).arrivals
    assert (arrival.path, arrival.taken) == (f"transactions/{DAY}/{name}", 1)
    assert [row["basket_id"] for row in world.rows(RAW)] == [1]


def test_no_room_for_copies_of_deliveries_is_told_as_what_it_is(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(days=1, domains=DAILY, copy_deliveries=True)
    world.deliver_rows("transactions", DAY, "a.jsonl", [sale(1, 1, DAY)])

    def no_room(file: LandedFile) -> Iterator[bytes]:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(file_rows, "_content", no_room)
        with pytest.raises(OSError, match="No space left on device"):
            taken(world)
    assert [arrival.taken for arrival in taken(world).arrivals] == [1]


def test_files_that_spark_cannot_read_are_refused_and_the_others_are_taken(make_world: MakeWorld) -> None:
    """Parquet with a column of UUIDs beside the others: pyarrow writes it, Spark's reader fails in Java.

    Spark reads the batch, each of its halves, and each file that it fails with.
    """
    world = make_world(days=1, domains=DAILY)
    for n in range(4):
        content, is_ill = io.BytesIO(), n in (1, 2)
        rows = pa.Table.from_pylist([sale(n, 1, DAY)])
        if is_ill:
            rows = rows.append_column("more", pa.array([b"0123456789abcdef"], pa.uuid()))
        pq.write_table(rows, content)
        world.deliver("transactions", DAY, f"{'ill' if is_ill else 'good'}-{n}.parquet", content.getvalue())
    refused = {arrival.path.split("/")[-1]: arrival.reason for arrival in taken(world).arrivals if arrival.reason}
    assert sorted(refused) == ["ill-1.parquet", "ill-2.parquet"]
    for reason in refused.values():
        assert "cannot be read by Spark: " in reason
    assert [row["basket_id"] for row in sorted(world.rows(RAW), key=lambda row: row["basket_id"])] == [0, 3]


@pytest.mark.proof
@pytest.mark.parametrize(
    ("says", "raised"),
    [
        ("java.io.IOException: No space left on device", DiskFullError),
        ("java.lang.OutOfMemoryError: Java heap space", PySparkException),
        ("Job 7 cancelled", PySparkException),
    ],
)
def test_what_is_not_the_files_fault_refuses_none_of_them(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch, says: str, raised: type[Exception]
) -> None:
    world = make_world(days=1, domains=DAILY)
    world.deliver_rows("transactions", DAY, "a.jsonl", [sale(1, 1, DAY)])
    with monkeypatch.context() as patch:
        patch.setattr(file_rows, "parse", failing_on(DAY, says))
        with pytest.raises(raised):
            taken(world)
    assert [arrival.taken for arrival in taken(world).arrivals] == [1]


@pytest.mark.proof
def test_a_mistake_that_makes_spark_fail_with_every_file_refuses_none_of_them(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark reads as far as a file that is as its contract describes."""
    world = make_world(days=1, domains=DAILY)
    for name in ("a", "b"):
        world.deliver_rows("transactions", DAY, f"{name}.jsonl", [sale(ord(name), 1, DAY)])
    with monkeypatch.context() as patch:
        patch.setattr(file_rows, "parse", failing_on("", "a mistake of the platform"))
        with pytest.raises(PySparkException, match="a mistake of the platform"):
            taken(world)
    assert not list(world.settings.lake_folder.rglob("described*"))
    assert [arrival.taken for arrival in taken(world).arrivals] == [1, 1]


@pytest.mark.proof
def test_rows_that_can_be_read_but_not_written_refuse_no_file(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(days=1, domains=DAILY)
    world.deliver_rows("transactions", DAY, "a.jsonl", [sale(1, 1, DAY)])

    def fails(rows: DataFrame, folder: object) -> None:
        rows.sparkSession.sql("select raise_error('no way to write')").collect()

    with monkeypatch.context() as patch:
        patch.setattr(file_rows, "stage", fails)
        with pytest.raises(PySparkException, match="no way to write"):
            taken(world)
    assert [arrival.taken for arrival in taken(world).arrivals] == [1]
