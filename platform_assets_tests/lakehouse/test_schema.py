"""Other columns enter with the days that bring them, in one commit; what lacks them reads nulls; nothing is cast."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import table_snapshot
from platform_assets.lakehouse.delta.new_commit import CHECKPOINT_INTERVAL
from platform_assets.lakehouse.errors import SchemaMismatchError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.publish import publish, recover
from platform_assets.lakehouse.reading import read_arrow, statements
from platform_assets.lakehouse.releases import current_release, release
from platform_assets.records.manifest import Manifest, TableChange, new_publication
from platform_assets_tests.support.empty_lake import only_on_disk
from platform_assets_tests.support.shelf import (
    PUBLISHING,
    SALES,
    STORES,
    Days,
    change,
    day,
    killed,
    manifest,
    publish_elsewhere,
    rows_of,
    stage,
    staged_manifest,
)

BEFORE: Days = {day(0): [("a", 1)], day(1): [("b", 2)]}
OLD = ["key", "cents", "price", "event_date"]

Altered = Callable[[pa.Table], pa.Table]


def with_note(rows: pa.Table) -> pa.Table:
    return rows.add_column(3, "note", pa.array([f"{key}!" for key in rows["key"].to_pylist()], pa.string()))


def without_price(rows: pa.Table) -> pa.Table:
    return rows.drop_columns("price")


def renamed(rows: pa.Table) -> pa.Table:
    return rows.rename_columns(["key", "cents", "amount", "event_date"])


def retyped(rows: pa.Table) -> pa.Table:
    return rows.set_column(1, "cents", pc.cast(rows["cents"], pa.string()))


def widened(rows: pa.Table) -> pa.Table:
    return rows.set_column(2, "price", pc.cast(rows["price"], pa.decimal128(18, 4)))


def bringing(
    lake: Lake, days: Days, altered: Altered, table: str = SALES, emptied: Iterable[date] | None = None
) -> TableChange:
    """Some days with other columns, staged, that may bring them into the table."""
    publication = stage(lake, table, {}, new_publication(), rows=altered(rows_of(days)))
    found = change(lake, table, publication, emptied)
    return found.model_copy(update={"replaces_schema": table_snapshot(lake.table_path(table)).schema_string})


def show(lake: Lake, *changes: TableChange) -> Manifest:
    return manifest(new_publication(), *changes)


def seen(lake: Lake, number: int | None = None) -> list[dict[str, Any]]:
    found = read_arrow(lake, SALES, release=number)
    return sorted(found.to_pylist(), key=lambda row: (row["event_date"], row["key"]))


def seen_by_spark(spark: SparkSession, lake: Lake, version: int) -> list[dict[str, Any]]:
    frame = spark.read.format("delta").option("versionAsOf", version).load(str(lake.table_path(SALES)))
    return sorted((row.asDict() for row in frame.collect()), key=lambda row: (row["event_date"], row["key"]))


def seen_by_duckdb(lake: Lake, number: int) -> list[dict[str, Any]]:
    connection = duckdb.connect()
    for statement in statements(lake, release(lake, number), "duckdb"):
        connection.execute(statement)
    found = connection.sql(f"SELECT * FROM {SALES}").arrow().read_all()
    return sorted(found.to_pylist(), key=lambda row: (row["event_date"], row["key"]))


def actions(lake: Lake, version: int) -> set[str]:
    return {next(iter(action)) for action in commits.actions(lake.table_path(SALES), version)}


def expected(days: Days, altered: Altered = lambda rows: rows) -> list[dict[str, Any]]:
    return sorted(altered(rows_of(days)).to_pylist(), key=lambda row: (row["event_date"], row["key"]))


@only_on_disk
def test_a_column_added_to_one_day_is_null_on_the_others_for_every_reader(lake: Lake, spark: SparkSession) -> None:
    publish(lake, staged_manifest(lake, {SALES: BEFORE}))
    publish(lake, show(lake, bringing(lake, {day(0): [("a", 5)]}, with_note)))
    assert actions(lake, 1) == {"commitInfo", "metaData", "add", "remove"}
    now = expected({day(0): [("a", 5)]}, with_note) + [row | {"note": None} for row in expected({day(1): [("b", 2)]})]
    assert seen(lake) == seen_by_spark(spark, lake, 1) == seen_by_duckdb(lake, 1) == now
    assert seen(lake, 0) == seen_by_spark(spark, lake, 0) == seen_by_duckdb(lake, 0) == expected(BEFORE)
    assert list(read_arrow(lake, SALES, release=0).column_names) == OLD


@only_on_disk
@pytest.mark.parametrize(
    "altered",
    [widened, *(pytest.param(altered, marks=pytest.mark.proof) for altered in (without_price, renamed, retyped))],
)
def test_other_columns_enter_with_all_days_and_with_no_fewer(lake: Lake, spark: SparkSession, altered: Altered) -> None:
    publish(lake, staged_manifest(lake, {SALES: BEFORE}))
    with pytest.raises(SchemaMismatchError, match=r"of files that stay would not read right any more: .*2017-01-02"):
        publish(lake, show(lake, bringing(lake, {day(0): [("a", 5)]}, altered)))
    assert (current_release(lake).number, seen(lake)) == (0, expected(BEFORE))
    after: Days = {day(0): [("a", 5)], day(1): [("b", 6)]}
    publish(lake, show(lake, bringing(lake, after, altered)))
    assert actions(lake, 1) == {"commitInfo", "metaData", "add", "remove"}
    assert seen(lake) == seen_by_spark(spark, lake, 1) == seen_by_duckdb(lake, 1) == expected(after, altered)
    assert seen(lake, 0) == seen_by_spark(spark, lake, 0) == expected(BEFORE)


def test_a_dropped_column_comes_back_without_its_old_values(lake: Lake) -> None:
    publish(lake, staged_manifest(lake, {SALES: BEFORE}))
    publish(lake, show(lake, bringing(lake, BEFORE, without_price)))
    publish(lake, show(lake, bringing(lake, {day(0): [("a", 9)]}, lambda rows: rows)))
    assert [str(row["price"]) for row in seen(lake)] == ["0.09", "None"]


@only_on_disk
def test_days_that_become_empty_can_bring_columns_too(lake: Lake, spark: SparkSession) -> None:
    publish(lake, staged_manifest(lake, {SALES: BEFORE}))
    publish(lake, show(lake, bringing(lake, {}, with_note, emptied=[day(0)])))
    now = [row | {"note": None} for row in expected({day(1): [("b", 2)]})]
    assert seen(lake) == seen_by_spark(spark, lake, 1) == seen_by_duckdb(lake, 1) == now


def test_nobody_changes_columns_who_did_not_see_those_that_are_there(lake: Lake) -> None:
    publish(lake, staged_manifest(lake, {SALES: BEFORE}))
    ours = bringing(lake, {day(0): [("a", 5)]}, with_note)
    publish(lake, show(lake, bringing(lake, BEFORE, without_price)))
    with pytest.raises(SchemaMismatchError, match="price is not in the table; note is not in the table"):
        publish(lake, show(lake, ours))
    unasked = ours.model_copy(update={"replaces_schema": ""})
    with pytest.raises(SchemaMismatchError):
        publish(lake, show(lake, unasked))


@pytest.mark.parametrize("name", PUBLISHING)
def test_whoever_finishes_a_killed_publication_brings_its_columns_too(lake: Lake, tmp_path: Path, name: str) -> None:
    publish(lake, staged_manifest(lake, {SALES: BEFORE, STORES: BEFORE}))
    after: Days = {day(0): [("a", 5)], day(1): [("b", 6)]}
    dying = show(lake, bringing(lake, after, retyped), bringing(lake, {day(1): [("b", 6)]}, with_note, STORES))
    assert killed(publish_elsewhere(lake, dying, tmp_path, name))
    released = name in ("release.after_commit", "publish.after_release")
    assert seen(lake) == (expected(after, retyped) if released else expected(BEFORE))
    recover(lake)
    publish(lake, dying)
    assert seen(lake) == expected(after, retyped)
    assert json.loads(table_snapshot(lake.table_path(STORES)).schema_string)["fields"][3]["name"] == "note"
    assert current_release(lake).number == 1


@only_on_disk
def test_columns_are_kept_by_checkpoints(lake: Lake, spark: SparkSession) -> None:
    publish(lake, staged_manifest(lake, {SALES: BEFORE}))
    publish(lake, show(lake, bringing(lake, {day(0): [("a", 5)]}, with_note)))
    for number in range(CHECKPOINT_INTERVAL):
        rows = with_note(rows_of({day(2): [("c", number)]}))
        publication = stage(lake, SALES, {}, new_publication(), rows=rows)
        publish(lake, show(lake, change(lake, SALES, publication)))
    version = current_release(lake).versions[SALES]
    assert version > CHECKPOINT_INTERVAL
    assert [row["note"] for row in seen(lake)] == ["a!", None, "c!"]
    assert seen_by_spark(spark, lake, version) == seen(lake)
    assert seen_by_spark(spark, lake, 0) == expected(BEFORE)
