"""Differences between a stage and its release: keys, sums and column values of staged days. No JVM."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from platform_assets.contracts import DAY, Contract
from platform_assets.contracts.table import amounts
from platform_assets.engine.day_contents import files_at
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import OpenStage
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import rows_of_files
from platform_assets.operations.stages.store import stage_basis
from platform_assets.planning.selection import EVERYTHING, Selection
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets.quality.findings import Masking
from platform_assets.records.manifest import DataFile

if TYPE_CHECKING:
    import polars as pl

Number = int | float | Decimal
Files = Mapping[date, Sequence[DataFile]]
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_AFTER = " after"
"""Behind the name of a column; none can have it."""


@dataclass(frozen=True)
class StagedDay:
    """A staged day and the same day of the release; every pair is before and after.

    Args:
        keys: number of distinct natural keys; None for tables without a contract, such as quarantines.
        added: keys only in the stage; rows if the table has no key, as in the next two.
        removed: keys only in the release.
        sums: sums of the contract's amounts, and of other requested columns.
        nulls: nulls of requested columns.
        shifts: distance between the distributions of these before and after, from 0 to 100.
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
        """Return whether nothing differs."""
        return self.rows[0] == self.rows[1] and not (self.added or self.removed or self.changed or self.moved)

    @property
    def moved(self) -> dict[str, tuple[Number, Number]]:
        """Return the sums that differ; those of floating point only if the order of rows does not explain it."""
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
        sums: columns to sum besides the amounts of the contracts, by table.
        columns: columns whose nulls and distribution to compare, by table.
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
    """Return the comparison of a day in some files with the same day in others."""
    before, after = (_frame(lake, table, {day: files}) for files in sides)
    every = key or _shared(before, after)
    found = _differing(every, _shared(before, after), before, after)
    added, removed, changed = (_different(found[how], every) for how in ("added", "removed", "changed"))
    then, now = _sums(before, summed), _sums(after, summed)
    return StagedDay(
        table,
        day,
        (before.height, after.height),
        (_different(before, key), _different(after, key)) if key else None,
        added,
        removed,
        changed,
        {name: (then.get(name, 0), now.get(name, 0)) for name in {**then, **now}},
        {name: (_nulls(before, name), _nulls(after, name)) for name in columns},
        {name: _shift(before, after, name) for name in columns},
    )


