"""Lines of tills with stores named by a text, and gold tables that can be computed by store and reconcile nothing.

So nothing but the engine itself keeps rows of some keys and the rest of a day from contradicting each other.
"""

from platform_assets.contracts import (
    Column,
    Contract,
    Domain,
    Input,
    LandingFiles,
    Rule,
    as_of,
    month_to_date,
    same_day,
    span,
)

_OWNER = "registers@example.com"
_LINE = (
    Column("line", "long", "Which line.", nullable=False),
    Column("store", "string", "Where, if the till knew."),
    Column("good", "long", "What was sold."),
    Column("amount", "long", "Cents."),
    Column("sold_at", "timestamp", "When, UTC.", nullable=False),
    Column("updated_at", "timestamp", "When it was written, UTC.", nullable=False),
)
_GOOD = (
    Column("good", "long", "Which good.", nullable=False),
    Column("since", "date", "From when on it is of the category.", nullable=False),
    Column("category", "string", "Of what it is."),
)
_STORE = Column("store", "string", "The store.", nullable=False)
_CATEGORY = Column("category", "string", "As of the day.", nullable=False)
_FIGURES = (
    Column("lines", "long", "How many.", nullable=False),
    Column("amount", "long", "Cents.", nullable=False),
)

TABLES = (
    Contract(
        name="raw.lines",
        description="Lines as delivered.",
        owner=_OWNER,
        columns=(*_LINE, Column("voided", "boolean", "Taken back.")),
        key=("line",),
        source=LandingFiles("lines"),
        event_time="sold_at",
        updated_at="updated_at",
        voided="voided",
        moves_within_days=10,
        restatement_window_days=20,
    ),
    Contract(
        name="raw.goods",
        description="Categories as delivered.",
        owner=_OWNER,
        columns=(*_GOOD, Column("updated_at", "timestamp", "When it was written, UTC.", nullable=False)),
        key=("good", "since"),
        source=LandingFiles("goods"),
        event_time="since",
        updated_at="updated_at",
        delivers="on change",
    ),
    Contract(
        name="silver.lines",
        description="One row per line.",
        owner=_OWNER,
        columns=_LINE,
        key=("line",),
        inputs=(Input("raw.lines", same_day()),),
        rules=(Rule("amount_given", "amount >= 0", "Every line has an amount."),),
    ),
    Contract(
        name="silver.goods",
        description="Categories and the day from which they hold.",
        owner=_OWNER,
        columns=_GOOD,
        key=("good", "since"),
        inputs=(Input("raw.goods", same_day()),),
    ),
    Contract(
        name="gold.store_days",
        description="Lines of a day by store and category.",
        owner=_OWNER,
        columns=(_STORE, _CATEGORY, *_FIGURES),
        key=("store", "category"),
        inputs=(Input("silver.lines", same_day()), Input("silver.goods", as_of())),
        separable_by=("store",),
    ),
    Contract(
        name="gold.store_spans",
        description="Lines of three days by store.",
        owner=_OWNER,
        columns=(_STORE, *_FIGURES),
        key=("store",),
        inputs=(Input("silver.lines", span(2)),),
        separable_by=("store",),
    ),
    Contract(
        name="gold.store_months",
        description="Lines since the first of the month by store and category.",
        owner=_OWNER,
        columns=(_STORE, _CATEGORY, *_FIGURES),
        key=("store", "category"),
        inputs=(Input("gold.store_days", month_to_date()),),
        separable_by=("store", "category"),
    ),
)

DOMAIN = Domain("registers", TABLES, "platform_assets_tests.support.domains.transforms")
