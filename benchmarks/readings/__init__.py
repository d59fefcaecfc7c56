"""Readings of sensors as a platform, all of one day: as delivered, cleaned, converted, and summed over a week."""

from platform_assets.contracts import (
    Amount,
    Column,
    Contract,
    Domain,
    Input,
    LandingFiles,
    Reconciliation,
    same_day,
    span,
)

OWNER = "benchmark@example.com"
WEEK = 6
"""Days that a week's window reaches back."""

_SENSOR = Column("sensor", "long", "Which sensor.", nullable=False)
_NUMBER = Column("number", "long", "Which of its readings.", nullable=False)
_AT = Column("measured_at", "timestamp", "When, UTC.", nullable=False)
_CELSIUS = Column("celsius", "decimal(8,2)", "Temperature.")
_PLACE = Column("place", "string", "Where it hangs.")
_UPDATED = Column("updated_at", "timestamp", "When the source last wrote this version, UTC.", nullable=False)
READING = (_SENSOR, _NUMBER, _AT, _CELSIUS, _PLACE, _UPDATED)
KEY = ("sensor", "number")

TABLES = (
    Contract(
        name="raw.readings",
        description="Readings as delivered: every version.",
        owner=OWNER,
        columns=READING,
        key=KEY,
        source=LandingFiles("readings"),
        event_time="measured_at",
        updated_at="updated_at",
    ),
    Contract(
        name="silver.readings",
        description="The newest version of each reading.",
        owner=OWNER,
        columns=READING,
        key=KEY,
        inputs=(Input("raw.readings", same_day()),),
    ),
    Contract(
        name="gold.converted",
        description="Every reading, in Fahrenheit.",
        owner=OWNER,
        columns=(_SENSOR, _NUMBER, Column("fahrenheit", "decimal(12,3)", "Temperature."), _PLACE),
        key=KEY,
        inputs=(Input("silver.readings", same_day()),),
    ),
    Contract(
        name="gold.week",
        description="Readings of each sensor and their sum over seven days.",
        owner=OWNER,
        columns=(
            _SENSOR,
            Column("readings", "long", "How many."),
            Column("degrees", "decimal(38,2)", "Sum of their temperatures."),
        ),
        key=("sensor",),
        inputs=(Input("silver.readings", span(WEEK)),),
        reconciles=(
            Reconciliation(
                "silver.readings", by=("sensor",), amounts=(Amount("readings", "sum(readings)", "count(1)"),)
            ),
        ),
    ),
)

DOMAIN = Domain(name="readings", tables=TABLES, transforms=f"{__name__}.transforms")
