"""Rows of some days, where the days are not told by files alone.

Dates would stand in the code that Spark generates, so that Java would compile it anew for every other set of days. A
list is handed to that code: here one in which each of the days has the place that its number says.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from itertools import groupby

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from platform_assets.contracts import DAY
from platform_assets.planning.windows import ranges
from platform_assets.spark.sail.session import is_sail
from platform_assets.spark.tables.reading import in_ranges

_EPOCH = date(1970, 1, 1)
_PLACES = 4096
"""Days, some eleven years: between the first and the last that are computed together there are hardly more."""


def on_days(frame: DataFrame, days: Collection[date]) -> Column:
    """Whether a row is of one of some days.

    Args:
        frame: that has the rows.
        days: few or many, in any order.
    """
    numbers = sorted({(day - _EPOCH).days for day in days})
    if not numbers or numbers[-1] - numbers[0] >= _PLACES or is_sail(frame.sparkSession):
        return in_ranges(ranges(days))
    return F.expr(f"get({_places(numbers)}, pmod(unix_date({DAY}), {_PLACES})) = unix_date({DAY})")


def _places(numbers: Sequence[int]) -> str:
    """SQL of a list that has each number where what is left of it, divided by the list's length, says."""
    parts: list[str] = []
    place = 0
    placed = sorted((number % _PLACES, number) for number in numbers)
    for _, each in groupby(enumerate(placed), lambda one: (one[0] - one[1][0], one[1][1] - one[1][0])):
        run = [one for _, one in each]
        (at, first), (_, last) = run[0], run[-1]
        parts.append(f"array_repeat(CAST(NULL AS int), {at - place})")
        parts.append(f"sequence({first}, {last})")
        place = at + last - first + 1
    return f"concat({', '.join([*parts, f'array_repeat(CAST(NULL AS int), {_PLACES - place})'])})"
