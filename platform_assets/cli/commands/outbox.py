"""`outbox`: what exposures and the webhook are to be told, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.console import (
    EXIT_LOOK,
    UsageError,
    console,
    escape,
    opened_platform,
    platform_to_look,
    print_json,
    say,
)
from platform_assets.cli.grids import new_grid
from platform_assets.cli.options import AsJson, By, Reason, decided_by
from platform_assets.cli.progress import telling
from platform_assets.records.outbox import Message
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.outbox import Delivery

app = typer.Typer(
    help="Messages to what lies downstream: what waits, what was given up, and how to send it again.",
    no_args_is_help=True,
)

Key = Annotated[str, typer.Argument(metavar="ID", help="A message, as `outbox list` shows it.")]
_SHOWN = 12
"""Characters of a key that tell messages apart."""


@app.command("list")
def list_messages(
    everything: Annotated[bool, typer.Option("--all", help="Also what was delivered or dropped.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what waits to be delivered and what was given up; exit code 1 if something was."""
    with platform_to_look() as platform:
        messages = platform.ledger.outbox.messages(() if everything else ("waiting", "given up"))
    if as_json:
        print_json([vars(message) for message in messages])
    elif messages:
        _print(messages)
    else:
        console.print("Nothing was ever sent." if everything else "Nothing waits in the outbox.")
    if any(message.state == "given up" for message in messages):
        raise typer.Exit(EXIT_LOOK)


@app.command()
def send(context: typer.Context, as_json: AsJson = False) -> None:
    """Deliver now what is due; exit code 1 if something was not taken, or has no address here."""
    from platform_assets.operations.outbox import deliver

    with opened_platform() as platform, telling(context, "outbox send") as progress:
        done = deliver(platform, progress=progress)
    if as_json:
        print_json(_as_json(done))
    else:
        _print_delivery(done)
    if done.failed or done.no_address:
        raise typer.Exit(EXIT_LOOK)


@app.command()
def retry(
    message: Annotated[str | None, typer.Argument(metavar="ID", help="As `outbox list` shows it.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that were given up.")] = False,
    as_json: AsJson = False,
) -> None:
    """Have a message tried anew, with as many tries as at first; `outbox send` or the daemon then sends it."""
    if (message is None) != everything:
        raise UsageError("Say which message.", "Name one as `outbox list` shows it, or give --all.")
    from platform_assets.operations.outbox import retry as try_anew

    with opened_platform() as platform:
        due = try_anew(platform, message)
    if as_json:
        print_json([one.key for one in due])
        return
    for one in due:
        say("due", f"{one.key[:_SHOWN]} for {one.target}: {one.title}")
    if not due:
        console.print("Nothing was given up.")


@app.command()
def drop(message: Key, reason: Reason = None, by: By = None, as_json: AsJson = False) -> None:
    """Decide that a message is sent no more."""
    author = decided_by(reason, by)
    from platform_assets.operations.outbox import drop as leave

    with opened_platform() as platform:
        dropped = leave(platform, message, author)
    if as_json:
        print_json(vars(dropped) | {"state": "dropped", "problem": author.why})
        return
    say("dropped", f"{dropped.key[:_SHOWN]} for {dropped.target}: {dropped.title}")


def _print(messages: Sequence[Message]) -> None:
    names = ("id", "for", "state", "tries", "when (UTC)", "says")
    grid = new_grid("The outbox", names, right=("tries",), whole=("id", "state", "when (UTC)"))
    for message in messages:
        when = message.settled_at or message.due_at
        said = f"{message.title}\n{message.problem}" if message.problem else message.title
        cells = (
            message.key[:_SHOWN],
            message.target,
            message.state,
            f"{message.tries}",
            f"{when:%Y-%m-%d %H:%M:%S}",
            said,
        )
        grid.add_row(*map(escape, cells))
    console.print(grid)
    waiting = sum(message.state == "waiting" for message in messages)
    given_up = sum(message.state == "given up" for message in messages)
    if waiting:
        console.print(
            f"{counted(waiting, 'message', 'wait')} until the time shown; `outbox send` sends what is due.",
            soft_wrap=True,
        )
    if given_up:
        console.print(
            f"{counted(given_up, 'message')} given up: outbox retry ID, or outbox drop ID --reason …", soft_wrap=True
        )


def _print_delivery(done: Delivery) -> None:
    for message in done.delivered:
        say("[green]delivered[/]", f"{message.key[:_SHOWN]} to {message.target}: {message.title}")
    for message in done.failed:
        then = f"next try at {message.due_at:%H:%M:%S} UTC" if message.state == "waiting" else "given up"
        say("[red]not taken[/]", f"{message.key[:_SHOWN]}: {message.target} {message.problem}; {then}")
    for target, reason in done.no_address.items():
        say("[yellow]not sent[/]", f"{target}: {reason}")
    if not (done.delivered or done.failed or done.no_address):
        console.print("Nothing is due.")


def _as_json(done: Delivery) -> dict[str, Any]:
    return {
        "delivered": [message.key for message in done.delivered],
        "not_taken": [
            {
                "key": message.key,
                "target": message.target,
                "problem": message.problem,
                "state": message.state,
                "next_try": message.due_at if message.state == "waiting" else None,
            }
            for message in done.failed
        ],
        "not_sent": dict(done.no_address),
    }
