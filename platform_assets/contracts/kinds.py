"""Kinds of rules: each function returns a rule's condition on rows, as a plain value.

To add a kind of condition on single rows, add one function here that returns its SQL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Literal

from platform_assets.contracts.columns import digits_of, words

Value = int | Decimal | float | str | bool | date | datetime
"""What a column is compared with."""

Comparing = Literal["<", "<=", "=", "!=", ">=", ">"]

_SQL_WORDS = words(
    "all and any array between case cast current_date current_time current_timestamp current_user date distinct else "
    "end exists extract false first from in interval is last like not null or position replace select struct substring "
    "then timestamp timestampadd timestampdiff trim true user when where"
)
"""Columns of these names are quoted; others stand as in a rule that a person writes."""

_FAMILIES = {"long": "number", "int": "number", "double": "number", "string": "text"}
_OF_VALUES: Mapping[type, str] = {bool: "boolean", int: "number", Decimal: "number", str: "text", date: "date"}


@dataclass(frozen=True)
class Kind:
    """A rule's condition on rows.

    Args:
        name: name of the kind: the function that makes it.
        text: for a person; for a kind about single rows, the condition in Spark SQL.
        columns: required columns; a null in any of them fails.
        is_condition: whether each row is judged by itself, by `text`.
        compared: values with which the column is compared.
        family: required type family, as the type of `text`; empty for any.
        alike: whether the columns are compared with each other.
        within: `window` also compares rows of other days.
        table: table in which rows must exist as of the day; empty for other kinds.
        theirs: columns in that table.
        wrong: why no row could keep or break it, if so.
    """

    name: str
    text: str
    columns: tuple[str, ...] = ()
    is_condition: bool = True
    compared: tuple[Value, ...] = ()
    family: str = ""
    alike: bool = False
    within: Literal["day", "window"] = "day"
    table: str = ""
    theirs: tuple[str, ...] = ()
    wrong: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the contract's names in it: of columns, and of another table and its columns."""
        return (*self.columns, *((self.table, *self.theirs) if self.name == "exists" else ()))


def condition(sql: str) -> Kind:
    """Return the kind of a condition that is given as text."""
    return Kind("condition", sql)


def not_null(column: str) -> Kind:
    """Ask for a value."""
    return Kind("not_null", f"{_name(column)} IS NOT NULL", (column,))


def in_range(column: str, least: Value | None = None, most: Value | None = None) -> Kind:
    """Ask for a number, text, date or timestamp from `least` to `most`, both included; one may be left out."""
    bounds = tuple(bound for bound in (least, most) if bound is not None)
    name, low, high = _name(column), *(None if bound is None else _literal(bound) for bound in (least, most))
    if low is not None and high is not None:
        text = f"{name} BETWEEN {low} AND {high}"
    elif high is not None:
        text = f"{name} <= {high}"
    else:
        text = f"{name} >= {low}"
        if isinstance(least, int | float | Decimal):  # to Spark, NaN is greater than any number
            text += f" AND NOT isnan({name})"
    wrong = _wrong_values(bounds) or ("" if bounds else "has neither `least` nor `most`")
    if not wrong and low is not None and high is not None and _is_more(least, most):
        wrong = f"lets no value through: {least!r} is more than {most!r}"
    return Kind("in_range", text, (column,), compared=bounds, wrong=wrong)


def one_of(column: str, *values: Value) -> Kind:
    """Ask for one of some values."""
    text = f"{_name(column)} IN ({', '.join(map(_literal, values))})"
    wrong = _wrong_values(values) or ("" if values else "names no value")
    return Kind("one_of", text, (column,), compared=values, wrong=wrong)


def matches(column: str, pattern: str) -> Kind:
    """Ask for text that a regular expression matches as a whole; it must be valid in Python and in Java."""
    wrong = ""
    try:
        re.compile(pattern)
    except (TypeError, re.error) as error:
        wrong = f"has the pattern {pattern!r}, which is no regular expression ({error})"
    if not isinstance(pattern, str):
        wrong = f"has the pattern {pattern!r}, which is no text"
    whole = _literal(f"\\A(?:{pattern}\n)\\z" if "(?x" in str(pattern) else rf"\A(?:{pattern})\z")
    return Kind("matches", f"{_name(column)} RLIKE {whole}", (column,), family="text", wrong=wrong)


