"""Weekly figures of a few stores, and of every day the sum of its four weeks: many days with hardly any rows."""

from platform_assets.contracts import Column, Contract, Domain, Input, LandingFiles, same_day, span

_STORE = Column("store", "long", "The store.", nullable=False)
_WEEK = Column("week", "date", "First day of the week.", nullable=False)
_SALES = Column("sales", "decimal(12,2)", "Dollars.")
_OWNER = "retail-data@example.com"

RAW = Contract(
    name="raw.figures",
    description="Figures as delivered.",
    owner=_OWNER,
    columns=(_STORE, _WEEK, _SALES, Column("updated_at", "timestamp", "When it was written, UTC.", nullable=False)),
    key=("store", "week"),
    source=LandingFiles("figures"),
    event_time="week",
    updated_at="updated_at",
    restatement_window_days=9999,
    delivers="on change",
)
SILVER = Contract(
    name="silver.figures",
    description="The newest figure of each store and week.",
    owner=_OWNER,
    columns=(_STORE, _WEEK, _SALES),
    key=("store", "week"),
    inputs=(Input("raw.figures", same_day()),),
)
GOLD = Contract(
    name="gold.four_weeks",
    description="Sales of each store in the four weeks up to a day.",
    owner=_OWNER,
    columns=(_STORE, Column("sales", "decimal(18,2)", "Dollars.")),
    key=("store",),
    inputs=(Input("silver.figures", span(27)),),
)
DOMAIN = Domain("weekly", (RAW, SILVER, GOLD), "weekly.transforms")
