"""Code that would not give the same a second time is refused before anything it made is published."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any, cast
from uuid import uuid4

import pytest
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from platform_assets.contracts import Rule
from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import recompute_step
from platform_assets.engine.step.proofs import NotRepeatableError
from platform_assets.planning.configuration import Configuration
from platform_assets.planning.steps import Step
from platform_assets.spark.windows import Windowed
from platform_assets_tests.support.domains import sensors
from platform_assets_tests.support.domains.transforms import gold, silver
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.world import World

DAYS = 9
CENTI = "decimal(6,2)"
right = gold.sensor_week


def day(number: int) -> date:
    return date(2017, 1, number)


def nine_days(lakes: Lakes) -> World:
    """Nine days of two sensors, each day with readings of the same moment's place in the day, up to silver."""
    world = lakes.new(days=DAYS, domains="platform_assets_tests.support.domains.sensors")
    for number in range(1, DAYS + 1):
        rows = [
            {"sensor": sensor, "measured_at": f"{day(number)}T0{hour}:00:00Z", "celsius": f"{number}.{hour}0"}
            for sensor in ("north", "south")
            for hour in range(4)
        ]
        world.deliver_rows("readings", str(day(number)), "r.jsonl", rows)
    world.recompute(("raw.readings", "silver.readings"), [day(number) for number in range(1, DAYS + 1)])
    return world


@pytest.fixture
def world(prepared: Prepared) -> World:
    return prepared(nine_days)


def jobs(spark: SparkSession, work: Callable[[], object]) -> int:
    """How many jobs some work starts; other processes work with the same Spark."""
    group, context = str(uuid4()), spark.sparkContext
    context.setJobGroup(group, "counted by a test")
    try:
        work()
    finally:
        context.setLocalProperty("spark.jobGroup.id", cast("str", None))
    cast("Any", context)._jsc.sc().listenerBus().waitUntilEmpty()
    return len(context.statusTracker().getJobIdsForGroup(group))


def refused(world: World) -> NotRepeatableError:
    with pytest.raises(NotRepeatableError) as error:
        world.recompute(["gold.sensor_week"], [day(number) for number in range(1, DAYS + 1)])
    assert world.rows("silver.readings")
    assert world.digests()["gold.sensor_week"] == {}
    assert not list((world.settings.lake_folder / "gold" / "sensor_week").glob("*Z-*"))
    return error.value


def refused_as_it_was(world: World, table: str, days: Collection[int]) -> NotRepeatableError:
    """What is published of the table stays."""
    before = world.digests()[table]
    with pytest.raises(NotRepeatableError) as error:
        world.recompute([table], map(day, days))
    assert world.digests()[table] == before
    return error.value


def by_the_clock(readings: Windowed) -> DataFrame:
    return right(readings).withColumn("readings", F.unix_seconds(F.current_timestamp()))


def by_the_days_date(readings: Windowed) -> DataFrame:
    today = F.datediff(F.current_date(), "event_date").cast("long")
    return right(readings).withColumn("readings", F.when(F.col("sensor") == "north", today).otherwise(0))


def by_chance(readings: Windowed) -> DataFrame:
    return right(readings).withColumn("warmest", (F.rand(7) * 100).cast(CENTI))


def by_place(readings: Windowed) -> DataFrame:
    return right(readings).withColumn("readings", F.monotonically_increasing_id())


@pytest.mark.parametrize(
    ("transform", "says"),
    [
        (by_the_clock, "CurrentTimestamp (reads the clock)"),
        pytest.param(by_the_days_date, "CurrentDate (reads the clock)", marks=pytest.mark.proof),
        pytest.param(by_chance, "Rand (draws random numbers)", marks=pytest.mark.proof),
        pytest.param(by_place, "MonotonicallyIncreasingID (depends on where rows lie)", marks=pytest.mark.proof),
    ],
)
def test_what_its_plan_tells_is_refused_by_name(
    world: World, monkeypatch: pytest.MonkeyPatch, transform: Callable[..., DataFrame], says: str
) -> None:
    monkeypatch.setattr(gold, "sensor_week", transform)
    error = refused(world)
    assert says in error.what
    assert "gold.sensor_week" in error.what


