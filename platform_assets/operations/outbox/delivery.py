"""Delivers what is due: each message at least once, and by two senders at once mostly not twice."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from platform_assets.engine.platform import Platform
from platform_assets.failpoints import failpoint
from platform_assets.operations.outbox.addresses import Address, addresses
from platform_assets.operations.outbox.webhook import WebhookError, post
from platform_assets.planning.outbox import next_try
from platform_assets.progress import OnProgress, meanwhile, no_progress
from platform_assets.records.outbox import Message


@dataclass
class Delivery:
    """What became of the messages that were due.

    Args:
        delivered: messages, in the order in which they were sent.
        failed: messages that were not taken, each with its reason as `problem`; tried again later, or given up.
        no_address: why nothing can be sent, by target for which something waits: its messages use up no try.
    """

    delivered: list[Message] = field(default_factory=list)
    failed: list[Message] = field(default_factory=list)
    no_address: Mapping[str, str] = field(default_factory=dict)


def deliver(platform: Platform, for_s: float | None = None, progress: OnProgress = no_progress) -> Delivery:
    """Send what is due, oldest first, and write down what became of each.

    A target that cannot be reached is left alone until the next time: to wait for it again and again would keep
    messages for others. One that answers is asked on.

    Args:
        for_s: after which nothing more is begun; None sends all that is due when it begins.
        progress: told to whom something is sent.

    Raises:
        LedgerError: the ledger cannot be written; what was sent and not written down is sent again later.
    """
    outbox, began, stop = platform.ledger.outbox, _now(), None if for_s is None else time.monotonic() + for_s
    known = addresses(platform.catalogue, platform.settings)
    done = Delivery(no_address=_unreached(platform, known))
    open_to = {name: address.url for name, address in known.items() if address.url}
    while open_to and (stop is None or time.monotonic() < stop):
        message = outbox.take(open_to, _now(), due_by=began)
        if message is None:
            break
        failpoint("outbox.taken")
        try:
            with meanwhile(progress, f"sending to {message.target}"):
                post(open_to[message.target], message.body, message.key, platform.settings.webhook_secret)
        except WebhookError as error:
            due_at = next_try(message.key, message.tries, _now())
            outbox.failed(message, error.reason, due_at, _now())
            state = message.state if due_at else "given up"
            done.failed.append(replace(message, problem=error.reason, due_at=due_at or message.due_at, state=state))
            if not error.is_answer:
                del open_to[message.target]
        else:
            failpoint("outbox.sent")
            outbox.delivered(message, _now())
            done.delivered.append(message)
        failpoint("outbox.settled")
    return done


def _unreached(platform: Platform, known: Mapping[str, Address]) -> dict[str, str]:
    """Why nothing can be sent to targets for which messages wait."""
    reasons: dict[str, str] = {}
    for target, counts in platform.ledger.outbox.open_by_target().items():
        if not counts["waiting"]:
            continue
        if target not in known:
            reasons[target] = "no domain declares this exposure"
        elif known[target].problem:
            reasons[target] = known[target].problem
    return reasons


def _now() -> datetime:
    return datetime.now(UTC)
