"""What is in the way of a backfill, found before any work."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from platform_assets.engine.ingest.listing import list_arrivals
from platform_assets.engine.platform import Platform
from platform_assets.errors import PlatformError
from platform_assets.operations.backfill.record import STAGE
from platform_assets.operations.stages.store import open_stages
from platform_assets.planning.backfill.backfill import Backfill, Obstacle
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.backfill.price import Price
from platform_assets.planning.plan import Plan
from platform_assets.planning.windows import which
from platform_assets.words import counted

_ROOM = 1.2
"""Free disk that is asked for, for each byte that is written: files are there twice while they are replaced."""


def obstacles(platform: Platform, backfill: Backfill, cores: int | None) -> Iterator[Obstacle]:
    """What is in the way, and what somebody should know.

    Args:
        platform: as it is now.
        backfill: without its obstacles.
        cores: that Spark computes with, where that is known.
    """
    file, plan = backfill.file, backfill.plan
    for name, blocked in plan.blocked.items():
        state = next(iter(blocked.values())).state
        yield Obstacle(
            f"{counted(len(blocked), 'day')} of {name} cannot be computed ({which(sorted(blocked))}): {state.table} on "
            f"{state.day} is {'held' if state.is_there else 'not there'}.",
            "Deliver it or heal it, or name these days in `days.without`.",
        )
    if not plan.days and not plan.blocked:
        yield Obstacle("Nothing is to be computed.", "Name other days, or policy recompute.")
    need = int(backfill.price.bytes * _ROOM)
    free = _free(platform)
    if free is not None and need > free:
        yield Obstacle(
            f"About {need:,} bytes are needed and {free:,} are free where the lake lies.",
            "Make room, or do less at once.",
        )
    yield from _others(platform, backfill)
    yield from _deliveries(platform, plan)
    yield from _budget(file, backfill.price, cores)


def _others(platform: Platform, backfill: Backfill) -> Iterator[Obstacle]:
    mine = {(step.table, day) for step in backfill.plan.steps for day in step.days}
    try:
        stages = open_stages(platform.lake)
    except PlatformError as error:
        yield Obstacle(error.what, error.todo, blocks=False)
        return
    for stage in stages:
        shared = [day for table, days in stage.staged.days.items() for day in days if (table, day) in mine]
        if not shared or stage.name == STAGE + backfill.file.name:
            continue
        is_plan = stage.name.startswith(STAGE)
        yield Obstacle(
            f"The {'plan' if is_plan else 'stage'} {stage.name.removeprefix(STAGE) if is_plan else stage.name} has "
            f"{counted(len(set(shared)), 'day')} of the same tables staged.",
            "Finish or cancel it first." if is_plan else "Whichever is published second is computed again.",
            blocks=is_plan,
        )


def _deliveries(platform: Platform, plan: Plan) -> Iterator[Obstacle]:
    names = platform.catalogue.with_inputs(step.table for step in plan.steps)
    sources = [contract for contract in platform.catalogue if contract.source and contract.name in names]
    waiting = [contract.name for contract in sources if list_arrivals(platform, contract).pending]
    if waiting:
        yield Obstacle(
            f"Files wait to be taken for {', '.join(waiting)}; a plan takes none.",
            "`platform-assets refresh` takes them first, if they should count.",
            blocks=False,
        )


def _budget(file: PlanFile, cost: Price, cores: int | None) -> Iterator[Obstacle]:
    budget = file.budget
    if budget.price_per_core_hour is not None and cores is None:
        yield Obstacle(
            "What it costs cannot be said: the settings do not say how many cores the cluster has.",
            "Leave price_per_core_hour out, or use budget.minutes.",
            blocks=budget.money is not None,
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
            )
    if cost.unknown:
        yield Obstacle(
            f"No day of {', '.join(cost.unknown)} was ever timed, so the price leaves it out.",
            "Nothing has to be done.",
            blocks=False,
        )


def _free(platform: Platform) -> int | None:
    place = Path(str(platform.settings.lake))
    return shutil.disk_usage(place).free if place.exists() else None
