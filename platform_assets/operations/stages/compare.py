"""What a stage would change: rows, keys and sums of every staged day against the release that it lies over. No JVM."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

from platform_assets.contracts.amounts import amounts
from platform_assets.engine.day_contents import files_at
from platform_assets.engine.platform import Platform
from platform_assets.engine.step.open_stage import OpenStage
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import rows_of_files
from platform_assets.operations.stages.inspect import stage_basis
from platform_assets.planning.selection import EVERYTHING, Selection
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets.records.manifest import DataFile

if TYPE_CHECKING:
    import polars as pl

Number = int | float | Decimal


@dataclass(frozen=True)
class StagedDay:
    """A staged day beside the same day of the release; every pair is before and after.

    Args:
        rows: number of rows.
        keys: number of different natural keys; None for tables without a contract, as quarantines are.
        added: keys that are only in the stage; rows of tables without a key, as the next two.
        removed: keys that are only in the release.
        changed: keys that have other values.
        sums: of the amounts of its contract, and of what else was asked for.
        nulls: of columns that were asked for.
        shifts: of these, how far the distribution of values is from what it was, from 0 to 100.
    """

    table: str
    day: date
    rows: tuple[int, int]
    keys: tuple[int, int] | None
    added: int
    removed: int
    changed: int
    sums: Mapping[str, tuple[Number, Number]]
    nulls: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    shifts: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_equal(self) -> bool:
        """Whether nothing differs."""
        return self.rows[0] == self.rows[1] and not (self.added or self.removed or self.changed or self.moved)

    @property
    def moved(self) -> dict[str, tuple[Number, Number]]:
        """The sums that differ; those of floating point by more than the order of the rows accounts for."""
        return {name: (before, after) for name, (before, after) in self.sums.items() if not _is_close(before, after)}


def compare(
    platform: Platform,
    stage: OpenStage,
    only: Selection = EVERYTHING,
    progress: OnProgress = no_progress,
    sums: Mapping[str, Collection[str]] | None = None,
    columns: Mapping[str, Collection[str]] | None = None,
) -> Iterator[StagedDay]:
    """Compare the days of a stage with those of its release, by table and day, one day in memory at a time.

    Args:
        stage: that was opened by name.
        only: of its tables and days.
        progress: told before every day, and when a table is finished.
        sums: columns to sum besides the amounts of the contracts, by table.
        columns: whose nulls and distribution to compare, by table.
    """
    snapshot = stage_basis(platform, stage)
    contracts = {contract.name: contract for contract in platform.catalogue}
    for _, change in sorted(stage.staged.tables.items()):
        if not only.has_table(change.table):
            continue
        contract = contracts.get(change.table)
        key = contract.row_key if contract else ()
        names = {*(amounts(contract) if contract else ()), *(sums or {}).get(change.table, ())}
        live = files_at(platform.lake, change.table, snapshot.version(change.table))
        asked = [(day, content) for day, content in sorted(change.days.items()) if only.has_day(day)]
        for done, (day, content) in enumerate(asked):
            progress(Progress("comparing", change.table, done, len(asked)))
            sides = (live.get(day, ()), content.files)
            looked_at = (columns or {}).get(change.table, ())
            yield compared(platform.lake, change.table, day, key, names, sides, looked_at)
        if asked:
            progress(Progress("comparing", change.table, len(asked), len(asked), finished=True))


def compared(
    lake: Lake,
    table: str,
    day: date,
    key: Sequence[str],
    summed: Collection[str],
    sides: tuple[Sequence[DataFile], Sequence[DataFile]],
    columns: Collection[str] = (),
) -> StagedDay:
    """A day as it is in some files beside the same day in others.

    Args:
        lake: that has the files.
        table: of the day.
        day: which.
        key: of the table; empty for tables without a contract.
        summed: columns.
        sides: files of the one and of the other.
        columns: whose nulls and distribution are compared, too.
    """
    before, after = (_rows(lake, table, day, files) for files in sides)
    added, removed, changed = _keys(key or _shared(before, after), before, after)
    then, now = _sums(before, summed), _sums(after, summed)
    return StagedDay(
        table,
        day,
        (_height(before), _height(after)),
        (_different(before, key), _different(after, key)) if key else None,
        added,
        removed,
        changed,
        {name: (then.get(name, 0), now.get(name, 0)) for name in {**then, **now}},
        {name: (_nulls(before, name), _nulls(after, name)) for name in columns},
        {name: _shift(before, after, name) for name in columns},
    )


def _rows(lake: Lake, table: str, day: date, files: Sequence[DataFile]) -> pl.DataFrame | None:
    import polars as pl

    if not files:
        return None
    arrow = rows_of_files(lake.table_path(table), {day: tuple(files)}).to_table()
    frame = pl.from_arrow(arrow)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _keys(key: Sequence[str], before: pl.DataFrame | None, after: pl.DataFrame | None) -> tuple[int, int, int]:
    if before is None or after is None:
        return _different(after, key), _different(before, key), 0
    both = _shared(before, after)
    before, after = of_one_type(before, after, [*dict.fromkeys([*key, *both])])
    added, removed = (
        _different(side.join(other.select(key), on=key, how="anti", nulls_equal=True), key)
        for side, other in ((after, before), (before, after))
    )
    new = after.select(both).join(before.select(both), on=both, how="anti", nulls_equal=True)
    return added, removed, _different(new, key) - added


def of_one_type(before: pl.DataFrame, after: pl.DataFrame, columns: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Some columns of both sides, each of a type that has the values of both: a contract may have got another one."""
    import polars as pl

    before, after = before.select(columns), after.select(columns)
    if before.schema == after.schema:
        return before, after
    together = pl.concat([before, after], how="vertical_relaxed")
    return together.head(before.height), together.tail(after.height)


