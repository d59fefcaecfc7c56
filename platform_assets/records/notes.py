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
    """A held day as it is announced: once, whichever gates refuse the same of it, and however often.

    Args:
        table: `<layer>.<table>`.
        day: event date.
        refused: of it.
    """

    table: str
    day: date
    refused: Refused


@dataclass(frozen=True)
class ToldHeads:
    """Where the chains of releases and decisions stood when somebody was told.

    Args:
        heads: of both, as one value.
        told_at: UTC.
    """

    heads: str
    told_at: datetime


@dataclass(frozen=True)
class Told:
    """What people were told of.

    Args:
        held: days.
        runs: ids of runs that failed.
        heads: of both chains, last.
    """

    held: frozenset[AnnouncedDay] = frozenset()
    runs: frozenset[str] = frozenset()
    heads: ToldHeads | None = None


@dataclass(frozen=True)
class CatchUp:
    """That the ledger had been behind its lake.

    Args:
        first_release: that it lacked.
        last_release: that it lacked.
        text: what a person should know.
        created_at: when it caught up, UTC.
    """

    first_release: int
    last_release: int
    text: str
    created_at: datetime
