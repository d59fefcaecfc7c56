"""What is staged is what was computed, in one form, whether days are dealt out in parts or stay whole."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_assets.contracts import DAY, Column, Contract, LandingFiles, Window, offsets, same_date
from platform_assets.lakehouse.delta.log import table_snapshot
from platform_assets.lakehouse.layout import located
from platform_assets.planning.windows import Calendar, days_read
from platform_assets.records.differences import Digest
from platform_assets.records.erased_keys import ErasedKeys, hash_of
from platform_assets.spark.raw.dead_letters import is_erased, without_erased
from platform_assets.spark.raw.versions import greatest_versions, order_of
from platform_assets.spark.tables.reading import read_staged
from platform_assets.spark.tables.schemas import declared_types, digest_of, digest_sums, order_hash, schema_of
from platform_assets.spark.tables.staging import _as_table, _is_written_by_day, in_parts, stage, tasks_for
from platform_assets.spark.windows import History, Windowed
from platform_assets_tests.support.installation import rows_as_frame


def test_types_are_told_in_the_words_of_contracts() -> None:
    """What Spark calls a bigint, nobody has declared."""
    declared = {"id": "long", "number": "int", "at": "timestamp", "paid": "decimal(12,2)", "note": "string"}
    assert declared_types(schema_of(**declared)) == declared | {"event_date": "date"}


def test_there_is_one_zero(spark: SparkSession, tmp_path: Path) -> None:
    values = "(1, -0.0D), (2, 0.0D), (3, -1.5D), (4, double('NaN')), (5, CAST(NULL AS double))"
    stage(
        spark.sql(f"SELECT id, x, date'2017-01-01' AS event_date FROM VALUES {values} AS t(id, x)"),
        located(tmp_path / "p"),
    )
    rows = read_staged(spark, located(tmp_path / "p")).orderBy("id").collect()
    assert [str(row["x"]) for row in rows] == ["0.0", "0.0", "-1.5", "nan", "None"]


def test_nothing_is_staged_but_rows_whatever_a_cluster_asks_for(spark: SparkSession, tmp_path: Path) -> None:
    """With these settings Hadoop's writer leaves a file that holds the smallest and greatest values of all others."""
    asking = spark.newSession()
    asking.conf.set("parquet.enable.summary-metadata", "true")
    asking.conf.set("parquet.summary.metadata.level", "ALL")
    stage(asking.sql("SELECT 1 AS k, DATE'2017-01-01' AS event_date"), located(tmp_path / "stage"))
    staged = {path.name.partition("-")[0] for path in (tmp_path / "stage").iterdir()}
    assert staged == {"_delta_log", "event_date=2017"}


SMALL_DAYS = {
    "plain": ("if(id % 7 = 0, NULL, concat('é', id % 3))", True),
    "name of a file": ("repeat('é', 60)", True),
    "long text": ("repeat('x', 129)", False),
    "double": ("CAST(id AS double)", False),
}


@pytest.mark.parametrize("case", list(SMALL_DAYS))
def test_many_small_days_are_staged_as_others_are(spark: SparkSession, tmp_path: Path, case: str) -> None:
    """Rows, types and statistics; and where only Spark's writer makes the statistics, it writes the files."""
    text, is_dealt_out = SMALL_DAYS[case]
    rows = spark.range(90).selectExpr(
        "id",
        "CAST(id AS int) AS n",
        f"{text} AS name",
        "CAST(id - 3.25 AS decimal(9,2)) AS a",
        "CAST(id * 1.5 AS decimal(18,2)) AS b",
        "CAST(-id AS decimal(38,2)) AS c",
        "timestamp_micros(id - 1) AS at",
        "id % 2 = 0 AS even",
        "CAST(NULL AS date) AS d",
        "if(id = 89, NULL, date_add(DATE'0999-12-31', CAST(id % 30 AS int))) AS event_date",
    )
    live = tmp_path / "a {lake}" / "live"
    few, many = located(live / "few"), located(live / "many")
    stage(rows, few, small=True)
    stage(rows, many)
    assert few.names() == many.names()
    (name,) = (few / "event_date=0999-12-31").names()
    written = pq.read_metadata(str(few / f"event_date=0999-12-31/{name}"))
    assert written.created_by.startswith("parquet-cpp") == is_dealt_out
    assert written.metadata[b"org.apache.spark.version"].decode() == spark.version
    assert read_staged(spark, few).schema == read_staged(spark, many).schema
    assert sorted(map(str, read_staged(spark, few).collect())) == sorted(map(str, read_staged(spark, many).collect()))
    logs = [table_snapshot(few), table_snapshot(many)]
    told = [{log.days[path]: json.loads(file.stats) for path, file in log.files.items()} for log in logs]
    if case == "name of a file":  # whole, where Spark has what comes before and after all texts that begin so
        for whole, cut in zip(told[0].values(), (told[1][day] for day in told[0]), strict=True):
            bounds = [[stats[side].pop("name") for side in ("minValues", "maxValues")] for stats in (whole, cut)]
            assert bounds[0] == ["é" * 60] * 2
            assert bounds[1][0] < "é" * 60 < bounds[1][1]
    assert told[0] == told[1]
    stage(rows.where("id < 0"), located(live / "none"), small=True)
    assert located(live / "none").names() == ["_delta_log"]


