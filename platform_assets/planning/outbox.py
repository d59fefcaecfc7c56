"""Messages to exposures about a publication, and the time of retries."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from hashlib import sha256

from platform_assets.contracts.domain import OPENLINEAGE
from platform_assets.planning.windows import as_named, which
from platform_assets.records.history import DayRecord, PublicationRecord
from platform_assets.records.outbox import Message
from platform_assets.words import as_chat, counted

MOST_TRIES = 20
"""Over two and a half days: who is not there from Friday's evening to Monday's morning needs no person."""
_FIRST_PAUSE_S = 30
_LONGEST_PAUSE_S = 6 * 3600
_JITTER = 0.2
"""By how much of itself a pause is longer at most: what failed together is not tried together again."""
LONGEST_PAUSE = timedelta(seconds=_LONGEST_PAUSE_S * (1 + _JITTER))
_MOST_TEXT = 500
_MOST_WARNED = 20
"""Days whose warnings are part of a message."""


def key_of(publication: str, exposure: str) -> str:
    """Return the idempotency key of a message, which is the same whenever the publication is indexed."""
    return sha256(f"{publication}\0{exposure}".encode()).hexdigest()[:32]


def message_of(record: PublicationRecord, exposure: str, changed: Mapping[str, Collection[date]]) -> Message | None:
    """Return the message to an exposure about a publication.

    Args:
        changed: changed days of the publication, by table that the exposure reads.

    Returns:
        The message, due at once; None where nothing changed for the exposure.
    """
    days = {table: sorted(found) for table, found in sorted(changed.items()) if found}
    if not days:
        return None
    key = key_of(record.publication, exposure)
    said = "; ".join(f"{table}: {which(found)}" for table, found in days.items())
    title = f"Release {record.release} changed {said}."
    title = title if len(title) <= _MOST_TEXT else f"{title[:_MOST_TEXT]} …"
    warned = [made for made in record.days if made.warnings and made.day in days.get(made.table, ())]
    payload = {
        "text": "\n".join((title, *_warning(warned), f"{as_chat(record.why[:_MOST_TEXT])} ({as_chat(record.who)})")),
        "what": "published",
        "key": key,
        "exposure": exposure,
        "release": record.release,
        "publication": record.publication,
        "kind": record.kind,
        "tables": [
            {"table": table, "days": as_named(found), "days_in_all": len(found)} for table, found in days.items()
        ],
        "warnings": [
            {"table": made.table, "day": str(made.day), **each.model_dump()}
            for made in warned[:_MOST_WARNED]
            for each in made.warnings
        ],
        "days_warned": len(warned),
        "why": record.why,
        "by": record.who,
        "at": record.created_at.isoformat(),
    }
    return Message(
        key=key,
        target=exposure,
        title=title,
        body=json.dumps(payload),
        created_at=record.created_at,
        due_at=record.created_at,
        publication=record.publication,
        release=record.release,
    )


def lineage_message(record: PublicationRecord, table: str) -> Message:
    """Return the message that stands for the lineage events of a publication and table until delivery."""
    return Message(
        key=key_of(record.publication, f"{OPENLINEAGE} {table}"),
        target=OPENLINEAGE,
        title=f"Lineage of {table}, release {record.release}: {record.what}.",
        body=json.dumps({"table": table}),
        created_at=record.created_at,
        due_at=record.created_at,
        publication=record.publication,
        release=record.release,
    )


def _warning(warned: Sequence[DayRecord]) -> Iterator[str]:
    """Yield sentences about days that were published with warnings."""
    if warned:
        first = f"{warned[0].table} {warned[0].day} {warned[0].warnings[0]}"
        yield f"Of {counted(len(warned), 'day')} gates warned, first: {as_chat(first[:_MOST_TEXT])}"


def next_try(key: str, tries: int, now: datetime) -> datetime | None:
    """Return when a message is retried.

    Pauses double, up to a longest one, and each is up to a fifth longer, by a share derived from the message: messages
    that failed together do not come back together, and the same question has the same answer.

    Returns:
        When; None once it was tried often enough.
    """
    if tries >= MOST_TRIES:
        return None
    share = int.from_bytes(sha256(f"{key} {tries}".encode()).digest()[:4], "big") / 2**32
    pause_s = min(_FIRST_PAUSE_S * 2 ** (tries - 1), _LONGEST_PAUSE_S)
    return now + timedelta(seconds=pause_s * (1 + _JITTER * share))