def length(column: str, least: int = 0, most: int | None = None) -> Kind:
    """Ask for text of `least` to `most` characters."""
    counted = f"char_length({_name(column)})"
    text = f"{counted} >= {least}" if most is None else f"{counted} BETWEEN {least} AND {most}"
    wrong = ""
    if not all(type(bound) is int for bound in (least, 0 if most is None else most)):
        wrong = f"has a length from {least!r} to {most!r}: write whole numbers"
    elif least < 0 or (most is not None and least > most):
        wrong = f"lets no length through: {least} to {most}"
    return Kind("length", text, (column,), family="text", wrong=wrong)


def compare(left: str, how: Comparing, right: str) -> Kind:
    """Ask that two columns of a row compare as `<`, `<=`, `=`, `!=`, `>=` or `>`."""
    wrong = "" if how in ("<", "<=", "=", "!=", ">=", ">") else f"compares by {how!r}: write <, <=, =, !=, >= or >"
    if not isinstance(right, str):
        wrong = f"compares with {right!r}, which is no column: use in_range"
    return Kind("compare", f"{_name(left)} {how} {_name(right)}", (left, right), alike=True, wrong=wrong)


def unique(*columns: str, within: Literal["day", "window"] = "day") -> Kind:
    """Ask that no two rows share the values: of one day, or within `moves_within_days` (`window`)."""
    days = " within moves_within_days" if within == "window" else ""
    wrong = "" if within in ("day", "window") else f"has within={within!r}: write 'day' or 'window'"
    if not all(isinstance(column, str) for column in columns):
        wrong, columns = f"names {columns!r}: write unique('a', 'b')", ()
    wrong = wrong or ("" if columns and len({*columns}) == len(columns) else "names no column, or one twice")
    return Kind(
        "unique", f"unique ({', '.join(columns)}){days}", columns, is_condition=False, within=within, wrong=wrong
    )


def exists(*columns: str, table: str, theirs: tuple[str, ...] = ()) -> Kind:
    """Ask that a silver table, read `as_of()`, has the values, in columns of the same names or `theirs`."""
    theirs = theirs or columns
    text = f"({', '.join(columns)}) exists in {table} as of the day"
    text += "" if theirs == columns else f" as ({', '.join(theirs)})"
    wrong = "" if columns and len(theirs) == len(columns) else "names no column, or other numbers of columns"
    return Kind("exists", text, columns, is_condition=False, table=table, theirs=theirs, wrong=wrong)


KINDS = (not_null, in_range, one_of, matches, length, compare, unique, exists)
"""In the order of the docs; `condition` is what a rule's text is."""


def family_of(type_: str) -> str:
    """Return the family of types whose values can be compared with a column's."""
    return "number" if digits_of(type_) else _FAMILIES.get(type_, type_)


def type_problem(kind: Kind, types: Mapping[str, str]) -> str:
    """Return why a kind cannot judge columns of these types, as the end of a sentence; empty if it can."""
    ours = {name: types[name] for name in kind.columns}
    families = {family_of(type_) for type_ in ours.values()}
    shown = " and ".join(f"{name} ({type_})" for name, type_ in ours.items())
    if kind.alike and len(families) > 1:
        return f"compares {shown}, which do not compare"
    if kind.family and families != {kind.family}:
        return f"judges {shown}, which is no {kind.family}"
    for value in kind.compared:
        of = "double" if isinstance(value, float) else _OF_VALUES.get(type(value), "timestamp")
        if of != (ours[kind.columns[0]] if of == "double" else next(iter(families))):
            return f"compares {shown} with {value!r}, and they do not compare"
    return ""


def _name(column: str) -> str:
    return f"`{column}`" if column in _SQL_WORDS else column


def _literal(value: Value) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case Decimal():
            return format(value, "f")
        case datetime():
            moment = value.astimezone(UTC) if value.tzinfo else value
            return f"TIMESTAMP'{moment:%Y-%m-%d %H:%M:%S.%f}+00:00'"
        case date():
            return f"DATE'{value.isoformat()}'"
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case _:
            return str(value)


def _wrong_values(values: tuple[object, ...]) -> str:
    for value in values:
        if not isinstance(value, int | Decimal | float | str | date):
            return f"compares with {value!r}: write a number, text, boolean, date or datetime"
        if isinstance(value, float | Decimal) and not Decimal(value).is_finite():
            return f"compares with {value!r}, which is no number"
        if isinstance(value, datetime) and value.tzinfo is None:
            return f"compares with {value!r}, which has no time zone"
    return ""


def _is_more(least: object, most: object) -> bool:
    try:
        return bool(least > most)  # type: ignore[operator]
    except TypeError:
        return False  # the column's type says which of them is wrong
