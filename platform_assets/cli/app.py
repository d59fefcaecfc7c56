"""All commands, and what happens to errors."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, NoReturn

import typer

from platform_assets.cli.console import EXIT_FAILED, EXIT_USAGE, UsageError, errors, say
from platform_assets.cli.interruption import never_lost
from platform_assets.cli.progress import speaking
from platform_assets.contracts import UnknownTableError
from platform_assets.errors import PlatformError

COMMANDS = (
    "demo",
    "up",
    "land",
    "status",
    "read",
    "stale",
    "why",
    "refresh",
    "verify",
    "releases",
    "release",
    "views",
    "stage",
    "rollback",
    "doctor",
    "recover",
    "late",
    "withdraw",
    "maintenance",
    "ledger",
    "audit",
    "backup",
)
"""In the order of the help; each is a module in `commands`, with a function of its name or, for a group, an `app`."""

_DISK_FULL = {errno.ENOSPC, errno.EDQUOT}

HELP = """Correct the past of a data platform safely.

Exit codes: 0 done; 1 done, and something needs a look (held, missing or stale days, refused files, a failed check);
2 the command line is wrong; 3 it could not be done, the message says why and what to do.
"""


def build(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line with some of its commands; to import all of them takes as long as most need to answer."""
    app = typer.Typer(help=HELP, no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)
    app.callback()(_options)  # a command that is alone is named all the same
    for name in names:
        module = import_module(f"platform_assets.cli.commands.{name}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(getattr(module, name))
    return app


def _options(
    shown: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=lambda asked: _version(asked), is_eager=True)
    ] = False,
) -> None:
    pass


def _version(asked: bool) -> None:
    if asked:
        print(f"platform-assets {version('platform-assets')}")
        raise typer.Exit


def main() -> None:
    """Run a command; an expected failure is a message on standard error, never a traceback."""
    asked = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), None)
    try:
        with never_lost(), speaking(asked or "platform-assets") as voice:
            build([asked] if asked in COMMANDS else COMMANDS)(obj=voice)
    except PlatformError as error:
        misspelt = isinstance(error, UsageError | UnknownTableError)
        _fail(error.what, error.todo, EXIT_USAGE if misspelt else EXIT_FAILED)
    except OSError as error:
        what = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}."
        if error.errno in _DISK_FULL:
            _fail(what, "Free some disk space and run the same command again; what was published stays.", EXIT_FAILED)
        _fail(what, "Check that this path is as it should be and that this user may use it.", EXIT_FAILED)


def _fail(what: str, todo: str, code: int) -> NoReturn:
    say("[bold red]Error:[/]", what, to=errors)
    say("[bold]What to do:[/]", todo, to=errors)
    sys.exit(code)
