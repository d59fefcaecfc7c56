"""Sensor readings: another key and event-time column, no `updated_at`, no voids, nothing that moves."""

from platform_assets.contracts import (
    Amount,
    Column,
    Contract,
    Domain,
    Input,
    LandingFiles,
    Reconciliation,
    Rule,
    same_day,
    span,
)

_READING = (
    Column("sensor", "string", "Which sensor.", nullable=False),
    Column("measured_at", "timestamp", "When, UTC.", nullable=False),
    Column("celsius", "decimal(6,2)", "Temperature."),
)

DOMAIN = Domain(
    name="sensors",
    tables=(
        Contract(
            name="raw.readings",
            description="Readings as delivered.",
            owner="sensors@example.com",
            columns=_READING,
            key=("sensor", "measured_at"),
            source=LandingFiles("readings"),
            event_time="measured_at",
            deep_restatement_days=179,
        ),
        Contract(
            name="silver.readings",
            description="One row per reading.",
            owner="sensors@example.com",
            columns=_READING,
            key=("sensor", "measured_at"),
            inputs=(Input("raw.readings", same_day()),),
            rules=(Rule("above_absolute_zero", "celsius > -273.15", "Nothing is colder."),),
        ),
        Contract(
            name="gold.sensor_week",
            description="Coldest and warmest of the trailing week.",
            owner="sensors@example.com",
            columns=(
                Column("sensor", "string", "Which sensor.", nullable=False),
                Column("readings", "long", "Readings in the week.", nullable=False),
                Column("coldest", "decimal(6,2)", "Lowest temperature.", nullable=False),
                Column("warmest", "decimal(6,2)", "Highest temperature.", nullable=False),
            ),
            key=("sensor",),
            inputs=(Input("silver.readings", span(6)),),
            reconciles=(
                Reconciliation(
                    "silver.readings",
                    by=("sensor",),
                    amounts=(
                        Amount("readings", "sum(readings)", "count(1)"),
                        Amount("coldest", "min(coldest)", "min(celsius)"),
                    ),
                ),
            ),
        ),
    ),
    transforms="platform_assets_tests.support.domains.transforms",
)
