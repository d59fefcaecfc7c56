"""What a step's result means for Dagster: days that failed and why, what the checks say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

import dagster as dg

from platform_assets.contracts import Contract
from platform_assets.engine.platform import Platform
from platform_assets.engine.results import IngestResult, StepResult
from platform_assets.engine.step.holds import refused_before
from platform_assets.operations.lineage.held_days import HeldDay, withdrawals
from platform_assets.orchestration.assets.checks import NEW_SINCE, ByDay, checks_of
from platform_assets.orchestration.told_errors import RefusedError
from platform_assets.quality.deliveries import delivery_checks
from platform_assets.quality.findings import Checked, Finding, checked
from platform_assets.visible import visible

TableDay = tuple[str, date]
"""A day of a table."""

_LEFT = "days"
_SPELT_OUT = 20
"""Days of which a failed step says why."""


def failures(done: IngestResult | StepResult) -> dict[date, str]:
    """Days that were not published, and the reason in a sentence or two."""
    if isinstance(done, IngestResult):
        return dict.fromkeys(done.missing, "its source has not delivered it yet, and the day is not declared closed")
    return done.not_published


def days_left(
    title: str,
    days: Mapping[str, Mapping[date, str]],
    held: Iterable[HeldDay] = (),
    stops: Iterable[str] = (),
) -> RefusedError:
    """The failure of a step that did not publish some days, for a person who has to do something about it.

    Args:
        title: how many days of what.
        days: with what keeps each, by table, inputs first; at least one.
        held: what is known of those that something holds.
        stops: why circuits are open that stopped days of it; said first.
    """
    reasons = [(table, day, why) for table, of_table in days.items() for day, why in sorted(of_table.items())]
    known = tuple(held)
    instead = {(of_day.hold.table, of_day.hold.day): f"; {of_day.instead}" for of_day in known}
    lines = [f"{table} {day}: {why}{instead.get((table, day), '')}" for table, day, why in reasons[:_SPELT_OUT]]
    if len(reasons) > _SPELT_OUT:
        lines.append(f"and {len(reasons) - _SPELT_OUT:,} more")
    if commands := withdrawals(known):
        lines += [NEW_SINCE, *commands]
    table, day, _ = reasons[0]
    todo = f"What to do: `platform-assets why {table} {day}` says all that is known of the day; then docs/on-call.md."
    left = {name: sorted(map(str, of_table)) for name, of_table in days.items() if of_table}
    return RefusedError("\n".join(map(visible, [*stops, title, *lines, todo])), {_LEFT: dg.MetadataValue.json(left)})


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
    held = {day: _red(contract, findings) for day, findings in done.held.items() if day not in done.checks}
    return held | {day: tried.checks for day, tried in done.checks.items()}


def checks_of_held(contract: Contract, held: Mapping[date, HeldDay]) -> ByDay:
    """What the check that holds a day says of it, by day; what a person put back no check holds."""
    return {day: _red(contract, map(refused_before, of_day.holds)) for day, of_day in held.items()}


def _red(contract: Contract, findings: Iterable[Finding]) -> tuple[Checked, ...]:
    return tuple(
        checked(finding.check, [finding], "", {}) for finding in findings if finding.check in checks_of(contract)
    )
