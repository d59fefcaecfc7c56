"""`status`: what is loaded, missing, stale, held and set aside, per table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated

import typer

from platform_assets.cli.commands.status_view import Status, TableStatus, print_files, print_status
from platform_assets.cli.console import EXIT_LOOK, platform_to_look, print_json
from platform_assets.cli.options import AsJson
from platform_assets.cli.warned_view import print_warned_days, warnings_json
from platform_assets.contracts import Contract
from platform_assets.engine.admissions import not_by_sail
from platform_assets.engine.circuits import stopped
from platform_assets.engine.ingest.listing import (
    each_once,
    landing_problem,
    list_arrivals,
    unread_folders,
)
from platform_assets.engine.ingest.refused_files import refused_files
from platform_assets.engine.late.queue import late_counts
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import look_at_all
from platform_assets.operations.lineage.held_days import held_days
from platform_assets.planning.day_states import Blocked, DayState, Held, Stale
from platform_assets.planning.days_on_demand import newest as newest_of
from platform_assets.planning.loaded import delays, loaded_days
from platform_assets.planning.table_states import TableStates, missing_days
from platform_assets.planning.windows import days_later
from platform_assets.quality.seasonality import quiet_days
from platform_assets.records.history import DayFigures, DayTotals


def status(
    warnings: Annotated[
        bool, typer.Option("--warnings", help="Only what gates found of published days, the newest published first.")
    ] = False,
    files: Annotated[
        bool, typer.Option("--files", help="Only each file that was not taken or was refused, with the reason.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what is loaded, missing, stale, held and set aside; exit code 1 if something needs a look."""
    with platform_to_look() as platform:
        if warnings:
            _print_warnings(platform, as_json=as_json)
            return
        known = _status(platform)
    if as_json:
        print_json(known.json())
    elif files:
        print_files(known)
    else:
        print_status(known)
    if known.needs_a_look:
        raise typer.Exit(EXIT_LOOK)


def _print_warnings(platform: Platform, *, as_json: bool) -> None:
    warned = platform.ledger.warned(platform.catalogue.names, at=platform.current_release().number)
    if as_json:
        print_json(warnings_json(warned))
    else:
        print_warned_days(warned)


def _status(platform: Platform) -> Status:
    held = held_days(platform, platform.ledger.holds())
    snapshot = LakeSnapshot.now(platform)
    known, states = look_at_all(snapshot)
    refused_rows = platform.ledger.refused_rows()
    raw = [contract.name for contract in platform.catalogue if contract.source]
    totals = platform.ledger.counts.totals(platform.catalogue.names, at=snapshot.number)
    figures = platform.ledger.figures(raw, at=snapshot.number)
    tables = [
        _table_status(
            snapshot,
            contract,
            totals[contract.name],
            figures.get(contract.name, {}),
            known,
            states.get(contract.name, {}),
            refused_rows.get(contract.name, 0),
        )
        for contract in platform.catalogue
    ]
    counts = late_counts(platform).values()
    listings = [list_arrivals(platform, contract) for contract in platform.catalogue if contract.source]
    root = landing_problem(platform.settings, platform.catalogue)
    in_folders = (problem for listing in listings for problem in (*listing.problems, *listing.growing))
    return Status(
        tables=tables,
        held=held,
        warned=platform.ledger.warned(platform.catalogue.names, at=snapshot.number),
        refused=refused_files(platform),
        problems=([root] if root else []) + list(each_once(in_folders)),
        unread=unread_folders(platform.settings, platform.catalogue),
        pending=sum(len(listing.pending) for listing in listings),
        late=sum(count.waiting for count in counts),
        ahead=sum(count.ahead for count in counts),
        outbox=platform.ledger.outbox.open_by_target(),
        by_spark=not_by_sail(platform, platform.catalogue.names),
        stopped=tuple(dict.fromkeys(hold.reason for hold in stopped(platform).values())),
    )


def _table_status(
    snapshot: LakeSnapshot,
    contract: Contract,
    totals: DayTotals,
    delivered: Mapping[date, DayFigures],
    tables: TableStates,
    states: Mapping[date, DayState],
    refused: int = 0,
) -> TableStatus:
    """Tell where one table stands.

    Args:
        snapshot: that is looked at.
        totals: what was counted of its days together, also of those that nobody computes from yet.
        delivered: of a raw table the same of each day.
        tables: what is known of all of them.
        states: of its days; none of a raw table, whose days are there or are not.
        refused: rows of it that were refused at parsing.
    """
    platform, loaded = snapshot.platform, tables.marks.get(contract.name, {})
    newest, days = totals.newest, totals.days
    if contract.source:  # of which not all count, or not yet
        counting = loaded_days(contract, delivered, snapshot.delivered(contract.name))
        newest, days = max(counting, default=None), len(counting)
    quiet = quiet_days(platform.catalogue, contract.name, loaded, tables.calendar)
    if newest in quiet:
        newest = max((mark.day for mark in newest_of(loaded, len(quiet) + 1) if mark.day not in quiet), default=None)
    delay = delays(platform.catalogue)[contract.name]
    due = {day for day in tables.calendar.days() if days_later(day, delay) <= platform.settings.current_day()}
    blocked = {day: state for day, state in states.items() if isinstance(state, Blocked)}
    counted = {platform.counted_on(contract.name, day): day for day, of_day in delivered.items() if of_day.delivered}
    missing = sorted(due.intersection(missing_days(contract.name, tables)))
    outside = [day for on, day in counted.items() if on not in platform.calendar]
    return TableStatus(
        table=contract.name,
        newest=newest,
        days=days - len(quiet),
        missing=len(missing),
        awaited=tuple(missing) if contract.source else (),
        stale=sum(isinstance(state, Stale) for state in states.values()),
        held=sum(isinstance(state, Held) for state in states.values()),
        blocked=sum(day in due for day, state in blocked.items() if state.otherwise or day not in loaded),
        rows=totals.delivered,
        quarantined=totals.quarantined,
        refused=refused,
        outside=len(outside),
        days_outside=(min(outside), max(outside)) if outside else None,
    )