def _shared(before: pl.DataFrame | None, after: pl.DataFrame | None) -> list[str]:
    """Columns of both sides, or of the only one, but the platform's own: they tell rows without a key apart."""
    sides = [side for side in (before, after) if side is not None]
    return [n for n in sides[0].columns if not n.startswith("_") and n in sides[-1].columns] if sides else []


def _different(rows: pl.DataFrame | None, key: Sequence[str]) -> int:
    return 0 if rows is None or not rows.height else rows.select(key).unique().height


def _height(rows: pl.DataFrame | None) -> int:
    return 0 if rows is None else rows.height


def _sums(rows: pl.DataFrame | None, names: Collection[str]) -> dict[str, Number]:
    import polars.selectors as cs

    if rows is None:
        return {}
    numbers = rows.select(cs.numeric() & cs.by_name(*names, require_all=False))
    return dict(zip(numbers.columns, (total or 0 for total in numbers.sum().row(0)), strict=True))


def _nulls(rows: pl.DataFrame | None, name: str) -> int:
    """Of a column; one that a side does not have yet is null in all of its rows."""
    if rows is None:
        return 0
    return rows[name].null_count() if name in rows.columns else rows.height


def _shift(before: pl.DataFrame | None, after: pl.DataFrame | None, name: str) -> float:
    """The greatest difference between the shares of values up to one and the same, in percent (Kolmogorov-Smirnov).

    Nulls are no values. Where one side has none at all, everything is different.
    """
    import polars as pl

    values = [
        side[name].drop_nulls().alias("value") for side in (before, after) if side is not None and name in side.columns
    ]
    there = [series for series in values if len(series)]
    if len(there) < 2:
        return 100.0 * len(there)
    shares = [
        series.value_counts(name="n").select("value", (sign * pl.col("n") / len(series)).alias("share"))
        for series, sign in zip(there, (1, -1), strict=True)
    ]
    apart = pl.concat(shares, how="vertical_relaxed").group_by("value").agg(pl.col("share").sum()).sort("value")
    return round(float(apart.select(pl.col("share").cum_sum().abs().max()).item()) * 100, 6)


def _is_close(number: Number, other: Number) -> bool:
    if isinstance(number, float) or isinstance(other, float):
        return math.isclose(number, other, rel_tol=1e-12)
    return number == other
