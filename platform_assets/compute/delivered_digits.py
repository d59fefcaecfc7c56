"""Numbers with all the digits that were delivered, where Spark would read them as floating-point ones."""

from __future__ import annotations

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from platform_assets.contracts import Column as ContractColumn
from platform_assets.contracts import Contract
from platform_assets.contracts.columns import MOST_DIGITS

_DIGITS_OF_A_DOUBLE = 15
_DECIMALS = 10
"""So many tell a rounded amount from the noise of a floating-point one."""

_A_DOUBLE = r'^(-?\d+\.(0|\d*[1-9])(E-?\d+)?|"-?Infinity")$'
"""What Spark makes of a JSON number with a fraction or an exponent."""
_NEXT_NUMBER = (
    r'\G([^":]*+(?:(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|:(?!\s*+[-0-9]))[^":]*+)*+:\s*+)'
    r"(-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)(?=\s*+[,}])"
)
"""In a JSON line, what comes before the next number that is a field's value, and the number; texts are skipped whole.

Nothing of it is tried twice, so that it takes neither stack nor time on a long line.
"""


def with_all_digits(fields: DataFrame, line: str, contract: Contract) -> DataFrame:
    """The fields with their numbers as they stand in the line, where that matters.

    Spark reads JSON numbers with a fraction or an exponent as floating-point ones. Where those may have lost something,
    the line is read once more with quotes around its numbers: as texts they stay as they are.

    Args:
        fields: of JSON lines, as texts.
        line: the column that has the whole line.
        contract: of the raw table.
    """
    at_stake = {c.name: found for c in contract.columns if (found := _may_lack_digits(c)) is not None}
    if not at_stake:
        return fields
    text = StructType([StructField(name, StringType()) for name in at_stake])
    quoted = F.regexp_replace(line, _NEXT_NUMBER, '$1"$2"')
    again = F.when(reduce(or_, at_stake.values()), F.from_json(quoted, text, {"allowSingleQuotes": "false"}))
    whole = {name: F.when(found, F.col(f"_again.{name}")).otherwise(named(name)) for name, found in at_stake.items()}
    return fields.withColumn("_again", again).withColumns(whole).drop("_again")


def _may_lack_digits(column: ContractColumn) -> Column | None:
    """Whether a field read as a floating-point number may be another than the delivered one, to its column."""
    field = named(column.name)
    # Most texts are told apart by their first byte, and by having no point: matching a pattern costs twenty times that.
    may_be = (field < ":") & (F.contains(field, F.lit(".")) | F.contains(field, F.lit("Infinity")))
    is_double = may_be & F.rlike(field, F.lit(_A_DOUBLE))
    if column.type == "string":
        return is_double
    if column.digits is None or column.digits[0] <= _DIGITS_OF_A_DOUBLE:
        return None
    return is_double & (F.abs(field.try_cast("double")) >= 10.0 ** (_DIGITS_OF_A_DOUBLE - compared_decimals(column)))


def named(name: str) -> Column:
    """A field by a name that may hold anything."""
    quoted = name.replace("`", "``")
    return F.col(f"`{quoted}`")


def decimals(column: ContractColumn) -> int:
    """How many digits a column has after the point; none if it is no decimal."""
    return column.digits[1] if column.digits else 0


def compared_decimals(column: ContractColumn) -> int:
    """With how many decimals a delivered amount is compared to what became of it."""
    return min(max(_DECIMALS, decimals(column) + 1), MOST_DIGITS)
