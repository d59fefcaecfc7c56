"""What a backfill has staged: its stage, how far that is and what it took, its figures beside those of the release."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import OpenStage
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.storage.location import Location
from platform_assets.operations.plan_record import STAGE, BackfillRecord
from platform_assets.operations.stages.compare import StagedDay, compare
from platform_assets.operations.stages.store import read_stage, stage_names
from platform_assets.planning.backfill.pace import Standing
from platform_assets.planning.backfill.plan_file import Gate
from platform_assets.planning.backfill.verdicts import Figures
from platform_assets.planning.selection import Selection
from platform_assets.progress import OnProgress, no_progress
from platform_assets.records.manifest import DayContent

_Number = Annotated[Decimal, Field(allow_inf_nan=True)]
_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,.*)?\])?")


def stage_of(platform: Platform, name: str) -> OpenStage | None:
    """Return what a backfill has staged; None while there is nothing."""
    stage = STAGE + name
    return read_stage(platform.lake, stage) if stage in stage_names(platform.lake) else None


def cores_of(platform: Platform) -> int | None:
    """Return how many cores Spark computes with, as far as the settings say so."""
    if platform.settings.spark_remote is None and (local := _LOCAL.fullmatch(platform.settings.spark_master)):
        return (os.cpu_count() or 1) if local[1] == "*" else int(local[1] or 1)
    return None


def standing_of(platform: Platform, record: BackfillRecord) -> Standing:
    """Return how far it is, by its record and what lies in its stage."""
    stage = stage_of(platform, record.name)
    staged = stage.staged.days if stage else {}
    current = record.steps[record.done].days if record.done < len(record.steps) else {}
    of_steps = {
        (table, day) for step in record.steps[: record.done] for table, days in step.days.items() for day in days
    }
    lying = {(table, day) for table, days in staged.items() for day in days}
    done = of_steps | (lying & {(table, day) for table, days in current.items() for day in days})
    # Once it is published its stage is gone, and its record says how many it left as they were.
    left_alone = len(done - lying) if stage else record.left_alone
    hourly, cores = record.file.budget.price_per_core_hour, cores_of(platform)
    money = None if hourly is None or cores is None else Decimal(record.seconds) * cores * hourly / 3600
    return Standing(len(done), record.days, record.seconds, record.explained_seconds, record.bytes, left_alone, money)


@dataclass(frozen=True, kw_only=True)
class _Kept(Figures):
    """Figures of one staged day, as long as the files of both sides are those that were read.

    Args:
        files: of the staged day.
        base: of the same day of the release.
    """

    sums: Mapping[str, tuple[_Number, _Number]]
    files: tuple[str, ...]
    base: tuple[str, ...]

    def is_of(self, content: DayContent, sums: Collection[str], columns: Collection[str]) -> bool:
        """Return whether figures are those of a staged day, with all columns that gates ask for by now."""
        is_same = (self.files, self.base) == (_paths(content), content.base)
        return is_same and self.sums.keys() >= set(sums) and self.nulls.keys() >= set(columns)


_DAYS = TypeAdapter(dict[str, tuple[_Kept, ...]])
"""What is kept of a backfill, as `days`."""


def staged_figures(
    platform: Platform,
    stage: OpenStage,
    name: str,
    gates: Collection[Gate],
    progress: OnProgress = no_progress,
) -> tuple[Figures, ...]:
    """Return the figures of staged days of the tables that gates look at; only days staged since are read."""
    sums: dict[str, set[str]] = {gate.table: set() for gate in gates}
    columns: dict[str, set[str]] = {gate.table: set() for gate in gates}
    for gate in gates:
        if gate.column is not None:
            (sums if gate.metric == "sum" else columns)[gate.table].add(gate.column)
    known = kept_figures(platform.lake, name)
    found: list[_Kept] = []
    for table in sorted(sums):
        contents = stage.staged.of(table)
        there = [
            one
            for one in known
            if one.table == table and one.day in contents and one.is_of(contents[one.day], sums[table], columns[table])
        ]
        found += there
        if new := frozenset(contents).difference(one.day for one in there):
            only = Selection(frozenset({table}), new)
            found += [_kept(day, contents) for day in compare(platform, stage, only, progress, sums, columns)]
    if found != list(known):
        found.sort(key=lambda one: (one.table, one.day))
        _file(platform.lake, name).replace(_DAYS.dump_json({"days": tuple(found)}))
    return tuple(found)


def kept_figures(lake: Lake, name: str) -> tuple[_Kept, ...]:
    """Return what the gates of a backfill looked at last, also once its stage is gone.

    Nothing where it cannot be read: then the days are read again.
    """
    content = _file(lake, name).read()
    try:
        return _DAYS.validate_json(content)["days"] if content is not None else ()
    except (ValidationError, KeyError):
        return ()


def _paths(content: DayContent) -> tuple[str, ...]:
    return tuple(file.path for file in content.files)


def _kept(day: StagedDay, contents: Mapping[date, DayContent]) -> _Kept:
    return _Kept(
        table=day.table,
        day=day.day,
        files=_paths(contents[day.day]),
        base=contents[day.day].base,
        rows=day.rows,
        keys=day.keys or day.rows,
        changed=day.added + day.removed + day.changed,
        sums={name: (Decimal(str(before)), Decimal(str(after))) for name, (before, after) in day.sums.items()},
        nulls=dict(day.nulls),
        shifts=dict(day.shifts),
    )


def _file(lake: Lake, name: str) -> Location:
    return lake.plans_path / f"{name}.figures"
