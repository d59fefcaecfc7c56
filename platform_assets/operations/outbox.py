"""Delivers messages that are due, each at least once: where to, signed, and what people do with the others."""

from __future__ import annotations

import hmac
import logging
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from socket import SHUT_RDWR, socket
from threading import Timer
from typing import Any, cast
from urllib.parse import urlsplit

import requests
import urllib3
from pydantic import SecretStr
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError

from platform_assets.contracts import Catalogue
from platform_assets.contracts.domain import ANNOUNCEMENTS
from platform_assets.engine.platform import Author, Platform
from platform_assets.errors import PlatformError
from platform_assets.failpoints import failpoint
from platform_assets.places import LOOPBACK, is_private_url
from platform_assets.planning.outbox import next_try
from platform_assets.progress import OnProgress, meanwhile, no_progress
from platform_assets.records.decisions import MessageDecision
from platform_assets.records.outbox import Message
from platform_assets.settings import Settings

_WEBHOOK = "PLATFORM_WEBHOOK_URL"
_TIMEOUT_S = (3.05, 5.0)
_ANSWER_S = 10.0
"""In which status and headers have to be there: the timeout starts anew with every byte."""
_RETRIES = urllib3.Retry(
    total=2, read=0, backoff_factor=0.5, respect_retry_after_header=False, allowed_methods=["POST"]
)
"""Retries of connections only: after a late answer the message may have been received. The outbox itself honours
`Retry-After`."""
_SHORTEST = 4
"""Characters of a key that are enough to name a message."""


@dataclass(frozen=True)
class Address:
    """Where messages to a target go.

    Args:
        target: an exposure's name, or `announcements`.
        url: which is a secret; None where nothing can be sent.
        problem: why nothing can; empty where there is a URL.
    """

    target: str
    variable: str
    url: SecretStr | None = None
    problem: str = ""


def addresses(catalogue: Catalogue, settings: Settings) -> dict[str, Address]:
    """Return the address of every target, by its name."""
    known = [_of_variable(each.name, each.url_env) for each in catalogue.exposures]
    url = settings.webhook_url
    problem = "" if url else f"{_WEBHOOK} is not set"
    return {address.target: address for address in (*known, Address(ANNOUNCEMENTS, _WEBHOOK, url, problem))}


def _of_variable(target: str, variable: str) -> Address:
    url = os.environ.get(variable, "")
    if not url:
        return Address(target, variable, problem=f"{variable} is not set")
    if not is_private_url(url):
        return Address(target, variable, problem=f"{variable} is no https:// address, and no http:// of this machine")
    return Address(target, variable, SecretStr(url))


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
    """Post JSON, trying a few times to get through.

    The address is a secret: anyone who knows it can write there. It is in no message, and in no log of the libraries
    that send it.

    Args:
        key: by which the receiver knows a message that comes again.
        secret: that sender and receiver share; none leaves the message unsigned.
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
    """Return the headers by which a receiver knows the sender, and that a message is not sent again as another one."""
    sent_at = str(int(time.time()))
    signed = f"{sent_at}.{key}.".encode() + body
    signature = hmac.new(secret.get_secret_value().encode(), signed, "sha256").hexdigest()
    return {"X-Platform-Sent-At": sent_at, "X-Platform-Signature": f"sha256={signature}"}


@contextmanager
def _kept_out_of_logs(address: str) -> Iterator[None]:
    """Keep the path, which is a secret, out of urllib3's warnings about retries."""
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
    """Close the connection after a limit: an answer of a byte now and then would keep the sender for ever."""
    timer = Timer(_ANSWER_S, _hang_up, [connection.sock])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class _InTime:
    """Have a connection wait for an answer no longer than it has time."""

    def getresponse(self) -> Any:
        with _answered_in_time(cast("HTTPConnection", self)):
            return super().getresponse()  # type: ignore[misc]


class _Adapter(HTTPAdapter):
    def get_connection_with_tls_context(self, *args: Any, **more: Any) -> Any:
        pool = super().get_connection_with_tls_context(*args, **more)
        pool.ConnectionCls = type("InTime", (_InTime, pool.ConnectionCls), {})
        return pool


@dataclass
class Delivery:
    """What became of the messages that were due.

    Args:
        failed: messages that were not taken, each with its reason as `problem`; tried again later, or given up.
        no_address: why nothing can be sent, by target for which something waits: its messages use up no try.
    """

    delivered: list[Message] = field(default_factory=list)
    failed: list[Message] = field(default_factory=list)
    no_address: Mapping[str, str] = field(default_factory=dict)


def deliver(platform: Platform, for_s: float | None = None, progress: OnProgress = no_progress) -> Delivery:
    """Send due messages, oldest first, and record the outcome of each.

    A target that cannot be reached is left alone until the next time: to wait for it again and again would keep
    messages for others. One that answers is asked on.

    Args:
        for_s: after which nothing more is begun; None sends all that is due when it begins.
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
    """Return why nothing can be sent to targets for which messages wait."""
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


def retry(platform: Platform, key: str | None) -> tuple[Message, ...]:
    """Have a message tried anew, from the first try, also one that was delivered: its receiver may have lost it.

    Args:
        key: its beginning; None means all that were given up.
    """
    outbox = platform.ledger.outbox
    messages: Sequence[Message] = outbox.messages(["given up"]) if key is None else [_named(platform, key)]
    for message in messages:
        if message.state == "dropped":
            raise PlatformError(
                f"Message {message.key} was dropped: {message.problem}.",
                "`platform-assets audit decisions` shows who decided that; the release has what it announced.",
            )
    outbox.retry(messages, datetime.now(UTC))
    return tuple(messages)


def drop(platform: Platform, key: str, author: Author) -> Message:
    """Decide that a message is sent no more."""
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
        raise PlatformError(
            f"Message {message.key} is {state}: there is nothing to drop.", "`platform-assets outbox list` has others."
        )
    return message


def _named(platform: Platform, key: str) -> Message:
    found: Collection[Message] = platform.ledger.outbox.with_key(key) if len(key) >= _SHORTEST else ()
    if len(found) != 1:
        said = "No message has" if not found else f"{len(found)} messages have"
        raise PlatformError(
            f"{said} a key that begins with {key!r}.",
            f"Name one as `platform-assets outbox list --all` shows it, by {_SHORTEST} characters at least.",
        )
    [message] = found
    return message
