"""What a backfill would use up: disk, a budget, the time until it has to be staged."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime

from platform_assets.engine.platform import Platform
from platform_assets.places import folder_of
from platform_assets.planning.backfill.backfill import Obstacle
from platform_assets.planning.backfill.pace import seconds_left
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.backfill.price import Price
from platform_assets.words import lasting

_ROOM = 1.2
"""Free disk that is asked for, for each byte that is written: files are there twice while they are replaced."""


def beyond_limits(platform: Platform, file: PlanFile, cost: Price, cores: int | None) -> Iterator[Obstacle]:
    """What will not do by what a backfill is expected to take, and what of it nobody knows.

    Args:
        platform: as it is now.
        file: the plan, with its budget and its hours.
        cost: that is to be expected.
        cores: that Spark computes with, where that is known.
    """
    yield from _disk(platform, cost)
    yield from _budget(file, cost, cores)
    yield from _too_late(file, cost)


def _disk(platform: Platform, cost: Price) -> Iterator[Obstacle]:
    need = int(cost.bytes * _ROOM)
    free = _free(platform)
    if free is not None and need > free:
        yield Obstacle(
            f"About {need:,} bytes are needed and {free:,} are free where the lake lies.",
            "Make room, or do less at once.",
        )


def _budget(file: PlanFile, cost: Price, cores: int | None) -> Iterator[Obstacle]:
    budget = file.budget
    if budget.price_per_core_hour is not None and cores is None:
        yield Obstacle(
            "What it costs cannot be said: the settings do not say how many cores the cluster has.",
            "Leave price_per_core_hour out, or use budget.minutes.",
            blocks=budget.money is not None,
            field=("budget", "price_per_core_hour"),
        )
    low = _least_seconds(cost)
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


def _too_late(file: PlanFile, cost: Price) -> Iterator[Obstacle]:
    left, low = seconds_left(file.service, datetime.now(UTC)), _least_seconds(cost)
    if left is not None and (low > left or not left):
        hours = f" within {file.service.hours}" if file.service.hours else ""
        yield Obstacle(
            f"It cannot be staged until {file.service.until} UTC: {lasting(left)} are left{hours}"
            f"{f', and at least {lasting(low)} are to be expected' if low else ''}.",
            "Write a later service.until or wider service.hours, or name fewer days.",
            field=("service", "until"),
        )


def _least_seconds(cost: Price) -> float:
    return cost.between[0] if cost.between else cost.seconds


def _free(platform: Platform) -> int | None:
    place = folder_of(platform.settings.lake)  # a bucket has no end that anybody could know
    return shutil.disk_usage(place).free if place and place.exists() else None
