"""Sends an announcement to a webhook, signed where there is a secret for that."""

from __future__ import annotations

import hmac
import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
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
    """The webhook did not take an announcement."""


def post(url: SecretStr, payload: dict[str, Any], secret: SecretStr | None = None) -> None:
    """Post JSON, trying a few times.

    The address is a secret: whoever knows it can write there. It is never part of a message, nor of what the libraries
    log that send it.

    Args:
        url: of the webhook.
        payload: that is sent.
        secret: that sender and receiver share; none leaves the message unsigned.

    Raises:
        WebhookError: it could not be reached, or did not answer with success.
    """
    address, body = url.get_secret_value(), json.dumps(payload).encode()
    headers = {"Content-Type": "application/json", **(_signed(body, secret) if secret else {})}
    with _kept_out_of_logs(address), requests.Session() as session:
        session.trust_env = urlsplit(address).hostname not in LOOPBACK  # no proxy on the way to this machine
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=_RETRIES))
        try:
            # Not followed: a redirect could lead to an address that nobody has checked.
            answer = session.post(address, data=body, headers=headers, timeout=_TIMEOUT_S, allow_redirects=False)
        except requests.RequestException as error:
            raise WebhookError(f"The webhook cannot be reached ({type(error).__name__}).", _TODO) from None
    if not 200 <= answer.status_code < 300:
        raise WebhookError(f"The webhook answered {answer.status_code}.", _TODO)


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


_TODO = "Check PLATFORM_WEBHOOK_URL; what could not be sent is sent with the next tick."
