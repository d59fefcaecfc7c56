"""Twenty tables for the growth benchmark, with every kind of window a platform has: contracts only, nothing computes.

Four sources of sales and one of products; per source a daily sum by the product of the day and a trailing one, and two
sums of the month so far.
"""

from __future__ import annotations

from platform_assets import contracts as declare

SALES = ("shops", "web", "phone", "partners")
_OWNER = "benchmark@example.com"
_KEY = declare.Column("id", "long", "What the row is about.", nullable=False)
_HAPPENED = declare.Column("happened_at", "timestamp", "When it happened, UTC.", nullable=False)
_UPDATED = declare.Column("updated_at", "timestamp", "When the source last wrote it, UTC.", nullable=False)


def _source(name: str) -> tuple[declare.Contract, declare.Contract]:
    """A source as delivered and cleaned."""
    raw = declare.Contract(
        name=f"raw.{name}",
        description=f"{name} as delivered.",
        owner=_OWNER,
        columns=(_KEY, _HAPPENED, _UPDATED),
        key=("id",),
        source=declare.LandingFiles(name),
        event_time="happened_at",
        updated_at="updated_at",
    )
    return raw, _computed(f"silver.{name}", declare.Input(raw.name, declare.same_day()))


def _computed(name: str, *inputs: declare.Input) -> declare.Contract:
    return declare.Contract(
        name=name, description=f"{name}.", owner=_OWNER, columns=(_KEY,), key=("id",), inputs=tuple(inputs)
    )


TABLES = (
    *_source("products"),
    *(
        table
        for name in SALES
        for table in (
            *_source(name),
            _computed(
                f"gold.{name}_daily",
                declare.Input(f"silver.{name}", declare.same_day()),
                declare.Input("silver.products", declare.as_of()),
            ),
            _computed(f"gold.{name}_28d", declare.Input(f"silver.{name}", declare.span(27))),
        )
    ),
    *(
        _computed(f"gold.{name}_month", declare.Input(f"gold.{name}_daily", declare.month_to_date()))
        for name in SALES[:2]
    ),
)

DOMAIN = declare.Domain(name="many_tables", tables=TABLES, transforms="platform_assets.domains.retail.transforms")
"""The transforms are somebody else's: only their code version is asked for."""
