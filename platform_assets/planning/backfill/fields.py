"""The types of a plan file's fields: each says what can be written there, and why what cannot is refused."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from platform_assets.contracts.columns import IDENTIFIER
from platform_assets.visible import visible

_TABLE = re.compile(rf"(silver|gold)\.{IDENTIFIER.pattern}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)
"""The last of these are told to be none by what takes finite numbers."""
MOST_DAYS = 36_500
MOST = 10**18
"""Of whatever is counted or paid: more is a mistake, and no number that can be reckoned with."""


def _in_order(text: str) -> str:
    first, _, last = text.partition("..")
    days = (date.fromisoformat(last) - date.fromisoformat(first)).days + 1
    if days < 1:
        raise ValueError("it ends before it starts: write the older day first")
    if days > MOST_DAYS:
        raise ValueError(f"it has {days:,} days, and {MOST_DAYS:,} are a century")
    return text


def days_of(text: str) -> frozenset[date]:
    """The days of a range, both ends included."""
    first, last = (date.fromisoformat(day) for day in text.split(".."))
    return frozenset(first + timedelta(days=number) for number in range((last - first).days + 1))


def ascending(shares: tuple[int, ...]) -> tuple[int, ...]:
    """Refuse shares of a rollout that do not grow to all of it."""
    if list(shares) != sorted(set(shares)) or shares[-1] != 100:
        raise ValueError("the shares have to grow, and the last one has to be 100")
    return shares


def _computed(table: str) -> str:
    if not _TABLE.fullmatch(table):
        raise ValueError(f"{table!r} is no table that is computed: name one of silver or gold, as gold.daily_sales")
    return table


def _readable(text: str) -> str:
    if not text.strip() or visible(text, breaks=True) != text:
        raise ValueError("it is blank, or has characters that nobody can see: write words")
    return text


def _in_digits(value: object) -> object:
    """What Python takes for a number besides, as 1_5, is more likely a slip than fifteen."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    if not _NUMBER.fullmatch(str(value)):
        raise ValueError(f"{value!r} is no number: write digits, as 1.5, with a point and nothing between them")
    return Decimal(str(value))


def never_null(schema: dict[str, Any]) -> None:
    """For the schema: a field that can be left out, and not be left blank."""
    (said,) = (one for one in schema.pop("anyOf") if one.get("type") != "null")
    del schema["default"]
    schema.update(said)


def _a_moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


def _with_an_end(hours: str) -> str:
    first, last = hours.split("-")
    if first == last:
        raise ValueError("it ends when it begins: leave service out to compute at any time, or write another end")
    return hours


Words = Annotated[str, Field(max_length=2000), AfterValidator(_readable)]
Table = Annotated[str, AfterValidator(_computed)]
Column = Annotated[str, Field(pattern=f"^{IDENTIFIER.pattern}$")]
KeyText = Annotated[
    str,
    Field(max_length=200),
    AfterValidator(_readable),
    WithJsonSchema({"type": ["string", "number"]}),
]
CodeVersion = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_readable)]
_RANGE, _HOURS = r"^\d{4}-\d\d-\d\d\.\.\d{4}-\d\d-\d\d$", r"^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$"
_MOMENT = r"^\d{4}-\d\d-\d\d \d\d:\d\d$"
WRITTEN_AS = {_RANGE: "2017-01-01..2017-03-31", _HOURS: '"20:00-05:30"', _MOMENT: '"2017-06-01 06:00"'}
"""What has a form of its own, by the pattern of that: an example for people."""
DayRange = Annotated[str, Field(pattern=_RANGE), AfterValidator(_in_order)]
Hours = Annotated[str, Field(pattern=_HOURS), AfterValidator(_with_an_end)]
Moment = Annotated[str, Field(pattern=_MOMENT), AfterValidator(_a_moment)]
Share = Annotated[int, Field(ge=1, le=100)]
Number = Annotated[Decimal, BeforeValidator(_in_digits)]
Percent = Annotated[Number, Field(ge=0, le=1000)]
Amount = Annotated[Number, Field(gt=0, le=MOST)]
