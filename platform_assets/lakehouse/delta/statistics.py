"""Statistics of files in a log: bounds that hide no row, and which files can hold a value.

A reader skips a file by its bounds, so a bound that lost digits in JSON hides rows. Whole numbers, text, booleans and
days are exact. Readers turn a JSON number into a double. Decimals with more digits than a double holds are rounded
outwards, and so are moments, which are cut to milliseconds.

A file has bounds for all its columns or for none: deltalake's Arrow datasets find nothing in a file that lacks those of
the compared column. It has none if a column holds values without usable bounds: numbers that are not finite, and years
without four digits, at which some readers stop.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from typing import Any

from pydantic_core import from_json

from platform_assets.contracts import DAY, Contract
from platform_assets.contracts.columns import digits_of
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import files_of_days, table_snapshot
from platform_assets.lakehouse.delta.schema import types_in
from platform_assets.lakehouse.errors import StagedFileError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import opened
from platform_assets.records.manifest import DataFile

Bounds = tuple[Any, Any]
"""The smallest and the greatest value."""

_SIDES = ("minValues", "maxValues")
_DIGITS = 15
"""Up to so many digits, different decimal numbers are different doubles."""
_MORE = Decimal("1e-14")
"""Part of a longer number by which its bounds are put outwards: more than any reader loses of it."""
_LEAST_PLAIN, _FIRST_NOT_PLAIN = Decimal("0.0001"), Decimal("1e16")
_EXPONENT = re.compile(r"\d[eE][-+]?\d")
_DOWN, _UP = (Context(prec=_DIGITS, rounding=way) for way in (ROUND_FLOOR, ROUND_CEILING))
_CUT = timedelta(microseconds=999)
_EXACT = {"byte": int, "short": int, "integer": int, "long": int, "boolean": bool, "string": str}
"""Types whose bounds come through as they are, with what JSON makes of them."""


def trustworthy(stats: str, types: Mapping[str, str]) -> str:
    """Return statistics that hide no row of a file; unchanged if its bounds can stay."""
    parsed = json.loads(stats, parse_float=Decimal)
    low, high = (parsed.get(side) or {} for side in _SIDES)
    kept: dict[str, Bounds] = {}
    for name, type_ in types.items():
        if parsed.get("nullCount", {}).get(name, -1) == parsed.get("numRecords"):
            continue
        bounds = _bounds(type_, low.get(name), high.get(name))
        if bounds is None:
            return without_bounds(stats)
        kept[name] = bounds
    now = [{name: bounds[side] for name, bounds in kept.items()} for side in (0, 1)]
    if now == [low, high] and not _EXPONENT.search(stats):
        return stats
    return json.dumps(parsed | dict(zip(_SIDES, now, strict=True)), default=float, ensure_ascii=False)


def without_bounds(stats: str) -> str:
    """Return the statistics of a file without bounds: only rows and nulls."""
    parsed = json.loads(stats)
    return json.dumps({name: value for name, value in parsed.items() if name not in _SIDES}, ensure_ascii=False)


def _bounds(type_: str, low: Any, high: Any) -> Bounds | None:
    """Return usable bounds of a column; None if there are none."""
    if type_ in _EXACT:
        return (low, high) if {type(low), type(high)} == {_EXACT[type_]} else None
    if type_ == "double":
        return _of_doubles(low, high)
    if type_ == "date":
        return (low, high) if _parsed(date, low) and _parsed(date, high) else None
    if type_ == "timestamp":
        greatest = _parsed(datetime, high)
        return (low, _last_of(greatest)) if _parsed(datetime, low) and greatest else None
    digits = digits_of(type_)
    return _of_decimals(low, high, *digits) if digits else None


def _of_doubles(low: Any, high: Any) -> Bounds | None:
    if not {type(low), type(high)} <= {int, Decimal}:
        return None
    # Of the two zeros some readers take one for less than the other.
    return (low or Decimal("-0.0"), high or Decimal("0.0"))


def _of_decimals(low: Any, high: Any, precision: int, scale: int) -> Bounds | None:
    if not {type(low), type(high)} <= {int, Decimal}:
        return None
    bounds = []
    for value, context, way in ((Decimal(low), _DOWN, -1), (Decimal(high), _UP, 1)):
        units = value.scaleb(scale)
        if units != units.to_integral_value() or abs(units) >= 10**_DIGITS:
            value = context.multiply(value, 1 + way * _MORE.copy_sign(value))
            if abs(value.scaleb(scale)) >= 10**precision:
                return None
        bounds.append(value)
    plain = (_plain(bounds[0], ROUND_FLOOR), _plain(bounds[1], ROUND_CEILING))
    return (low if plain[0] == low else plain[0], high if plain[1] == high else plain[1])


def _plain(bound: Decimal, outwards: str) -> Decimal | int:
    """Return a bound that JSON writes without an exponent, from which deltalake makes no decimal."""
    if bound and abs(bound) < _LEAST_PLAIN:
        return bound.quantize(_LEAST_PLAIN, outwards)
    return int(bound) if abs(bound) >= _FIRST_NOT_PLAIN else bound


def _parsed(type_: type[date], text: Any) -> Any:
    try:
        return type_.fromisoformat(text)
    except (TypeError, ValueError):
        return None


def _last_of(moment: datetime) -> str:
    """Return the last microsecond of the written millisecond, which stands for all of it."""
    last = moment.replace(microsecond=moment.microsecond // 1000 * 1000) + _CUT
    return last.isoformat(timespec="microseconds").replace("+00:00", "Z")


def staged_files(lake: Lake, table: str, publication: str) -> tuple[str, dict[date, tuple[DataFile, ...]]]:
    """Return the Delta schema that a publication staged for a table, and the files of each day below its folder."""
    folder = lake.stage_path(table, publication)
    if commits.head_version(folder) < 0:
        raise StagedFileError(
            f"Publication {publication} staged nothing for {table}: {folder} has no Delta log.",
            "Write the computed days there as a Delta table before publishing.",
        )
    staged = table_snapshot(folder)
    types = {name: type_ for name, type_ in types_in(staged.schema_string).items() if name != DAY}
    files = {
        day: tuple(
            file.model_copy(
                update={"path": f"{publication}/{file.path}", "stats": _stats(folder / file.path, file.stats, types)}
            )
            for file in files
        )
        for day, files in files_of_days(staged, table).items()
    }
    return staged.schema_string, files


def _stats(file: Location, stats: str, types: Mapping[str, str]) -> str:
    """Return trustworthy statistics of a file; deltalake skips those of a file with bounds that are not numbers."""
    if "double" in types.values():
        with opened(file) as parquet:
            if parquet.num_row_groups > 1:
                return without_bounds(stats)
    return trustworthy(stats, types)


_NO_FOUR_DIGITS = re.compile(r"[+-]\d+-\d\d-\d\d")
"""A day whose year is written with a sign; such texts are not in the order of the days."""


def bounded_key(contract: Contract) -> list[str]:
    """Return the key columns whose bounds in Delta's log are exact or rounded outwards."""
    return [name for name in contract.key if contract.column(name).type in ("long", "int", "string", "date")]


