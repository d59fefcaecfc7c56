"""Deliver due messages, each at least once: addresses, signatures, and what people do with the others."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.util import find_spec

from pydantic import SecretStr

from platform_assets.contracts import Catalogue
from platform_assets.contracts.domain import ANNOUNCEMENTS, OPENLINEAGE, ROUTE
from platform_assets.engine.platform import Author, Platform
from platform_assets.errors import PlatformError
from platform_assets.failpoints import failpoint
from platform_assets.operations.webhook import WebhookError, post
from platform_assets.places import is_private_url
from platform_assets.planning.outbox import next_try
from platform_assets.progress import OnProgress, meanwhile, no_progress
from platform_assets.records.decisions import MessageDecision
from platform_assets.records.outbox import Message
from platform_assets.settings import Settings

_WEBHOOK = "PLATFORM_WEBHOOK_URL"
_SHORTEST = 4
"""Characters of a key that are enough to name a message."""


@dataclass(frozen=True)
class Address:
    """Address of a target.

    Args:
        target: an exposure's name, `announcements`, a route's name, or `openlineage`.
        variable: variable that holds the address.
        url: the secret address; None if nothing can be sent, or another library has it.
        problem: why nothing can be sent; empty otherwise.
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
    known += [Address(ANNOUNCEMENTS, _WEBHOOK, url, problem), _lineage(settings)]
    known += [_of_route(f"{ROUTE}{name}", route.url_env) for name, route in settings.notify.items()]
    return {address.target: address for address in known}


def _of_variable(target: str, variable: str) -> Address:
    url = os.environ.get(variable, "")
    if not url:
        return Address(target, variable, problem=f"{variable} is not set")
    if not is_private_url(url):
        return Address(target, variable, problem=f"{variable} is no https:// address, and no http:// of this machine")
    return Address(target, variable, SecretStr(url))


def _of_route(target: str, variable: str) -> Address:
    if find_spec("apprise") is None:
        return Address(target, variable, problem="apprise is not installed: install platform-assets[notify]")
    url = os.environ.get(variable, "")
    return Address(target, variable, SecretStr(url) if url else None, "" if url else f"{variable} is not set")


def _lineage(settings: Settings) -> Address:
    problem = "" if settings.sends_lineage else "neither OPENLINEAGE_URL nor openlineage.yml is there"
    if find_spec("openlineage") is None:
        problem = "openlineage-python is not installed: install platform-assets[lineage]"
    return Address(OPENLINEAGE, "OPENLINEAGE_URL", problem=problem)


def _send(platform: Platform, to: Address, message: Message) -> None:
    """Send one message.

    Raises:
        WebhookError: the message was not received.
    """
    if to.target == OPENLINEAGE:
        from platform_assets.operations.lineage.openlineage import emit  # and its client, which nothing else needs

        emit(platform, message.publication, json.loads(message.body)["table"])
        return
    assert to.url is not None
    if to.target.startswith(ROUTE):
        from platform_assets.operations.webhook import notify  # and Apprise, which nothing else needs

        notify(to.url, to.variable, message)
    else:
        post(to.url, message.body, message.key, platform.settings.webhook_secret)


@dataclass
class Delivery:
    """Result of delivering due messages.

    Args:
        failed: messages that were not accepted, each with its reason as `problem`; tried again later, or given up.
        no_address: why nothing can be sent, by target with waiting messages: these use up no try.
    """

    delivered: list[Message] = field(default_factory=list)
    failed: list[Message] = field(default_factory=list)
    no_address: Mapping[str, str] = field(default_factory=dict)


def deliver(platform: Platform, for_s: float | None = None, progress: OnProgress = no_progress) -> Delivery:
    """Send due messages, oldest first, and record the outcome of each.

    Lineage events come last. An unreachable target is skipped until the next time, because waiting for it would delay
    others. A target that answers is tried for each message.

    Args:
        for_s: seconds after which nothing more is begun; None sends everything that is due at the start.
    """
    outbox, began, stop = platform.ledger.outbox, _now(), None if for_s is None else time.monotonic() + for_s
    known = addresses(platform.catalogue, platform.settings)
    done = Delivery(no_address=_unreached(platform, known))
    open_to = {name: address for name, address in known.items() if not address.problem}
    while open_to and (stop is None or time.monotonic() < stop):
        # The client of lineage events tries for seconds where nothing listens: they keep no other message waiting.
        others, lineage = open_to.keys() - {OPENLINEAGE}, open_to.keys() & {OPENLINEAGE}
        message = outbox.take(others, _now(), due_by=began) or outbox.take(lineage, _now(), due_by=began)
        if message is None:
            break
        failpoint("outbox.taken")
        try:
            with meanwhile(progress, f"sending to {message.target}"):
                _send(platform, open_to[message.target], message)
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
            is_route = target.startswith(ROUTE)
            reasons[target] = "no route has this name" if is_route else "no domain declares this exposure"
        elif known[target].problem:
            reasons[target] = known[target].problem
    return reasons


def _now() -> datetime:
    return datetime.now(UTC)


def retry(platform: Platform, key: str | None) -> tuple[Message, ...]:
    """Give a message all its tries again, also a delivered one: its receiver may have lost it.

    Args:
        key: its beginning; None means all given-up messages.
    """
    outbox = platform.ledger.outbox
    messages: Sequence[Message] = outbox.messages(["given up"]) if key is None else [_named(platform, key)]
    for message in messages:
        if message.state == "dropped":
            raise PlatformError(
                f"Message {message.key} was dropped: {message.problem}.",
                "`platform-assets status decisions` shows who decided that; the release has what it announced.",
            )
    outbox.retry(messages, datetime.now(UTC))
    return tuple(messages)


def drop(platform: Platform, key: str, author: Author) -> Message:
    """Drop a message: it is never sent again."""
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
            f"Message {message.key} is {state}: there is nothing to drop.",
            "`platform-assets status messages` has others.",
        )
    return message


def _named(platform: Platform, key: str) -> Message:
    found: Collection[Message] = platform.ledger.outbox.with_key(key) if len(key) >= _SHORTEST else ()
    if len(found) != 1:
        said = "No message has" if not found else f"{len(found)} messages have"
        raise PlatformError(
            f"{said} a key that begins with {key!r}.",
            f"Name one as `platform-assets status messages --all` shows it, by {_SHORTEST} characters at least.",
        )
    [message] = found
    return message
