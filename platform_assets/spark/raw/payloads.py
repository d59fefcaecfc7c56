r"""A raw row as JSON, the same text to the byte whichever engine writes it.

Spark's `to_json` is the reference: what it wrote lies in quarantines, and their digests were taken of it. Sail's writes
`2.10` as `2.1`, moments otherwise, and `\u001f` where Spark has `\u001F`. So for Sail the text is put
together from what both have, type by type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, StringType, TimestampType

from platform_assets.contracts.columns import MOST_DIGITS
from platform_assets.spark.sail.session import is_sail

_MOMENT = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
"""Spark leaves out what is less than a thousandth of a second; the time zone of all sessions is UTC."""

_ESCAPED = {chr(n): f"\\u{n:04X}" for n in range(32)} | {
    "\b": r"\b", "\t": r"\t", "\n": r"\n", "\f": r"\f", "\r": r"\r",
}  # fmt: skip

_MOST_PLAIN_DECIMALS = 6
"""Java writes a decimal with an exponent that has more than these, and so many zeros before anything else."""


def payload(rows: DataFrame, columns: Sequence[str]) -> Column:
    """Some columns of every row as a JSON object, those without a value left out.

    Args:
        rows: that have the columns.
        columns: in the object's order.
    """
    if not is_sail(rows.sparkSession):
        return F.to_json(F.struct(*columns))
    types = {field.name: field.dataType for field in rows.schema.fields}
    return as_json({name: types[name] for name in columns})


def as_json(types: Mapping[str, DataType]) -> Column:
    """The text that Spark's `to_json` makes of a struct, without it.

    Of a double the text is the engine's own: Java has other digits, and the tables are refused for that.

    Args:
        types: of the columns, by name, in the object's order; names are those of a contract.
    """
    fields = [F.concat(F.lit(f'"{name}":'), _value(F.col(name), type_)) for name, type_ in types.items()]
    text = F.concat(F.lit("{"), F.concat_ws(",", *fields), F.lit("}"))
    for character, written in _ESCAPED.items():  # nothing but texts of the row has any
        text = F.replace(text, F.lit(character), F.lit(written))
    return text


def _value(column: Column, type_: DataType) -> Column:
    match type_:
        case StringType():
            text = F.replace(F.replace(column, F.lit("\\"), F.lit("\\\\")), F.lit('"'), F.lit('\\"'))
            return _quoted(text)
        case TimestampType():
            return _quoted(F.date_format(column, _MOMENT))
        case DecimalType():
            return _decimal(column, type_)
    text = column.cast("string")
    return _quoted(text) if type_.typeName() == "date" else text


def _quoted(text: Column) -> Column:
    return F.concat(F.lit('"'), text, F.lit('"'))


def _decimal(column: Column, type_: DecimalType) -> Column:
    """As Java's `BigDecimal` is a text: with all its decimals, and an exponent where it begins after many zeros."""
    plain = column.cast("string")
    if type_.scale <= _MOST_PLAIN_DECIMALS:
        return plain
    is_negative = F.startswith(plain, F.lit("-"))
    sign = F.when(is_negative, F.lit("-")).otherwise(F.lit(""))
    amount = F.when(is_negative, F.substring(plain, 2, len("0.") + MOST_DIGITS)).otherwise(plain)
    digits = F.regexp_replace(amount, "^[0.]+", "")
    point = F.when(F.length(digits) > 1, F.lit(".")).otherwise(F.lit(""))
    exponent = (F.lit(type_.scale + 1) - F.length(digits)).cast("string")
    short = F.concat(sign, F.substring(digits, 1, 1), point, F.substring(digits, 2, MOST_DIGITS), F.lit("E-"), exponent)
    is_plain = ~F.startswith(amount, F.lit("0." + "0" * _MOST_PLAIN_DECIMALS))
    return F.when(is_plain, plain).when(digits == "", F.lit(f"0E-{type_.scale}")).otherwise(short)
