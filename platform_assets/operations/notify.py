"""Send announcements to chats, mailboxes and pagers by Apprise; addresses are secrets, and stay out of logs."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

import apprise
from pydantic import SecretStr

from platform_assets.operations.webhook import WebhookError
from platform_assets.records.outbox import Message

_SECRETS = re.compile(r"[/:@?&=,;]+")
_SHORTEST = 4
"""Characters of a part of an address that is masked."""


def notify(url: SecretStr, variable: str, message: Message) -> None:
    """Send an announcement.

    Args:
        variable: that names the address.

    Raises:
        WebhookError: Apprise does not know the address, or its service did not take the message.
    """
    address = url.get_secret_value()
    with _said() as said:
        services = apprise.Apprise()
        if not services.add(address):
            raise WebhookError(f"has no usable address: {variable} is not written as Apprise wants it")
        title, _, rest = json.loads(message.body)["text"].partition("\n")
        body, heading = (rest, title) if rest else (title, "")
        sent = services.notify(body, heading, body_format=apprise.NotifyFormat.MARKDOWN)
    if not sent:
        raise WebhookError(f"did not take it: {_masked(said[-1], address)}" if said else "did not take it")


def _masked(text: str, address: str) -> str:
    for part in {*_SECRETS.split(address), *_SECRETS.split(unquote(address))}:
        if len(part) >= _SHORTEST:
            text = text.replace(part, "***")
    return text.rstrip(".")


@contextmanager
def _said() -> Iterator[list[str]]:
    """Keep what Apprise warns of, out of all logs: it writes an address that it cannot read, and what it posts to."""
    said: list[str] = []

    def keep(record: logging.LogRecord) -> bool:
        if record.levelno >= logging.WARNING and record.name == apprise.logger.name:
            said.append(record.getMessage())
        return False

    loggers = [apprise.logger, logging.getLogger("urllib3.connectionpool")]
    for logger in loggers:
        logger.addFilter(keep)
    try:
        yield said
    finally:
        for logger in loggers:
            logger.removeFilter(keep)
