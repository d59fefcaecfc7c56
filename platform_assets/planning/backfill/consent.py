"""Whether somebody has to approve a backfill, and who has."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from decimal import Decimal

from platform_assets.contracts import Catalogue
from platform_assets.planning.backfill.backfill import Consent
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.backfill.price import Price
from platform_assets.records.decisions import PlanDecision


def consent(file: PlanFile, because: tuple[str, ...], hash: str, decided: Iterable[PlanDecision]) -> Consent:
    """What is needed, and what of it is there.

    Args:
        file: the plan file.
        because: why somebody has to approve; nobody has to without a reason.
        hash: of the backfill as it is now.
        decided: all approvals, of all plans.
    """
    return Consent(file.approvals.people if because else 0, because, approved_by(file, hash, decided))


def approved_by(file: PlanFile, hash: str, decided: Iterable[PlanDecision]) -> tuple[str, ...]:
    """Return who approved a backfill as it is; its owner does not count."""
    return people(said.who for said in decided if said.hash == hash and not is_same(said.who, file.owner))


def people(names: Iterable[str]) -> tuple[str, ...]:
    """Each person once, whatever the spellings, by the first of them in order."""
    first: dict[str, str] = {}
    for name in sorted(names):
        first.setdefault(_person(name), name)
    return tuple(first.values())


def is_same(one: str, other: str) -> bool:
    """Whether two names are spellings of one: by their case, their blanks or characters that nobody sees."""
    return _person(one) == _person(other)


def reasons_to_ask(file: PlanFile, count: int, price: Price, oldest_beyond: date | None) -> tuple[str, ...]:
    """Why somebody has to approve.

    Args:
        file: with what it asks to be asked.
        count: days of tables that are computed.
        price: of them.
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
    """The oldest day that is computed and lies beyond the shortest restatement window of a raw table.

    Args:
        catalogue: all tables.
        days: that are computed, by table.
        newest: from which windows are counted back.
    """
    windows = [c.restatement_window_days for c in catalogue if c.source]
    oldest = min((day for of_table in days.values() for day in of_table), default=None)
    if oldest is None or not windows or (newest - oldest).days <= min(windows):
        return None
    return oldest


def _person(name: str) -> str:
    seen = (each for each in unicodedata.normalize("NFKC", name) if not unicodedata.category(each).startswith("C"))
    return "".join("".join(seen).casefold().split())
