"""What plans ask to have told of them: each event once, by the platform's webhook."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from platform_assets.contracts.exposures import ANNOUNCEMENTS
from platform_assets.operations.plan_record import BackfillRecord, Event
from platform_assets.records.outbox import Message
from platform_assets.visible import as_chat

NEWS = timedelta(days=7)
"""What is older is told nobody any more: the outbox may have forgotten that it was."""


def told_plans(records: Iterable[BackfillRecord], now: datetime) -> Iterator[Message]:
    """For the outbox, which takes each once: what happened to plans, as far as their files ask for it.

    Args:
        records: of all plans.
        now: in UTC.
    """
    for record in records:
        for event in record.events:
            if event.kind in record.file.notify and now - event.at < NEWS:
                yield _message(record, event, now)


def _message(record: BackfillRecord, event: Event, now: datetime) -> Message:
    title = " ".join(f"Plan {record.name} of {record.file.owner}, {event.kind}: {event.what}".split())
    body: dict[str, Any] = {
        "text": as_chat(title),
        "what": "plan",
        "plan": record.name,
        "event": event.kind,
        "said": event.what,
        "hash": record.hash,
        "owner": record.file.owner,
        "by": event.who,
        "release": record.release,
        "at": event.at.isoformat(),
    }
    key = sha256(json.dumps([record.name, event.kind, event.what, event.at.isoformat()]).encode()).hexdigest()[:32]
    return Message(key, ANNOUNCEMENTS, title, json.dumps(body), created_at=event.at, due_at=now)
