"""What a backfill has staged: its stage, how far that is and what it took, its figures beside those of the release."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from datetime import date
from decimal import Decimal

from pydantic import BaseModel, ConfigDict, ValidationError

from platform_assets.engine.platform import Platform
from platform_assets.engine.step.open_stage import OpenStage
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


class _Kept(BaseModel):
    """Figures of one staged day, as long as the files of both sides are those that were read.

    Numbers are text, since JSON knows none of as many digits.

    Args:
        files: of the staged day.
        base: of the same day of the release.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    day: date
    files: tuple[str, ...]
    base: tuple[str, ...]
    rows: tuple[int, int]
    keys: tuple[int, int]
    changed: int
    sums: dict[str, tuple[str, str]]
    nulls: dict[str, tuple[int, int]]
    shifts: dict[str, float]

    @property
    def figures(self) -> Figures:
        """As gates look at them."""
        sums = {name: (Decimal(before), Decimal(after)) for name, (before, after) in self.sums.items()}
        return Figures(self.table, self.day, self.rows, self.keys, sums, self.changed, self.nulls, self.shifts)


class _KeptDays(BaseModel):
    """All that is kept of one backfill."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    days: tuple[_Kept, ...]


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
    kept = _read(platform.lake, name)
    known = {(one.table, one.day): one for one in kept.days} if kept else {}
    found: list[_Kept] = []
    for table in sorted(sums):
        contents = stage.staged.of(table)
        there = [
            one
            for day, content in contents.items()
            if _is_of(one := known.get((table, day)), content, sums[table], columns[table])
        ]
        new = frozenset(contents).difference(one.day for one in there if one)
        found += [one for one in there if one]
        if new:
            only = Selection(frozenset({table}), new)
            found += [_kept(day, contents) for day in compare(platform, stage, only, progress, sums, columns)]
    if found != list(known.values()):
        found.sort(key=lambda one: (one.table, one.day))
        content = _KeptDays(days=tuple(found))
        _file(platform.lake, name).replace(content.model_dump_json().encode())
    return tuple(one.figures for one in found)


def kept_figures(lake: Lake, name: str) -> tuple[Figures, ...]:
    """Return what the gates of a backfill looked at last, also once its stage is gone; nothing without any."""
    kept = _read(lake, name)
    return tuple(one.figures for one in kept.days) if kept else ()


def _is_of(kept: _Kept | None, content: DayContent, summed: Collection[str], columns: Collection[str]) -> bool:
    """Return whether figures are those of a staged day, with all columns that gates ask for by now."""
    return (
        kept is not None
        and (kept.files, kept.base) == (_paths(content), content.base)
        and kept.sums.keys() >= set(summed)
        and kept.nulls.keys() >= set(columns)
    )


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
        sums={name: (str(before), str(after)) for name, (before, after) in day.sums.items()},
        nulls=dict(day.nulls),
        shifts=dict(day.shifts),
    )


def _read(lake: Lake, name: str) -> _KeptDays | None:
    """Return what is kept; None where there is nothing, or it cannot be read: then the days are read again."""
    content = _file(lake, name).read()
    try:
        return _KeptDays.model_validate_json(content) if content is not None else None
    except ValidationError:
        return None


def _file(lake: Lake, name: str) -> Location:
    return lake.plans_path / f"{name}.figures"