def test_rows_that_are_many_are_left_to_spark_however_few_bytes_they_take(tmp_path: Path) -> None:
    files = [located(tmp_path / name) for name in ("few.parquet", "many.parquet")]
    for file, rows in zip(files, (400_000, 100_001), strict=True):
        pq.write_table(pa.table({"k": pa.repeat(7, rows)}), str(file))
    table = _as_table(files[:1])
    assert table is not None
    assert table.num_rows == 400_000
    assert _as_table(files) is None
    assert _as_table([]) is None


def test_files_that_are_cut_say_by_which_calendar_their_days_were_written(tmp_path: Path) -> None:
    """Spark 3 refuses days before 1582, and moments before 1900, of files that do not say it."""
    told = {"org.apache.spark.version": "4.2.0", "org.apache.spark.sql.parquet.row.metadata": "with the day"}
    days = pa.array([date(1, 1, 1), date(2017, 1, 1)])
    pq.write_table(pa.table({"k": days, DAY: days}, metadata=told), tmp_path / "rows.parquet")
    assert _is_written_by_day(_as_table([located(tmp_path / "rows.parquet")]), located(tmp_path))
    for day in days.to_pylist():
        (file,) = (tmp_path / f"{DAY}={day}").iterdir()
        assert pq.read_metadata(file).metadata == {b"org.apache.spark.version": b"4.2.0"}
        assert pq.read_table(file, partitioning=None).to_pydict() == {"k": [day]}


def test_of_several_rows_that_take_effect_on_one_day_the_last_holds(spark: SparkSession) -> None:
    rows = ", ".join(
        f"(1, timestamp'2017-01-{day:02}T{hour:02}:00:00Z', '{label}', date'2017-01-{day:02}')"
        for day, hour, label in [(2, 12, "noon"), (2, 8, "morning"), (2, 10, "later"), (4, 7, "new")]
    )
    reference = spark.sql(f"SELECT * FROM VALUES {rows} AS r(id, at, label, event_date)")
    sales = spark.sql("SELECT 1 AS id, explode(sequence(date'2017-01-01', date'2017-01-05')) AS event_date")
    joined = History(reference, ["id"], ["event_date", "at"]).as_of_join(sales).orderBy("event_date")
    assert [row["label"] for row in joined.collect()] == [None, "noon", "noon", "new", "new"]


@pytest.mark.parametrize("window", [offsets(-3, 0, 2), same_date(-1, 0), same_date(-4, 1)], ids=repr)
def test_a_row_counts_for_exactly_the_days_whose_window_chooses_its_day(spark: SparkSession, window: Window) -> None:
    calendar = Calendar(date(2020, 2, 20), date(2024, 3, 5))
    days = [day for day in calendar.days() if (day.month, day.day) in {(2, 25), (2, 28), (2, 29), (3, 1)}]
    rows = spark.sql("SELECT explode(sequence(date'2020-02-20', date'2024-03-05')) AS event_date")
    spread = Windowed(rows, window, days).per_day().collect()
    counted = sorted((row["event_date"], row["source_date"]) for row in spread)
    assert counted == [(day, read) for day in days for read in sorted(days_read(window, day, calendar))]


