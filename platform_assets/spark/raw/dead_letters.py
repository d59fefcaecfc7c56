"""Dead letters: rows refused at parsing, quarantined by a rule, or of an erased key.

Workers recognize rows of erased keys by hashes, so neither value nor secret is in a plan, a log or the UI.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SortWindow
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, StringType, TimestampType

from platform_assets.contracts import DAY, Rule
from platform_assets.contracts.columns import MOST_DIGITS
from platform_assets.records import erased_keys
from platform_assets.records.erased_keys import AS_DELIVERED, ErasedKeys
from platform_assets.records.raw_rows import BREACH, ERASED, RECORD, TOMBSTONE, VOID
from platform_assets.spark.raw.versions import PLACE, with_broken_rules, with_verdict
from platform_assets.spark.sail.session import is_sail


def is_late() -> Column:
    """Return whether a row without a day, as `parse` returns it, was late or too far ahead; the others were refused."""
    return F.isnull(DAY) & F.col("_kind").isin(RECORD, VOID)


def late_rows(parsed: DataFrame) -> DataFrame:
    """Return the rows that `parse` found late or too far ahead, with their day."""
    return parsed.where(is_late()).withColumn(DAY, F.col("_order_day"))


_MOMENT = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
"""Spark drops fractions of a millisecond; the time zone of all sessions is UTC."""

_ESCAPED = {chr(n): f"\\u{n:04X}" for n in range(32)} | {
    "\b": r"\b", "\t": r"\t", "\n": r"\n", "\f": r"\f", "\r": r"\r",
}  # fmt: skip

_MOST_PLAIN_DECIMALS = 6
"""Java writes a decimal with an exponent that has more than these, and so many zeros before anything else."""


def payload(rows: DataFrame, columns: Sequence[str]) -> Column:
    """Return some columns of every row as a JSON object, in their order, without null values."""
    if not is_sail(rows.sparkSession):
        return F.to_json(F.struct(*columns))
    types = {field.name: field.dataType for field in rows.schema.fields}
    return as_json({name: types[name] for name in columns})


def as_json(types: Mapping[str, DataType]) -> Column:
    """Return the same text as Spark's `to_json` for a struct of contract columns, without calling it.

    Quarantines contain Spark's text, and their digests cover it. Sail's `to_json` writes `2.10` as `2.1`, moments
    differently, and control characters in lower case: for Sail the text is put together type by type. Of a double the
    text is the engine's own: Java has other digits, and the tables are refused for that.
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
    """Return a decimal as Java's `BigDecimal` writes it: with all decimals, and an exponent if it begins with zeros."""
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


def quarantined_rows(raw: DataFrame, columns: Sequence[str], rules: Sequence[Rule], voided: str | None) -> DataFrame:
    """Return the raw rows that break rules, with the names of all broken rules."""
    is_broken = ~F.col("_good") | (F.col("_kind") == BREACH)
    broken = with_verdict(raw, rules, voided).where((F.col("_kind") != TOMBSTONE) & is_broken)
    return with_broken_rules(broken.drop("_good"), rules).select(
        "_arrival",
        F.array_join("_broken", ", ").alias("_reason"),
        payload(broken, columns).alias("_payload"),
        DAY,
    )


def is_refused() -> Column:
    """Return whether a row, as `parse` returns it, was refused."""
    return F.isnull(DAY) & ~is_late() & (F.col("_kind") != ERASED)


def commonest_faults(parsed: DataFrame, arrivals: Collection[str], pattern: str) -> dict[str, str]:
    """Return the commonest fault of the refused rows of each arrival, of several the last by name.

    The pattern matches a fault without its value, with two groups.
    """
    fault = F.regexp_replace("_kind", f"(?s)^{pattern}.*$", "$1: $2")
    refused = parsed.where(is_refused() & F.col("_arrival").isin(list(arrivals)))
    counts = refused.groupBy("_arrival", fault.alias("fault")).count().collect()
    return {row["_arrival"]: row["fault"] for row in sorted(counts, key=lambda row: (row["count"], row["fault"]))}


def refused_rows(parsed: DataFrame) -> DataFrame:
    """Return the rows of some whole files that `parse` refused, in the columns of `REFUSED`."""
    files = parsed.where(is_refused()).select("_arrival").distinct()
    of_these = _numbered(parsed.join(F.broadcast(files), "_arrival", "left_semi")).where(is_refused())
    return of_these.withColumn("_attempts", F.lit(1)).selectExpr(*_LETTER)


def replayed_rows(parsed: DataFrame, tried: DataFrame, before: str) -> DataFrame:
    """Return the replayed rows of parsed files, as arrivals of their own, each in its first place.

    Args:
        tried: rows to replay: `_arrival`, `_row`, `_place` and `_attempts`.
        before: prefix of the file's path in the name of its arrival.
    """
    found = _numbered(parsed).drop(PLACE).join(F.broadcast(tried), ["_arrival", "_row"])
    return found.withColumn("_arrival", F.concat(F.lit(before), "_arrival")).select(*parsed.columns)


def refused_again(replayed: DataFrame, tried: DataFrame, before: str) -> DataFrame:
    """Return `replayed_rows` that were refused again, as rows of their original files."""
    refused = replayed.where(is_refused()).withColumn("_arrival", F.replace("_arrival", F.lit(before), F.lit("")))
    again = refused.join(F.broadcast(tried), ["_arrival", PLACE])
    return again.withColumn("_attempts", F.col("_attempts") + 1).selectExpr(*_LETTER)


def _numbered(parsed: DataFrame) -> DataFrame:
    in_file = SortWindow.partitionBy("_arrival").orderBy(PLACE)
    return parsed.withColumn("_row", F.row_number().over(in_file).cast("long"))


_LETTER = (
    *("_arrival", "_kind AS _reason", "_rescued AS _payload", "_row", PLACE, "_attempts"),
    f"_arrival_date AS {DAY}",
)


# Workers of a cluster have Python, and need not have this package.
cloudpickle.register_pickle_by_value(erased_keys)

_FROM = ("_arrival", "_arrival_date", "_place")


def is_erased(rows: DataFrame, keys: ErasedKeys) -> Column:
    """Return whether rows belong to an erased key, by their fields or by their kept text.

    Columns that they lack are ignored.
    """

    def of_erased_key(*texts: str | None) -> bool:
        return keys.has_row(*texts)

    nothing = F.lit(None).cast("string")
    texts = [F.col(name).cast("string") if name in rows.columns else nothing for name in (*keys.fields, *AS_DELIVERED)]
    return F.udf(of_erased_key, "boolean", useArrow=False)(*texts)


def without_erased(parsed: DataFrame, keys: ErasedKeys | None) -> DataFrame:
    """Return parsed rows; those of erased keys have kind `erased` and only their origin."""
    if keys is None:
        return parsed
    marked = parsed.withColumn("_is_erased", is_erased(parsed, keys))
    fields = [
        F.col(name) if name in _FROM else F.when(~F.col("_is_erased"), F.col(name)).alias(name)
        for name in parsed.columns
        if name != "_kind"
    ]
    kind = F.when(F.col("_is_erased"), F.lit(ERASED)).otherwise(F.col("_kind")).alias("_kind")
    return marked.select(*fields, kind).select(*parsed.columns)
