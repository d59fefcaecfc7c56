"""Messages of the outbox, kept until they are delivered, and records of announcements."""

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
    """One request to one address, unchanged however often it is tried.

    Args:
        key: key by which a receiver recognizes a repeated message.
        target: the exposure to notify, or `announcements`.
        body: JSON, as sent.
        created_at: UTC, when the event happened.
        due_at: UTC, not tried before.
        publication: subject of the message; empty for an announcement.
        release: release of the publication; None for an announcement.
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
    """A held day in announcements: announced once, whichever gates refuse the same content, and however often."""

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
    """An announcement on a channel."""

    held: frozenset[AnnouncedDay] = frozenset()
    runs: frozenset[str] = frozenset()
    heads: AnnouncedHeads | None = None


@dataclass(frozen=True)
class CatchUp:
    """A time when the ledger had been behind its lake."""

    first_release: int
    last_release: int
    text: str
    created_at: datetime
