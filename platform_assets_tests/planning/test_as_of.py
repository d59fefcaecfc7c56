"""A day is made from what is valid on it, and on the other days as of which its rows are joined."""

from __future__ import annotations

from datetime import date

import pytest

from platform_assets.contracts import Column, Contract, Input, Window, all_history, as_of, month_to_date, same_day, span
from platform_assets.planning.fingerprints import View, fingerprints
from platform_assets.planning.windows import Calendar

CALENDAR = Calendar(date(2017, 1, 29), date(2017, 2, 6))
BEFORE = {date(2017, 1, 29): "meat", date(2017, 2, 2): "deli"}
"""A view: what is valid from which day on."""

AFTER = BEFORE | {date(2017, 1, 29): "bakery"}
"""A correction: it was bakery, not meat, before it became deli."""


def made_from(window: Window, view: View) -> dict[date, str]:
    contract = Contract(
        name="gold.sales",
        description="",
        owner="",
        columns=(Column("k", "long", "Key.", nullable=False),),
        key=("k",),
        inputs=(Input("silver.lines", window), Input("silver.things", as_of())),
    )
    loaded = {table: dict.fromkeys(CALENDAR.days(), "x") for table in ("silver.lines", "silver.things")}
    return fingerprints(contract, CALENDAR.days(), loaded, CALENDAR, {"silver.things": view})


@pytest.mark.parametrize(
    ("window", "last"),
    [
        (same_day(), date(2017, 2, 1)),
        (span(2), date(2017, 2, 3)),
        (month_to_date(), date(2017, 2, 6)),
        (all_history(), date(2017, 2, 6)),
    ],
)
def test_a_correction_reaches_the_days_of_which_rows_are_joined_as_of_when_it_was_valid(
    window: Window, last: date
) -> None:
    before, after = made_from(window, BEFORE), made_from(window, AFTER)
    assert [day for day in before if before[day] != after[day]] == [day for day in CALENDAR.days() if day <= last]


@pytest.mark.parametrize("window", [same_day(), span(2), month_to_date(), all_history()])
def test_what_becomes_valid_later_reaches_no_day_before(window: Window) -> None:
    later = BEFORE | {date(2017, 2, 5): "fish"}
    before, after = made_from(window, BEFORE), made_from(window, later)
    assert [day for day in before if before[day] != after[day]] == [date(2017, 2, 5), date(2017, 2, 6)]
