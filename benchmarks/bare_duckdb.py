"""The year in DuckDB, written as Parquet: what the machine can do at best.

python -m benchmarks.bare_duckdb --landing DIR --lake DIR --first 2017-01-01 --last 2017-12-31 [--layers silver gold]
"""

from __future__ import annotations

import argparse
from collections.abc import Collection
from pathlib import Path

import duckdb

MONEY = "DECIMAL(12,2)"


def _types(declared: str) -> dict[str, str]:
    return dict(one.split() for one in declared.split(", "))


TRANSACTIONS = _types(
    "household_id BIGINT, store_id BIGINT, basket_id BIGINT, product_id BIGINT, quantity INTEGER, "
    f"sales_value {MONEY}, retail_disc {MONEY}, coupon_disc {MONEY}, coupon_match_disc {MONEY}, week INTEGER, "
    "transaction_timestamp TIMESTAMPTZ, updated_at TIMESTAMPTZ, voided BOOLEAN"
)
PRODUCTS = _types(
    "product_id BIGINT, effective_date DATE, manufacturer_id BIGINT, department VARCHAR, brand VARCHAR, "
    "product_category VARCHAR, product_type VARCHAR, package_size VARCHAR, updated_at TIMESTAMPTZ"
)
TRANSACTION_RULES = """
    household_id > 0 AND store_id > 0 AND quantity BETWEEN 0 AND 1000000 AND sales_value BETWEEN 0 AND 100000
    AND retail_disc >= 0 AND coupon_disc >= 0 AND coupon_match_disc >= 0 AND week BETWEEN 1 AND 53
    AND updated_at >= transaction_timestamp
"""
PRODUCT_RULES = "length(trim(department)) > 0"

SILVER_TRANSACTIONS = """
    SELECT COLUMNS(lambda c: NOT starts_with(c, '_') AND c NOT IN ('voided', 'event_date')),
           (sales_value - coupon_disc)::DECIMAL(12,2) AS net_amount, event_date
    FROM ({newest}) WHERE _kind = 'record'
"""
SILVER_PRODUCTS = """
    SELECT COLUMNS(lambda c: NOT starts_with(c, '_') AND c NOT IN ('updated_at', 'event_date')), event_date
    FROM ({newest})
"""
DAILY_SALES = """
    SELECT t.event_date, store_id, coalesce(p.department, 'UNKNOWN') AS department,
           count(*) AS lines, count(DISTINCT basket_id) AS baskets, sum(quantity)::BIGINT AS units,
           sum(sales_value + retail_disc + coupon_match_disc)::DECIMAL(18,2) AS gross,
           sum(retail_disc + coupon_match_disc + coupon_disc)::DECIMAL(18,2) AS discounts,
           sum(sales_value - coupon_disc)::DECIMAL(18,2) AS net
    FROM {silver_transactions} t
    ASOF LEFT JOIN {silver_products} p ON t.product_id = p.product_id AND t.event_date >= p.event_date
    GROUP BY ALL
"""
HOUSEHOLD_28D = """
    WITH daily AS (
        SELECT event_date AS happened, household_id, sum(net_amount) AS spend, count(DISTINCT basket_id) AS trips
        FROM {silver_transactions} GROUP BY ALL
    )
    SELECT day::DATE AS event_date, household_id, sum(spend)::DECIMAL(18,2) AS spend, sum(trips)::BIGINT AS trips,
           min(day::DATE - happened)::INTEGER AS recency_days
    FROM (SELECT *, unnest(generate_series(happened, least(happened + 27, DATE '{last}'), INTERVAL 1 DAY)) AS day
          FROM daily)
    GROUP BY ALL
"""
SALES_MONTH_TO_DATE = """
    SELECT day::DATE AS event_date, store_id, department, sum(lines)::BIGINT AS lines, sum(baskets)::BIGINT AS baskets,
           sum(units)::BIGINT AS units, sum(gross)::DECIMAL(18,2) AS gross, sum(discounts)::DECIMAL(18,2) AS discounts,
           sum(net)::DECIMAL(18,2) AS net
    FROM (SELECT *, unnest(generate_series(
              event_date, least(last_day(event_date), DATE '{last}'), INTERVAL 1 DAY)) AS day
          FROM {daily_sales})
    GROUP BY ALL
"""

LAYERS = ("raw", "silver", "gold")


