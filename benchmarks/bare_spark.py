"""The year in bare PySpark, as one would write it by hand: the same tables in Delta, without anything to rely on.

No ledger, no gates, no digests, no arrivals taken once: every landed file is read, every table written whole. Only the
session comes from the platform, so that both sides run on the same settings.

    python -m benchmarks.bare_spark --landing DIR --lake DIR --first 2017-01-01 --last 2017-12-31
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import Window as SortWindow
from pyspark.sql import functions as F

from platform_assets.settings import load_settings
from platform_assets.spark.session.session import create_session, stop_session

MONEY, TOTAL = "decimal(12,2)", "decimal(18,2)"

TRANSACTIONS = f"""
    household_id BIGINT, store_id BIGINT, basket_id BIGINT, product_id BIGINT, quantity INT, sales_value {MONEY},
    retail_disc {MONEY}, coupon_disc {MONEY}, coupon_match_disc {MONEY}, week INT, transaction_timestamp TIMESTAMP,
    updated_at TIMESTAMP, voided BOOLEAN
"""
PRODUCTS = """
    product_id BIGINT, effective_date DATE, manufacturer_id BIGINT, department STRING, brand STRING,
    product_category STRING, product_type STRING, package_size STRING, updated_at TIMESTAMP
"""

TRANSACTION_RULES = {
    "household_known": "household_id > 0",
    "store_known": "store_id > 0",
    "quantity_in_range": "quantity BETWEEN 0 AND 1000000",
    "sales_value_in_range": "sales_value BETWEEN 0 AND 100000",
    "discounts_not_negative": "retail_disc >= 0 AND coupon_disc >= 0 AND coupon_match_disc >= 0",
    "week_of_year": "week BETWEEN 1 AND 53",
    "updated_after_sale": "updated_at >= transaction_timestamp",
}
PRODUCT_RULES = {"department_given": "length(trim(department)) > 0"}

FIGURES = {"lines": "long", "baskets": "long", "units": "long", "gross": TOTAL, "discounts": TOTAL, "net": TOTAL}


class Load:
    """One load of everything that lies in the landing area."""

    def __init__(self, spark: SparkSession, landing: Path, lake: Path, first: str, last: str) -> None:
        self.spark, self.landing, self.lake = spark, landing, lake
        self.first, self.last = F.lit(first).cast("date"), F.lit(last).cast("date")

    def run(self) -> None:
        """Every table, in the order in which they read each other."""
        self.raw("transactions", TRANSACTIONS, ("basket_id", "product_id"), "transaction_timestamp")
        self.raw("products", PRODUCTS, ("product_id", "effective_date"), "effective_date")
        self.silver_transactions()
        self.silver_products()
        self.daily_sales()
        self.household_28d()
        self.sales_month_to_date()

    def read(self, table: str) -> DataFrame:
        """A table written before."""
        return self.spark.read.format("delta").load(str(self.lake / table))

    def write(self, rows: DataFrame, table: str, *, clustered: bool = False) -> None:
        """A table whole, one file a day."""
        rows = rows if clustered else rows.repartition("event_date")
        rows.write.format("delta").partitionBy("event_date").save(str(self.lake / table))

    def landed(self, folder: str, schema: str) -> DataFrame:
        """All files of a source in all three formats; a line that does not fit the schema lies in `_broken`."""
        files, text = str(self.landing / folder / "*"), self.spark.read.schema(f"{schema}, _broken STRING")
        text = text.option("columnNameOfCorruptRecord", "_broken")
        parts = (
            self.spark.read.schema(schema).parquet(f"{files}/*.parquet").withColumn("_broken", F.lit(None)),
            text.csv(f"{files}/*.csv", header=True, enforceSchema=True),
            text.json(f"{files}/*.jsonl"),
        )
        located = [
            part.select("*", F.substring_index("_metadata.file_path", "/", -3).alias("_arrival")) for part in parts
        ]
        return located[0].unionByName(located[1]).unionByName(located[2])

    def raw(self, source: str, schema: str, key: tuple[str, str], event_time: str) -> None:
        """Rows as delivered with where they came from; rows without type, key or day apart."""
        landed = self.landed(source, schema)
        columns = [name for name in landed.columns if name not in {"_broken", "_arrival"}]
        day, arrival_date = F.to_date(event_time), F.to_date(F.split("_arrival", "/")[1])
        reason = F.when(F.isnotnull("_broken"), "broken line")
        for name in (*key, event_time, "updated_at"):
            reason = reason.when(F.isnull(name), f"{name}: no value")
        reason = reason.when(~day.between(self.first, self.last), f"{event_time}: outside the calendar")
        kind = F.when(F.col("voided"), "void").otherwise("record") if "voided" in columns else F.lit("record")
        self.write(
            landed.where(F.isnull(reason)).select(
                *columns,
                "_arrival",
                arrival_date.alias("_arrival_date"),
                F.lit(None).cast("string").alias("_rescued"),
                kind.alias("_kind"),
                F.col("updated_at").alias("_version"),
                F.xxhash64(*columns).alias("_row_hash"),
                day.alias("_order_day"),
                day.alias("event_date"),
            ),
            f"raw/{source}",
        )
        self.write(
            landed.withColumn("_reason", reason)
            .where(F.isnotnull("_reason"))
            .select(
                "_arrival",
                "_reason",
                F.coalesce("_broken", F.to_json(F.struct(*columns))).alias("_payload"),
                arrival_date.alias("event_date"),
            ),
            f"refused/{source}",
        )

    def newest(self, source: str, rules: dict[str, str], *key: str) -> DataFrame:
        """Quarantine what breaks a rule; of the rest the newest version of each key of the whole table, if not void."""
        raw = self.read(f"raw/{source}")
        columns = [name for name in raw.columns if not name.startswith("_") and name != "event_date"]
        broken = [F.when(~F.coalesce(F.expr(rule), F.lit(False)), name) for name, rule in rules.items()]
        reason = F.concat_ws(", ", *broken)
        self.write(
            raw.where(reason != "").select(
                "_arrival", reason.alias("_reason"), F.to_json(F.struct(*columns)).alias("_payload"), "event_date"
            ),
            f"quarantine/{source}",
        )
        order = (F.desc("_version"), F.desc("_row_hash"), F.desc("event_date"))
        ranked = raw.where(" AND ".join(f"({rule})" for rule in rules.values())).withColumn(
            "_rank", F.row_number().over(SortWindow.partitionBy(*key).orderBy(*order))
        )
        return ranked.where("_rank = 1 AND _kind = 'record'").select(*columns, "event_date")

    def silver_transactions(self) -> None:
        """Till lines with the amount received."""
        newest = self.newest("transactions", TRANSACTION_RULES, "basket_id", "product_id")
        net = (F.col("sales_value") - F.col("coupon_disc")).cast(MONEY)
        self.write(newest.drop("voided").withColumn("net_amount", net), "silver/transactions")

    def silver_products(self) -> None:
        """Product attributes with the day from which they hold."""
        newest = self.newest("products", PRODUCT_RULES, "product_id", "effective_date")
        self.write(newest.drop("updated_at"), "silver/products")

    def daily_sales(self) -> None:
        """Sales per day, store and department of the product as of that day."""
        until = F.lead("event_date").over(SortWindow.partitionBy("product_id").orderBy("event_date"))
        history = self.read("silver/products").select(
            F.col("product_id").alias("_product"),
            F.coalesce("department", F.lit("UNKNOWN")).alias("department"),
            F.col("event_date").alias("_from"),
            F.coalesce(until, F.lit("9999-12-31").cast("date")).alias("_until"),
        )
        sold = self.read("silver/transactions")
        match = (sold.product_id == history._product) & (sold.event_date >= F.col("_from"))
        match = match & (sold.event_date < F.col("_until"))
        gross = F.col("sales_value") + F.col("retail_disc") + F.col("coupon_match_disc")
        discounts = F.col("retail_disc") + F.col("coupon_match_disc") + F.col("coupon_disc")
        baskets = (
            sold.join(F.broadcast(history), match, "left")
            .groupBy(
                "event_date", "store_id", F.coalesce("department", F.lit("UNKNOWN")).alias("department"), "basket_id"
            )
            .agg(
                F.count("*").alias("lines"),
                F.sum("quantity").alias("units"),
                F.sum(gross).alias("gross"),
                F.sum(discounts).alias("discounts"),
                F.sum(gross - discounts).alias("net"),
            )
        )
        self.write(_totals(baskets.withColumn("baskets", F.lit(1))), "gold/daily_sales")

    def household_28d(self) -> None:
        """Spend, trips and recency of each household over the trailing 28 days."""
        trips = self.read("silver/transactions").groupBy("event_date", "household_id", "basket_id")
        daily = (
            trips.agg(F.sum("net_amount").alias("spend"))
            .groupBy("event_date", "household_id")
            .agg(F.sum("spend").alias("spend"), F.count("*").alias("trips"))
        )
        reached = self.spread(daily, F.date_add("event_date", 27))
        self.write(
            reached.groupBy("event_date", "household_id").agg(
                F.sum("spend").cast(TOTAL).alias("spend"),
                F.sum("trips").alias("trips"),
                F.min(F.date_diff("event_date", "happened")).alias("recency_days"),
            ),
            "gold/household_28d",
        )

    def sales_month_to_date(self) -> None:
        """Sales per store and department since the first of the month."""
        self.write(
            _totals(self.spread(self.read("gold/daily_sales"), F.last_day("event_date"))), "gold/sales_month_to_date"
        )

    def spread(self, rows: DataFrame, until: Column) -> DataFrame:
        """Each row once for every day from its own until another; `happened` is its own."""
        days = F.sequence("event_date", F.least(until, self.last))
        return rows.select("*", days.alias("_days"), F.col("event_date").alias("happened")).select(
            *(name for name in rows.columns if name != "event_date"), "happened", F.explode("_days").alias("event_date")
        )


def _totals(rows: DataFrame) -> DataFrame:
    sums = [F.sum(name).cast(type_).alias(name) for name, type_ in FIGURES.items()]
    return rows.groupBy("event_date", "store_id", "department").agg(*sums)


def main() -> None:
    """Load once, in a session of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, type_ in (("--landing", Path), ("--lake", Path), ("--first", str), ("--last", str)):
        parser.add_argument(name, type=type_, required=True)
    given = parser.parse_args()
    spark = create_session(load_settings(), record_classes=False)
    Load(spark, given.landing, given.lake, given.first, given.last).run()
    stop_session(spark)


if __name__ == "__main__":
    main()
