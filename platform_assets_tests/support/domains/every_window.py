"""Tables with every kind of window, and two of them together; nothing computes them."""

from __future__ import annotations

from platform_assets.contracts import (
    AllHistory,
    Column,
    Contract,
    Domain,
    Input,
    LandingFiles,
    as_of,
    month_to_date,
    offsets,
    same_day,
    span,
)

_KEY = Column("id", "long", "What the row is about.", nullable=False)
_HAPPENED = Column("happened_at", "timestamp", "When it happened, UTC.", nullable=False)
_UPDATED = Column("updated_at", "timestamp", "When the source last wrote it, UTC.", nullable=False)
RAW = ("raw.sales", "raw.products")
"""Each is delivered so many days after a day as its place says."""


def _raw(name: str, after_days: int) -> Contract:
    return Contract(
        name=name,
        description="As delivered.",
        owner="test@example.com",
        columns=(_KEY, _HAPPENED, _UPDATED),
        key=("id",),
        source=LandingFiles(name.partition(".")[2]),
        event_time="happened_at",
        updated_at="updated_at",
        delivered_after_days=after_days,
    )


def _computed(name: str, *inputs: Input) -> Contract:
    return Contract(
        name=name, description="Computed.", owner="test@example.com", columns=(_KEY,), key=("id",), inputs=inputs
    )


DOMAIN = Domain(
    name="every_window",
    tables=(
        *(_raw(name, after_days) for after_days, name in enumerate(RAW)),
        _computed("silver.products", Input("raw.products", same_day())),
        _computed("silver.sales", Input("raw.sales", same_day())),
        _computed("gold.daily", Input("silver.sales", same_day()), Input("silver.products", as_of())),
        _computed("gold.joined", Input("silver.sales", span(2)), Input("silver.products", as_of())),
        _computed("gold.around", Input("silver.sales", span(2, 1))),
        _computed("gold.beside", Input("silver.sales", offsets(-3, 0))),
        _computed("gold.month", Input("gold.daily", month_to_date())),
        _computed("gold.so_far", Input("silver.sales", month_to_date()), Input("silver.products", as_of())),
        _computed("gold.ever", Input("silver.sales", AllHistory())),
    ),
    transforms="platform_assets.domains.retail.transforms",
    code_version="1",
)
