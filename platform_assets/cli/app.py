"""All commands, and what happens to errors."""

from __future__ import annotations

import errno
import sys
from typing import NoReturn

import typer

from platform_assets.cli import (
    audit,
    backup,
    demo,
    doctor,
    land,
    late,
    ledger,
    read,
    refresh,
    release,
    releases,
    rollback,
    stale,
    status,
    up,
    verify,
    views,
    why,
    withdraw,
)
from platform_assets.cli.console import EXIT_FAILED, EXIT_USAGE, UsageError, errors, say
from platform_assets.contracts import UnknownTableError
from platform_assets.errors import PlatformError

_DISK_FULL = {errno.ENOSPC, errno.EDQUOT}

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
app.command("stale")(stale.stale)
app.command("why")(why.why)
app.command("refresh")(refresh.refresh)
app.command("verify")(verify.verify)
app.command("releases")(releases.releases)
app.add_typer(release.app, name="release")
app.command("views")(views.views)
app.command("rollback")(rollback.rollback)
app.command("doctor")(doctor.doctor)
app.add_typer(late.app, name="late")
app.command("withdraw")(withdraw.withdraw)
app.add_typer(ledger.app, name="ledger")
app.add_typer(audit.app, name="audit")
app.command("backup")(backup.backup)


def main() -> None:
    """Run a command; an expected failure is a message on standard error, never a traceback."""
    try:
        app()
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
