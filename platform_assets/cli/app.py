"""All commands, and what happens to errors."""

from __future__ import annotations

import sys

import typer

from platform_assets.cli import demo, doctor, land, ledger, read, status, up
from platform_assets.cli.console import EXIT_FAILED, errors
from platform_assets.errors import PlatformError

HELP = """Correct the past of a data platform safely.

Exit codes: 0 done; 1 done, and something needs a look (held or missing days, refused files, a failed check);
2 the command line is wrong; 3 it could not be done, the message says why and what to do.
"""

app = typer.Typer(help=HELP, no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)
app.command("demo")(demo.demo)
app.command("up")(up.up)
app.command("land")(land.land)
app.command("status")(status.status)
app.command("read")(read.read)
app.command("doctor")(doctor.doctor)
app.add_typer(ledger.app, name="ledger")


def main() -> None:
    """Run a command; an expected failure is a message on standard error, never a traceback."""
    try:
        app()
    except PlatformError as error:
        errors.print(f"[bold red]Error:[/] {error.what}", highlight=False, soft_wrap=True)
        errors.print(f"[bold]What to do:[/] {error.todo}", highlight=False, soft_wrap=True)
        sys.exit(EXIT_FAILED)
