"""Refused rows that are read from their files once more, and what stays of them among the refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.contracts.rules import refused_table
from platform_assets.engine.day_contents import computed_with, replaced, schema_to_replace, staged_at
from platform_assets.engine.ingest.aside import QuarantineError
from platform_assets.engine.raw.turn import IngestTurn
from platform_assets.planning.windows import ranges
from platform_assets.records.differences import Digest
from platform_assets.records.manifest import TableChange
from platform_assets.sources.landing import LandedFile
from platform_assets.spark.compare.profiles import RawProfile
from platform_assets.spark.raw.dead_letters import refused_again, refused_rows, replayed_rows
from platform_assets.spark.tables.reading import read_days
from platform_assets.spark.tables.schemas import REFUSED

_NAMED = 3
"""Files that an error names."""

Row = tuple[int, int, int]
"""A refused row: its number in the file, its place among the versions, and how often it was refused."""


@dataclass(frozen=True)
class Again:
    """What is taken once more of files that were refused before. A batch has files of one of the two kinds.

    Args:
        is_other: whether these have other content now, so that what was refused before is kept, as tried 0 times.
        rows: rows of files of which others were taken, by path; those of each file become an arrival of their own.
    """

    whole: frozenset[str] = frozenset()
    is_other: bool = False
    rows: Mapping[str, Sequence[Row]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.whole or self.rows)

    def before(self, turn: IngestTurn, publication: str) -> str:
        """Return what stands before the path of a file in the name of the arrival as which rows of it enter."""
        return f"replayed/{turn.contract.table}/{publication}/" if self.rows else ""

    def taken(self, parsed: DataFrame, before: str) -> DataFrame:
        """Return the rows to take of parsed files."""
        return replayed_rows(parsed, self._tried(parsed.sparkSession), before) if self.rows else parsed

    def left(self, staged: DataFrame, turn: IngestTurn, before: str, files: Collection[LandedFile]) -> DataFrame:
        """Return what is among the refused rows from now on, on the days of files of which rows were staged."""
        table, paths = refused_table(turn.contract.name), [file.path for file in files]
        path, days = turn.platform.lake.table_path(table), ranges({file.arrival_date for file in files})
        there = read_days(staged.sparkSession, path, turn.snapshot.files(table), REFUSED, days)
        if not self.rows:
            is_mine = F.col("_arrival").isin(paths)
            attempts = F.when(is_mine, F.lit(0)).otherwise(F.col("_attempts"))
            kept = there.withColumn("_attempts", attempts) if self.is_other else there.where(~is_mine)
            return kept.unionByName(refused_rows(staged))
        tried = self._tried(staged.sparkSession).where(F.col("_arrival").isin(paths))
        others = there.join(F.broadcast(tried), ["_arrival", "_row"], "left_anti")
        return others.unionByName(refused_again(staged, tried, before))

    def change(
        self, turn: IngestTurn, publication: str, files: Collection[LandedFile], left: RawProfile
    ) -> TableChange:
        """Return the change of the refused rows on these days, once what is left was staged."""
        table, lake = refused_table(turn.contract.name), turn.platform.lake
        there, staged = turn.snapshot.files(table), staged_at(lake, table, publication)
        days = {file.arrival_date for file in files} & (there.keys() | staged.keys())
        digests = {day: left.digests.get(day, Digest()) for day in days}
        return TableChange(
            table=table,
            schema_string=REFUSED.json(),
            days=replaced(there, staged, digests, dict.fromkeys(days, ""), {}),
            replaces_schema=schema_to_replace(lake, turn.snapshot.release, table, REFUSED.json()),
            software=computed_with(left.software),
        )

    def _tried(self, spark: SparkSession) -> DataFrame:
        rows = [(path, *row) for path, of_it in self.rows.items() for row in of_it]
        return spark.createDataFrame(rows, "_arrival string, _row long, _place long, _attempts int")


FIRST_TIME = Again()
"""Nothing of files that were never taken."""


def refuse_files(wrong: Mapping[str, str]) -> None:
    """Raise if files cannot be read once more."""
    if wrong:
        names = "; ".join(f"{path} {what}" for path, what in sorted(wrong.items())[:_NAMED])
        more = f"; and {len(wrong) - _NAMED:,} more files" if len(wrong) > _NAMED else ""
        raise QuarantineError(
            f"These files cannot be read once more: {names}{more}.",
            "Put them back into the landing area as they were, correct the contract, name others with --arrival, or "
            "have the rows delivered again under another name.",
        )


def repaired(turn: IngestTurn, files: Collection[LandedFile]) -> Again:
    """Return files that came again under their names after rows of them had been refused."""
    refused = turn.platform.ledger.arrivals(turn.contract.name, refused_only=True)
    before = frozenset(arrival.path for arrival in refused if arrival.refused)
    return Again(before & {file.path for file in files}, is_other=True)
