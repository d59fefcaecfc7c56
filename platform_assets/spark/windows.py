"""Arguments of transforms for inputs read through a window, and queries as transforms.

A query gets its inputs as relations that no other query sees.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SortWindow
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, MonthToDate, Offsets, Span, Window
from platform_assets.planning.code.statement import Statement
from platform_assets.planning.windows import EVERY_ROW, SOURCE_DAY, VALID, WINDOW_DAYS, ranges
from platform_assets.spark.tables.failures import TransformError, first_line
from platform_assets.spark.tables.reading import in_ranges


@dataclass(frozen=True)
class Windowed:
    """Rows of all days that the days to compute read."""

    frame: DataFrame
    window: Window
    days: Collection[date]

    def per_day(self, frame: DataFrame | None = None) -> DataFrame:
        """Return each row once for every day to compute whose window contains it.

        Args:
            frame: rows to spread, by default all; aggregate to one row per key and `event_date` first, since every row
                is repeated as often as the window is long.

        Returns:
            The rows with `source_date`, the day they happened, and `event_date`, the day being computed.
        """
        frame = self.frame if frame is None else frame
        reached = F.explode(self._reached())
        spread = frame.withColumnRenamed(DAY, SOURCE_DAY).withColumn(DAY, reached)
        return spread.where(in_ranges(ranges(self.days)))

    def _reached(self) -> Column:
        """Return the days for which a row of `source_date` may count, also outside the calendar; some may be null."""
        source = F.col(SOURCE_DAY)
        match self.window:
            case Span(before, after):
                return F.sequence(F.date_sub(source, after), F.date_add(source, before))
            case Offsets(each, "days"):
                return F.array(*(F.date_sub(source, n) for n in each))
            case Offsets(each, _):
                dates = [F.add_months(source, -12 * years) for years in each]
                return F.array(*(F.when(F.dayofmonth(day) == F.dayofmonth(source), day) for day in dates))
            case MonthToDate():
                return F.sequence(source, F.last_day(source))
            case _:
                return F.sequence(source, F.greatest(source, F.lit(max(self.days))))


@dataclass(frozen=True)
class History:
    """Effective-dated rows: each is valid from its day until the day of its key's next row.

    Args:
        _frame: the rows with `event_date`, the first day on which they are valid. Not for transforms: a day is computed
            from the rows valid on it, so rows replaced before must not count.
        key: columns that identify the thing whose attributes change.
        order: columns that order its rows; of several on one day the last is valid from that day on.
    """

    _frame: DataFrame
    key: Sequence[str]
    order: Sequence[str] = (DAY,)

    def intervals(self) -> DataFrame:
        """Return the rows with `_valid_from` and `_valid_to` instead of their day; a key's last row ends with null."""
        ordered = SortWindow.partitionBy(*self.key).orderBy(*self.order)
        return self._frame.select(
            *(name for name in self._frame.columns if name != DAY),
            F.col(DAY).alias(VALID[0]),
            F.lead(DAY).over(ordered).alias(VALID[1]),
        )

    def as_of_join(self, rows: DataFrame) -> DataFrame:
        """Add to each row the attributes of its key as of the row's `event_date`.

        A small table is sent to every task, a large one is sorted and merged: Spark decides by its size.

        Returns:
            All rows, in any order; attributes are null where nothing was known of the key by that day.
        """
        history = self.intervals()
        then = (F.col(DAY) >= F.col("_valid_from")) & (F.isnull("_valid_to") | (F.col(DAY) < F.col("_valid_to")))
        names = [name for name in history.columns if name in rows.columns and name not in self.key]
        history = history.drop(*names)
        conditions = [rows[name] == history[name] for name in self.key]
        joined = rows.join(history, [*conditions, then], "left")
        for name in self.key:
            joined = joined.drop(history[name])
        return joined.drop("_valid_from", "_valid_to")


def relations(name: str, given: DataFrame | Windowed | History) -> dict[str, DataFrame]:
    """Return the relations that a query can read of an input, by name, as `engine.sql_tables` does for contracts."""
    match given:
        case Windowed():
            pairs = given.per_day(given.frame.select(DAY).distinct())
            return {name: given.per_day(), f"{name}{EVERY_ROW}": given.frame, f"{name}{WINDOW_DAYS}": pairs}
        case History():
            return {name: given.intervals()}
    return {name: given}


_WHERE = re.compile(r"\bline (\d+),? pos (\d+)")
_STATE = re.compile(r"\s*SQLSTATE: \w{5}.*$")


class QueryError(TransformError):
    """Spark refuses a query; `place` is its file, line and column."""

    def __init__(self, what: str, place: str) -> None:
        super().__init__(what, "Correct it; no day of the table was published by it.")
        self.place = place


def query_transform(table: str, columns: Collection[str], statement: Statement, file: Path) -> Callable[..., DataFrame]:
    """Return a function of a query's inputs that describes its rows, like a transform in Python.

    Columns of the contract are found whatever their case, as in SQL.
    """

    def transform(**given: DataFrame | Windowed | History) -> DataFrame:
        frames = {name: rows for parameter, rows in given.items() for name, rows in relations(parameter, rows).items()}
        words = {token.text.strip("`").lower() for token in statement.tokens}
        used = [name for name in frames if name in words] or list(given)
        ahead = ", ".join(f"`{name}` AS (TABLE {{r{number}}})" for number, name in enumerate(used))
        query = statement.text.replace("{", "{{").replace("}", "}}")
        text = f"WITH\n{ahead}\nSELECT * FROM (\n{query}\n)"
        views: dict[str, Any] = {f"r{number}": frames[name] for number, name in enumerate(used)}
        try:
            made = frames[used[0]].sparkSession.sql(text, **views)
            names = made.columns  # over Spark Connect, this asks
        except (AnalysisException, ParseException) as error:
            raise _explained(table, statement, file, error) from error
        if twice := [name for name, count in Counter(map(str.lower, names)).items() if count > 1]:
            what = f"The query of {table} ({file}) returns more than one column {', '.join(twice)}."
            raise QueryError(what, str(file))
        declared = {name.lower(): name for name in (*columns, "event_date")}
        return made.toDF(*(declared.get(name.lower(), name) for name in names))

    return transform


def _explained(table: str, statement: Statement, file: Path, error: AnalysisException | ParseException) -> QueryError:
    """Return Spark's message with the place in the file: it read the normal form, three lines below."""
    said, place = _STATE.sub("", first_line(error)), str(file)
    if where := _WHERE.search(str(error)):
        line, column = int(where[1]) - 4, int(where[2])
        before = statement.text.split("\n")[:line]
        place = f"{file}, {statement.place_in_text(sum(len(each) + 1 for each in before) + column)}"
    return QueryError(f"{table} cannot be computed by its query ({place}): {said}", place)
