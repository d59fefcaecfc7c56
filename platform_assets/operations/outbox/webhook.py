"""Sends a message to an address, signed where there is a secret for that, and waits no longer than it has to."""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socket import SHUT_RDWR, socket
from threading import Timer
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from pydantic import SecretStr
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from platform_assets.addresses import LOOPBACK
from platform_assets.errors import PlatformError

_TIMEOUT_S = (3.05, 5.0)
_ANSWER_S = 10.0
"""In which status and headers have to be there: the timeout starts anew with every byte."""
_RETRIES = urllib3.Retry(
    total=2, read=0, backoff_factor=0.5, respect_retry_after_header=False, allowed_methods=["POST"]
)
"""Only of a connection: after a late answer it may have been taken, and whoever says when to come again is asked by
the outbox, in its own time."""


class WebhookError(PlatformError):
    """Nobody took a message.

    Args:
        reason: why, as part of a sentence.
        is_answer: whether somebody was there and refused it, so that another message may fare better.
    """

    def __init__(self, reason: str, *, is_answer: bool = False) -> None:
        super().__init__(f"A message was not taken: {reason}.", "Check the address that it was sent to.")
        self.reason = reason
        self.is_answer = is_answer


def post(url: SecretStr, body: str, key: str, secret: SecretStr | None = None) -> None:
    """Post JSON, trying a few times to get through.

    The address is a secret: whoever knows it can write there. It is never part of a message, nor of what the libraries
    log that send it.

    Args:
        url: where to.
        body: that is sent.
        key: by which the receiver knows a message that comes again.
        secret: that sender and receiver share; none leaves the message unsigned.

    Raises:
        WebhookError: it could not be reached, or did not answer with success.
    """
    address, content = url.get_secret_value(), body.encode()
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    headers |= _signed(content, key, secret) if secret else {}
    with _kept_out_of_logs(address), requests.Session() as session:
        session.trust_env = urlsplit(address).hostname not in LOOPBACK  # no proxy on the way to this machine
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Adapter(max_retries=_RETRIES))
        try:
            # A redirect is not followed: it could lead to an address that nobody has checked. What else is answered is
            # not read: it may have no end.
            with session.post(
                address, data=content, headers=headers, timeout=_TIMEOUT_S, allow_redirects=False, stream=True
            ) as answer:
                status = answer.status_code
        except (requests.RequestException, HTTPError, ValueError) as error:  # the latter of addresses that are none
            raise WebhookError(f"cannot be reached ({type(error).__name__})") from None
    if not 200 <= status < 300:
        raise WebhookError(f"answered {status}", is_answer=True)


def _signed(body: bytes, key: str, secret: SecretStr) -> dict[str, str]:
    """The headers by which a receiver knows who sent a message, and that nobody sends it again as another one."""
    sent_at = str(int(time.time()))
    signed = f"{sent_at}.{key}.".encode() + body
    signature = hmac.new(secret.get_secret_value().encode(), signed, "sha256").hexdigest()
    return {"X-Platform-Sent-At": sent_at, "X-Platform-Signature": f"sha256={signature}"}


@contextmanager
def _kept_out_of_logs(address: str) -> Iterator[None]:
    """Within it, urllib3 warns of every new try without the path, by which everybody could write there."""
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
    """Hang up on whoever is still answering then: a byte now and then would keep the sender for ever."""
    timer = Timer(_ANSWER_S, _hang_up, [connection.sock])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class _Connection(HTTPConnection):
    def getresponse(self) -> Any:
        with _answered_in_time(self):
            return super().getresponse()


class _SecureConnection(HTTPSConnection):
    def getresponse(self) -> Any:
        with _answered_in_time(self):
            return super().getresponse()


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class _Adapter(HTTPAdapter):
    """Asks for answers by connections that wait for one no longer than it has time."""

    def init_poolmanager(self, *args: Any, **more: Any) -> None:
        super().init_poolmanager(*args, **more)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}

    def proxy_manager_for(self, *args: Any, **more: Any) -> Any:
        manager = super().proxy_manager_for(*args, **more)
        manager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
        return manager
