"""Tell Dagster what a step's result means: days that failed, are held, or are good though their run failed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date

import dagster as dg

from platform_assets.contracts import Contract
from platform_assets.engine.platform import Platform
from platform_assets.engine.results import IngestResult, StepResult
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import states_around
from platform_assets.engine.step.holds import refused_before
from platform_assets.operations.lineage.held_days import HeldDay, held_days, withdrawals
from platform_assets.orchestration.assets.checks import NEW_SINCE, ByDay, checks_of
from platform_assets.orchestration.assets.events import day_event, recorded_figures
from platform_assets.orchestration.shown_text import RefusedError, plain
from platform_assets.planning.day_states import Blocked, Held, UpToDate
from platform_assets.quality.deliveries import delivery_checks
from platform_assets.quality.findings import Checked, Finding, checked
from platform_assets.records.history import DayRecord
from platform_assets.visible import visible

TableDay = tuple[str, date]
"""A day of a table."""

_LEFT = "days"
_SPELT_OUT = 20
"""Days of which a failed step says why."""

_MOST_DAYS = 50
"""Days of a table of which all is looked up: that opens files of raw days."""


def failures(done: IngestResult | StepResult) -> dict[date, str]:
    """Return days that were not published, and the reason in a sentence or two."""
    if isinstance(done, IngestResult):
        return dict.fromkeys(done.missing, "its source has not delivered it yet, and the day is not declared closed")
    return done.not_published


def days_left(
    title: str,
    days: Mapping[str, Mapping[date, str]],
    held: Iterable[HeldDay] = (),
    stops: Iterable[str] = (),
) -> RefusedError:
    """Return the failure of a step that did not publish some days, for a person who has to act.

    Args:
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
    """Return the days that a step did not publish, as far as the metadata of its failure has them."""
    left = metadata.get(_LEFT)
    if not isinstance(left, dg.JsonMetadataValue) or not isinstance(left.data, dict):
        return frozenset()
    return frozenset((table, date.fromisoformat(day)) for table, days in left.data.items() for day in days)


def checks_of_result(platform: Platform, contract: Contract, done: IngestResult | StepResult) -> ByDay:
    """Return what every check says, by day; of a raw table, by arrival date."""
    if isinstance(done, IngestResult):
        return delivery_checks(contract, done.arrivals, platform.calendar.days())
    # A day that was refused before and not tried again is as red as it was.
    held = {day: _red(contract, findings) for day, findings in done.held.items() if day not in done.checks}
    return held | {day: tried.checks for day, tried in done.checks.items()}


def checks_of_held(contract: Contract, held: Mapping[date, HeldDay]) -> ByDay:
    """Return what the check that holds a day says of it, by day; no check holds what a person put back."""
    return {day: _red(contract, map(refused_before, of_day.holds)) for day, of_day in held.items()}


def _red(contract: Contract, findings: Iterable[Finding]) -> tuple[Checked, ...]:
    return tuple(
        checked(finding.check, [finding], "", {}) for finding in findings if finding.check in checks_of(contract)
    )


def what_holds(platform: Platform, contract: Contract, days: Collection[date]) -> dict[date, HeldDay]:
    """Return what holds some days: of each its own hold, or that of a day which it reads.

    Args:
        days: that were not published; of many the oldest are looked at, of a raw table none: nothing holds them.
    """
    if not contract.inputs or not days:
        return {}
    _, states = states_around(LakeSnapshot.now(platform), contract, sorted(days)[:_MOST_DAYS])
    holds = {day: state.hold for day, state in states.items() if isinstance(state, Held | Blocked) and state.hold}
    named = {(hold.table, hold.day) for hold in holds.values()}
    standing = [hold for hold in platform.ledger.holds() if (hold.table, hold.day) in named] if named else []
    said = {(held.hold.table, held.hold.day): held for held in held_days(platform, standing)}
    return {day: said[hold.table, hold.day] for day, hold in holds.items() if (hold.table, hold.day) in said}


def good_days(platform: Platform, contract: Contract, days: Collection[date]) -> dict[date, DayRecord]:
    """Return those of some days that are what they should be now, whoever published them."""
    snapshot = LakeSnapshot.now(platform)
    if contract.source is not None:
        good = set(snapshot.digests(contract.name)).intersection(days)
    else:
        _, states = states_around(snapshot, contract, days)
        good = {day for day, state in states.items() if isinstance(state, UpToDate)}
    return {day: record for day, record in snapshot.days(contract.name, sorted(good)).items() if day in good}


def good_day_events(contract: Contract, days: Mapping[date, DayRecord]) -> Iterator[dg.AssetMaterialization]:
    """Yield one event for every day, oldest first."""
    for day, record in sorted(days.items()):
        yield day_event(contract.name, day, record.digest, recorded_figures(record) | {"state": plain("up to date")})
