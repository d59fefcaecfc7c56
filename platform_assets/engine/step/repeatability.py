"""New code proves that it always gives the same, before the first thing it made is published.

A transform that reads the clock, draws random numbers, depends on the order of rows or looks at its neighbours' windows
makes days that nobody can make again. Its plan is looked at first. Then one day is computed again: alone, and from the
same rows in another order and partitioning, at once; only where that differs, apart, to tell why. What was computed for
a single day has yet to show that it looks at no neighbours: whenever more days are computed together than ever by this
code and contract, one is tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Contract
from platform_assets.engine.platform import transform_of
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.step.inputs import Arrange, InputRows, transform_inputs
from platform_assets.errors import PlatformError
from platform_assets.planning.key_scope import KeyScope
from platform_assets.planning.selection import days_to_probe
from platform_assets.quality.findings import Masking
from platform_assets.records.differences import Digest
from platform_assets.spark.compare.profiles import profile
from platform_assets.spark.compare.row_diff import disagreements
from platform_assets.spark.tables.scans import is_row_by_row, not_repeatable
from platform_assets.spark.tables.schemas import spark_schema

Cause = Literal["again", "order", "alone"]

_CAUSES: Mapping[Cause, tuple[str, str]] = {
    "again": (
        "a second computation from the same rows has other content",
        (
            "Leave out what changes from one time to the next: the clock, random numbers, uuid, also those of Python "
            "and of functions it calls. A moment or a seed belongs into the data."
        ),
    ),
    "order": (
        "computed from the same rows in another order and partitioning it has other content",
        (
            "Order rows completely, up to the key, wherever one of several is chosen: row_number, first, last, "
            "collect_list, limit, dropDuplicates; and sum decimals instead of doubles."
        ),
    ),
    "alone": (
        "computed alone it has other content than together with its neighbours",
        (
            "Let a day see only its own window: per_day() of an input with several days, and event_date in every "
            "groupBy, join and window of the transform."
        ),
    ),
}
_POSITION = "_position"


class NotRepeatableError(PlatformError):
    """A transform would not give the same a second time; nothing of its step was published."""


def refuse_what_cannot_repeat(contract: Contract, frame: DataFrame) -> None:
    """Look for expressions that never give the same twice; starts no job.

    Raises:
        NotRepeatableError: naming them.
    """
    if expressions := not_repeatable(frame):
        named = ", ".join(f"{name} ({why})" for name, why in expressions.items())
        raise NotRepeatableError(
            f"The transform of {contract.name} would not give the same a second time: it uses {named}; no day "
            "was published with it.",
            "Leave it out of the transform: what it gives belongs into the data, where it is the same every time.",
        )


def probe(
    spark: SparkSession,
    contract: Contract,
    snapshot: LakeSnapshot,
    staged: DataFrame,
    digests: Mapping[date, Digest],
    together: int,
    scope: KeyScope | None = None,
) -> None:
    """Compute one of some staged days again, and refuse a transform that then gives something else.

    Of two days both, each without the other. None where as many were published together before.

    A transform that makes every row from one row of the same day is proved by its plan and costs no job.

    Args:
        staged: rows of the days as they were computed together.
        digests: of all those days, the empty ones included.
        together: most days with rows that this code and contract have made together before.

    Raises:
        NotRepeatableError: naming the day, what made a difference, and where.
    """
    days = days_to_probe({day: digest.rows for day, digest in digests.items()}, together)
    trial = _Trial(spark, contract, snapshot, scope)
    if not days or trial.is_proved_by_plan(days[0]):
        return
    for day in days:
        turned = trial.digests(day, _turned)
        if turned == {day: digests[day]}:
            continue
        cause, frame = _cause(trial, day, turned)
        what, todo = _CAUSES[cause]
        where = _where(contract, staged.where(F.col(DAY) == F.lit(day)), frame, snapshot.platform.masking)
        raise NotRepeatableError(
            f"The transform of {contract.name} does not always give the same: {day} was tried, and {what}{where}; "
            "neither it nor a day computed with it was published.",
            todo,
        )


class _Trial:
    """Computations of a day by itself."""

    def __init__(self, spark: SparkSession, contract: Contract, snapshot: LakeSnapshot, scope: KeyScope | None) -> None:
        self._spark, self._contract, self._basis, self._scope = spark, contract, snapshot, scope

    def _given(self, day: date, arranged: Arrange | None = None) -> dict[str, InputRows]:
        return transform_inputs(self._spark, self._contract, [day], self._basis, arranged, scope=self._scope)

    def frame(self, day: date, arranged: Arrange | None = None) -> DataFrame:
        """Return what the transform makes of the day, not computed yet."""
        given = self._given(day, arranged)
        made = transform_of(self._basis.platform.catalogue, self._contract)(**given)
        return made.select(*spark_schema(self._contract).fieldNames())

    def digests(self, day: date, arranged: Arrange | None = None) -> dict[date, Digest]:
        """Return what comes out, by day: of any other day than the one asked for there should be nothing."""
        return {of_day: made.digest for of_day, made in profile(self.frame(day, arranged), (), ()).items()}

    def is_proved_by_plan(self, day: date) -> bool:
        """Return whether each row is made from one row of the same day, by expressions that are the same every time."""
        given = self._given(day)
        rows = [frame for frame in given.values() if isinstance(frame, DataFrame)]
        transform = transform_of(self._basis.platform.catalogue, self._contract)
        first, second = transform(**given), transform(**given)
        return is_row_by_row(first, rows) and first.sameSemantics(second)


def _turned(rows: DataFrame) -> DataFrame:
    """Return the same rows last to first in a single partition, so that any two of them have changed places."""
    placed = rows.withColumn(_POSITION, F.monotonically_increasing_id())
    return placed.repartition(1).sortWithinPartitions(F.desc(_POSITION)).drop(_POSITION)


def _cause(trial: _Trial, day: date, turned: Mapping[date, Digest]) -> tuple[Cause, DataFrame]:
    """Return why a day came out otherwise, and rows that show it."""
    alone = trial.digests(day)
    if trial.digests(day) != alone:
        return "again", trial.frame(day)
    if turned != alone:
        return "order", trial.frame(day, _turned)
    return "alone", trial.frame(day)


def _where(contract: Contract, staged: DataFrame, again: DataFrame, masking: Masking) -> str:
    """Return the columns and the first keys that differ, sensitive values masked."""
    differences = disagreements(staged, again, contract)
    columns = sorted({name for difference in differences for name in difference.columns})
    keys = "; ".join(masking.shown_key(contract, contract.row_key, difference.key) for difference in differences)
    return (f", in {', '.join(columns)}" if columns else "") + (f", of {keys}" if keys else "")