def of_pythons_chance(readings: Windowed) -> DataFrame:
    return right(readings).withColumn("readings", F.lit(random.randrange(2**60)))


def first_of_many(readings: Windowed) -> DataFrame:
    rows = readings.per_day().groupBy("event_date", "sensor")
    one = F.first("celsius")
    return rows.agg(F.count("*").alias("readings"), one.alias("coldest"), one.alias("warmest"))


def newest_with_ties(readings: Windowed) -> DataFrame:
    newest = Window.partitionBy("event_date", "sensor").orderBy(F.desc("source_date"))
    ranked = readings.per_day().withColumn("rank", F.row_number().over(newest)).where("rank = 1")
    columns = [F.col("event_date"), F.col("sensor"), F.lit(1).cast("long").alias("readings"), *_twice("celsius")]
    return ranked.select(columns)


def compared_with_the_day_before(readings: Windowed) -> DataFrame:
    week = right(readings)
    before = F.lag("warmest").over(Window.partitionBy("sensor").orderBy("event_date"))
    return week.withColumn("warmest", F.coalesce(before, "warmest"))


def compared_with_the_day_after(readings: Windowed) -> DataFrame:
    week = right(readings)
    after = F.lead("warmest").over(Window.partitionBy("sensor").orderBy("event_date"))
    return week.withColumn("warmest", F.coalesce(after, "warmest"))


def over_all_that_was_read(readings: Windowed) -> DataFrame:
    warmest = readings.frame.groupBy("sensor").agg(F.max("celsius").alias("warmest"))
    return right(readings).drop("warmest").join(warmest, "sensor")


def _twice(name: str) -> list[Column]:
    return [F.col(name).alias("coldest"), F.col(name).alias("warmest")]


@pytest.mark.parametrize(
    ("transform", "says", "columns"),
    [
        (of_pythons_chance, "a second computation from the same rows has other content", "in readings,"),
        *(
            pytest.param(*case, marks=pytest.mark.proof)
            for case in (
                (first_of_many, "from the same rows in another order and partitioning", "in coldest, warmest,"),
                (newest_with_ties, "from the same rows in another order and partitioning", "in coldest, warmest,"),
                (compared_with_the_day_before, "computed alone it has other content than together", "in warmest,"),
                (over_all_that_was_read, "computed alone it has other content than together", "in warmest,"),
            )
        ),
    ],
)
def test_what_comes_out_otherwise_a_second_time_is_refused_with_the_reason_and_where(
    world: World, monkeypatch: pytest.MonkeyPatch, transform: Callable[..., DataFrame], says: str, columns: str
) -> None:
    monkeypatch.setattr(gold, "sensor_week", transform)
    error = refused(world)
    assert says in error.what
    assert f"{day(8)} was tried" in error.what
    assert columns in error.what
    assert "sensor north" in error.what


@pytest.mark.proof
def test_a_day_that_is_ordered_up_to_the_key_passes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def newest(readings: Windowed) -> DataFrame:
        last = F.max_by("celsius", F.struct("source_date", "measured_at")).alias("coldest")
        rows = readings.per_day().groupBy("event_date", "sensor").agg(F.min("measured_at").alias("at"), last)
        return rows.select(
            [F.col("event_date"), F.col("sensor"), F.lit(1).cast("long").alias("readings"), *_twice("coldest")]
        )

    monkeypatch.setattr(gold, "sensor_week", newest)
    with world.open() as platform:
        step = Step("gold.sensor_week", tuple(day(number) for number in range(1, DAYS + 1)))
        done = recompute_step(platform, lambda: world.spark, step, Author("test", "a test"), accept=["reconciliation"])
    assert len(done.published) == DAYS


