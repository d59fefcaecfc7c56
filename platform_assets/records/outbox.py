"""Messages of the outbox, kept until they are delivered, and records of what was announced."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from platform_assets.records.code_version import Refused

MessageState = Literal["waiting", "delivered", "given up", "dropped"]
"""A message waits until its receiver has taken it. After too long it is given up, and waits for a person to retry or
drop it."""


@dataclass(frozen=True)
class Message:
    """One request to one address, the same however often it is tried.

    Args:
        key: by which a receiver knows a message that comes again.
        target: the exposure to notify, or `announcements`.
        body: JSON, as it is sent.
        created_at: UTC, when the event happened.
        due_at: UTC, before which it is not tried.
        publication: that it is about; empty for an announcement.
        release: that shows the publication; None for an announcement.
        tries: how often a sender has taken it.
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


Channel = str
"""Where announcements go: `log`, `webhook`, or the target of a route."""


@dataclass(frozen=True)
class AnnouncedDay:
    """A held day as it is announced: once, whichever gates refuse the same of it, and however often."""

    table: str
    day: date
    refused: Refused


@dataclass(frozen=True)
class AnnouncedHeads:
    """The heads of the chains of releases and decisions at an announcement."""

    heads: str
    told_at: datetime


@dataclass(frozen=True)
class Announced:
    """What was announced on a channel."""

    held: frozenset[AnnouncedDay] = frozenset()
    runs: frozenset[str] = frozenset()
    heads: AnnouncedHeads | None = None


@dataclass(frozen=True)
class CatchUp:
    """That the ledger had been behind its lake."""

    first_release: int
    last_release: int
    text: str
    created_at: datetime
