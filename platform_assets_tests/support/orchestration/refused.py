"""A day of gold that its gates refuse: the code is wrong about the readings of a second sensor."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.spark.windows import Windowed
from platform_assets_tests.support.domains.sensors.transforms import gold
from platform_assets_tests.support.world import World


def land_second_sensor(world: World, day: str, name: str = "bad.jsonl") -> None:
    """A reading of it."""
    row = {"sensor": "b", "measured_at": f"{day}T12:{len(name):02}:00Z", "celsius": "20.00"}
    world.deliver_rows("readings", day, name, [row])


def break_gold(patch: pytest.MonkeyPatch) -> None:
    """Gold comes out without the coldest reading of the second sensor, which its contract promises."""
    sensor_week = gold.sensor_week

    def broken(readings: Windowed) -> DataFrame:
        return sensor_week(readings).withColumn("coldest", F.when(F.col("sensor") != "b", F.col("coldest")))

    patch.setattr(gold, "sensor_week", broken)
