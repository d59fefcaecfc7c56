"""The smallest platform on which corrections can be compared: till lines as delivered, cleaned, and summed by store.

The first two tables are the grocer's own; the third is its daily sales by store, without departments, so that no side
needs products. `benchmarks.sqlmesh_project` has the same two models for SQLMesh.
"""

from dataclasses import replace

from platform_assets.contracts import Amount, Contract, Domain, Input, Reconciliation, same_day
from platform_assets.domains.retail.contracts import DAILY_SALES, RAW_TRANSACTIONS, SILVER_TRANSACTIONS

STORE_SALES = Contract(
    name="gold.store_sales",
    description="Sales per day and store.",
    owner=DAILY_SALES.owner,
    columns=tuple(replace(column, made_from=()) for column in DAILY_SALES.columns if column.name != "department"),
    key=("store_id",),
    inputs=(Input("silver.transactions", same_day()),),
    closed_days=DAILY_SALES.closed_days,
    reconciles=(
        Reconciliation(
            "silver.transactions",
            by=("store_id",),
            amounts=(Amount("lines", "sum(lines)", "count(1)"), Amount("net", "sum(net)", "sum(net_amount)")),
        ),
    ),
)

TABLES = (RAW_TRANSACTIONS, SILVER_TRANSACTIONS, STORE_SALES)

DOMAIN = Domain(name="store_sales", tables=TABLES, transforms="benchmarks.store_sales.transforms")
