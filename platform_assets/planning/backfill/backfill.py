"""A backfill: the very object that is explained, approved and applied."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property

from platform_assets.contracts import Contract
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.backfill.price import Price
from platform_assets.planning.backfill.rollout import RolloutStep
from platform_assets.planning.plan import Plan
from platform_assets.planning.selection import Request
from platform_assets.records.code_version import Version

_HASH_DIGITS = 32
"""Of sixteen, somebody with patience could make two plans of one hash, and have one approved for the other."""


@dataclass(frozen=True)
class Obstacle:
    """Something that was found before any work.

    Args:
        what: is in the way, as a sentence.
        todo: about it.
        blocks: whether the backfill cannot begin with it.
        field: of the plan file that it is about, as a place; empty where it is about none.
    """

    what: str
    todo: str
    blocks: bool = True
    field: tuple[int | str, ...] = ()

    @property
    def told(self) -> str:
        """What is in the way, with the field."""
        return f"{'.'.join(map(str, self.field))}: {self.what}" if self.field else self.what


@dataclass(frozen=True)
class Narrowed:
    """How much of a table's days is computed where only rows of some keys are.

    Args:
        table: of the days.
        days: that were looked at.
        rows: of these keys on them.
        of: rows on them.
        absent: values that no row on them has, as column and value, each with the nearest that there are.
    """

    table: str
    days: int
    rows: int
    of: int
    absent: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    @property
    def percent(self) -> float:
        """Of the rows that are computed; all others are carried over."""
        return 100 * self.rows / self.of if self.of else 0.0


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
        days: that it names, found, in the order of the rollout.
        release: that was looked at.
        request: what is asked of the planner.
        plan: the days that are computed, and those that cannot be.
        steps: the same days, in the order of the rollout.
        up_to_date: days that were asked for and need nothing, by table.
        versions: of code and configuration of the tables that are computed.
        gates: what their contracts hold them against, as `gates_of` writes it, by table.
        price: what it will cost.
        obstacles: found before any work, those that block first.
        protected: days among these that are protected, each with the reason of that, by table.
        put_back: days among these that a person put back, and that are made again, each with the reason, by table.
        narrowed: how much of each table is computed, where only rows of some keys are.
        exposed: tables that read what is computed and are not in the plan: they will be stale afterwards.
        told: exposures that are told of what is published, each with the tables of the plan that it reads.
        consent: whether it needs an approval, and has it.
    """

    file: PlanFile
    days: tuple[date, ...]
    release: int
    request: Request
    plan: Plan
    steps: tuple[RolloutStep, ...]
    up_to_date: Mapping[str, tuple[date, ...]]
    versions: Mapping[str, Version]
    gates: Mapping[str, str]
    price: Price
    obstacles: tuple[Obstacle, ...] = ()
    protected: Mapping[str, Mapping[date, str]] = field(default_factory=dict)
    put_back: Mapping[str, Mapping[date, str]] = field(default_factory=dict)
    narrowed: tuple[Narrowed, ...] = ()
    exposed: tuple[str, ...] = ()
    told: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    consent: Consent = Consent()

    @property
    def blocking(self) -> tuple[Obstacle, ...]:
        """What keeps it from being begun."""
        return tuple(obstacle for obstacle in self.obstacles if obstacle.blocks)

    @cached_property
    def hash(self) -> str:
        """Names all that a person approves."""
        return backfill_hash(self.file, self.steps, self.versions, self.gates, self.put_back)


def gates_of(contract: Contract) -> str:
    """What a contract holds days against that does not make them, such as a reconciliation, as a text to compare."""
    return repr((contract.checks, contract.reconciles, contract.settled))


def backfill_hash(
    file: PlanFile,
    steps: tuple[RolloutStep, ...],
    versions: Mapping[str, Version],
    gates: Mapping[str, str],
    put_back: Mapping[str, Collection[date]],
) -> str:
    """Name what is done: the whole file, the days of each table, and what computes them and is held against them.

    Days that a person put back are named, too: who approved a plan before has not approved that it makes them again.
    Estimates, the clock and the content of what is read are no part of it: new rows on the same days are what a plan is
    for, and the gates' to judge. So the order of the days is none, either: it goes by volume.
    """
    days: defaultdict[str, set[str]] = defaultdict(set)
    for step in steps:
        for table, of_table in step.days.items():
            days[table].update(map(str, of_table))
    said: dict[str, object] = {
        "file": file.model_dump(mode="json"),
        "days": {table: sorted(of_table) for table, of_table in days.items()},
        "versions": {table: [version.code, version.configuration] for table, version in versions.items()},
        "gates": dict(gates),
    }
    if put_back:
        said["put_back"] = {table: sorted(map(str, of_table)) for table, of_table in put_back.items()}
    return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:_HASH_DIGITS]
