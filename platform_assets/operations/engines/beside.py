"""What two engines make of the same days, beside each other: by column and by key. Nothing of it is published."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date

from platform_assets.contracts.dead_letters import quarantine_table
from platform_assets.contracts.table import amounts
from platform_assets.engine.admissions import take_off
from platform_assets.engine.day_contents import Files, staged_at
from platform_assets.engine.platform import Platform
from platform_assets.engine.publishing import discard_stage, new_stage
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.step.staging import stage_days
from platform_assets.operations.engines.admitting import EngineError, with_transform
from platform_assets.operations.stages.compare import ColumnBeside, Example, StagedDay, columns_beside, compared
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets.records.admission import EngineName
from platform_assets.records.digest import Digest
from platform_assets.spark.compare.profiles import Profile
from platform_assets.spark.sail.session import columns_for, session_of
from platform_assets.spark.session.on_demand import SparkOnDemand

ENGINES: tuple[EngineName, EngineName] = ("spark", "sail")
"""Before is the reference, after the other one."""


@dataclass(frozen=True)
class EnginesBeside:
    """Days of a table as Spark makes them, and as Sail does.

    Args:
        days: by rows, keys and sums, oldest first.
        differing: days with another digest, of the table or of the rows that broke its rules.
        quarantines: of these, those of the rows that broke its rules.
        was_admitted: whether the table is taken off for it.
    """

    table: str
    days: tuple[StagedDay, ...]
    columns: tuple[ColumnBeside, ...]
    examples: tuple[Example, ...]
    differing: tuple[date, ...]
    quarantines: tuple[date, ...] = ()
    was_admitted: bool = False


def compare_engines(
    platform: Platform,
    spark: SparkOnDemand,
    table: str,
    days: Collection[date],
    most_examples: int,
    progress: OnProgress = no_progress,
) -> EnginesBeside:
    """Compute days of a table on both engines from what is released now, and lay them beside each other.

    A table that comes out otherwise is no longer computed by Sail.

    Args:
        days: to compute; those whose inputs were loaded.

    Raises:
        EngineError: the table has no transform, the installation cannot use Sail, or no day was named that is there.
    """
    contract = with_transform(platform, table)
    snapshot = LakeSnapshot.now(platform)
    chosen = sorted(set(days) & snapshot.days(contract.name).keys())
    if not chosen:
        raise EngineError(
            f"None of these days of {contract.name} is published.", "Name days that `platform-assets status` has."
        )
    progress(Progress("comparing", contract.name, 0, len(chosen)))
    sides: list[Files] = []
    contents: list[dict[date, tuple[Digest, Digest]]] = []
    made: list[tuple[str, tuple[str, ...]]] = []
    names = (contract.name, quarantine_table(contract.name))
    try:
        for engine in ENGINES:
            with new_stage(platform, names) as (publication, folders), columns_for(engine):
                made.append((publication, names))
                session = session_of(platform.settings, engine, spark)
                staged = stage_days(platform, session, contract, chosen, snapshot, *(folders[name] for name in names))
                letters = {day: staged.quarantined.get(day, Profile()).digest for day in chosen}
                contents.append({day: (staged.digest(day), letters[day]) for day in chosen})
                files = staged_at(platform.lake, contract.name, publication) if staged.rows is not None else {}
                sides.append({day: files.get(day, ()) for day in chosen})
        both = (sides[0], sides[1])
        beside = tuple(
            compared(
                platform.lake, contract.name, day, contract.row_key, amounts(contract), (both[0][day], both[1][day])
            )
            for day in chosen
        )
        columns, examples = columns_beside(platform.lake, contract, both, platform.masking, most_examples)
    finally:
        for publication, of_stage in made:
            discard_stage(platform, publication, of_stage)
    differing = tuple(day for day in chosen if contents[0][day] != contents[1][day])
    quarantines = tuple(day for day in differing if contents[0][day][1] != contents[1][day][1])
    off = bool(differing) and take_off(
        platform, contract.name, f"compared by key, {contract.name} {differing[0]} differs between Spark and Sail"
    )
    progress(Progress("comparing", contract.name, len(chosen), len(chosen), finished=True))
    return EnginesBeside(contract.name, beside, columns, examples, differing, quarantines, off)