ROWS = [(1, 2, None), (2, 1, None), (1, None, None), (None, 1, None), (1, 1, None), (None, None, None)]


def test_a_column_that_rows_have_nothing_of_changes_their_order_in_nothing(spark: SparkSession) -> None:
    frame = rows_as_frame(spark, ROWS, "a INT, b INT, added INT")
    hashed = frame.select(order_hash(["a", "b"]), order_hash(["a", "b", "added"]), order_hash(["added", "b", "a"]))
    found = [tuple(row) for row in hashed.collect()]
    assert all(len(set(hashes)) == 1 for hashes in found)
    assert len({before for before, *_ in found}) == len(ROWS), "rows of other values have another place"
    [(other,)] = (
        rows_as_frame(spark, [(1, 2, 3)], "a INT, b INT, added INT").select(order_hash(["a", "b", "added"])).collect()
    )
    assert other not in {before for before, *_ in found}


def digest(spark: SparkSession, schema: str, names: list[str], rows: Sequence[tuple[int | None, int | None]]) -> Digest:
    [row] = rows_as_frame(spark, rows, schema).agg(*digest_sums(names)).collect()
    return digest_of(row, len(rows))


def test_columns_count_by_their_names_in_whatever_order_they_come(spark: SparkSession) -> None:
    rows = [(1, 2), (2, None), (None, None)]
    found = digest(spark, "net INT, gross INT", ["net", "gross"], rows)
    assert digest(spark, "net INT, gross INT", ["gross", "net"], rows) == found
    assert digest(spark, "gross INT, net INT", ["gross", "net"], [(b, a) for a, b in rows]) == found
    others = {
        "two that change names": digest(spark, "gross INT, net INT", ["gross", "net"], rows),
        "one that is renamed": digest(spark, "net INT, total INT", ["net", "total"], rows),
        "values that change places": digest(spark, "net INT, gross INT", ["net", "gross"], [(b, a) for a, b in rows]),
        "one that is added": digest(spark, "net INT, gross INT", ["net"], rows),
    }
    assert found not in others.values()
    assert len(set(others.values())) == len(others) - 1, "the first and the third are the same rows"


SECRET = b"the secret of an installation"


HASHED = hash_of(SECRET, "person", "4711222")


KEYS = ErasedKeys(SECRET, [{"person": HASHED}], {"person": "long"})


def test_rows_lose_all_but_where_they_came_from_and_no_plan_shows_by_what(spark: SparkSession) -> None:
    """A worker of Python starts."""
    day = "date'2017-01-01'"
    rows = spark.sql(
        "SELECT * FROM VALUES "
        f"(4711222L, 1L, 'a', {day}, NULL, 'record', {day}), "
        f"(8L, 2L, 'a', {day}, NULL, 'record', {day}), "
        f"(NULL, NULL, 'b', {day}, '{{\"person\": 4711222, \"visit\"', 'broken line', NULL), "
        f"(NULL, 3L, 'b', {day}, '{{\"person\": 4711222}}', 'record', {day}), "
        f"(NULL, NULL, 'b', {day}, '1,2,3', 'broken line', NULL) "
        "AS rows(person, visit, _arrival, _arrival_date, _rescued, _kind, event_date)"
    ).localCheckpoint()  # whose plan has no values
    left = without_erased(rows, KEYS)
    found = [tuple(row) for row in left.select("person", "visit", "_arrival", "_rescued", "_kind").collect()]
    assert found == [
        (None, None, "a", None, "erased"),
        (8, 2, "a", None, "record"),
        (None, None, "b", None, "erased"),
        (None, None, "b", None, "erased"),
        (None, None, "b", "1,2,3", "broken line"),
    ]
    plan = cast("Any", rows.where(is_erased(rows, KEYS)))._jdf.queryExecution().toString()
    assert "of_erased_key" in plan
    assert not any(text in plan for text in (SECRET.decode(), HASHED, "4711222"))