def _frame(lake: Lake, table: str, files: Files, only: Sequence[str] | None = None) -> pl.DataFrame:
    """Return the rows of some days, all or some of their columns; no columns without files."""
    import polars as pl

    there = {day: of_day for day, of_day in files.items() if of_day}
    if not there:
        return pl.DataFrame()
    rows = rows_of_files(lake.table_path(table), there)
    names = [name for name in only or rows.schema.names if name in rows.schema.names]
    frame = pl.from_arrow(rows.to_table(columns=names))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _of_one_type(
    before: pl.DataFrame, after: pl.DataFrame, columns: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return columns of both sides in a common type that holds the values of both: a contract may have changed."""
    import polars as pl

    before, after = before.select(columns), after.select(columns)
    if before.schema == after.schema:
        return before, after
    together = pl.concat([before, after], how="vertical_relaxed")
    return together.head(before.height), together.tail(after.height)


def _shared(before: pl.DataFrame, after: pl.DataFrame) -> list[str]:
    """Return common columns without the platform's own. They identify rows of a table without a key."""
    sides = [side for side in (before, after) if side.columns]
    return [n for n in sides[0].columns if not n.startswith("_") and n in sides[-1].columns] if sides else []


def _different(rows: pl.DataFrame, key: Sequence[str]) -> int:
    return rows.select(key).unique().height if rows.height else 0


def _nulls(rows: pl.DataFrame, name: str) -> int:
    """Count the nulls of a column; a column that a side lacks is null in all of its rows."""
    return rows[name].null_count() if name in rows.columns else rows.height


def _sums(rows: pl.DataFrame, names: Collection[str]) -> dict[str, Number]:
    import polars.selectors as cs

    if not rows.columns:
        return {}
    numbers = rows.select(cs.numeric() & cs.by_name(*names, require_all=False))
    return dict(zip(numbers.columns, (total or 0 for total in numbers.sum().row(0)), strict=True))


def _shift(before: pl.DataFrame, after: pl.DataFrame, name: str) -> float:
    """Return the greatest difference between the cumulative shares of values, in percent (Kolmogorov-Smirnov).

    Nulls do not count. If one side has no values, everything differs.
    """
    import polars as pl

    values = [side[name].drop_nulls().alias("value") for side in (before, after) if name in side.columns]
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


@dataclass(frozen=True)
class Spread:
    """Distribution of a column's values over all days of one side.

    Args:
        lowest: smallest value; None without values, or for a sensitive column.
        quantiles: quantiles of numbers, at `QUANTILES`.
    """

    rows: int
    nulls: int
    distinct: int
    lowest: Any = None
    highest: Any = None
    mean: float | None = None
    quantiles: tuple[float, ...] = ()


@dataclass(frozen=True)
class ColumnBeside:
    """A column on both sides.

    Args:
        before: None if that side has no row or not the column.
    """

    name: str
    changed: int
    before: Spread | None
    after: Spread | None


@dataclass(frozen=True)
class Example:
    """A key that differs.

    Args:
        key: key for people, sensitive values masked.
        how: kind of difference: `added`, `removed` or `changed`.
        values: differing columns, before and after, sensitive values masked.
    """

    day: date
    key: str
    how: str
    values: Mapping[str, tuple[Any, Any]]


def columns_beside(
    lake: Lake, contract: Contract, sides: tuple[Files, Files], masking: Masking, most: int
) -> tuple[tuple[ColumnBeside, ...], tuple[Example, ...]]:
    """Compare two versions of the same days; one day, or one column, is in memory at a time.

    Args:
        sides: files of the days, before and after; a day of only one side has only additions or removals.
        most: examples of each kind of difference.
    """
    changed: Counter[str] = Counter()
    examples: list[Example] = []
    for day in sorted({*sides[0], *sides[1]}):
        before, after = (_frame(lake, contract.name, {day: side.get(day, ())}) for side in sides)
        shared = [name for name in _shared(before, after) if name in contract.column_names]
        for how, found in _differing(contract.row_key, shared, before, after).items():
            if not found.height:
                continue
            rows = found.sort(contract.row_key)
            names = [name for name in contract.column_names if name + _AFTER in rows.columns]
            changed.update(rows.select(_unequal(name).sum() for name in names).row(0, named=True) if names else {})
            left = most - sum(example.how == how for example in examples)
            examples += [_example(contract, day, how, row, masking) for row in rows.head(left).iter_rows(named=True)]
    columns = tuple(
        ColumnBeside(name, changed[name], *(_spread(lake, contract, side, name) for side in sides))
        for name in contract.column_names
        if name != DAY
    )
    return columns, tuple(examples)


@dataclass(frozen=True)
class TableBeside:
    """Days of a table before and after.

    Args:
        days: compared by rows, keys and sums, oldest first.
    """

    table: str
    days: tuple[StagedDay, ...]
    columns: tuple[ColumnBeside, ...]
    examples: tuple[Example, ...]

    @property
    def is_equal(self) -> bool:
        """Return whether no key and no value differs."""
        return all(day.is_equal for day in self.days) and not any(column.changed for column in self.columns)


def table_beside(platform: Platform, contract: Contract, sides: tuple[Files, Files], most: int) -> TableBeside:
    """Compare two versions of the same days in all ways."""
    lake, name, summed = platform.lake, contract.name, amounts(contract)
    days = tuple(
        compared(lake, name, day, contract.row_key, summed, (sides[0][day], sides[1][day])) for day in sorted(sides[0])
    )
    return TableBeside(name, days, *columns_beside(lake, contract, sides, platform.masking, most))


def _differing(
    key: Sequence[str], shared: Sequence[str], before: pl.DataFrame, after: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Return rows of differing keys by kind of difference; changed ones with the values of both sides."""
    import polars as pl

    if not before.columns or not after.columns:
        return {"added": after, "removed": before, "changed": pl.DataFrame()}
    names = [name for name in shared if name not in key]
    before, after = _of_one_type(before, after, [*key, *names])
    both = before.join(after, on=key, how="inner", nulls_equal=True, suffix=_AFTER) if names else before.clear()
    return {
        "added": after.join(before, on=key, how="anti", nulls_equal=True),
        "removed": before.join(after, on=key, how="anti", nulls_equal=True),
        "changed": both.filter(pl.any_horizontal(pl.lit(False), *map(_unequal, names))),
    }


def _unequal(name: str) -> pl.Expr:
    import polars as pl

    return pl.col(name).ne_missing(pl.col(name + _AFTER)).alias(name)


def _same(one: Any, other: Any) -> bool:
    """Return whether values are equal, also two NaN."""
    return bool(one == other or (one != one and other != other))


def _example(contract: Contract, day: date, how: str, row: Mapping[str, Any], masking: Masking) -> Example:
    key = list(contract.row_key)

    def displayed(name: str, value: Any) -> Any:
        return masking.masked(value) if contract.column(name).sensitive else value

    values = {
        name: (displayed(name, row[name]), displayed(name, row[name + _AFTER]))
        for name in contract.column_names
        if name + _AFTER in row and not _same(row[name], row[name + _AFTER])
    }
    return Example(day, masking.shown_key(contract, key, [row[name] for name in key]), how, values)


def _spread(lake: Lake, contract: Contract, files: Files, name: str) -> Spread | None:
    frame = _frame(lake, contract.name, files, (name,))
    if name not in frame.columns:
        return None
    values = frame[name]
    rows, nulls, distinct = len(values), values.null_count(), values.drop_nulls().n_unique()
    if contract.column(name).sensitive or rows == nulls:
        return Spread(rows, nulls, distinct)
    lowest, highest = values.min(), values.max()
    if not values.dtype.is_numeric():
        return Spread(rows, nulls, distinct, lowest, highest)
    import polars as pl

    numbers = values.cast(pl.Float64).drop_nulls()
    at = tuple(float(numbers.quantile(q, "linear") or 0) for q in QUANTILES)
    return Spread(rows, nulls, distinct, lowest, highest, float(numbers.mean() or 0), at)  # type: ignore[arg-type]
