"""Post a message to a webhook, signed, or to chats and pagers by Apprise; addresses are secrets, and in no log."""

from __future__ import annotations

import hmac
import json
import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socket import SHUT_RDWR, socket
from threading import Timer
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import apprise
import requests
import urllib3
from pydantic import SecretStr
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError

from platform_assets.errors import PlatformError
from platform_assets.places import LOOPBACK
from platform_assets.records.outbox import Message

_TIMEOUT_S = (3.05, 5.0)
_ANSWER_S = 10.0
"""In which status and headers have to be there: the timeout starts anew with every byte."""
_RETRIES = urllib3.Retry(
    total=2, read=0, backoff_factor=0.5, respect_retry_after_header=False, allowed_methods=["POST"]
)
"""Retries of connections only: after a late answer the message may have been received. The outbox itself honours
`Retry-After`."""


class WebhookError(PlatformError):
    """A message was not received.

    Args:
        reason: why, as part of a sentence.
        is_answer: whether a receiver answered and refused it, so that another message may succeed.
    """

    def __init__(self, reason: str, *, is_answer: bool = False) -> None:
        super().__init__(f"A message was not taken: {reason}.", "Check the address that it was sent to.")
        self.reason = reason
        self.is_answer = is_answer


def post(url: SecretStr, body: str, key: str, secret: SecretStr | None = None) -> None:
    """Post JSON, with a few tries.

    The address is a secret: anyone who knows it can write there. It is in no message, and in no log of the libraries
    that send it.

    Args:
        key: key by which the receiver recognizes a repeated message.
        secret: secret shared by sender and receiver; without it the message is unsigned.
    """
    address, content = url.get_secret_value(), body.encode()
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    headers |= _signed(content, key, secret) if secret else {}
    with _kept_out_of_logs(address), requests.Session() as session:
        session.trust_env = urlsplit(address).hostname not in LOOPBACK  # no proxy on the way to this machine
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Adapter(max_retries=_RETRIES))
        try:
            # A redirect is not followed: it could lead to an unchecked address. The body of the answer is not read: it
            # may have no end.
            with session.post(
                address, data=content, headers=headers, timeout=_TIMEOUT_S, allow_redirects=False, stream=True
            ) as answer:
                status = answer.status_code
        except (requests.RequestException, HTTPError, ValueError) as error:  # the latter for malformed addresses
            raise WebhookError(f"cannot be reached ({type(error).__name__})") from None
    if not 200 <= status < 300:
        raise WebhookError(f"answered {status}", is_answer=True)


def _signed(body: bytes, key: str, secret: SecretStr) -> dict[str, str]:
    """Return the headers that prove the sender and prevent a copy under another key."""
    sent_at = str(int(time.time()))
    signed = f"{sent_at}.{key}.".encode() + body
    signature = hmac.new(secret.get_secret_value().encode(), signed, "sha256").hexdigest()
    return {"X-Platform-Sent-At": sent_at, "X-Platform-Signature": f"sha256={signature}"}


@contextmanager
def _kept_out_of_logs(address: str) -> Iterator[None]:
    """Keep the secret path out of urllib3's warnings about retries."""
    spelt = [urlsplit(address)]
    with suppress(requests.RequestException, HTTPError, ValueError):  # then nothing is sent, and nothing logged
        spelt.append(urlsplit(requests.Request("POST", address).prepare().url or ""))
    secrets = [part for parts in spelt for part in (parts.path.rstrip("/"), parts.query) if part]

    def mask(record: logging.LogRecord) -> bool:
        for part in secrets:
            if part in (text := record.getMessage()):
                record.msg, record.args = text.replace(part, "***"), ()
        return True

    loggers = [logging.getLogger(name) for name in ("urllib3.connectionpool", "urllib3.util.retry")]
    for logger in loggers:
        logger.addFilter(mask)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(mask)


def _hang_up(answering: socket) -> None:
    with suppress(OSError):  # it is over already
        socket.shutdown(answering, SHUT_RDWR)


@contextmanager
def _answered_in_time(connection: HTTPConnection) -> Iterator[None]:
    """Close the connection after a limit: an answer of a byte now and then would block the sender for ever."""
    timer = Timer(_ANSWER_S, _hang_up, [connection.sock])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class _InTime:
    """Connection that waits for an answer no longer than its limit."""

    def getresponse(self) -> Any:
        with _answered_in_time(cast("HTTPConnection", self)):
            return super().getresponse()  # type: ignore[misc]


class _Adapter(HTTPAdapter):
    def get_connection_with_tls_context(self, *args: Any, **more: Any) -> Any:
        pool = super().get_connection_with_tls_context(*args, **more)
        pool.ConnectionCls = type("InTime", (_InTime, pool.ConnectionCls), {})
        return pool


_SECRETS = re.compile(r"[/:@?&=,;]+")
_SHORTEST = 4
"""Characters of a part of an address that is masked."""


def notify(url: SecretStr, variable: str, message: Message) -> None:
    """Send an announcement.

    Args:
        variable: variable that holds the address.

    Raises:
        WebhookError: Apprise does not know the address, or its service did not accept the message.
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
    """Keep Apprise's warnings out of all logs: they contain unreadable addresses and posted URLs."""
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
