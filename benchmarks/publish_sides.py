"""Both sides of publishing and undoing the same days, by turns in one process with a warm session.

Settings come from `PLATFORM_…` variables. The lake has the calendar loaded and corrections of the days in raw, of which
nothing else was computed yet. Prints the seconds of every round as a line of JSON.

    python -m benchmarks.publish_sides 2017-04-01 2017-04-30 --rounds 3
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.platform_load import opened
from platform_assets.contracts import DAY
from platform_assets.engine.platform import Author, Platform
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.layout import located
from platform_assets.lakehouse.releases import newest_release, publication_of
from platform_assets.lakehouse.storage.location import Location
from platform_assets.operations.rollback import rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.operations.stages.stages import publish_stage, refresh_stage
from platform_assets.planning.selection import Request
from platform_assets.planning.windows import day_range
from platform_assets.settings import load_settings

TABLES = ("silver.transactions", "gold.daily_sales", "gold.sales_month_to_date")
_AUTHOR = Author("benchmark", "a benchmark")


@dataclass
class Sides:
    """The platform's tables, with corrections of the days staged, and copies that plain Spark and Delta work on."""

    platform: Platform
    spark: SparkSession
    first: date
    last: date
    copies: Path

    def stage(self) -> None:
        """Compute the days of all tables, which is what publishing and rolling back are spared."""
        request = Request(frozenset(TABLES), frozenset(day_range(self.first, self.last)), by_person=True, force=True)
        refresh_stage(self.platform, lambda: self.spark, _AUTHOR, "benchmark", request=request)

    def publish(self) -> None:
        """Show the stage."""
        publish_stage(self.platform, lambda: self.spark, _AUTHOR, "benchmark")

    def roll_back(self) -> None:
        """Undo what was published last."""
        publication = publication_of(self.platform.lake, newest_release(self.platform.lake))
        rollback(self.platform, chosen_publications(self.platform, publication), _AUTHOR)

    def replace_where(self) -> None:
        """The same with Delta's own means: every table's days overwritten from where they were staged."""
        for table in TABLES:
            staged = self.spark.read.format("delta").load(str(self.copies / "staged" / table))
            days = f"{DAY} >= '{self.first}' AND {DAY} <= '{self.last}'"
            staged.write.format("delta").mode("overwrite").option("replaceWhere", days).save(str(self._copy(table)))

    def restore(self) -> None:
        """Every table put back to the version before the last."""
        for table in TABLES:
            copy = DeltaTable.forPath(self.spark, str(self._copy(table)))
            before = commits.head_version(located(self._copy(table))) - 1
            copy.restoreToVersion(before)

    def copy(self) -> None:
        """Copies of the tables as they are, and of the days that were staged."""
        for table in TABLES:
            path = str(self.platform.lake.table_path(table))
            rows = self.spark.read.format("delta").load(path)
            rows.write.format("delta").partitionBy(DAY).save(str(self._copy(table)))

    def keep_staged(self) -> None:
        """The days as the platform shows them now, for plain Delta to publish."""
        for table in TABLES:
            rows = self.spark.read.format("delta").load(str(self.platform.lake.table_path(table)))
            days = rows.where(F.col(DAY).between(F.lit(self.first), F.lit(self.last)))
            days.write.format("delta").partitionBy(DAY).save(str(self.copies / "staged" / table))

    def check(self) -> None:
        """Both sides must hold the same."""
        for table in TABLES:
            ours, theirs = (
                self.spark.read.format("delta").load(str(path))
                for path in (self.platform.lake.table_path(table), self._copy(table))
            )
            hashed = [frame.select(F.count("*"), F.sum(F.hash(*sorted(frame.columns)))) for frame in (ours, theirs)]
            if hashed[0].collect() != hashed[1].collect():
                raise SystemExit(f"{table} is not the same on both sides")

    def mix_s(self, tables: Callable[[str], Location]) -> float:
        """How long whoever reads the tables by themselves could see some of them new and others old."""
        places = [tables(table) for table in TABLES]
        times = [commits.commit_file(place, commits.head_version(place)).written() for place in places]
        return (max(times) - min(times)).total_seconds()

    def _copy(self, table: str) -> Path:
        return self.copies / table

    def round(self, number: int) -> dict[str, float]:
        """Seconds of every operation, the sides' order changing from round to round."""
        took: dict[str, float] = {}

        def timed(name: str, act: Callable[[], None]) -> None:
            os.sync()  # what the other side left to write is not this one's to wait for
            started = time.monotonic()
            act()
            took[name] = time.monotonic() - started

        def ours() -> None:
            timed("publish", self.publish)
            took["mix, publish"] = self.mix_s(self.platform.lake.table_path)
            if number == 0:
                self.keep_staged()

        def theirs() -> None:
            timed("replaceWhere", self.replace_where)
            took["mix, replaceWhere"] = self.mix_s(lambda table: located(self._copy(table)))

        back = [partial(timed, "rollback", self.roll_back), partial(timed, "RESTORE", self.restore)]
        timed("recompute", self.stage)
        for acts in ([ours, theirs], back):
            for act in acts if number % 2 == 0 else acts[::-1]:
                act()
            self.check()
        return took


def main() -> None:
    """Publish and undo, round by round."""
    parser = argparse.ArgumentParser()
    parser.add_argument("first", type=date.fromisoformat)
    parser.add_argument("last", type=date.fromisoformat)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    settings = load_settings()
    copies = settings.state / f"copies-{asked.first}-{asked.last}"
    with opened(settings) as (platform, spark):
        sides = Sides(platform, spark, asked.first, asked.last, copies)
        sides.copy()
        for number in range(asked.rounds):
            print(json.dumps(sides.round(number)), flush=True)


if __name__ == "__main__":
    main()
