"""What the retail tables promise."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from platform_assets.contracts import (
    Amount,
    Column,
    Contract,
    Input,
    LandingFiles,
    Reconciliation,
    Rule,
    as_of,
    compare,
    in_range,
    month_to_date,
    same_day,
    span,
)

MONEY = "decimal(12,2)"
TOTAL = "decimal(18,2)"
OWNER = "retail-data@example.com"
CLOSED = frozenset({date(2017, 12, 25)})

_BASKET = Column("basket_id", "long", "One trip through the till.", nullable=False)
_PRODUCT = Column("product_id", "long", "The product sold.", nullable=False)
_STORE = Column("store_id", "long", "The store.", nullable=False)
_UPDATED = Column("updated_at", "timestamp", "When the source last wrote this version, UTC.", nullable=False)
_DEPARTMENT = Column(
    "department",
    "string",
    "Department of the product as of the day; UNKNOWN where the product is.",
    nullable=False,
)
_LINE = (
    Column("household_id", "long", "The household that bought.", sensitive=True),
    Column("store_id", "long", "The store."),
    _BASKET,
    _PRODUCT,
    Column("quantity", "int", "Units sold."),
    Column(
        "sales_value",
        MONEY,
        "Dollars the retailer received from the sale, coupons not yet taken off.",
    ),
    Column("retail_disc", MONEY, "Dollars of discount through the loyalty card."),
    Column("coupon_disc", MONEY, "Dollars of discount through manufacturers' coupons."),
    Column("coupon_match_disc", MONEY, "Dollars with which the retailer matched coupons."),
    Column("week", "int", "Week of the year, 1 to 53.", additive=False),
    Column(
        "transaction_timestamp",
        "timestamp",
        "When the basket was paid, UTC.",
        nullable=False,
    ),
    _UPDATED,
)

RAW_TRANSACTIONS = Contract(
    name="raw.transactions",
    description="Till lines as delivered: every version, duplicates included.",
    owner=OWNER,
    columns=(
        *_LINE,
        Column("voided", "boolean", "True where the till took the line back."),
    ),
    key=("basket_id", "product_id"),
    source=LandingFiles("transactions"),
    event_time="transaction_timestamp",
    updated_at="updated_at",
    voided="voided",
    moves_within_days=60,
    # The sample's latest rows come 90 days after their day: all of it is taken unasked, and silver is the whole truth.
    # With 60 days its very late tenth of a percent would wait in the late queue.
    restatement_window_days=90,
    closed_days=CLOSED,
)

RAW_PRODUCTS = Contract(
    name="raw.products",
    description="Product attributes as delivered, one row whenever they change.",
    owner=OWNER,
    columns=(
        _PRODUCT,
        Column(
            "effective_date",
            "date",
            "First day on which these attributes hold.",
            nullable=False,
        ),
        Column("manufacturer_id", "long", "Who makes it."),
        Column("department", "string", "Department that sells it."),
        Column("brand", "string", "National or Private."),
        Column("product_category", "string", "Category within the department."),
        Column("product_type", "string", "Kind within the category."),
        Column("package_size", "string", "Size as printed."),
        _UPDATED,
    ),
    key=("product_id", "effective_date"),
    source=LandingFiles("products"),
    event_time="effective_date",
    updated_at="updated_at",
    delivers="on change",
)

SILVER_TRANSACTIONS = Contract(
    name="silver.transactions",
    description="One row per till line, its newest version, without voided lines.",
    owner=OWNER,
    columns=(
        *_LINE,
        Column(
            "net_amount",
            MONEY,
            "Dollars received: sales value less manufacturers' coupons.",
            made_from=("raw.transactions.sales_value", "raw.transactions.coupon_disc"),
        ),
    ),
    key=("basket_id", "product_id"),
    inputs=(Input("raw.transactions", same_day()),),
    rules=(
        Rule("household_known", "household_id > 0", "Every line belongs to a household."),
        Rule("store_known", "store_id > 0", "Every line belongs to a store."),
        Rule(
            "quantity_in_range",
            in_range("quantity", 0, 1_000_000),
            "Units are never negative.",
        ),
        Rule(
            "sales_value_in_range",
            in_range("sales_value", 0, 100_000),
            "A line is never negative or absurd.",
        ),
        Rule(
            "discounts_not_negative",
            "retail_disc >= 0 AND coupon_disc >= 0 AND coupon_match_disc >= 0",
            "Discounts are given as positive dollars.",
        ),
        Rule("week_of_year", in_range("week", 1, 53), "Weeks run from 1 to 53."),
        Rule(
            "updated_after_sale",
            compare("updated_at", ">=", "transaction_timestamp"),
            "No version is older than its sale.",
        ),
    ),
    closed_days=CLOSED,
)

SILVER_PRODUCTS = Contract(
    name="silver.products",
    description="Effective-dated history of product attributes: a row holds from its day until the product's next one.",
    owner=OWNER,
    columns=tuple(c for c in RAW_PRODUCTS.columns if c.name != "updated_at"),
    key=("product_id", "effective_date"),
    inputs=(Input("raw.products", same_day()),),
    rules=(
        Rule(
            "department_given",
            "length(trim(department)) > 0",
            "A product has a department.",
        ),
    ),
)

_FIGURES = (
    Column("lines", "long", "Till lines.", nullable=False),
    Column("baskets", "long", "Baskets with at least one such line.", nullable=False),
    Column("units", "long", "Units sold.", nullable=False),
    Column(
        "gross",
        TOTAL,
        "Dollars at shelf price: sales value plus loyalty and match discounts.",
        nullable=False,
    ),
    Column(
        "discounts",
        TOTAL,
        "Dollars of all discounts, manufacturers' coupons included.",
        nullable=False,
    ),
    Column("net", TOTAL, "Dollars received: gross less discounts.", nullable=False),
)

_SOLD = {
    "baskets": ("basket_id",),
    "units": ("quantity",),
    "gross": ("sales_value", "retail_disc", "coupon_match_disc"),
    "discounts": ("retail_disc", "coupon_match_disc", "coupon_disc"),
    "net": ("sales_value", "coupon_disc"),
}
"""Columns of the till lines behind each figure."""

DAILY_SALES = Contract(
    name="gold.daily_sales",
    description="Sales per day, store and department, by the product's department as of that day.",
    owner=OWNER,
    columns=(
        _STORE,
        _DEPARTMENT,
        *(
            replace(figure, made_from=tuple(f"silver.transactions.{name}" for name in _SOLD.get(figure.name, ())))
            for figure in _FIGURES
        ),
    ),
    key=("store_id", "department"),
    separable_by=("store_id",),
    inputs=(
        Input("silver.transactions", same_day()),
        Input("silver.products", as_of()),
    ),
    closed_days=CLOSED,
    reconciles=(
        # By store only: a line's department is this table's own, from the product as of the day.
        Reconciliation(
            "silver.transactions",
            by=("store_id",),
            amounts=(
                Amount("lines", "sum(lines)", "count(1)"),
                Amount("units", "sum(units)", "sum(quantity)"),
                Amount("net", "sum(net)", "sum(net_amount)"),
            ),
        ),
    ),
)

HOUSEHOLD_28D = Contract(
    name="gold.household_28d",
    description="Each household with a trip in the trailing 28 days, the day included.",
    owner=OWNER,
    columns=(
        Column("household_id", "long", "The household.", nullable=False, sensitive=True),
        Column(
            "spend",
            TOTAL,
            "Dollars received from it in the 28 days.",
            nullable=False,
            made_from=("silver.transactions.net_amount",),
        ),
        Column(
            "trips",
            "long",
            "Baskets per day, summed over the 28 days.",
            nullable=False,
            made_from=("silver.transactions.basket_id",),
        ),
        Column(
            "recency_days",
            "int",
            "Days since its latest trip, 0 to 27.",
            nullable=False,
            additive=False,
        ),
    ),
    key=("household_id",),
    inputs=(Input("silver.transactions", span(27)),),
    reconciles=(
        Reconciliation(
            "silver.transactions",
            by=("household_id",),
            amounts=(Amount("spend", "sum(spend)", "sum(net_amount)"),),
        ),
    ),
)

SALES_MONTH_TO_DATE = Contract(
    name="gold.sales_month_to_date",
    description="Sales per store and department from the first of the month to the day.",
    owner=OWNER,
    columns=(_STORE, _DEPARTMENT, *_FIGURES),
    key=("store_id", "department"),
    separable_by=("store_id", "department"),
    inputs=(Input("gold.daily_sales", month_to_date()),),
    reconciles=(
        Reconciliation(
            "gold.daily_sales",
            by=("store_id", "department"),
            amounts=tuple(Amount(name, f"sum({name})", f"sum({name})") for name in ("lines", "gross", "net")),
        ),
    ),
)

TABLES = (
    RAW_TRANSACTIONS,
    RAW_PRODUCTS,
    SILVER_TRANSACTIONS,
    SILVER_PRODUCTS,
    DAILY_SALES,
    HOUSEHOLD_28D,
    SALES_MONTH_TO_DATE,
)
