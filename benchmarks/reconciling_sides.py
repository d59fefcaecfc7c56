"""A year of till lines beside golden copies of it, by the platform, by a full join and by datacompy, in one session.

Settings come from `PLATFORM_…` variables; the lake has the year loaded. Prints the seconds of every round, and what was
found of each number of planted differences, as lines of JSON.

    python -m benchmarks.reconciling_sides FOLDER --rounds 3
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.platform_load import opened
from platform_assets.contracts import DAY
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.operations.reconcile import reconcile
from platform_assets.planning.windows import ranges
from platform_assets.settings import load_settings
from platform_assets.spark.tables.reading import read_days
from platform_assets.spark.tables.schemas import spark_schema

TABLE = "silver.transactions"
KEY = ("basket_id", "product_id")
PLANTED = (1, 10, 1000)
_SEED = 20170101


def write(rows: pl.DataFrame, folder: Path) -> str:
    """A golden copy: a file of Parquet a month."""
    folder.mkdir(parents=True)
    for month in range(1, 13):
        rows.filter(pl.col(DAY).dt.month() == month).write_parquet(folder / f"{month}.parquet")
    return str(folder)


def plant(rows: pl.DataFrame, count: int) -> tuple[pl.DataFrame, dict[tuple[str, str], str]]:
    """A copy that lacks some rows, has some of its own, and others with another amount, each of a key of its own."""
    draw = random.Random(_SEED + count)
    marked = rows.with_row_index("_n")
    chosen = draw.sample(range(rows.height), count)
    hows = ["missing right", "missing left", "different"]
    by_how = {how: set(chosen[at::3]) for at, how in enumerate(hows)}
    is_one = {how: pl.col("_n").is_in(sorted(numbers)) for how, numbers in by_how.items()}
    cent = pl.lit("0.01").cast(rows.schema["net_amount"])
    amount = pl.when(is_one["different"]).then(pl.col("net_amount") + cent).otherwise("net_amount")
    kept = marked.filter(~is_one["missing right"]).with_columns(
        amount.cast(rows.schema["net_amount"]).alias("net_amount")
    )
    # A row that only the copy has: that of another line, under a product that nobody sells.
    own = marked.filter(is_one["missing left"]).with_columns((-pl.col("_n").cast(pl.Int64) - 1).alias("product_id"))
    frames = {how: own if how == "missing left" else marked.filter(is_one[how]) for how in hows}
    planted = {
        (str(row[DAY]), f"basket_id {row['basket_id']}, product_id {row['product_id']}"): how
        for how, frame in frames.items()
        for row in frame.iter_rows(named=True)
    }
    both = pl.concat([kept, own.select(kept.columns)]).drop("_n")
    return both, planted


def full_join(left: DataFrame, right: DataFrame) -> int:
    """Rows that differ, by a join of all rows on the key and a comparison of all other columns."""
    values = [name for name in left.columns if name not in (*KEY, DAY)]
    joined = left.alias("l").join(right.alias("r"), [DAY, *KEY], "full_outer")
    equal = F.lit(True)
    for name in values:
        equal = equal & F.col(f"l.{name}").eqNullSafe(F.col(f"r.{name}"))
    return joined.where(~equal).count()


def by_datacompy(spark: SparkSession, left: DataFrame, right: DataFrame) -> int:
    """Whether two frames match; in an environment that has it."""
    from datacompy.spark import SparkSQLCompare

    return 0 if SparkSQLCompare(spark, left, right, [DAY, *KEY]).matches() else 1


def rounds(platform: Platform, spark: SparkSession, copy: str, count: int) -> None:
    """Print the seconds of all three, in turns, every second round in reverse order."""
    snapshot = LakeSnapshot.now(platform)
    files, schema = snapshot.files(TABLE), spark_schema(platform.catalogue[TABLE])

    def sides() -> tuple[DataFrame, DataFrame]:
        table = read_days(spark, platform.lake.table_path(TABLE), files, schema, ranges(files))
        return table, spark.read.parquet(copy)

    def level_2() -> int:
        return len(reconcile(platform, lambda: spark, (TABLE, copy)).different)

    ways: dict[str, Callable[[], int]] = {
        "level 2": level_2,
        "full join": lambda: full_join(*sides()),
        "datacompy": lambda: by_datacompy(spark, *sides()),
    }
    for number in range(-1, count):  # the first warms all of them up
        took: dict[str, float] = {}
        for name in list(ways) if number % 2 else list(ways)[::-1]:
            started = time.perf_counter()
            assert ways[name]() == 0, f"{name} finds a difference between equal sides"
            took[name] = time.perf_counter() - started
            spark.catalog.clearCache()
        if number >= 0:
            print(json.dumps(took), flush=True)


def main() -> None:
    """Write the copies, and look at each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beside", help="Folder that has datacompy.")
    arguments = parser.parse_args()
    sys.path.append(arguments.beside)
    with opened(load_settings()) as (platform, spark):
        rows = pl.DataFrame(read_arrow(platform.lake, TABLE))
        print(json.dumps({"rows": rows.height}), flush=True)
        rounds(platform, spark, write(rows, arguments.folder / "same"), arguments.rounds)
        for count in PLANTED:
            other, planted = plant(rows, count)
            copy = write(other, arguments.folder / str(count))
            started = time.perf_counter()
            found = reconcile(platform, lambda: spark, (TABLE, copy), drill=True, most=count)
            seconds = time.perf_counter() - started
            named = {(str(key.day), key.key): key.how for key in found.keys}
            print(json.dumps({"planted": count, "exact": named == planted, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
