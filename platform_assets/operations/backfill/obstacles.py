"""Obstacles of a backfill, found before any work."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Set
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime

from platform_assets.engine.pending import list_arrivals
from platform_assets.engine.platform import Platform
from platform_assets.operations.plan_record import (
    OVER,
    STAGE,
    BackfillRecord,
    RecordError,
    all_records,
    find_record,
)
from platform_assets.operations.stages.store import all_stages
from platform_assets.places import folder_of
from platform_assets.planning.backfill.backfill import Backfill, Narrowed, Obstacle, Price
from platform_assets.planning.backfill.pace import seconds_left
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.plan import Plan
from platform_assets.planning.selection import shown_keys
from platform_assets.planning.windows import which
from platform_assets.records.history import CIRCUIT
from platform_assets.words import counted, lasting

_DAYS = ("days",)
_ROOM = 1.2
"""Free disk that is asked for, for each byte that is written: files are there twice while they are replaced."""


def obstacles(platform: Platform, backfill: Backfill, cores: int | None) -> Iterator[Obstacle]:
    """Yield obstacles and warnings."""
    file, plan = backfill.file, backfill.plan
    yield from _before(platform, file)
    for name, blocked in plan.blocked.items():
        state = next(iter(blocked.values())).state
        because = f"{state.table} on {state.day} is {'held' if state.is_there else 'not there'}"
        if state.hold and state.hold.gate == CIRCUIT:
            because = state.hold.reason
        yield Obstacle(
            f"{counted(len(blocked), 'day')} of {name} cannot be computed ({which(sorted(blocked))}): {because}.",
            "Deliver it or heal it, or name these days in `days.without`.",
            field=_DAYS,
        )
    if not plan.days and not plan.blocked:
        yield Obstacle("There is nothing to compute.", "Name other days, or policy recompute.", field=_DAYS)
    yield from unmatched(backfill.narrowed)
    yield from _protected(backfill)
    for table, put_back in backfill.put_back.items():
        days, because = sorted(put_back), put_back[min(put_back)]
        yield Obstacle(
            f"{counted(len(days), 'day')} of {table} {'was' if len(days) == 1 else 'were'} put back by a person "
            f"({which(days)}), because: {because}. The plan computes them with today's code and inputs.",
            "Name the days that should stay rolled back in `days.without`.",
            blocks=False,
            field=_DAYS,
        )
    yield from _others(platform, backfill)
    yield from _deliveries(platform, plan)
    yield from beyond_limits(platform, file, backfill.price, cores)
    if file.notify and not platform.settings.webhook_url:
        yield Obstacle(
            f"No webhook is set here, so nothing is sent about {', '.join(file.notify)}.",
            "Set PLATFORM_WEBHOOK_URL where `up` is started.",
            blocks=False,
            field=("notify",),
        )


def applied_before(record: BackfillRecord) -> Obstacle | None:
    """Return the obstacle of a finished plan; None if it can continue or begin again."""
    if record.state not in OVER or record.state == "cancelled":
        return None
    replay = (
        f" `platform-assets admin verify backfill:{record.name}` is the proof of that one."
        if record.wants_proof
        else ""
    )
    return Obstacle(
        f"The plan {record.name} was applied before: {record.came_to}.",
        f"Give another plan another name.{replay}",
        field=("name",),
    )


def unmatched(narrowed: Iterable[Narrowed]) -> Iterator[Obstacle]:
    """Yield values of keys that occur in no row: new ones in the table's inputs, or misspelt."""
    for found in narrowed:
        looked_at = f"on {counted(found.days, 'day')} that {'was' if found.days == 1 else 'were'} looked at"
        for (column, value), nearest in found.absent.items():
            there = f"The nearest are {', '.join(nearest)}; see" if nearest else "See"
            yield Obstacle(
                f"No row of {found.table} has {shown_keys({column: [value]})}, {looked_at}.",
                f"{there} that `only` has the right values.",
                blocks=False,
                field=("only", column),
            )
        if found.days and not found.rows and not found.absent:
            yield Obstacle(
                f"No row of {found.table} has one of the keys, {looked_at}.",
                "See that `only` has values that rows have together.",
                blocks=False,
                field=("only",),
            )


def _before(platform: Platform, file: PlanFile) -> Iterator[Obstacle]:
    """Yield the outcome of an earlier plan with that name. `apply` itself reports an unreadable record."""
    with suppress(RecordError):
        record = find_record(platform.lake, file.name)
        if record is None or not (over := applied_before(record)):
            return
        if record.wants_proof and record.file == file:
            todo = "`platform-assets backfill apply FILE` computes its proof, which is still to come, and nothing else."
            yield replace(over, todo=todo, blocks=False)
        else:
            yield over


