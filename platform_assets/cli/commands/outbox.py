"""`outbox`: messages to exposures and the webhook, and their delivery."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from platform_assets.cli.console import UsageError, opened_platform, platform_to_look
from platform_assets.cli.progress import telling
from platform_assets.engine.platform import Author
from platform_assets.operations.outbox import Delivery, deliver
from platform_assets.operations.outbox import drop as leave
from platform_assets.operations.outbox import retry as try_anew
from platform_assets.records.outbox import Message
from platform_assets.report import Note, Part, Report, Table, picked
from platform_assets.words import counted

outbox = typer.Typer(
    help="Messages to what lies downstream: what waits, what was given up, and how to send it again.",
    no_args_is_help=True,
)

Key = Annotated[str, typer.Argument(metavar="ID", help="A message, as `outbox list` shows it.")]
_SHOWN = 12
"""Characters of a key that identify a message."""


@outbox.command("list")
def list_messages(
    everything: Annotated[bool, typer.Option("--all", help="Also what was delivered or dropped.")] = False,
) -> Report:
    """Show what waits to be delivered and what was given up; exit code 1 if something was."""
    with platform_to_look() as platform:
        messages = platform.ledger.outbox.messages(() if everything else ("waiting", "given up"))
    nothing = ["Nothing was ever sent." if everything else "Nothing waits in the outbox."]
    parts = _parts(messages) if messages else nothing
    return Report(parts, messages, any(message.state == "given up" for message in messages))


@outbox.command()
def send() -> Report:
    """Deliver due messages now; exit code 1 if one was not received, or has no address here."""
    with opened_platform() as platform, telling("outbox send") as progress:
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


@outbox.command()
def retry(
    message: Annotated[str | None, typer.Argument(metavar="ID", help="As `outbox list` shows it.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that were given up.")] = False,
) -> Report:
    """Have a message tried anew, with as many tries as at first; `outbox send` or the daemon then sends it."""
    if (message is None) != everything:
        raise UsageError("Say which message.", "Name one as `outbox list` shows it, or give --all.")
    with opened_platform() as platform:
        due = try_anew(platform, message)
    lines = [Note("", "due", f"{one.key[:_SHOWN]} for {one.target}: {one.title}") for one in due]
    return Report(lines or ["Nothing was given up."], [one.key for one in due])


@outbox.command()
def drop(message: Key, author: Author) -> Report:
    """Decide that a message is sent no more."""
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
        yield f"{counted(waiting, 'message', 'wait')} until the time shown; `outbox send` sends what is due."
    if given_up := states["given up"]:
        yield f"{counted(given_up, 'message')} given up: outbox retry ID, or outbox drop ID --reason …"


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
