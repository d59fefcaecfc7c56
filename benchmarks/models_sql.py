"""The two models that others compute, in SQL that Spark and DuckDB read alike.

Raw has moved keys resolved by tombstones already. The models keep the rows that break no rule, pick the newest version
of each key and day, and sum by store, as `benchmarks.store_sales` does.
"""

from __future__ import annotations

from platform_assets.domains.retail.contracts import SILVER_TRANSACTIONS

_SILVER = """
SELECT {columns}, (sales_value - coupon_disc)::DECIMAL(12, 2) AS net_amount, event_date
FROM (
  SELECT *, ROW_NUMBER() OVER (
    PARTITION BY event_date, basket_id, product_id
    ORDER BY updated_at DESC, _arrival_date DESC, voided DESC, _file_order DESC, _place DESC
  ) AS _rank
  FROM {raw}
  WHERE {days} AND (_kind = 'tombstone' OR ({rules}))
)
WHERE _rank = 1 AND _kind = 'record'
"""
_GOLD = """
SELECT
  store_id,
  COUNT(*)::BIGINT AS lines,
  COUNT(DISTINCT basket_id)::BIGINT AS baskets,
  SUM(quantity)::BIGINT AS units,
  SUM(sales_value + retail_disc + coupon_match_disc)::DECIMAL(18, 2) AS gross,
  SUM(retail_disc + coupon_match_disc + coupon_disc)::DECIMAL(18, 2) AS discounts,
  SUM(sales_value - coupon_disc)::DECIMAL(18, 2) AS net,
  event_date
FROM {silver}
WHERE {days}
GROUP BY event_date, store_id
"""


def silver_sql(raw: str, days: str) -> str:
    """Silver till lines.

    Args:
        raw: how raw is named.
        days: which ones, as a condition on `event_date`.
    """
    rules = " AND ".join(f"({rule.expression})" for rule in SILVER_TRANSACTIONS.rules)
    columns = ", ".join(name for name in SILVER_TRANSACTIONS.column_names if name != "net_amount")
    return _SILVER.format(columns=columns, rules=rules, raw=raw, days=days)


def gold_sql(silver: str, days: str) -> str:
    """Sales by store.

    Args:
        silver: how silver is named.
        days: which ones, as a condition on `event_date`.
    """
    return _GOLD.format(silver=silver, days=days)
