"""Landed files as typed rows: what can enter raw, and what is refused with its reason.

Text is never guessed: every field is cast to the contract's type, and a field that does not fit refuses its row.
Nothing here knows today's date: what becomes of a row follows from the row, the date it arrived, and the contract.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count
from operator import or_
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from platform_assets.compute.delivered_digits import compared_decimals, decimals, named, with_all_digits
from platform_assets.compute.digests import order_hash
from platform_assets.compute.kinds import RECORD, VOID
from platform_assets.compute.reading import no_rows
from platform_assets.compute.schemas import raw_schema
from platform_assets.contracts import DAY, Contract
from platform_assets.contracts import Column as ContractColumn
from platform_assets.contracts.columns import MOST_DIGITS

_LINE = "_line"
_IS_NOT_BLANK = r"value rlike '[^\\x00-\\x20]'"


_PATTERN = re.compile(r"[\\{}\[\]*?]")
"""What is not taken literally in a path, unless there is a backslash before it."""

_SPARK_NAMES = {"long": "bigint"}
_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_WHOLE = {
    "date": r"^\s*\d{4}-\d{1,2}-\d{1,2}\s*$",
    "timestamp": r"^\s*\d{4}-\d{1,2}-\d{1,2}(\s*$|[ T]\d{1,2}:\d{1,2}+(?!:\d{1,2}\.\d{6}\d*[1-9]))",
    "double": r"(?i)^[\x00-\x20]*[+-]?(nan|inf(inity)?|(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)[\x00-\x20]*$",
}
"""What a text must look like so that nothing of its meaning is made up or left out.

A moment has no parts of a microsecond, which Spark would cut off; a number is none as Java's programs write it (`1d`).
"""


@dataclass(frozen=True)
class Layout:
    """Files that are read together because they look alike.

    Args:
        format: parquet, csv or json.
        columns: names in the files' order.
        files: where they are.
    """

    format: str
    columns: tuple[str, ...]
    files: tuple[Path, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns as Spark can name them: one of a CSV file may have no name, and gets one that no other has."""
        others = {name.casefold() for name in self.columns}
        return tuple(
            name or next(free for n in count(place) if (free := f"_column_{n}") not in others)
            for place, name in enumerate(self.columns, 1)
        )


def parse(spark: SparkSession, layouts: Sequence[Layout], contract: Contract) -> DataFrame:
    """The rows of some landed files, each read and judged once.

    Returns:
        Rows in `raw_schema`, nothing computed yet. What must not enter raw has no day: of a refused row `_kind` is the
        reason and `_rescued` the row as it was delivered, for `dead_letters.refused_rows`; a row that came too late, or
        too far ahead, lacks nothing else, for `late_rows.late_rows`.
    """
    parsed: DataFrame | None = None
    for layout in layouts:
        typed = _typed(_located(_read(spark, layout, contract)), layout, contract)
        rows = _judged(typed, layout, contract).select(*_raw_columns(typed, contract))
        parsed = rows if parsed is None else parsed.union(rows)
    return no_rows(spark, raw_schema(contract)) if parsed is None else parsed


def _read(spark: SparkSession, layout: Layout, contract: Contract) -> DataFrame:
    paths = [_PATTERN.sub(r"\\\g<0>", str(file)) for file in layout.files]
    reader = spark.read
    where = F.col("_metadata.file_path").alias("_file_path")
    if layout.format == "parquet":
        return reader.parquet(*paths).select("*", where)
    if layout.format == "json":
        lines = reader.text(paths).where(_IS_NOT_BLANK).select(F.col("value").alias(_LINE), where)
        return with_all_digits(_json_fields(lines, layout), _LINE, contract)
    text = StructType([StructField(name, StringType()) for name in (*layout.names, _LINE)])
    # Quotes within quotes are doubled, as everybody but Spark writes them.
    reader = reader.schema(text).option("header", True).option("enforceSchema", True).option("escape", '"')
    frame = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", _LINE).csv(paths)
    return frame.withColumn("_broken", F.col(_LINE)).select("*", where)


def _json_fields(lines: DataFrame, layout: Layout) -> DataFrame:
    """Each line as the text of its fields; `_broken` where it is anything but exactly one object."""
    text = StructType([StructField(name, StringType()) for name in (*layout.columns, "_broken")])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_broken", "allowSingleQuotes": "false"}
    fields = lines.withColumn("_fields", F.from_json(_LINE, text, options)).select("_fields.*", _LINE, "_file_path")
    # Spark reads the first object of a line and forgets the rest: a line of which a brace is not the end is looked at
    # once more, as all but the last item of an array.
    more = F.instr(_LINE, "}") < F.length(F.rtrim(_LINE))
    one = F.json_array_length(F.concat(F.lit("["), _LINE, F.lit(",0]"))) == 2
    return fields.withColumn(
        "_broken", F.coalesce("_broken", F.when(more & ~F.coalesce(one, F.lit(False)), F.col(_LINE)))
    )


def _located(frame: DataFrame) -> DataFrame:
    """Where each row came from: `<folder>/<arrival date>/<file>`, the end of the file's URL."""
    end = F.substring_index("_file_path", "/", -3)
    # Decoded only where there is something to decode, since it is done for every row.
    decoded = F.url_decode(F.replace(end, F.lit("+"), F.lit("%2B")))
    arrival = F.when(F.contains(end, F.lit("%")), decoded).otherwise(end)
    located = frame.withColumn("_arrival", arrival).drop("_file_path")
    return located.withColumn(
        "_arrival_date", F.substring_index(F.substring_index("_arrival", "/", 2), "/", -1).cast("date")
    )


def _cast(given: Column, came: str, wanted: str) -> Column:
    """A delivered field in another type, null where it does not fit.

    Java computes an amount with an exponent of many digits for hours, or fails: no column of a contract holds it.
    """
    if came != "string" or not wanted.startswith("decimal"):
        return given.try_cast(wanted)
    has_exponent = F.contains(given, F.lit("e")) | F.contains(given, F.lit("E"))
    return F.when(~(has_exponent & F.rlike(given, F.lit(r"[eE][+-]?\d{4}"))), given).try_cast(wanted)


def _typed(frame: DataFrame, layout: Layout, contract: Contract) -> DataFrame:
    """The contract's columns typed beside the delivered text, which is kept as `_as_delivered_<n>`."""
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    extra = [name for name in layout.names if name not in contract.column_names]
    rescued = F.to_json(F.struct(*map(named, extra))) if extra else F.lit(None).cast("string")
    if layout.format == "json":
        names = F.array_except(F.json_object_keys(_LINE), F.array(*map(F.lit, contract.column_names)))
        rescued = F.when(F.size(names) > 0, F.col(_LINE))
    other = [(n, c) for n, c in enumerate(contract.columns) if types[c.name] != _SPARK_NAMES.get(c.type, c.type)]
    kept = [name for name in ("_broken", _LINE) if name in types]
    located = frame.select(
        *(c.name for c in contract.columns),
        *(F.col(c.name).alias(f"_as_delivered_{n}") for n, c in other),
        *kept,
        rescued.alias("_rescued"),
        "_arrival",
        "_arrival_date",
    )
    return located.withColumns({c.name: _cast(F.col(f"_as_delivered_{n}"), types[c.name], c.type) for n, c in other})


def _lost(n: int, column: ContractColumn, types: Mapping[str, str]) -> Column | None:
    """Whether casting a field lost something of it, or had to guess."""
    name = f"_as_delivered_{n}"
    if name not in types:
        return None
    came, given, got = types[name], F.col(name), F.col(column.name)
    lost = F.isnotnull(given) & F.isnull(got)
    kind = column.type.partition("(")[0]
    if kind == "decimal":
        exact = _cast(given, came, f"decimal({MOST_DIGITS},{compared_decimals(column)})")
        # An amount too large for more decimals has no more of them than its column, if it has no exponent.
        is_plain = F.rlike(given.cast("string"), F.lit(rf"^\s*[+-]?\d+(\.\d{{0,{decimals(column)}}}0*)?\s*$"))
        return lost | (F.isnotnull(got) & ~F.coalesce(exact == got, is_plain))
    if came == "string":
        # Spark takes "2017" for the first of January, "10:05" for today and "1d" for one.
        return lost | ~F.rlike(given, F.lit(_WHOLE[kind])) if kind in _WHOLE else lost
    if (kind in {"long", "int"} and came not in _INTEGERS) or kind == "date":
        return lost | (F.isnotnull(got) & (got.try_cast(came) != given))
    return lost


def _judged(typed: DataFrame, layout: Layout, contract: Contract) -> DataFrame:
    """The rows with `_reason`, which is null where a row can enter raw, and fields that do not matter made null.

    To take a key back, a void needs that key and its place in the order. What else is written in it may be anything:
    what does not fit its type becomes null, and the row as it was delivered is kept in `_rescued`.
    """
    types = {field.name: field.dataType.simpleString() for field in typed.schema.fields}
    lost = {
        column.name: (n, found)
        for n, column in enumerate(contract.columns)
        if (found := _lost(n, column, types)) is not None
    }
    needed = {*contract.key, contract.event_time, contract.updated_at, contract.voided}
    spared = {name: found for name, (_, found) in lost.items() if contract.voided and name not in needed}
    is_void = F.coalesce(F.col(contract.voided), F.lit(False)) if contract.voided else F.lit(False)
    counts = {name: (n, found & ~is_void if name in spared else found) for name, (n, found) in lost.items()}
    judged = typed.withColumn("_reason", _refusal(types, counts, layout, contract))
    if not spared:
        return judged
    is_spared = {name: is_void & found & F.isnull("_reason") for name, found in spared.items()}
    kept = F.when(reduce(or_, is_spared.values()), _payload(typed, contract)).otherwise(F.col("_rescued"))
    nulled = {name: F.when(~spare, F.col(name)) for name, spare in is_spared.items()}
    return judged.withColumns({"_rescued": kept, **nulled})


def _refusal(
    types: Mapping[str, str], lost: Mapping[str, tuple[int, Column]], layout: Layout, contract: Contract
) -> Column:
    """Why a row is refused; null where it can enter raw. The first reason found is given."""
    checks: list[tuple[Column, Column | str]] = []
    if "_broken" in types:
        what = "not one JSON object" if layout.format == "json" else f"not {len(layout.columns)} fields"
        checks.append((F.isnotnull("_broken"), f"broken line: {what}"))
    for name, (n, is_lost) in lost.items():
        text = F.substring(F.col(f"_as_delivered_{n}").cast("string"), 1, 40)
        checks.append((is_lost, F.concat(F.lit(f"{name}: not {contract.column(name).type}: "), text)))
    for needed in (*contract.key, contract.event_time, contract.updated_at):
        if needed is not None:
            checks.append((F.isnull(needed), f"{needed}: no value"))
    day = F.to_date(contract.event_time or "")
    # There are no others for whoever computes with days: Python, Delta's partitions, the ledger.
    no_day = ~F.year(day).between(1, 9999)
    says = F.concat(F.lit(f"{contract.event_time}: "), day.cast("string"), F.lit(" is not in the years 1 to 9999"))
    checks.append((no_day, says))
    reason: Column | None = None
    for condition, says_why in checks:
        value = F.lit(says_why) if isinstance(says_why, str) else says_why
        reason = F.when(condition, value) if reason is None else reason.when(condition, value)
    assert reason is not None
    return reason


def _payload(typed: DataFrame, contract: Contract) -> Column:
    """The row as it was delivered: the line where there is one, else its fields as JSON."""
    texts = {n: f"_as_delivered_{n}" for n in range(len(contract.columns))}
    fields = [
        F.col(texts[n] if texts[n] in typed.columns else column.name).alias(column.name)
        for n, column in enumerate(contract.columns)
    ]
    line = F.col(_LINE) if _LINE in typed.columns else F.lit(None).cast("string")
    return F.coalesce(line, F.to_json(F.struct(*fields, "_rescued")))


def _raw_columns(typed: DataFrame, contract: Contract) -> list[Column]:
    names = list(contract.column_names)
    is_good = F.isnull("_reason")
    day = F.to_date(contract.event_time or "")
    kind = F.when(F.col(contract.voided), F.lit(VOID)).otherwise(F.lit(RECORD)) if contract.voided else F.lit(RECORD)
    in_time = F.date_diff("_arrival_date", day).between(-contract.ahead_days, contract.restatement_window_days)
    version = F.col(contract.updated_at) if contract.updated_at else F.col("_arrival_date").cast("timestamp")
    return [
        *(F.col(name) for name in names),
        F.col("_arrival"),
        F.col("_arrival_date"),
        F.when(is_good, F.col("_rescued")).otherwise(_payload(typed, contract)).alias("_rescued"),
        F.when(is_good, kind).otherwise(F.col("_reason")).alias("_kind"),
        version.alias("_version"),
        order_hash(names).alias("_row_hash"),
        day.alias("_order_day"),
        F.when(is_good & in_time, day).alias(DAY),
    ]
