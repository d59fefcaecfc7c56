"""Orders of four stores, judged by a rule of each kind, reconciled, settled, and held for an unusual number of rows."""

from platform_assets.contracts import (
    Amount,
    Checks,
    Column,
    Contract,
    Domain,
    Input,
    LandingFiles,
    Reconciliation,
    Rule,
    Settled,
    as_of,
    compare,
    exists,
    in_range,
    length,
    matches,
    not_null,
    one_of,
    same_day,
    unique,
)

STORES = ("north", "east", "south", "west")
_OWNER = "orders@example.com"
_STORE = Column("store", "string", "Where it was sold.")
_ITEM = Column("item", "string", "What was sold.", nullable=False)
_SINCE = Column("since", "date", "First day on which it is sold.", nullable=False)
_UPDATED = Column("updated_at", "timestamp", "When the source wrote this version, UTC.", nullable=False)
_ORDER = (
    Column("order_id", "long", "Which order.", nullable=False),
    _STORE,
    Column("item", "string", "What was sold."),
    Column("quantity", "int", "Units sold."),
    Column("price", "decimal(12,2)", "Euro for a unit.", additive=False),
    Column("currency", "string", "Of the price."),
    Column("note", "string", "As the customer wrote it."),
    Column("ordered_at", "timestamp", "When it was ordered, UTC.", nullable=False),
    _UPDATED,
)
_RULES = (
    Rule("store_given", not_null("store"), "An order has a store."),
    Rule("store_known", one_of("store", *STORES), "There are four stores.", where="store IS NOT NULL"),
    Rule("item_code", matches("item", r"[a-z]+-\d{4}"), "Items have codes."),
    Rule("quantity_in_range", in_range("quantity", 1, 100), "Nobody orders more."),
    Rule("price_in_range", "price BETWEEN 0.01 AND 500", "Nothing is free, nothing is dearer."),
    Rule("in_euro", one_of("currency", "EUR"), "All is paid in Euro."),
    Rule("written_after", compare("ordered_at", "<=", "updated_at"), "No version is older than its order."),
    Rule("short_note", length("note", most=40), "Notes are short.", severity="warn", where="note IS NOT NULL"),
    Rule("open", "hour(ordered_at) BETWEEN 8 AND 19", "From 8 to 20 UTC.", severity="block", tolerance="5 %"),
    Rule("item_known", exists("item", table="silver.items"), "We sell it.", severity="block", tolerance="5 %"),
    Rule("ordered_once", unique("store", "item", "quantity", "price", "ordered_at"), "One each.", severity="block"),
)

TABLES = (
    Contract(
        name="raw.orders",
        description="Orders as delivered.",
        owner=_OWNER,
        columns=(*_ORDER, Column("voided", "boolean", "Taken back.")),
        key=("order_id",),
        source=LandingFiles("orders"),
        event_time="ordered_at",
        updated_at="updated_at",
        voided="voided",
        moves_within_days=10,
        restatement_window_days=20,
    ),
    Contract(
        name="raw.items",
        description="Items as delivered.",
        owner=_OWNER,
        columns=(_ITEM, _SINCE),
        key=("item", "since"),
        source=LandingFiles("items"),
        event_time="since",
        delivers="on change",
    ),
    Contract(
        name="silver.orders",
        description="One row per order.",
        owner=_OWNER,
        columns=_ORDER,
        key=("order_id",),
        inputs=(Input("raw.orders", same_day()), Input("silver.items", as_of())),
        rules=_RULES,
        checks=Checks(volume="block", rivals="block", most_aside_percent=50),
        code_version="1",  # code that a test puts in its place makes no other day stale
    ),
    Contract(
        name="silver.items",
        description="Items and the day from which they are sold.",
        owner=_OWNER,
        columns=(_ITEM, _SINCE),
        key=("item", "since"),
        inputs=(Input("raw.items", same_day()),),
    ),
    Contract(
        name="gold.store_sales",
        description="Orders of a day by store.",
        owner=_OWNER,
        columns=(
            Column("store", "string", "Where it was sold.", nullable=False),
            Column("orders", "long", "How many.", nullable=False),
            Column("units", "long", "Units sold.", nullable=False),
            Column("revenue", "decimal(18,2)", "Euro.", nullable=False),
        ),
        key=("store",),
        inputs=(Input("silver.orders", same_day()),),
        rules=(Rule("plausible", "revenue <= 20 * units", "A unit costs 20 at most.", severity="block"),),
        reconciles=(
            Reconciliation(
                "silver.orders",
                by=("store",),
                amounts=(
                    Amount("orders", "sum(orders)", "count(1)"),
                    Amount("revenue", "sum(revenue)", "sum(quantity * price)"),
                ),
            ),
        ),
        code_version="1",
        settled=(Settled(("revenue",), by=("store",), after_days=14, tolerance="5 %"),),
    ),
)

DOMAIN = Domain("orders", TABLES, "platform_assets_tests.support.domains.orders.transforms")
