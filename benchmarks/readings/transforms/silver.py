"""Silver: the engine has picked the newest version of each key."""

from pyspark.sql import DataFrame


def readings(readings: DataFrame) -> DataFrame:
    """As delivered."""
    return readings