def _protected(backfill: Backfill) -> Iterator[Obstacle]:
    override = backfill.file.override_protected
    allowed = override.named_days() if override else frozenset()
    for table, days in backfill.protected.items():
        because = next(iter(days.values()))
        if closed := sorted(days.keys() - allowed):
            yield Obstacle(
                f"{table} has {counted(len(closed), 'protected day')} among these ({which(closed)}): {because}.",
                f"Leave them out with `days.without`, or write override_protected: {{days: {closed[0]}..{closed[-1]}, "
                "reason: …}.",
                field=_DAYS,
            )
        elif override:
            yield Obstacle(
                f"Protected days of {table} are computed ({which(sorted(days))}): {because}.",
                f"The file overrides it, because: {override.reason}",
                blocks=False,
                field=("override_protected",),
            )


def _others(platform: Platform, backfill: Backfill) -> Iterator[Obstacle]:
    """Yield plans over the same days, stages with some of them, and unreadable plans and stages."""
    mine = {(step.table, day) for step in backfill.plan.steps for day in step.days}
    records, unread = all_records(platform.lake)
    stages, damaged = all_stages(platform.lake)
    days = {STAGE + record.name: record.planned for record in records if record.state not in OVER}
    plans = {*days, *(STAGE + name for name in unread)}
    for stage in stages:
        staged = {(table, day) for table, of_table in stage.staged.days.items() for day in of_table}
        days[stage.name] = days.get(stage.name, frozenset()) | staged
    for name, shared in ((name, mine & of_it) for name, of_it in days.items() if name != STAGE + backfill.file.name):
        if shared and name in plans:
            comes_to = f"The plan {name.removeprefix(STAGE)} comes to {_of_the_same(shared)}."
            yield Obstacle(comes_to, "Finish or cancel it first.", field=_DAYS)
        elif shared:
            todo = "The one that is published second is computed again."
            yield Obstacle(f"The stage {name} has {_of_the_same(shared)} staged.", todo, blocks=False, field=_DAYS)
    for error in (*damaged.values(), *unread.values()):
        what = f"{error.what} It is unknown whether it has days of the same tables."
        yield Obstacle(what, error.todo, blocks=False)


def _of_the_same(shared: Set[tuple[str, date]]) -> str:
    return f"{counted(len({day for _, day in shared}), 'day')} of the same tables"


def _deliveries(platform: Platform, plan: Plan) -> Iterator[Obstacle]:
    names = platform.catalogue.with_inputs(step.table for step in plan.steps)
    sources = [contract for contract in platform.catalogue if contract.source and contract.name in names]
    waiting = [contract.name for contract in sources if list_arrivals(platform, contract).pending]
    if waiting:
        yield Obstacle(
            f"Files wait for {', '.join(waiting)}; a plan takes none.",
            "`platform-assets refresh` takes them first, if they should count.",
            blocks=False,
        )


def beyond_limits(platform: Platform, file: PlanFile, cost: Price, cores: int | None) -> Iterator[Obstacle]:
    """Yield limits that the expected cost exceeds, and costs that are unknown."""
    place = folder_of(platform.settings.lake)  # the free space of a bucket is unknown
    free = shutil.disk_usage(place).free if place and place.exists() else None
    if free is not None and (need := int(cost.bytes * _ROOM)) > free:
        yield Obstacle(
            f"About {need:,} bytes are needed and {free:,} are free where the lake lies.",
            "Make room, or do less at once.",
        )
    budget = file.budget
    if budget.price_per_core_hour is not None and cores is None:
        yield Obstacle(
            "What it costs cannot be said: the settings do not say how many cores the cluster has.",
            "Leave price_per_core_hour out, or use budget.minutes.",
            blocks=budget.money is not None,
            field=("budget", "price_per_core_hour"),
        )
    low = cost.between[0] if cost.between else cost.seconds
    for name, most, least in (
        ("bytes", budget.bytes, cost.bytes),
        ("minutes", budget.minutes, low / 60),
        ("money", budget.money, float(cost.money or 0) * (low / cost.seconds if cost.seconds else 1)),
    ):
        if most is not None and least > float(most):
            yield Obstacle(
                f"The budget of {most:,} {name} will not do: at least {least:,.1f} are to be expected.",
                f"Raise budget.{name}, or name fewer days.",
                field=("budget", name),
            )
    if cost.unknown:
        yield Obstacle(
            f"No day of {', '.join(cost.unknown)} was ever timed, so the price leaves it out.",
            "Nothing has to be done.",
            blocks=False,
        )
    left = seconds_left(file.service, datetime.now(UTC))
    if left is not None and (low > left or not left):
        hours = f" within {file.service.hours}" if file.service.hours else ""
        yield Obstacle(
            f"It cannot be staged until {file.service.until} UTC: {lasting(left)} are left{hours}"
            f"{f', and at least {lasting(low)} are to be expected' if low else ''}.",
            "Write a later service.until or wider service.hours, or name fewer days.",
            field=("service", "until"),
        )
