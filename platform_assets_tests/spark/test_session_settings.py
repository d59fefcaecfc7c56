"""Whoever set them: with settings that change what queries give, nothing is computed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from platform_assets.lakehouse.layout import located
from platform_assets.spark.session.configuration import TUNING, SessionSettingsError, refuse_other_settings
from platform_assets.spark.tables.staging import stage
from platform_assets.sql_settings import REQUIRED

ZONE, OF_OTHERS = "spark.sql.session.timeZone", "spark.sql.legacy.sizeOfNull"
DATES = "spark.sql.datetime.java8API.enabled"


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, in which a test changes settings as anybody may; afterwards they are as they were."""
    yield spark
    for name, value in REQUIRED.items():
        spark.conf.set(name, value)
    spark.conf.unset(OF_OTHERS)


def test_a_session_of_ours_has_the_values_that_days_are_computed_with(spark: SparkSession) -> None:
    refuse_other_settings(spark)
    assert {name: str(spark.conf.get(name)) for name in REQUIRED} == REQUIRED


def test_what_is_required_is_sparks_own_default_but_for_four(spark: SparkSession) -> None:
    """A transform that is tried in a session of one's own gives what the platform publishes."""
    java = cast("Any", spark)._jvm.org.apache.spark.sql.internal
    entries = getattr(getattr(java, "SQLConf$"), "MODULE$")
    defaults = {name: entries.getConfigEntry(name).defaultValueString() for name in REQUIRED}
    other = {name for name, value in defaults.items() if value.lower() != REQUIRED[name].lower()}
    of_files = {"spark.sql.parquet.outputTimestampType", "spark.sql.legacy.parquet.nanosAsLong"}
    assert other - {ZONE} == {DATES, *of_files}, "the zone is that of the machine"


def test_executors_of_another_time_zone_find_the_rows_of_a_date(spark: SparkSession, tmp_path: Path) -> None:
    """A file in which no other date is they would leave out, where the filter came to them as an instant."""
    spark.sql("SELECT DATE'2017-01-03' AS since").write.parquet(str(tmp_path / "of one date"))
    found = spark.read.parquet(str(tmp_path / "of one date")).where("since = DATE'2017-01-03'")
    java = cast("Any", found)
    java._jdf.queryExecution().executedPlan()  # here is where the filter is made
    zones = cast("Any", spark)._jvm.java.util.TimeZone
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone("America/New_York"))
    try:
        assert java._jdf.count() == 1
        assert len(found.collect()) == 1
    finally:
        zones.setDefault(before)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        (ZONE, "America/New_York", "has to be UTC"),
        ("spark.sql.ansi.enabled", "false", "has to be true"),
        (OF_OTHERS, "true", "has to stay as Spark has it"),
        ("spark.sql.preserveCharVarcharTypeInfo", "true", "has to be false"),
        ("spark.sql.analyzer.failAmbiguousSelfJoin", "false", "has to be true"),
    ],
)
def test_what_somebody_set_since_is_refused_by_name(session: SparkSession, name: str, value: str, told: str) -> None:
    session.conf.set(name, value)
    with pytest.raises(SessionSettingsError, match=f"it sets {name}, which {told}"):
        refuse_other_settings(session)


def test_what_nobody_set_is_looked_at_too(session: SparkSession) -> None:
    plain = session.newSession()
    plain.conf.unset(ZONE)
    plain.conf.set("spark.sql.caseSensitive", "TRUE")
    with pytest.raises(SessionSettingsError, match=r"spark\.sql\.caseSensitive"):
        refuse_other_settings(plain)


def test_nothing_is_staged_in_such_a_session(session: SparkSession, tmp_path: Path) -> None:
    rows = session.sql("SELECT 1 AS k, DATE'2017-01-01' AS event_date")
    session.conf.set("spark.sql.caseSensitive", "true")
    with pytest.raises(SessionSettingsError):
        stage(rows, located(tmp_path / "stage"))
    assert not (tmp_path / "stage").exists()


def test_no_setting_is_one_of_which_spark_warns(spark: SparkSession) -> None:
    """Over Spark Connect whoever computes would read it with every command."""
    known: Any = spark.sparkContext._jvm
    deprecated = known.org.apache.spark.sql.internal.SQLConf.deprecatedSQLConfigs()
    assert deprecated.contains("spark.sql.optimizer.metadataOnly")
    assert [name for name in TUNING if deprecated.contains(name)] == []
