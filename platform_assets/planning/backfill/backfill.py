"""A backfill: the very object that is explained, approved and applied."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.backfill.price import Price
from platform_assets.planning.backfill.rollout import RolloutStep
from platform_assets.planning.plan import Plan
from platform_assets.planning.selection import Request
from platform_assets.records.code_version import Version


@dataclass(frozen=True)
class Obstacle:
    """Something that was found before any work.

    Args:
        what: is in the way, as a sentence.
        todo: about it.
        blocks: whether the backfill cannot begin with it.
    """

    what: str
    todo: str
    blocks: bool = True


@dataclass(frozen=True)
class Consent:
    """Whether somebody has to approve a backfill.

    Args:
        needed: how many different people; 0 if nobody.
        because: why, as phrases.
        given: who approved this very hash; the owner does not count.
    """

    needed: int = 0
    because: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    @property
    def is_there(self) -> bool:
        """Whether enough people have approved."""
        return len(self.given) >= self.needed


@dataclass(frozen=True)
class Backfill:
    """What a plan file comes to on the platform as it is.

    Args:
        file: the plan file.
        days: that it names, found.
        release: that was looked at.
        request: what is asked of the planner.
        plan: the days that are computed, and those that cannot be.
        steps: the same days, in the order of the rollout.
        up_to_date: days that were asked for and need nothing, by table.
        versions: of code and configuration of the tables that are computed.
        price: what it will cost.
        obstacles: found before any work, those that block first.
        exposed: tables that read what is computed and are not in the plan: they will be stale afterwards.
        consent: whether it needs an approval, and has it.
    """

    file: PlanFile
    days: frozenset[date]
    release: int
    request: Request
    plan: Plan
    steps: tuple[RolloutStep, ...]
    up_to_date: Mapping[str, tuple[date, ...]]
    versions: Mapping[str, Version]
    price: Price
    obstacles: tuple[Obstacle, ...] = ()
    exposed: tuple[str, ...] = ()
    consent: Consent = Consent()

    @property
    def blocking(self) -> tuple[Obstacle, ...]:
        """What keeps it from being begun."""
        return tuple(obstacle for obstacle in self.obstacles if obstacle.blocks)

    @cached_property
    def hash(self) -> str:
        """Names all that a person approves."""
        return backfill_hash(self.file, self.steps, self.versions)


def backfill_hash(file: PlanFile, steps: tuple[RolloutStep, ...], versions: Mapping[str, Version]) -> str:
    """Name what is done: the whole file, the days in their order, and the code and configuration that compute them.

    Estimates, the clock and the content of what is read are no part of it: new rows on the same days are what a plan is
    for, and the gates' to judge.
    """
    said = {
        "file": file.model_dump(mode="json"),
        "steps": [[step.share, {table: sorted(map(str, days)) for table, days in step.days.items()}] for step in steps],
        "versions": {table: [version.code, version.configuration] for table, version in versions.items()},
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]