class Load:
    """One load of everything that lies in the landing area."""

    def __init__(self, landing: Path, lake: Path, first: str, last: str) -> None:
        self.landing, self.lake, self.first, self.last = landing, lake, first, last
        self.db = duckdb.connect()
        self.db.execute("SET TimeZone = 'UTC'; SET preserve_insertion_order = false; SET memory_limit = '3GB'")
        self.db.execute(f"SET temp_directory = '{lake}.spill'")

    def run(self, layers: Collection[str] = LAYERS) -> None:
        """Every table of some layers, in the order in which they read each other; those below are there already."""
        if "raw" in layers:
            self.raw("transactions", TRANSACTIONS, ("basket_id", "product_id"), "transaction_timestamp", quote="")
            self.raw("products", PRODUCTS, ("product_id", "effective_date"), "effective_date", quote='"')
        if "silver" in layers:
            self.silver("transactions", SILVER_TRANSACTIONS, TRANSACTION_RULES, "basket_id, product_id")
            self.silver("products", SILVER_PRODUCTS, PRODUCT_RULES, "product_id, effective_date")
        if "gold" in layers:
            self.gold()

    def gold(self) -> None:
        """What people read."""
        silver = {f"silver_{name}": self.table(f"silver/{name}") for name in ("transactions", "products")}
        self.write(DAILY_SALES.format(**silver), "gold/daily_sales")
        self.write(HOUSEHOLD_28D.format(**silver, last=self.last), "gold/household_28d")
        daily_sales = self.table("gold/daily_sales")
        self.write(SALES_MONTH_TO_DATE.format(daily_sales=daily_sales, last=self.last), "gold/sales_month_to_date")

    def table(self, name: str) -> str:
        """A table written before."""
        types = "hive_types = {'event_date': DATE}"
        return f"read_parquet('{self.lake / name}/*/*.parquet', hive_partitioning = true, {types})"

    def write(self, query: str, name: str) -> None:
        """A table whole, by day."""
        (self.lake / name).mkdir(parents=True)
        options = "FORMAT parquet, COMPRESSION zstd, PARTITION_BY (event_date), OVERWRITE_OR_IGNORE"
        self.db.execute(f"COPY ({query}) TO '{self.lake / name}' ({options})")

    def raw(self, source: str, types: dict[str, str], key: tuple[str, str], event_time: str, quote: str) -> None:
        """Rows as delivered with where they came from; rows without type, key or day apart."""
        files = f"{self.landing / source}/*/*"
        self.db.execute(f"""
            CREATE OR REPLACE TEMP VIEW landed AS
            SELECT {", ".join(types)}, NULL AS _broken, filename FROM read_parquet('{files}.parquet', filename = true)
            UNION ALL BY NAME
            SELECT *, NULL AS _broken FROM read_csv('{files}.csv', header = true, delim = ',', quote = '{quote}',
                columns = {types}, auto_detect = false, filename = true, store_rejects = true)
            UNION ALL BY NAME
            SELECT {_typed(types)} FROM read_json('{files}.jsonl', format = 'newline_delimited',
                columns = {dict.fromkeys(types, "VARCHAR")}, ignore_errors = true, filename = true)
        """)
        day = f"CAST({event_time} AS DATE)"
        good = (
            "_broken IS NULL"
            + "".join(f" AND {name} IS NOT NULL" for name in (*key, event_time, "updated_at"))
            + f" AND {day} BETWEEN DATE '{self.first}' AND DATE '{self.last}'"
        )
        arrival = "array_to_string(split(filename, '/')[-3:], '/')"
        arrival_date = "CAST(split(filename, '/')[-2] AS DATE)"
        kind = "CASE WHEN voided THEN 'void' ELSE 'record' END" if "voided" in types else "'record'"
        columns = ", ".join(types)
        self.write(
            f"SELECT {columns}, {arrival} AS _arrival, {arrival_date} AS _arrival_date, NULL::VARCHAR AS _rescued, "
            f"{kind} AS _kind, updated_at AS _version, hash({columns}) AS _row_hash, {day} AS _order_day, "
            f"{day} AS event_date FROM landed WHERE {good}",
            f"raw/{source}",
        )
        self.write(
            f"SELECT {arrival} AS _arrival, coalesce(_broken, 'no key or day') AS _reason, "
            f"to_json({_struct(types)})::VARCHAR AS _payload, {arrival_date} AS event_date "
            f"FROM landed WHERE ({good}) IS NOT TRUE UNION ALL "
            # CSV lines that do not fit, noted by the reader both times; a line can have several errors
            f"SELECT {arrival}, error_message, csv_line, {arrival_date} FROM (SELECT DISTINCT ON (filename, line) *, "
            f"file_path AS filename FROM reject_errors JOIN reject_scans USING (scan_id, file_id) "
            f"WHERE contains(file_path, '/{source}/'))",
            f"refused/{source}",
        )

    def silver(self, source: str, query: str, rules: str, key: str) -> None:
        """Quarantine what breaks a rule; of the rest the newest version of each key of the whole table."""
        raw = self.table(f"raw/{source}")
        types = TRANSACTIONS if source == "transactions" else PRODUCTS
        self.write(
            f"SELECT _arrival, 'breaks a rule' AS _reason, to_json({_struct(types)})::VARCHAR AS _payload, event_date "
            f"FROM {raw} WHERE ({rules}) IS NOT TRUE",
            f"quarantine/{source}",
        )
        order = "_version DESC, _row_hash DESC, event_date DESC"
        newest = f"FROM {raw} WHERE {rules} QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY {order}) = 1"
        self.write(query.format(newest=newest), f"silver/{source}")


def _typed(types: dict[str, str]) -> str:
    """Text columns as their types; the first that does not fit makes the row broken."""
    typed = ", ".join(f"TRY_CAST({name} AS {type_}) AS {name}" for name, type_ in types.items())
    lost = " ".join(
        f"WHEN {name} IS NOT NULL AND TRY_CAST({name} AS {type_}) IS NULL THEN '{name}'"
        for name, type_ in types.items()
        if type_ != "VARCHAR"
    )
    return f"{typed}, CASE {lost} END AS _broken, filename"


def _struct(types: dict[str, str]) -> str:
    return "{" + ", ".join(f"'{name}': {name}" for name in types) + "}"


def main() -> None:
    """Load once, or compute what lies over the raw tables of a load again."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, type_ in (("--landing", Path), ("--lake", Path), ("--first", str), ("--last", str)):
        parser.add_argument(name, type=type_, required=True)
    parser.add_argument("--layers", nargs="+", choices=LAYERS, default=LAYERS)
    given = parser.parse_args()
    Load(given.landing, given.lake, given.first, given.last).run(given.layers)


if __name__ == "__main__":
    main()
