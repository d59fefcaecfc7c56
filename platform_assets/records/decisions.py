"""People's decisions, which the ledger keeps in one chain: the platform itself decides nothing here.

Decisions about waiting rows and pins are recorded nowhere else. Those carried out by a publication are in its manifest,
which counts if the two differ.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from datetime import date, datetime
from functools import cache
from typing import Literal

from pydantic import TypeAdapter

from platform_assets.records.history import kept_text

Verdict = Literal["approval", "refusal"]
"""What a person can decide about waiting rows."""

_CARRIED_OUT = ("withdrawal", "roll back", "reload", "erasure")
"""Kinds of publications that there are because a person decided just that."""


@dataclass(frozen=True, kw_only=True)
class Signed:
    """Author, time and reason of a decision.

    Args:
        who: author as stated; the operating system's user by default.
        created_at: UTC; for a decision that a publication carried out, when its manifest was written.
    """

    reason: str
    who: str
    created_at: datetime
    as_user: str = ""
    on_host: str = ""


@dataclass(frozen=True)
class LateDecision(Signed):
    """A person's decision about the waiting rows of one arrival and day."""

    kind: Verdict
    table: str
    arrival: str
    day: date


@dataclass(frozen=True)
class PinDecision(Signed):
    """A person's decision to keep a release readable, or no longer.

    Args:
        name: further name for reading it; empty without one.
    """

    kind: Literal["pin", "unpin"]
    publication: str
    name: str


@dataclass(frozen=True)
class PublicationDecision(Signed):
    """A person's decision that a publication carried out: its manifest has all of it."""

    kind: str
    publication: str


@dataclass(frozen=True)
class LiftDecision(Signed):
    """A person's order to compute by force days that a person had rolled back and held.

    Args:
        publication: publication with the refused content.
        days: days whose holds ended, oldest first.
    """

    kind: Literal["lift"]
    publication: str
    table: str
    days: tuple[date, ...]


@dataclass(frozen=True)
class MessageDecision(Signed):
    """A person's decision to drop a message of the outbox.

    Args:
        publication: subject of the message; empty for an announcement.
    """

    kind: Literal["drop"]
    message: str
    target: str
    publication: str


@dataclass(frozen=True)
class PlanDecision(Signed):
    """A person's approval of a backfill as explained.

    Args:
        hash: hash of what was approved.
    """

    kind: Literal["approval of a plan"]
    plan: str
    hash: str


@dataclass(frozen=True)
class CircuitDecision(Signed):
    """A person's decision about the circuit of a table, of a domain's tables, or of all.

    Args:
        kind: `freeze` opens it until a person closes it; `override` lets publications pass until a time.
        scope: a table, `domain:<name>`, or `all`.
        after: number of the newest verdict then, which orders decisions and verdicts.
        until: end of an override, UTC; None for the others.
    """

    kind: Literal["freeze", "close", "override"]
    scope: str
    after: int
    until: datetime | None = None


@dataclass(frozen=True)
class QuarantineDecision(Signed):
    """A person's decision to discard refused or quarantined rows.

    Args:
        table: the raw table that refused them, or the silver table whose rule they broke.
        day: day of the rows; for refused ones, of their arrival.
    """

    kind: Literal["discard"]
    table: str
    arrival: str
    day: date
    error: str


@dataclass(frozen=True)
class Acknowledgement(Signed):
    """A person's acknowledgement of a file that is in no table, or of a day's warnings.

    Args:
        finding: path of the file, or `<layer>.<table> <day>`.
        mark: hash of the finding; another finding is not acknowledged.
        until: when it ends, UTC; None until the finding changes.
    """

    kind: Literal["acknowledgement"]
    finding: str
    mark: str
    until: datetime | None = None


Decision = (
    LateDecision
    | PinDecision
    | PublicationDecision
    | LiftDecision
    | MessageDecision
    | PlanDecision
    | CircuitDecision
    | QuarantineDecision
    | Acknowledgement
)

ABOUT: dict[str, type[Decision]] = {
    "late rows": LateDecision,
    "release": PinDecision,
    "publication": PublicationDecision,
    "hold": LiftDecision,
    "message": MessageDecision,
    "plan": PlanDecision,
    "circuit": CircuitDecision,
    "quarantine": QuarantineDecision,
    "finding": Acknowledgement,
}


def decided_by(kind: str, decides: str) -> str:
    """Return the decision carried out by a publication; empty for automatic work."""
    return decides or (kind if kind in _CARRIED_OUT else "")


def about(type_: type[Decision]) -> str:
    """Return the subject of decisions of a kind."""
    return next(name for name, known in ABOUT.items() if known is type_)


def signed(who: str, as_user: str, on_host: str) -> str:
    """Return the author as stated, and the operating system's user and host."""
    return f"{who} ({as_user} on {on_host})" if as_user else who


def beginning(about: str) -> str:
    """Return the beginning of the text of every decision of one kind, and of no other."""
    return f'{{"about":{json.dumps(about)},'


def to_content(decision: Decision) -> str:
    """Return a decision as the text that the chain hashes, the same on every database."""
    said = {field.name: _plain(getattr(decision, field.name)) for field in fields(decision)}
    return json.dumps({"about": about(type(decision)), **said}, sort_keys=True, separators=(",", ":"))


def from_content(content: str) -> Decision:
    """Parse a decision from its text."""
    try:
        said = json.loads(content)
        return _adapter(said.pop("about")).validate_python(said)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{content[:80]!r} is no decision") from error


@cache
def _adapter(about: str) -> TypeAdapter[Decision]:
    return TypeAdapter(ABOUT[about])


def _plain(value: object) -> object:
    match value:
        case date():
            return value.isoformat()
        case tuple():
            return [_plain(part) for part in value]
        case str():
            return kept_text(value)
        case _:
            return value
