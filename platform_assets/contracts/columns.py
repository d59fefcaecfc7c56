"""Columns of a contract and the small set of types every engine agrees on."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal
from zoneinfo import available_timezones

from platform_assets.contracts.errors import ContractError, check_declaration
from platform_assets.contracts.files import date_pattern

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
    """Return possible column names in an SQL condition: all its words, except in texts."""
    return frozenset(re.findall(r"\w+", re.sub(r"'[^']*'", " ", condition.lower())))


def is_zone(name: str) -> bool:
    """Return whether the IANA database has a time zone of this name for a place."""
    return "/" in name and name in available_timezones()


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
        source_name: name of a raw column in files that spell it otherwise, as `Kunden-Nr.`; files may also have `name`.
        path: where JSON objects of a raw table have the value, as `("customer", "emails", 0)`.
        pattern: how text writes a raw date or timestamp, in the directives of `strptime`, as `%d/%m/%Y` or `%Y%m%d`;
            ISO by default. A year of two digits (`%y`) is one from 1969 to 2068.
        nulls: texts of a raw column that mean no value, as `("NA", "-9999")`.
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
    source_name: str | None = None
    path: tuple[str | int, ...] = ()
    pattern: str | None = None
    nulls: tuple[str, ...] = ()

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
        is_unknown = self.zone and not is_zone(self.zone)
        if is_unknown or (self.zone and self.epoch) or ((self.zone or self.epoch) and self.type != "timestamp"):
            yield ContractError(
                f"Column {self.name!r} of type {self.type!r} has the zone {self.zone!r} and the epoch {self.epoch!r}.",
                "Give one of them to a timestamp; a zone by its name in the IANA database, as Europe/London.",
                field=self.name,
            )
        if self.source_name is not None and (not self.source_name.strip() or self.path):
            todo = "Give `source_name` the name in files, or leave it out; JSON objects are read by `path` alone."
            yield ContractError(
                f"Column {self.name!r} has source_name={self.source_name!r} and path={self.path!r}.",
                todo,
                field=self.name,
            )
        if any(isinstance(step, int) and (step < 0 or n == 0) for n, step in enumerate(self.path)):
            todo = 'Begin with a name, and count places in lists from 0, as ("emails", 0).'
            yield ContractError(f"Column {self.name!r} has the path {self.path!r}.", todo, field=self.name)
        if self.pattern is not None and (why := self._wrong_pattern(self.pattern)):
            todo = "Write it as strptime has it, as %d/%m/%Y or %Y-%m-%dT%H:%M:%S%z, or leave it out for ISO."
            yield ContractError(
                f"Column {self.name!r} has the pattern {self.pattern!r}, which {why}.", todo, field=self.name
            )
        if not _TYPES.fullmatch(self.type):
            yield ContractError(
                f"Column {self.name!r} has the unknown type {self.type!r}.",
                "Use long, int, string, boolean, timestamp, date, double or decimal(p,s).",
                field=self.name,
            )

    def _wrong_pattern(self, pattern: str) -> str:
        if self.type not in ("date", "timestamp") or self.epoch:
            return f"a {'number since 1970' if self.epoch else self.type} has none of"
        try:
            date_pattern(pattern, self.type)
        except ValueError as error:
            return str(error)
        return ""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that the column may have in files."""
        return (self.name,) if self.source_name is None else (self.source_name, self.name)

    @property
    def digits(self) -> tuple[int, int] | None:
        """Return the digits of its type."""
        return digits_of(self.type)


def place_problems(table: str, columns: Collection[Column], in_csv: Collection[str]) -> Iterator[ContractError]:
    """Yield why columns of a raw table could not be found in files, as far as the contract alone tells.

    Args:
        in_csv: names of all columns of CSV files, where their source declares them.
    """
    taken = [name for column in columns for name in column.names]
    taken += [".".join(map(str, column.path)) for column in columns if column.path]
    for name in dict.fromkeys(name for name in taken if taken.count(name) > 1):
        yield ContractError(
            f"The contract of {table} reads two columns from {name!r} of its files.",
            "Give each a `source_name` or `path` of its own, which is no other column's name.",
            table=table,
            field=name,
        )
    for column in columns:
        if in_csv and not column.may_be_absent and not {*column.names} & {*in_csv}:
            yield ContractError(
                f"The contract of {table} has the column {column.name!r}, which Csv(columns=...) of its source lacks.",
                f"Name it there as {column.names[0]!r}, or give it the source_name that it has there.",
                table=table,
                field=column.name,
            )


def why_no_sum(column: Column) -> str | None:
    """Return why a named column cannot be summed; None if it can."""
    if not column.additive:
        return "its contract declares it additive=False"
    if not column.type.startswith(("decimal", "int", "long", "double")):
        return f"it is a {column.type}"
    return None
