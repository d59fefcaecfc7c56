"""A backfill: the very object that is explained, approved and applied; who has to approve it, and who has."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cached_property

from platform_assets.contracts import Catalogue, Contract
from platform_assets.planning.backfill.days import RolloutStep
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.backfill.price import Price
from platform_assets.planning.plan import Plan
from platform_assets.planning.selection import Request
from platform_assets.records.code_version import Version
from platform_assets.records.decisions import PlanDecision

_HASH_DIGITS = 32
"""Of sixteen, somebody with patience could make two plans of one hash, and have one approved for the other."""


@dataclass(frozen=True)
class Obstacle:
    """Something that was found before any work.

    Args:
        what: is in the way, as a sentence.
        blocks: whether the backfill cannot begin with it.
        field: of the plan file that it is about, as a place; empty where it is about none.
    """

    what: str
    todo: str
    blocks: bool = True
    field: tuple[int | str, ...] = ()

    @property
    def told(self) -> str:
        """Return what is in the way, with the field."""
        return f"{'.'.join(map(str, self.field))}: {self.what}" if self.field else self.what


@dataclass(frozen=True)
class Narrowed:
    """How much of a table's days is computed where only rows of some keys are.

    Args:
        absent: values that no row on them has, as column and value, each with the nearest that there are.
    """

    table: str
    days: int
    rows: int
    of: int
    absent: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    @property
    def percent(self) -> float:
        """Return the percentage of the rows that is computed; all others are carried over."""
        return 100 * self.rows / self.of if self.of else 0.0


@dataclass(frozen=True)
class Consent:
    """Whether somebody has to approve a backfill.

    Args:
        needed: how many different people; 0 if nobody.
        given: who approved this very hash; the owner does not count.
    """

    needed: int = 0
    because: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    @property
    def is_there(self) -> bool:
        """Return whether enough people have approved."""
        return len(self.given) >= self.needed


@dataclass(frozen=True)
class Backfill:
    """What a plan file comes to on the platform as it is.

    Args:
        days: that it names, found, in the order of the rollout.
        request: what is asked of the planner.
        plan: the days that are computed, and those that cannot be.
        steps: the same days, in the order of the rollout.
        up_to_date: days that were asked for and need nothing, by table.
        versions: of code and configuration of the tables that are computed.
        gates: what their contracts hold them against, as `gates_of` writes it, by table.
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
        """Return what keeps it from being begun."""
        return tuple(obstacle for obstacle in self.obstacles if obstacle.blocks)

    @cached_property
    def hash(self) -> str:
        """Return what names all that a person approves."""
        return backfill_hash(self.file, self.steps, self.versions, self.gates, self.put_back)


def gates_of(contract: Contract) -> str:
    """Return what a contract holds days against, such as a reconciliation, as a text to compare."""
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


def approved_by(file: PlanFile, hash: str, decided: Iterable[PlanDecision]) -> tuple[str, ...]:
    """Return who approved a backfill as it is; its owner does not count."""
    return people(said.who for said in decided if said.hash == hash and not is_same(said.who, file.owner))


def people(names: Iterable[str]) -> tuple[str, ...]:
    """Return each person once, whatever the spellings, by the first of them in order."""
    first: dict[str, str] = {}
    for name in sorted(names):
        first.setdefault(_person(name), name)
    return tuple(first.values())


def is_same(one: str, other: str) -> bool:
    """Return whether two names are spellings of one: by their case, their blanks or characters that nobody sees."""
    return _person(one) == _person(other)


def reasons_to_ask(file: PlanFile, count: int, price: Price, oldest_beyond: date | None) -> tuple[str, ...]:
    """Return why somebody has to approve.

    Args:
        oldest_beyond: the oldest day beyond its restatement window; None if there is none.
    """
    asks, because = file.approvals, []
    if asks.above_days is not None and count > asks.above_days:
        because.append(f"it computes {count:,} days of tables, more than {asks.above_days:,}")
    if asks.above_money is not None and (price.money is None or price.money > asks.above_money):
        cost = "an unknown amount" if price.money is None else f"about {price.money:,}"
        because.append(f"it costs {cost}, more than {Decimal(asks.above_money):,}")
    if asks.beyond_window and oldest_beyond is not None:
        because.append(f"{oldest_beyond} lies beyond the restatement window")
    return tuple(because)


def beyond_window(catalogue: Catalogue, days: Mapping[str, Collection[date]], newest: date) -> date | None:
    """Return the oldest day that is computed and lies beyond the shortest restatement window of a raw table."""
    windows = [c.restatement_window_days for c in catalogue if c.source]
    oldest = min((day for of_table in days.values() for day in of_table), default=None)
    if oldest is None or not windows or (newest - oldest).days <= min(windows):
        return None
    return oldest


def _person(name: str) -> str:
    seen = (each for each in unicodedata.normalize("NFKC", name) if not unicodedata.category(each).startswith("C"))
    return "".join("".join(seen).casefold().split())
