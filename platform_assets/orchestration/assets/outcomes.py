"""What a step's result means for Dagster: days that failed and why, what the checks say."""

from __future__ import annotations

from datetime import date

from platform_assets.contracts import Contract
from platform_assets.engine.platform import Platform
from platform_assets.engine.results import IngestResult, StepResult
from platform_assets.orchestration.assets.checks import ByDay
from platform_assets.quality.deliveries import delivery_checks
from platform_assets.quality.findings import checked


def failures(done: IngestResult | StepResult) -> dict[date, str]:
    """Days that were not published, and the reason in a sentence or two."""
    if isinstance(done, IngestResult):
        return dict.fromkeys(done.missing, "its source has not delivered it, and the day is not declared closed")
    return done.not_published


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