def may_share_keys(
    files: Mapping[date, Sequence[DataFile]], others: Mapping[date, Sequence[DataFile]], columns: Collection[str]
) -> dict[date, tuple[DataFile, ...]]:
    """Return the files that can hold a key of the others; a file without statistics always can."""
    left = {day: tuple(of_day) for day, of_day in files.items()}
    for column in columns:
        bounds = [_bounds_of(file, column) for of_day in others.values() for file in of_day]
        if None in bounds:
            continue
        spans = _merged([span for span in bounds if span])
        starts = [start for start, _ in spans]

        def meets(file: DataFile, spans: list[Bounds] = spans, starts: list[Any] = starts, name: str = column) -> bool:
            if (span := _bounds_of(file, name)) is None:
                return True
            at = bisect_right(starts, span[1]) - 1
            return at >= 0 and bool(spans[at][1] >= span[0])

        left = {day: tuple(filter(meets, of_day)) for day, of_day in left.items()}
    return {day: of_day for day, of_day in left.items() if of_day}


def may_hold(file: DataFile, column: str, value: str) -> bool:
    """Return whether a file can have a row with a value in a text column; one without statistics always can."""
    bounds = _bounds_of(file, column)
    return bounds is None or bool(bounds[0] <= value <= bounds[1])


def may_lack(file: DataFile, column: str) -> bool:
    """Return whether a file can have a null in a column. A file without statistics always can."""
    return bool(_said(file.stats).get("nullCount", {}).get(column, 1))


@lru_cache(maxsize=1 << 14)
def _said(stats: str) -> Mapping[str, Any]:
    parsed: Mapping[str, Any] = from_json(stats)
    return parsed


def _bounds_of(file: DataFile, column: str) -> Bounds | None:
    """Return the bounds of a column; None if they may have lost digits, or are not in the order of the values."""
    stats = _said(file.stats)
    both = (stats.get("minValues", {}).get(column), stats.get("maxValues", {}).get(column))
    odd = any(isinstance(bound, str) and _NO_FOUR_DIGITS.fullmatch(bound) for bound in both)
    return both if {type(bound) for bound in both} in ({int}, {str}) and not odd else None


def _merged(bounds: Collection[Bounds]) -> list[Bounds]:
    merged: list[Bounds] = []
    for low, high in sorted(bounds):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged
