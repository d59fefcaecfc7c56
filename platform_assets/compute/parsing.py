"""Landed files as typed rows: what can enter raw, and what is refused with its reason.

Text is never guessed: every field is cast to the contract's type, and a field that does not fit refuses its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from platform_assets.compute.dedup import RECORD, VOID
from platform_assets.compute.digests import row_hash
from platform_assets.compute.schemas import DEAD_LETTERS, raw_schema
from platform_assets.contracts import DAY, Contract
from platform_assets.contracts import Column as ContractColumn
from platform_assets.planning.windows import Calendar

_LINE = "_line"


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


def parse(
    spark: SparkSession,
    layouts: Sequence[Layout],
    contract: Contract,
    calendar: Calendar,
) -> tuple[DataFrame, DataFrame]:
    """The rows of some landed files.

    Returns:
        The rows that enter raw, in `raw_schema`, and the refused ones, in `DEAD_LETTERS`. Nothing is computed yet.
    """
    taken: DataFrame | None = None
    refused: DataFrame | None = None
    for layout in layouts:
        frame = _located(_read(spark, layout))
        typed = _typed(frame, layout, contract)
        reason = _refusal(typed, layout, contract, calendar)
        good = typed.where(F.isnull(reason)).select(*_raw_columns(contract))
        bad = typed.withColumn("_reason", reason).where(F.isnotnull("_reason"))
        bad = bad.select("_arrival", "_reason", _payload(typed, contract), F.col("_arrival_date").alias(DAY))
        taken = good if taken is None else taken.unionByName(good)
        refused = bad if refused is None else refused.unionByName(bad)
    if taken is None or refused is None:
        return spark.createDataFrame([], raw_schema(contract)), spark.createDataFrame([], DEAD_LETTERS)
    return taken, refused


def _read(spark: SparkSession, layout: Layout) -> DataFrame:
    paths = [str(file) for file in layout.files]
    if layout.format == "parquet":
        return spark.read.parquet(*paths).select("*", "_metadata.file_path")
    if layout.format == "json":
        lines = (
            spark.read.text(paths).where("trim(value) <> ''").select(F.col("value").alias(_LINE), "_metadata.file_path")
        )
        text = StructType([StructField(name, StringType()) for name in (*layout.columns, "_broken")])
        parsed = F.from_json(_LINE, text, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_broken"})
        fields = lines.withColumn("_fields", parsed)
        return fields.select("_fields.*", _LINE, "file_path")
    text = StructType([StructField(name, StringType()) for name in (*layout.columns, _LINE)])
    reader = spark.read.schema(text).option("header", True).option("enforceSchema", True).option("mode", "PERMISSIVE")
    frame = reader.option("columnNameOfCorruptRecord", _LINE).csv(paths)
    return frame.withColumn("_broken", F.col(_LINE)).select("*", "_metadata.file_path")


def _located(frame: DataFrame) -> DataFrame:
    """Where each row came from: `<folder>/<arrival date>/<file>`, the end of the file's URL."""
    path = F.url_decode(F.replace("file_path", F.lit("+"), F.lit("%2B")))
    located = frame.withColumn("_arrival", F.substring_index(path, "/", -3)).drop("file_path")
    return located.withColumn("_arrival_date", F.to_date(F.split("_arrival", "/")[1]))


def _as_type(name: str, type_: str) -> Column:
    source = F.col(f"`{name}`")
    return source.try_cast(type_)


def _typed(frame: DataFrame, layout: Layout, contract: Contract) -> DataFrame:
    """The contract's columns typed beside the delivered text, which is kept as `_as_delivered_<n>`."""
    delivered = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    extra = [name for name in layout.columns if name not in contract.column_names]
    rescued = F.to_json(F.struct(*(F.col(f"`{name}`") for name in extra))) if extra else F.lit(None).cast("string")
    if layout.format == "json":
        names = F.array_sort(F.array_except(F.json_object_keys(_LINE), F.array(*map(F.lit, contract.column_names))))
        rescued = F.when(F.size(names) > 0, F.col(_LINE))
    typed = [
        F.col(c.name)
        if delivered[c.name] == c.type.replace("long", "bigint")
        else _as_type(c.name, c.type).alias(c.name)
        for c in contract.columns
    ]
    texts = [
        F.col(f"`{c.name}`").alias(f"_as_delivered_{n}")
        for n, c in enumerate(contract.columns)
        if delivered[c.name] != c.type.replace("long", "bigint")
    ]
    kept = [name for name in ("_broken", _LINE) if name in delivered]
    return frame.select(*typed, *texts, *kept, rescued.alias("_rescued"), "_arrival", "_arrival_date")


def _lost(n: int, column: ContractColumn, names: Sequence[str]) -> Column | None:
    """Whether casting a field lost something of it."""
    text = f"_as_delivered_{n}"
    if text not in names:
        return None
    lost = F.isnotnull(text) & F.isnull(column.name)
    if column.type.startswith("decimal"):
        exact = F.col(text).try_cast("decimal(38,10)")
        lost = lost | (F.isnotnull(column.name) & (F.isnull(exact) | (exact != F.col(column.name))))
    return lost


def _refusal(typed: DataFrame, layout: Layout, contract: Contract, calendar: Calendar) -> Column:
    """Why a row is refused; null where it can enter raw. The first reason found is given."""
    checks: list[tuple[Column, Column | str]] = []
    if "_broken" in typed.columns:
        what = "not a JSON object" if layout.format == "json" else f"not {len(layout.columns)} fields"
        checks.append((F.isnotnull("_broken"), f"broken line: {what}"))
    for n, column in enumerate(contract.columns):
        if (lost := _lost(n, column, typed.columns)) is not None:
            text = F.substring(F.col(f"_as_delivered_{n}").cast("string"), 1, 40)
            checks.append((lost, F.concat(F.lit(f"{column.name}: not {column.type}: "), text)))
    for name in (*contract.key, contract.event_time, contract.updated_at):
        if name is not None:
            checks.append((F.isnull(name), f"{name}: no value"))
    day = F.to_date(contract.event_time or "")
    outside = ~day.between(F.lit(calendar.first), F.lit(calendar.last))
    says = F.concat(
        F.lit(f"{contract.event_time}: "),
        day.cast("string"),
        F.lit(" is outside the calendar"),
    )
    checks.append((outside, says))
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
    return F.coalesce(line, F.to_json(F.struct(*fields, "_rescued"))).alias("_payload")


def _raw_columns(contract: Contract) -> list[Column]:
    names = list(contract.column_names)
    day = F.to_date(contract.event_time or "")
    kind = F.when(F.col(contract.voided), F.lit(VOID)).otherwise(F.lit(RECORD)) if contract.voided else F.lit(RECORD)
    version = F.col(contract.updated_at) if contract.updated_at else F.col("_arrival_date").cast("timestamp")
    return [
        *(F.col(name) for name in names),
        F.col("_arrival"),
        F.col("_arrival_date"),
        F.col("_rescued"),
        kind.alias("_kind"),
        version.alias("_version"),
        row_hash(names).alias("_row_hash"),
        day.alias("_order_day"),
        day.alias(DAY),
    ]
