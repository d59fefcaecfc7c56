"""What people decided, as the ledger keeps it: nothing else says so, and the platform itself decides nothing here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

Verdict = Literal["approval", "refusal"]
"""What a person can decide about waiting rows."""


@dataclass(frozen=True)
class LateDecision:
    """What a person decided about the waiting rows that one arrival brought for one day.

    Args:
        kind: whether they enter.
        table: the raw table.
        arrival: path of the arrival.
        day: of the rows.
        reason: for the next person.
        who: user.
        created_at: UTC.
    """

    kind: Verdict
    table: str
    arrival: str
    day: date
    reason: str
    who: str
    created_at: datetime


@dataclass(frozen=True)
class PinDecision:
    """That a person wants a release kept readable, or no longer.

    Args:
        kind: which of the two.
        publication: that made the release.
        name: by which it can be read, too; empty without one.
        reason: for the next person.
        who: user.
        created_at: UTC.
    """

    kind: Literal["pin", "unpin"]
    publication: str
    name: str
    reason: str
    who: str
    created_at: datetime


Decision = LateDecision | PinDecision
