"""`status messages`, and `admin outbox`, which delivers messages to exposures and the webhook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from platform_assets.cli.console import UsageError, opened_platform, platform_to_look
from platform_assets.cli.options import By, Reason, decided_by
from platform_assets.cli.progress import telling
from platform_assets.engine.platform import Author
from platform_assets.operations.outbox import Delivery, deliver
from platform_assets.operations.outbox import drop as leave
from platform_assets.operations.outbox import retry as try_anew
from platform_assets.records.outbox import Message
from platform_assets.report import Note, Part, Report, Table, picked
from platform_assets.words import counted

_SHOWN = 12
"""Characters of a key that identify a message."""


def messages(*, everything: bool = False) -> Report:
    """Show messages that wait or were given up; it needs a look if some were given up."""
    with platform_to_look() as platform:
        shown = platform.ledger.outbox.messages(() if everything else ("waiting", "given up"))
    nothing = ["Nothing was ever sent." if everything else "Nothing waits in the outbox."]
    return Report(_parts(shown) if shown else nothing, shown, any(message.state == "given up" for message in shown))


def outbox(
    message: Annotated[str | None, typer.Argument(metavar="ID", help="As `status messages` shows it.")] = None,
    again: Annotated[bool, typer.Option("--retry", help="Give it all its tries again.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="With --retry: all that were given up.")] = False,
    no_more: Annotated[bool, typer.Option("--drop", help="Never send it again; needs --reason.")] = False,
    reason: Reason = None,
    by: By = None,
) -> Report:
    """Deliver due messages now, or decide about one; exit code 1 if one was not received, or has no address here."""
    if again:
        return _retry(message, everything=everything)
    if no_more and message is not None:
        return _drop(message, decided_by(reason, by))
    if no_more or message is not None or everything:
        raise UsageError("Say which message, and what to do with it.", "Add its ID, and --retry or --drop.")
    return _send()


def _send() -> Report:
    with opened_platform() as platform, telling("outbox") as progress:
        done = deliver(platform, progress=progress)
    data = {
        "delivered": [message.key for message in done.delivered],
        "not_taken": [
            picked(one, "key target problem state", next_try=one.due_at if one.state == "waiting" else None)
            for one in done.failed
        ],
        "not_sent": done.no_address,
    }
    return Report(_delivery_parts(done), data, bool(done.failed or done.no_address))


def _retry(message: str | None, *, everything: bool) -> Report:
    """Give a message all its tries again; `admin outbox` or the daemon then sends it."""
    if (message is None) != everything:
        raise UsageError("Say which message.", "Name one as `status messages` shows it, or give --all.")
    with opened_platform() as platform:
        due = try_anew(platform, message)
    lines = [Note("", "due", f"{one.key[:_SHOWN]} for {one.target}: {one.title}") for one in due]
    return Report(lines or ["Nothing was given up."], [one.key for one in due])


def _drop(message: str, author: Author) -> Report:
    with opened_platform() as platform:
        dropped = leave(platform, message, author)
    line = Note("", "dropped", f"{dropped.key[:_SHOWN]} for {dropped.target}: {dropped.title}")
    return Report([line], vars(dropped) | {"state": "dropped", "problem": author.why})


def _parts(messages: Sequence[Message]) -> Iterator[Part]:
    rows = []
    for message in messages:
        when = f"{message.settled_at or message.due_at:%Y-%m-%d %H:%M:%S}"
        said = tuple(filter(None, [message.title, message.problem]))
        rows.append((message.key[:_SHOWN], message.target, message.state, f"{message.tries}", when, said))
    names = ("id", "for", "state", "tries", "when (UTC)", "says")
    yield Table("The outbox", names, rows, ("tries",), ("id", "state", "when (UTC)"))
    states = Counter(message.state for message in messages)
    if waiting := states["waiting"]:
        yield f"{counted(waiting, 'message', 'wait')} until the time shown; `admin outbox` sends what is due."
    if given_up := states["given up"]:
        yield f"{counted(given_up, 'message')} given up: admin outbox ID --retry, or admin outbox ID --drop --reason …"


def _delivery_parts(done: Delivery) -> Iterator[Part]:
    for message in done.delivered:
        yield Note("green", "delivered", f"{message.key[:_SHOWN]} to {message.target}: {message.title}")
    for message in done.failed:
        then = f"next try at {message.due_at:%H:%M:%S} UTC" if message.state == "waiting" else "given up"
        yield Note("red", "not taken", f"{message.key[:_SHOWN]}: {message.target} {message.problem}; {then}")
    for target, reason in done.no_address.items():
        yield Note("yellow", "not sent", f"{target}: {reason}")
    if not (done.delivered or done.failed or done.no_address):
        yield "Nothing is due."
