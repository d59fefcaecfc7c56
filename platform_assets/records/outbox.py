"""Messages of the outbox, kept until they are delivered, and what the platform noted for itself: nobody decided it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from platform_assets.records.code_version import Refused

MessageState = Literal["waiting", "delivered", "given up", "dropped"]
"""A message waits until somebody has taken it. One that nobody took for too long is given up, and waits for a person,
who has it tried anew or drops it."""


@dataclass(frozen=True)
class Message:
    """One request to one address, the same however often it is tried.

    Args:
        key: by which a receiver knows a message that comes again.
        target: the exposure that is told, or `announcements`.
        body: JSON, as it is sent.
        created_at: UTC, when what it tells happened.
        due_at: UTC, before which it is not tried.
        publication: that it tells of; empty for an announcement.
        release: that shows the publication; None for an announcement.
        tries: how often somebody has begun to send it.
        problem: why the last try failed, or a person dropped it; empty otherwise.
        settled_at: UTC, when it was delivered, given up or dropped; None while it waits.
    """

    key: str
    target: str
    title: str
    body: str
    created_at: datetime
    due_at: datetime
    publication: str = ""
    release: int | None = None
    state: MessageState = "waiting"
    tries: int = 0
    problem: str = ""
    settled_at: datetime | None = None


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
