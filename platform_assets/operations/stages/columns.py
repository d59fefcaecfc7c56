"""What differs between two versions of some days, column by column and key by key, and how values spread. No JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Any

from platform_assets.contracts import DAY, Contract
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import rows_of_files
from platform_assets.operations.stages.compare import of_one_type
from platform_assets.quality.masking import Masking
from platform_assets.records.manifest import DataFile

if TYPE_CHECKING:
    import polars as pl

Files = Mapping[date, Sequence[DataFile]]
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True)
class Spread:
    """How the values of a column spread over all days of one side.

    Args:
        rows: number of rows.
        nulls: without a value.
        distinct: different values.
        lowest: value; None where there is none, or the column is sensitive.
        highest: as the lowest.
        mean: of numbers.
        quantiles: of numbers, at `QUANTILES`.
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
        name: of the column.
        changed: keys that both sides have, with another value of it.
        before: None where that side has no row, or not the column.
        after: as before.
    """

    name: str
    changed: int
    before: Spread | None
    after: Spread | None


@dataclass(frozen=True)
class Example:
    """A key that differs.

    Args:
        day: on which.
        key: as a person reads it, sensitive values masked.
        how: it differs: `added`, `removed` or `changed`.
        values: the columns that differ, before and after, sensitive values masked.
    """

    day: date
    key: str
    how: str
    values: Mapping[str, tuple[Any, Any]]


def columns_beside(
    lake: Lake, contract: Contract, sides: tuple[Files, Files], masking: Masking, most: int
) -> tuple[tuple[ColumnBeside, ...], tuple[Example, ...]]:
    """Lay two versions of the same days beside each other; one day, or one column, is in memory at a time.

    Args:
        lake: that has the files.
        contract: of the table.
        sides: files of the days, before and after; a day of only one side has only additions or removals.
        masking: of sensitive values.
        most: examples of each way to differ.
    """
    changed: dict[str, int] = {}
    examples: list[Example] = []
    for day in sorted({*sides[0], *sides[1]}):
        before, after = (_frame(lake, contract, {day: side.get(day, ())}) for side in sides)
        frames = _of_one_type(contract, before, after)
        for name, count in _changed(contract, frames).items():
            changed[name] = changed.get(name, 0) + count
        for how, found in _differing(contract, frames).items():
            left = most - sum(example.how == how for example in examples)
            examples += [
                _example(contract, day, how, row, masking) for row in islice(found.iter_rows(named=True), left)
            ]
    names = [name for name in contract.column_names if name != DAY]
    columns = tuple(
        ColumnBeside(name, changed.get(name, 0), *(_spread(lake, contract, side, name) for side in sides))
        for name in names
    )
    return columns, tuple(examples)


def _frame(lake: Lake, contract: Contract, files: Files, only: Sequence[str] | None = None) -> pl.DataFrame:
    import polars as pl

    there = {day: of_day for day, of_day in files.items() if of_day}
    if not there:
        return pl.DataFrame()
    rows = rows_of_files(lake.table_path(contract.name), there)
    names = [name for name in only or rows.schema.names if name in rows.schema.names]
    frame = pl.from_arrow(rows.to_table(columns=names))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _of_one_type(contract: Contract, before: pl.DataFrame, after: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The columns that both sides have, each of a type that has the values of both."""
    if not before.height or not after.height:
        return before, after
    return of_one_type(before, after, [*contract.row_key, *_values(contract, (before, after))])


def _values(contract: Contract, frames: Sequence[pl.DataFrame]) -> list[str]:
    """Columns that both sides have and no key is made of."""
    return [
        name
        for name in contract.column_names
        if name not in contract.key and name != DAY and all(name in frame.columns for frame in frames)
    ]


def _both(contract: Contract, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Keys of both sides, with the values of both; those after have a suffix."""
    before, after = frames
    return before.join(after, on=list(contract.row_key), how="inner", nulls_equal=True, suffix=_AFTER)


_AFTER = " after"
"""Behind the name of a column; none can have it."""


def _changed(contract: Contract, frames: Sequence[pl.DataFrame]) -> dict[str, int]:
    if not all(frame.height for frame in frames):
        return {}
    names = _values(contract, frames)
    counts = _both(contract, frames).select(_unequal(name).sum() for name in names)
    return dict(zip(names, counts.row(0), strict=True)) if names else {}


def _differing(contract: Contract, frames: Sequence[pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Rows of keys that differ, in order, by how they do."""
    import polars as pl

    key = list(contract.row_key)
    before, after = frames
    if not before.height or not after.height:
        return {how: side.sort(key) for how, side in (("removed", before), ("added", after)) if side.height}
    found = {
        "added": after.join(before, on=key, how="anti", nulls_equal=True),
        "removed": before.join(after, on=key, how="anti", nulls_equal=True),
    }
    if names := _values(contract, frames):
        found["changed"] = _both(contract, frames).filter(pl.any_horizontal(_unequal(name) for name in names))
    return {how: rows.sort(key) for how, rows in found.items()}


def _unequal(name: str) -> pl.Expr:
    import polars as pl

    return pl.col(name).ne_missing(pl.col(name + _AFTER)).alias(name)


def _same(one: Any, other: Any) -> bool:
    """Also of two that are no number."""
    return bool(one == other or (one != one and other != other))


def _example(contract: Contract, day: date, how: str, row: Mapping[str, Any], masking: Masking) -> Example:
    key = list(contract.row_key)

    def shown(name: str, value: Any) -> Any:
        return masking.masked(value) if contract.column(name).sensitive else value

    values = {
        name: (shown(name, row[name]), shown(name, row[name + _AFTER]))
        for name in contract.column_names
        if name + _AFTER in row and not _same(row[name], row[name + _AFTER])
    }
    return Example(day, masking.shown_key(contract, key, [row[name] for name in key]), how, values)


def _spread(lake: Lake, contract: Contract, files: Files, name: str) -> Spread | None:
    frame = _frame(lake, contract, files, (name,))
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
