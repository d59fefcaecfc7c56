"""Numbers with all the digits that were delivered, where Spark would read them as floating-point ones."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from platform_assets.contracts import Column, Contract
from platform_assets.spark.raw.casting import compared_decimals

_DIGITS_OF_A_DOUBLE = 15

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
    at_stake = {c.name: condition for c in contract.columns if (condition := _may_lack_digits(c, line)) is not None}
    if not at_stake:
        return fields
    text = StructType([StructField(name, StringType()) for name in at_stake])
    quoted = F.regexp_replace(line, _NEXT_NUMBER, '$1"$2"')
    any_is = " OR ".join(f"({condition})" for condition in at_stake.values())
    again = F.when(F.expr(any_is), F.from_json(quoted, text, {"allowSingleQuotes": "false"}))
    whole = {
        name: F.expr(f"CASE WHEN {condition} THEN _again.`{name}` ELSE `{name}` END")
        for name, condition in at_stake.items()
    }
    return fields.withColumn("_again", again).withColumns(whole).drop("_again")


def _may_lack_digits(column: Column, line: str) -> str | None:
    """Whether a field read as a floating-point number may be another than the delivered one, to its column."""
    if column.type != "string" and column.digits is None:
        return None
    field = f"`{column.name}`"
    # As with an exponent that no such number has.
    is_zero = f"{field} IN ('0.0', '-0.0') AND (contains({line}, 'e-') OR contains({line}, 'E-'))"
    # Most texts are told apart by their first byte and by having no point, which costs far less than the pattern.
    may_be = f"{field} < ':' AND (contains({field}, '.') OR contains({field}, 'Infinity'))"
    is_double = f"{field} RLIKE r'{_A_DOUBLE}'"
    if column.digits is None:
        return f"{may_be} AND {is_double}"
    told_apart = _DIGITS_OF_A_DOUBLE - compared_decimals(column)
    if column.digits[0] - column.digits[1] <= told_apart:
        return is_zero
    is_large = f"{may_be} AND abs(try_cast({field} AS double)) >= {10.0**told_apart!r}D AND {is_double}"
    return f"{is_zero} OR {is_large}"
