"""Columns of a contract and the small set of types every engine agrees on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from zoneinfo import available_timezones

from platform_assets.contracts.errors import ContractError, check_declaration

IDENTIFIER = re.compile(r"[a-z][a-z0-9_]{0,62}")
"""What may name a table or column: the allow-list behind every generated path and expression."""

_TYPES = re.compile(r"long|int|string|boolean|timestamp|date|double|decimal\((\d{1,2}),(\d{1,2})\)")

MOST_DIGITS = 38
"""That a decimal can have."""


def digits_of(type_: str) -> tuple[int, int] | None:
    """Return how many digits a decimal has, and how many of them after the point; None for any other type."""
    match = _TYPES.fullmatch(type_)
    return (int(match[1]), int(match[2])) if match and match[1] else None


def words(condition: str) -> frozenset[str]:
    """Return what may be names of columns in a condition of SQL: all its words, but for those in texts."""
    return frozenset(re.findall(r"\w+", re.sub(r"'[^']*'", " ", condition.lower())))


@dataclass(frozen=True)
class Column:
    """Declare one column: a name, a Spark SQL type, and its meaning.

    Args:
        name: lower-case identifier.
        type: `long`, `int`, `string`, `boolean`, `timestamp` (UTC microseconds), `date`, `double` (never for money) or
            `decimal(p,s)`.
        description: one sentence, with the unit.
        nullable: False makes a null a breach of the contract.
        sensitive: values are masked wherever examples are shown.
        made_from: columns that it is computed from, as `<layer>.<table>.<column>`, for lineage. Leave it out if the
            column keeps the name of an input's column.
        may_be_absent: files of a raw table may lack it; it is null in their rows. Files must have every other column.
        zone: time zone of a raw `timestamp`, as `America/New_York`, for text without an offset, dates and Parquet's
            local times; UTC by default. A local time that exists twice or never refuses its row.
        epoch: unit of a raw `timestamp` that is delivered as a number since 1970 UTC: `s`, `ms`, `us` or `ns`. A
            fraction of a microsecond refuses its row.
        additive: False for a measure that must not be summed, such as a temperature, price, rate or share. Keys, names
            that end in `_id` and sensitive columns are never summed.
    """

    name: str
    type: str
    description: str
    nullable: bool = True
    sensitive: bool = False
    made_from: tuple[str, ...] = ()
    may_be_absent: bool = False
    zone: str | None = None
    epoch: Literal["s", "ms", "us", "ns"] | None = None
    additive: bool = True

    def __post_init__(self) -> None:
        check_declaration(self, f"The column {self.name!r}", self._problems)

    def _problems(self) -> Iterator[ContractError]:
        if not IDENTIFIER.fullmatch(self.name):
            yield ContractError(
                f"Column name {self.name!r} is not an identifier.",
                "Use lower-case letters, digits and underscores.",
                field=self.name,
            )
        if self.digits and not max(1, self.digits[1]) <= self.digits[0] <= MOST_DIGITS:
            yield ContractError(
                f"Column {self.name!r} has the type {self.type!r}, a decimal that does not exist.",
                f"Use decimal(p,s) with p digits, from 1 to {MOST_DIGITS}, and s of them after the point.",
                field=self.name,
            )
        if self.may_be_absent and not self.nullable:
            yield ContractError(
                f"Column {self.name!r} may be absent, and allows no nulls, which it would then have.",
                "Leave out may_be_absent=True, or nullable=False.",
                field=self.name,
            )
        is_unknown = self.zone and not ("/" in self.zone and self.zone in available_timezones())
        if is_unknown or (self.zone and self.epoch) or ((self.zone or self.epoch) and self.type != "timestamp"):
            yield ContractError(
                f"Column {self.name!r} of type {self.type!r} has the zone {self.zone!r} and the epoch {self.epoch!r}.",
                "Give one of them to a timestamp; a zone by its name in the IANA database, as Europe/London.",
                field=self.name,
            )
        if not _TYPES.fullmatch(self.type):
            yield ContractError(
                f"Column {self.name!r} has the unknown type {self.type!r}.",
                "Use long, int, string, boolean, timestamp, date, double or decimal(p,s).",
                field=self.name,
            )

    @property
    def digits(self) -> tuple[int, int] | None:
        """Return the digits of its type."""
        return digits_of(self.type)


def why_no_sum(column: Column) -> str | None:
    """Return why a named column cannot be summed; None if it can."""
    if not column.additive:
        return "its contract declares it additive=False"
    if not column.type.startswith(("decimal", "int", "long", "double")):
        return f"it is a {column.type}"
    return None
