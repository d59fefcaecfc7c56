"""What people do with messages: look for one, have it tried anew, drop it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from platform_assets.engine.platform import Author, Platform
from platform_assets.errors import PlatformError
from platform_assets.records.decisions import MessageDecision
from platform_assets.records.outbox import Message

_SHORTEST = 4
"""Characters of a key that are enough to name a message."""


class OutboxError(PlatformError):
    """A message is not there, or is not in a state for what was asked."""


def retry(platform: Platform, key: str | None) -> tuple[Message, ...]:
    """Have a message tried anew, from the first try, also one that was delivered: its receiver may have lost it.

    Args:
        key: its beginning; None means all that were given up.

    Returns:
        The messages that are due now.

    Raises:
        OutboxError: there is none of that key, or somebody has dropped it.
    """
    outbox = platform.ledger.outbox
    messages: Sequence[Message] = outbox.messages(["given up"]) if key is None else [_named(platform, key)]
    for message in messages:
        if message.state == "dropped":
            raise OutboxError(
                f"Message {message.key} was dropped: {message.problem}.",
                "`platform-assets audit decisions` has who decided so; what it told stands in the release.",
            )
    outbox.retry(messages, datetime.now(UTC))
    return tuple(messages)


def drop(platform: Platform, key: str, author: Author) -> Message:
    """Decide that a message is sent no more.

    Args:
        key: its beginning.
        author: who decides, and why.

    Raises:
        OutboxError: there is none of that key, or it waits no more.
    """
    message = _named(platform, key)
    decision = MessageDecision(
        "drop",
        message.key,
        message.target,
        message.publication,
        **author.signature(datetime.now(UTC)),
    )
    if not platform.ledger.outbox.drop(decision):
        state = _named(platform, message.key).state
        raise OutboxError(
            f"Message {message.key} is {state}: there is nothing to drop.", "`platform-assets outbox list` has others."
        )
    return message


def _named(platform: Platform, key: str) -> Message:
    found: Collection[Message] = platform.ledger.outbox.named(key) if len(key) >= _SHORTEST else ()
    if len(found) != 1:
        said = "No message has" if not found else f"{len(found)} messages have"
        raise OutboxError(
            f"{said} a key that begins with {key!r}.",
            f"Name one as `platform-assets outbox list --all` shows it, by {_SHORTEST} characters at least.",
        )
    [message] = found
    return message
