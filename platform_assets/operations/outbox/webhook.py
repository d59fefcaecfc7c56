"""Sends a message to an address, signed where there is a secret for that."""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import requests
from pydantic import SecretStr
from requests.adapters import HTTPAdapter
from urllib3 import Retry

from platform_assets.addresses import LOOPBACK
from platform_assets.errors import PlatformError

_TIMEOUT_S = (3.05, 5.0)
_RETRIES = Retry(total=2, read=0, backoff_factor=0.5, status_forcelist=[429, 502, 503, 504], allowed_methods=["POST"])
"""Not after a late answer: it may have been taken."""


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
    """Post JSON, trying a few times.

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
    headers |= _signed(content, secret) if secret else {}
    with _kept_out_of_logs(address), requests.Session() as session:
        session.trust_env = urlsplit(address).hostname not in LOOPBACK  # no proxy on the way to this machine
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=_RETRIES))
        try:
            # A redirect is not followed: it could lead to an address that nobody has checked. What else is answered is
            # not read: it may have no end.
            with session.post(
                address, data=content, headers=headers, timeout=_TIMEOUT_S, allow_redirects=False, stream=True
            ) as answer:
                status = answer.status_code
        except requests.RequestException as error:
            raise WebhookError(f"cannot be reached ({type(error).__name__})") from None
    if not 200 <= status < 300:
        raise WebhookError(f"answered {status}", is_answer=True)


def _signed(body: bytes, secret: SecretStr) -> dict[str, str]:
    """The headers by which a receiver knows who sent a message, and that it is not sent again by somebody else."""
    sent_at = str(int(time.time()))
    signature = hmac.new(secret.get_secret_value().encode(), f"{sent_at}.".encode() + body, "sha256").hexdigest()
    return {"X-Platform-Sent-At": sent_at, "X-Platform-Signature": f"sha256={signature}"}


@contextmanager
def _kept_out_of_logs(address: str) -> Iterator[None]:
    """Within it, urllib3 warns of every new try without the path, by which everybody could write there."""
    parts = urlsplit(address)
    secrets = [part for part in (parts.path.rstrip("/"), parts.query) if part]

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
