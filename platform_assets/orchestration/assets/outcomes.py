"""What a step's result means for Dagster: days that failed and why, what the checks say."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date

import dagster as dg

from platform_assets.contracts import Contract
from platform_assets.engine.platform import Platform
from platform_assets.engine.results import IngestResult, StepResult
from platform_assets.orchestration.assets.checks import ByDay
from platform_assets.quality.deliveries import delivery_checks
from platform_assets.quality.findings import checked

TableDay = tuple[str, date]
"""A day of a table."""

_LEFT = "days"


def failures(done: IngestResult | StepResult) -> dict[date, str]:
    """Days that were not published, and the reason in a sentence or two."""
    if isinstance(done, IngestResult):
        return dict.fromkeys(done.missing, "its source has not delivered it, and the day is not declared closed")
    return done.not_published


def days_left(description: str, days: Mapping[str, Collection[date]]) -> dg.Failure:
    """The failure of a step that did not publish some days; trying the same again would not either.

    Args:
        description: for a person.
        days: by table.
    """
    left = {table: sorted(str(day) for day in of_table) for table, of_table in days.items() if of_table}
    return dg.Failure(description, metadata={_LEFT: dg.MetadataValue.json(left)}, allow_retries=False)


def recorded_days_left(metadata: Mapping[str, dg.MetadataValue]) -> frozenset[TableDay]:
    """The days that a step did not publish, from the metadata of its failure; none where nobody recorded them so."""
    left = metadata.get(_LEFT)
    if not isinstance(left, dg.JsonMetadataValue) or not isinstance(left.data, dict):
        return frozenset()
    return frozenset((table, date.fromisoformat(day)) for table, days in left.data.items() for day in days)


def checks_of_result(platform: Platform, contract: Contract, done: IngestResult | StepResult) -> ByDay:
    """What every check says, by day; of a raw table, by arrival date."""
    if isinstance(done, IngestResult):
        return delivery_checks(contract, done.arrivals, platform.calendar.days())
    # A day that was refused before and not tried again is as red as it was.
    held = {
        day: tuple(checked(finding.check, [finding], "", {}) for finding in findings)
        for day, findings in done.held.items()
        if day not in done.checks
    }
    return held | {day: tried.checks for day, tried in done.checks.items()}
