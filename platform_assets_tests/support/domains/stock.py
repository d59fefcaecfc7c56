"""Items of a stock in raw and silver: of each the version that counts, by whatever order a test declares."""

from platform_assets.contracts import Column, Contract, Domain, Input, LandingFiles, Rule, same_day

_ITEM = Column("item", "long", "Which item.", nullable=False)
_AMOUNT = Column("amount", "long", "How many are there.")
RAW = Contract(
    name="raw.stock",
    description="Counts as delivered.",
    owner="stock@example.com",
    columns=(
        _ITEM,
        _AMOUNT,
        Column("counted_at", "timestamp", "When, UTC.", nullable=False),
        Column("updated_at", "date", "When it was written.", nullable=False),
        Column("lsn", "long", "Which change.", nullable=False),
        Column("gone", "boolean", "Taken back."),
    ),
    key=("item",),
    source=LandingFiles("stock"),
    event_time="counted_at",
    updated_at=("updated_at", "lsn"),
    voided="gone",
    moves_within_days=3,
)
SILVER = Contract(
    name="silver.stock",
    description="One row per item.",
    owner="stock@example.com",
    columns=(_ITEM, _AMOUNT),
    key=("item",),
    inputs=(Input("raw.stock", same_day()),),
    rules=(Rule("some", "amount >= 0", "Nobody owes items."),),
)
DOMAIN = Domain("stock", (RAW, SILVER), "platform_assets_tests.support.domains.transforms")