def test_where_nothing_was_erased_nothing_is_done(spark: SparkSession) -> None:
    rows = spark.sql("SELECT 1L AS person")
    assert without_erased(rows, None) is rows


SMALL, LARGE = date(2017, 1, 1), date(2017, 1, 2)
SETTINGS = (
    "spark.sql.adaptive.enabled",
    "spark.sql.shuffle.partitions",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize",
    "spark.sql.files.maxPartitionBytes",
)


RAW = Contract(
    "raw.versions",
    "As delivered.",
    "me",
    (Column("key", "long", "Key.", nullable=False), Column("at", "date", "Day.")),
    ("key",),
    source=LandingFiles("versions"),
    event_time="at",
)


def settings_of(spark: SparkSession) -> list[str | None]:
    return [spark.conf.get(name) for name in SETTINGS]


def versions(spark: SparkSession, rows: int = 4000) -> DataFrame:
    """Two versions of each key of two days, of one day ten times as many; half of the large day's are of one key."""
    return spark.range(rows).selectExpr(
        f"IF(id % 10 = 0, date'{SMALL}', date'{LARGE}') AS event_date",
        f"IF(id % 2 = 1, -1, id % {rows // 2}) AS key",
        "date'2017-01-03' AS _arrival_date",
        "false AS _void",
        "'a.csv' AS _file_order",
        "id AS _place",
        "xxhash64(id) AS _row_hash",
        "id AS payload",
    )


def tasks_by_day(frame: DataFrame) -> dict[date, set[int]]:
    found: defaultdict[date, set[int]] = defaultdict(set)
    for row in frame.select(DAY, F.spark_partition_id().alias("task")).distinct().collect():
        found[row[DAY]].add(row["task"])
    return found


def test_a_large_day_has_as_many_tasks_as_parts_and_a_small_one_has_one(spark: SparkSession) -> None:
    dealt = in_parts(versions(spark), {LARGE: 5}, ["key"])
    assert {day: len(tasks) for day, tasks in tasks_by_day(dealt).items()} == {SMALL: 1, LARGE: 5}
    lying = dealt.select(DAY, "key", F.spark_partition_id().alias("task")).distinct().collect()
    assert len({(row[DAY], row["key"]) for row in lying}) == len(lying), "versions of a key meet"


@pytest.mark.parametrize("heavy", [False, True])
def test_the_greatest_versions_are_the_same_in_however_many_parts(spark: SparkSession, heavy: bool) -> None:
    raw = versions(spark)
    whole = {tuple(row) for row in greatest_versions(raw, RAW).collect()}
    parts = greatest_versions(raw, RAW, {LARGE: 5}, heavy=heavy)
    assert parts.columns == raw.columns
    assert {tuple(row) for row in parts.collect()} == whole
    assert len(whole) == raw.select(DAY, "key").distinct().count()
    assert set(order_of(RAW)) <= set(raw.columns)


def test_versions_of_a_heavy_key_do_not_meet_in_one_task(spark: SparkSession) -> None:
    """Each task sends on one version of a key, whatever it has read."""
    newest = greatest_versions(versions(spark), RAW, {LARGE: 5}, heavy=True)
    plan = newest._jdf.queryExecution().executedPlan().toString()
    assert plan.index("Final") < plan.index("Exchange") < plan.index("Partial")


def test_spark_is_as_it_was_after_work_on_a_large_day(spark: SparkSession) -> None:
    before = settings_of(spark)
    with tasks_for(lambda: spark, {LARGE: 7}, 1000) as given:
        assert settings_of(spark) == before, "nothing was asked for yet"
        assert settings_of(given()) == ["true", "7", "4000b", "1000b", "1048576b"]
        assert settings_of(given()) == ["true", "7", "4000b", "1000b", "1048576b"]
    assert settings_of(spark) == before
    with pytest.raises(AnalysisException), tasks_for(lambda: spark, {LARGE: 7}, 1000) as given:
        given().sql("SELECT nothing")
    assert settings_of(spark) == before


def test_nothing_is_changed_for_small_days(spark: SparkSession) -> None:
    before = settings_of(spark)
    with tasks_for(lambda: spark, {}, 1000) as given:
        assert settings_of(given()) == before
