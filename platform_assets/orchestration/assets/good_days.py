"""Days of a run that failed and are good all the same, told to Dagster: a backfill is red for the others alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import date

import dagster as dg

from platform_assets.contracts import Contract
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import states_around
from platform_assets.orchestration.assets.events import day_event, figures
from platform_assets.orchestration.shown import plain
from platform_assets.planning.day_states import UpToDate
from platform_assets.records.history import DayRecord


def good_days(platform: Platform, contract: Contract, days: Collection[date]) -> dict[date, DayRecord]:
    """Of some days those that are what they should be now, whoever published them, with what was published.

    Args:
        platform: what to look at.
        contract: of the table; a day of raw is good once it is loaded.
        days: that were asked for.
    """
    snapshot = LakeSnapshot.now(platform)
    if contract.source is not None:
        good = set(snapshot.digests(contract.name)).intersection(days)
    else:
        _, states = states_around(snapshot, contract, days)
        good = {day for day, state in states.items() if isinstance(state, UpToDate)}
    return {day: record for day, record in snapshot.days(contract.name, sorted(good)).items() if day in good}


def good_day_events(contract: Contract, days: Mapping[date, DayRecord]) -> Iterator[dg.AssetMaterialization]:
    """One event for every day, oldest first."""
    for day, record in sorted(days.items()):
        shown = figures(record.rows, record.bytes, record.files, record.digest, record.figures, record.seconds)
        yield day_event(contract.name, day, record.digest, shown | {"state": plain("up to date")})
