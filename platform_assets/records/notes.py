"""What the platform itself wrote down, for itself and for people: nobody decided it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from platform_assets.records.refused import Refused

Channel = Literal["log", "webhook"]
"""Where people are told."""


@dataclass(frozen=True)
class AnnouncedDay:
    """A held day as it is announced: once, whichever gates refuse the same of it, and however often."""

    table: str
    day: date
    refused: Refused


@dataclass(frozen=True)
class ToldHeads:
    """Where the chains of releases and decisions stood when somebody was told."""

    heads: str
    told_at: datetime


@dataclass(frozen=True)
class Told:
    """What people were told of."""

    held: frozenset[AnnouncedDay] = frozenset()
    runs: frozenset[str] = frozenset()
    heads: ToldHeads | None = None


@dataclass(frozen=True)
class CatchUp:
    """That the ledger had been behind its lake."""

    first_release: int
    last_release: int
    text: str
    created_at: datetime
