"""A delivered field as a value of its column's type, and whether anything of it was lost or had to be guessed.

Everything is an SQL expression over columns of the contract, whose names and types are on the allow-list. Put together
from column objects, each part would be several calls into the JVM, thousands for a table.
"""

from __future__ import annotations

from platform_assets.contracts import Column
from platform_assets.contracts.columns import MOST_DIGITS

_SPARK_NAMES = {"long": "bigint"}
_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_DECIMALS = 10
"""So many tell a rounded amount from the noise of a floating-point one."""
_WHOLE = {
    "date": r"^\s*\d{4}-\d{1,2}-\d{1,2}\s*$",
    "timestamp": r"^\s*\d{4}-\d{1,2}-\d{1,2}(\s*$|[ T]\d{1,2}:\d{1,2}+(?!:\d{1,2}\.\d{6}\d*[1-9]))",
    "double": r"(?i)^[\x00-\x20]*[+-]?(nan|inf(inity)?|(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)[\x00-\x20]*$",
}
"""What a text must look like so that nothing of its meaning is made up or left out.

A moment has no parts of a microsecond, which Spark would cut off; a number is none as Java's programs write it (`1d`).
"""


def is_cast(column: Column, came: str) -> bool:
    """Whether a field of a Spark type has to be cast to become one of its column."""
    return came != _SPARK_NAMES.get(column.type, column.type)


def cast(given: str, came: str, wanted: str) -> str:
    """A delivered field in another type, null where it does not fit.

    Java computes an amount with an exponent of many digits for hours, or fails: no column of a contract holds it.

    Args:
        given: expression of the field.
        came: its Spark type.
        wanted: type, in the words of a contract.
    """
    if came == "string" and wanted.startswith("decimal"):
        has_exponent = f"(contains({given}, 'e') OR contains({given}, 'E'))"
        given = f"CASE WHEN NOT ({has_exponent} AND {given} RLIKE r'[eE][+-]?\\d{{4}}') THEN {given} END"
    return f"try_cast({given} AS {wanted})"


def lost(given: str, came: str, column: Column) -> str:
    """Whether casting a field lost something of it, or had to guess.

    Args:
        given: expression of the field as delivered.
        came: its Spark type.
        column: that it has become.
    """
    got = f"`{column.name}`"
    nothing = f"{given} IS NOT NULL AND {got} IS NULL"
    kind = column.type.partition("(")[0]
    if column.digits:
        more = f"decimal({MOST_DIGITS},{compared_decimals(column)})"
        # Both of one type: Spark compares those of two by rounding both to what neither may be.
        is_exact = f"{cast(given, came, more)} = try_cast({got} AS {more})"
        # An amount too large for more decimals has no more of them than its column, if it has no exponent.
        is_plain = rf"CAST({given} AS string) RLIKE r'^\s*[+-]?\d+(\.\d{{0,{column.digits[1]}}}0*)?\s*$'"
        return f"{nothing} OR {got} IS NOT NULL AND NOT coalesce({is_exact}, {is_plain})"
    if came == "string":
        # Spark takes "2017" for the first of January, "10:05" for today and "1d" for one.
        return f"{nothing} OR NOT {given} RLIKE r'{_WHOLE[kind]}'" if kind in _WHOLE else nothing
    if kind == "long" and came in ("double", "float"):
        # 2 to the 63rd, which is none, becomes the greatest there is, and that becomes 2 to the 63rd again.
        nothing = f"{nothing} OR {given} >= {2.0**63!r}D"
    if (kind in {"long", "int"} and came not in _INTEGERS) or kind == "date":
        return f"{nothing} OR {got} IS NOT NULL AND try_cast({got} AS {came}) != {given}"
    return nothing


def compared_decimals(column: Column) -> int:
    """With how many decimals a delivered amount is compared to what became of it."""
    return min(max(_DECIMALS, (column.digits[1] if column.digits else 0) + 1), MOST_DIGITS)
