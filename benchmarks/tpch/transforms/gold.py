"""Gold: sums of a day's lines, and a count over the last seven days."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.tpch import TOTAL
from platform_assets.spark.windows import Windowed


def pricing(lineitem: DataFrame) -> DataFrame:
    """Prices by what became of the lines."""
    return lineitem.groupBy("event_date", "l_returnflag", "l_linestatus").agg(
        F.count(F.lit(1)).alias("lines"),
        F.sum("l_quantity").cast(TOTAL).alias("quantity"),
        F.sum("l_extendedprice").cast(TOTAL).alias("price"),
    )


def late_lines(orders: Windowed, lineitem: Windowed) -> DataFrame:
    """Orders with a line that came after it was promised; its lines lie on the order's own day."""
    late = lineitem.frame.where("l_commitdate < l_receiptdate").select(
        "event_date", F.col("l_orderkey").alias("o_orderkey")
    )
    daily = (
        orders.frame.join(late, ["event_date", "o_orderkey"], "left_semi")
        .groupBy("event_date", "o_orderpriority")
        .agg(F.count(F.lit(1)).alias("orders"))
    )
    return orders.per_day(daily).groupBy("event_date", "o_orderpriority").agg(F.sum("orders").alias("orders"))