@pytest.mark.proof
@pytest.mark.parametrize("transform", [compared_with_the_day_before, over_all_that_was_read])
def test_code_that_was_first_used_for_a_single_day_is_tried_when_it_is_used_for_several(
    world: World, monkeypatch: pytest.MonkeyPatch, transform: Callable[..., DataFrame]
) -> None:
    """As the sensor uses it for a day, and later a person for all: computed twice, and as often again to tell why."""
    monkeypatch.setattr(gold, "sensor_week", transform)
    world.recompute(["gold.sensor_week"], [day(5)])
    assert world.digests()["gold.sensor_week"].keys() == {day(5)}
    error = refused_as_it_was(world, "gold.sensor_week", range(1, DAYS + 1))
    assert "computed alone it has other content than together with its neighbours, in warmest," in error.what


@pytest.mark.proof
@pytest.mark.parametrize("transform", [compared_with_the_day_before, compared_with_the_day_after])
def test_two_days_are_tried_both_because_only_one_may_look_at_the_other(
    world: World, monkeypatch: pytest.MonkeyPatch, transform: Callable[..., DataFrame]
) -> None:
    monkeypatch.setattr(gold, "sensor_week", transform)
    assert "computed alone it has other content" in refused_as_it_was(world, "gold.sensor_week", (4, 5)).what


def test_what_its_plan_tells_is_refused_however_often_the_code_was_published(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where somebody sets the version of the code by hand, and lets it stay."""
    world.recompute(["gold.sensor_week"], [day(5)])
    monkeypatch.setattr(gold, "sensor_week", by_the_clock)
    assert "CurrentTimestamp" in refused_as_it_was(world, "gold.sensor_week", [5]).what


def test_a_rule_that_reads_the_clock_is_refused_by_name_whenever_it_is_added(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Rule("not_in_the_future", "measured_at <= current_timestamp()", "Nothing was measured tomorrow.")
    tables = [replace(one, rules=(*one.rules, clock)) if one.rules else one for one in sensors.DOMAIN.tables]
    monkeypatch.setattr(sensors, "DOMAIN", replace(sensors.DOMAIN, tables=tuple(tables)))
    error = refused_as_it_was(world, "silver.readings", [5])
    assert "silver.readings" in error.what
    assert "CurrentTimestamp (reads the clock)" in error.what


@pytest.mark.proof
def test_only_new_code_or_more_days_are_tried_and_row_by_row_code_costs_no_job(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixteen computations of a few days, whose jobs are counted."""

    def costs(table: str, version: str, *days: int, contract: str = "today's") -> int:
        step = Step(table, tuple(map(day, days)))
        with world.open() as platform:
            platform.code_versions[table] = version
            platform.configurations[table] = Configuration({**platform.configurations[table].parts, "test": contract})
            return jobs(
                world.spark,
                lambda: recompute_step(platform, lambda: world.spark, step, Author("test", "a test"), force=True),
            )

    first, again = costs("silver.readings", "other", 4, 5), costs("silver.readings", "other", 4, 5)
    assert first == again
    week = partial(costs, "gold.sensor_week")
    week("one", 4, 5, 6)
    first, again = week("other", 4, 5, 6), week("other", 4, 5, 6)
    print(f"the probe of gold.sensor_week adds {first - again} jobs to {again}")
    assert 0 < first - again <= 4
    assert week("other", 4, 5, 6, contract="another") == first
    assert week("other", 4, 5, 6, contract="another") == again

    first, again, other_day = week("third", 4), week("third", 4), week("third", 6)
    assert first > again == other_day
    assert week("third", 4, 5) > week("third", 4, 5)
    assert week("third", 4, 5, 6) > week("third", 4, 5, 6)

    def chance(readings: DataFrame) -> DataFrame:
        return readings.withColumn("celsius", F.lit(random.randrange(100)).cast(CENTI))

    monkeypatch.setattr(silver, "readings", chance)
    with pytest.raises(NotRepeatableError, match="a second computation"):
        costs("silver.readings", "chance", 4, 5)
