"""Statistics of staged files as a table's log may hold them: no bound is tighter than the values that it bounds.

A reader leaves a file out by its bounds, so one that lost digits on its way into JSON hides rows. Whole numbers, text,
truth values and days come through as they are. Decimal numbers of more digits than a double tells apart, which is what
readers make of a JSON number, are rounded outwards, and so are moments, which are cut to milliseconds.

A file has bounds of all its columns or of none: deltalake's Arrow datasets find nothing in a file that lacks those of
the column that is looked at. It has none where a column holds what no bound can say: numbers that are not finite, and
years that have no four digits, at which some readers stop.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from platform_assets.contracts import DAY
from platform_assets.contracts.columns import digits_of

Bounds = tuple[Any, Any]
"""The smallest and the greatest value."""

_SIDES = ("minValues", "maxValues")
_DIGITS = 15
"""Decimal numbers of so many digits are told apart as doubles, all of them."""
_MORE = Decimal("1e-14")
"""Part of a longer number by which its bounds are put outwards: more than any reader loses of it."""
_LEAST_PLAIN, _FIRST_NOT_PLAIN = Decimal("0.0001"), Decimal("1e16")
_EXPONENT = re.compile(r"\d[eE][-+]?\d")
_DOWN, _UP = (Context(prec=_DIGITS, rounding=way) for way in (ROUND_FLOOR, ROUND_CEILING))
_CUT = timedelta(microseconds=999)
_EXACT = {"byte": int, "short": int, "integer": int, "long": int, "boolean": bool, "string": str}
"""Types whose bounds come through as they are, with what JSON makes of them."""


def types_of(schema_string: str) -> dict[str, Any]:
    """The type of every column but the day as a Delta schema has it: a text, or a value of its own for a nested one."""
    fields = json.loads(schema_string)["fields"]
    return {field["name"]: field["type"] for field in fields if field["name"] != DAY}


def trustworthy(stats: str, types: Mapping[str, Any]) -> str:
    """Statistics of a file by which no reader misses a row; to the letter where its bounds can stay as they are.

    Args:
        stats: Delta's statistics of a file, JSON.
        types: of the columns, as `types_of` gives them.
    """
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
    """Statistics of a file of which only the rows and the nulls are known."""
    parsed = json.loads(stats)
    return json.dumps({name: value for name, value in parsed.items() if name not in _SIDES}, ensure_ascii=False)


def _bounds(type_: Any, low: Any, high: Any) -> Bounds | None:
    """Bounds of a column that holds values as they may stay; None where nothing can be said."""
    if not isinstance(type_, str):
        return None
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
    """A bound that JSON writes without an exponent, by which deltalake makes no number of a decimal."""
    if bound and abs(bound) < _LEAST_PLAIN:
        return bound.quantize(_LEAST_PLAIN, outwards)
    return int(bound) if abs(bound) >= _FIRST_NOT_PLAIN else bound


def _parsed(type_: type[date], text: Any) -> Any:
    try:
        return type_.fromisoformat(text)
    except (TypeError, ValueError):
        return None


def _last_of(moment: datetime) -> str:
    """The last microsecond of the millisecond that is written, which stands for all of it."""
    last = moment.replace(microsecond=moment.microsecond // 1000 * 1000) + _CUT
    return last.isoformat(timespec="microseconds").replace("+00:00", "Z")
