"""Proofs of a transform before its result is published: that it reads what it declares, and repeats itself.

The executed plan shows what it reads.

A transform that reads the clock, draws random numbers, depends on the order of rows or looks at its neighbours' windows
makes days that cannot be reproduced. Its plan is checked first. Then one day is computed again: alone, and from the
same rows in another order and partitioning, at once; only if that differs, separately, to find the cause. Code that
computed a single day has yet to prove that it ignores neighbours: whenever this code and contract compute more days
together than ever, one is tried.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Contract
from platform_assets.engine.day_contents import Files
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.step.inputs import Arrange, StepInputs
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.storage.location import Location
from platform_assets.planning.selection import days_to_probe
from platform_assets.planning.windows import FilesRead, first_outside, which
from platform_assets.quality.findings import Masking
from platform_assets.records.differences import Digest
from platform_assets.spark.compare.profiles import profile
from platform_assets.spark.compare.row_diff import disagreements
from platform_assets.spark.tables.scans import PlanInput, is_row_by_row, not_repeatable, scans_of
from platform_assets.spark.tables.schemas import spark_schema


class UndeclaredReadError(PlatformError):
    """A transform read something that its contract does not declare; no day of its step was published."""


def files_read(contract: Contract, days: Collection[date], snapshot: LakeSnapshot, frame: DataFrame) -> FilesRead:
    """Return how many files of each input day a step reads."""
    platform = snapshot.platform
    inputs = [_Input(platform, read.table, snapshot.files(read.table)) for read in contract.inputs]
    locations: defaultdict[str, set[Location]] = defaultdict(set)
    for scan in scans_of(frame):
        for table, files in _declared(platform.lake, contract, days, inputs, scan).items():
            locations[table] |= files
    read = {
        declared.table: Counter(declared.live[file] for file in locations[declared.table])
        for declared in inputs
        if declared.table in locations
    }
    if outside := first_outside(contract, days, snapshot.calendar, read):
        table, day = outside
        raise UndeclaredReadError(
            f"The transform of {contract.name} reads {table} on {day}, which no window of {which(days)} holds; "
            "no day was published with it.",
            f"Read {table} only through the parameter {table.split('.')[1]}, or declare a longer window.",
        )
    return read


def refuse_jobs_of_its_own(contract: Contract, jobs: int) -> None:
    """Refuse a transform that starts jobs while describing its rows: its reads cannot be bounded."""
    if jobs:
        raise UndeclaredReadError(
            f"The transform of {contract.name} started {jobs:,} Spark jobs of its own instead of describing its rows, "
            "so that its reads are unknown; no day was published with it.",
            "Leave out collect, count, first, checkpoint and the like; give a pivot its values.",
        )


class _Input:
    """A table that may be read: its files, with their days."""

    def __init__(self, platform: Platform, table: str, days: Files) -> None:
        self.table, self.folder = table, platform.lake.table_path(table)
        self.live = {
            self.folder / file.path: platform.counted_on(table, day) for day, files in days.items() for file in files
        }


def _declared(
    lake: Lake, contract: Contract, days: Collection[date], inputs: Sequence[_Input], scan: PlanInput
) -> dict[str, set[Location]]:
    """Return what a scan reads of each input."""
    locations: defaultdict[str, set[Location]] = defaultdict(set)
    read = scan.files | ({scan.table} if scan.table else set())
    for path in read or {None}:
        declared = next(
            (declared for declared in inputs if path and (path == declared.folder or path.below(declared.folder))), None
        )
        if declared is None or path is None:
            raise UndeclaredReadError(
                f"The transform of {contract.name} reads {_what(lake, path, scan)} for {which(days)}, which its "
                "contract does not declare; no day was published with it.",
                f"Declare it as an Input of {contract.name} and read it through the parameter; rows that are part of "
                "the code belong into expressions.",
            )
        if path in scan.files and path not in declared.live:
            raise UndeclaredReadError(
                f"The transform of {contract.name} reads {path.below(declared.folder)} of {declared.table} for "
                f"{which(days)}, which is not part of the release that it was given; no day was published "
                "with it.",
                f"Read {declared.table} only through the parameter {declared.table.split('.')[1]}.",
            )
        locations[declared.table] |= scan.files & {path}
    return locations


def _what(lake: Lake, path: Location | None, scan: PlanInput) -> str:
    if path is None:
        return f"what Spark calls {scan.what}"
    inside = path.below(lake.root)
    return ".".join(inside.split("/")[:2]) if inside else str(path)


Cause = Literal["again", "order", "alone"]

_CAUSES: Mapping[Cause, tuple[str, str]] = {
    "again": (
        "a second computation from the same rows has other content",
        (
            "Leave out what differs between two computations: the clock, random numbers, uuid, also those of Python "
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
    """A transform would not give the same result again; no day of its step was published."""


def refuse_what_cannot_repeat(contract: Contract, frame: DataFrame) -> None:
    """Refuse expressions that never give the same result twice; starts no job."""
    if expressions := not_repeatable(frame):
        named = ", ".join(f"{name} ({why})" for name, why in expressions.items())
        raise NotRepeatableError(
            f"The transform of {contract.name} would not give the same result again: it uses {named}; no day "
            "was published with it.",
            "Leave it out of the transform: what it gives belongs into the data, where it is the same every time.",
        )


def probe(inputs: StepInputs, staged: Callable[[], DataFrame], digests: Mapping[date, Digest], together: int) -> None:
    """Compute one of some staged days again, and refuse a transform that then gives another result.

    Of two days both, each without the other. No day if as many were published together before.

    A transform that makes every row from one row of the same day is proved by its plan and costs no job.

    Args:
        digests: digests of all those days, empty ones included.
        together: most days with rows that this code and contract have computed together before.

    Raises:
        NotRepeatableError: names the day, the cause, and where it differs.
    """
    days, contract = days_to_probe({day: digest.rows for day, digest in digests.items()}, together), inputs.contract
    if not days or _is_proved_by_plan(inputs, days[0]):
        return
    for day in days:
        turned = _digests(inputs, day, _turned)
        if turned == {day: digests[day]}:
            continue
        cause, frame = _cause(inputs, day, turned)
        what, todo = _CAUSES[cause]
        masking = inputs.snapshot.platform.masking
        where = _where(contract, staged().where(F.col(DAY) == F.lit(day)), frame, masking)
        raise NotRepeatableError(
            f"The transform of {contract.name} does not always give the same result: {day} was tried; {what}{where}; "
            "neither it nor a day computed with it was published.",
            todo,
        )


def _alone(inputs: StepInputs, day: date, arranged: Arrange | None = None) -> DataFrame:
    """Return the transform's result for a single day, not computed yet."""
    made = inputs.transformed(inputs.input_rows([day], arranged))
    return made.select(*spark_schema(inputs.contract).fieldNames())


