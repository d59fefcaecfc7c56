"""Visits of persons: rows that somebody may want erased, in tables that say whose they are and in one that does not."""

from platform_assets.contracts import Column, Contract, Domain, Input, LandingFiles, Rule, same_day, span

_OWNER = "visits@example.com"
_VISIT = (
    Column("person", "long", "Who came.", sensitive=True),
    Column("visit", "long", "Which visit.", nullable=False),
    Column("visited_at", "timestamp", "When, UTC.", nullable=False),
    Column("paid", "decimal(8,2)", "Dollars."),
    Column("updated_at", "timestamp", "When it was written, UTC.", nullable=False),
)

DOMAIN = Domain(
    name="visits",
    tables=(
        Contract(
            name="raw.visits",
            description="Visits as delivered.",
            owner=_OWNER,
            columns=_VISIT,
            key=("visit",),
            source=LandingFiles("visits"),
            event_time="visited_at",
            updated_at="updated_at",
            moves_within_days=10,
            restatement_window_days=30,
        ),
        Contract(
            name="raw.stays",
            description="Nights, delivered by others, who call the same person a guest.",
            owner=_OWNER,
            columns=(
                Column("guest", "string", "Who stayed.", sensitive=True),
                Column("stay", "long", "Which stay.", nullable=False),
                Column("night", "timestamp", "When, UTC.", nullable=False),
            ),
            key=("stay",),
            source=LandingFiles("stays"),
            event_time="night",
        ),
        Contract(
            name="silver.visits",
            description="One row per visit.",
            owner=_OWNER,
            columns=_VISIT,
            key=("visit",),
            inputs=(Input("raw.visits", same_day()),),
            rules=(Rule("paid_something", "paid > 0", "Nobody comes for nothing."),),
        ),
        Contract(
            name="gold.persons",
            description="Visits and dollars of each person on two days.",
            owner=_OWNER,
            columns=(
                Column("person", "long", "Who.", nullable=False, sensitive=True),
                Column("visits", "long", "How many.", nullable=False),
            ),
            key=("person",),
            inputs=(Input("silver.visits", span(1)),),
        ),
        Contract(
            name="gold.takings",
            description="Dollars of a day, whoever paid them.",
            owner=_OWNER,
            columns=(
                Column("visits", "long", "How many.", nullable=False),
                Column("paid", "decimal(18,2)", "Dollars.", nullable=False),
            ),
            key=("visits",),
            inputs=(Input("silver.visits", same_day()),),
        ),
    ),
    transforms="platform_assets_tests.support.domains.transforms",
)