def _digests(inputs: StepInputs, day: date, arranged: Arrange | None = None) -> dict[date, Digest]:
    """Return digests of the result by day: other days than the requested one should have none."""
    return {of_day: made.digest for of_day, made in profile(_alone(inputs, day, arranged), (), ()).items()}


def _is_proved_by_plan(inputs: StepInputs, day: date) -> bool:
    """Return whether each row is made from one row of the same day, by deterministic expressions."""
    given = inputs.input_rows([day])
    rows = [frame for frame in given.values() if isinstance(frame, DataFrame)]
    first, second = inputs.transformed(given), inputs.transformed(given)
    return is_row_by_row(first, rows) and first.sameSemantics(second)


def _turned(rows: DataFrame) -> DataFrame:
    """Return the same rows last to first in a single partition, so that any two of them have changed places."""
    placed = rows.withColumn(_POSITION, F.monotonically_increasing_id())
    return placed.repartition(1).sortWithinPartitions(F.desc(_POSITION)).drop(_POSITION)


def _cause(inputs: StepInputs, day: date, turned: Mapping[date, Digest]) -> tuple[Cause, DataFrame]:
    """Return why a day differs, and rows that show it."""
    alone = _digests(inputs, day)
    if _digests(inputs, day) != alone:
        return "again", _alone(inputs, day)
    if turned != alone:
        return "order", _alone(inputs, day, _turned)
    return "alone", _alone(inputs, day)


def _where(contract: Contract, staged: DataFrame, again: DataFrame, masking: Masking) -> str:
    """Return the columns and the first keys that differ, sensitive values masked."""
    differences = disagreements(staged, again, contract)
    columns = sorted({name for difference in differences for name in difference.columns})
    keys = "; ".join(masking.shown_key(contract, contract.row_key, difference.key) for difference in differences)
    return (f", in {', '.join(columns)}" if columns else "") + (f", of {keys}" if keys else "")
