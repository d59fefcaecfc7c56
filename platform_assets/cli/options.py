"""Options that mean the same in every command: one spelling and help text each, and how their values are read."""

from __future__ import annotations

import csv
import getpass
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer

from platform_assets.cli.console import UsageError

if TYPE_CHECKING:
    from platform_assets.engine.platform import Author

AsJson = Annotated[bool, typer.Option("--json", help="For programs: JSON, also of an error.")]
_DAYS = "Only these days: YYYY-MM-DD, A..B with both ends, or several with commas."
Days = Annotated[str | None, typer.Option("--days", metavar="DAYS", help=_DAYS)]
DaysOrDay = Annotated[str | None, typer.Option("--days", "--day", metavar="DAYS", help=_DAYS)]
OneDay = Annotated[str, typer.Argument(metavar="DAY", help="YYYY-MM-DD.")]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="COLUMN=VALUE,…", help="Only rows of these keys; the others are carried over."),
]
TableName = Annotated[str, typer.Argument(help="<layer>.<table>, for example gold.daily_sales.")]
OneTable = Annotated[str | None, typer.Option("--table", help="Only this table.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Why, for the next person.")]
By = Annotated[str | None, typer.Option("--by", help="Who decides; the user by default, who is recorded in any case.")]
Cascade = Annotated[bool, typer.Option("--cascade", help="Also what later publications made of the days.")]
UntilLifted = Annotated[
    bool, typer.Option("--until-lifted", help="Until `rollback --lift`: new input or code does not end it.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done and change nothing.")]


_QUOTED = re.compile(r'((?:^|,)\s*"(?:[^"]|"")*")\s*(?=,|\Z)')
"""A value in double quotes with the blanks behind it, at which `csv` stops."""


def parse_keys(options: Sequence[str]) -> dict[str, list[str]]:
    """Return the texts of values that a person names, by column; all of a column that is named several times.

    Each option is COLUMN=VALUE,… with the values as a line of CSV; blanks around one do not belong to it.
    """
    asked: dict[str, list[str]] = {}
    for option in options:
        name, _, listed = option.partition("=")
        try:
            line = csv.reader([_QUOTED.sub(r"\1", listed)], skipinitialspace=True, strict=True)
            values = [value.strip() for value in next(line, [])]
        except csv.Error as error:
            raise _no_keys(option, f"The values {listed!r} cannot be separated: {error}.") from error
        if not (name.strip() and values and all(values)):
            raise _no_keys(option, f"It was read as column {name.strip()!r} with the values {values}.")
        asked.setdefault(name.strip(), []).extend(values)
    return asked


def _no_keys(option: str, why: str) -> UsageError:
    return UsageError(
        f"{option!r} is not COLUMN=VALUE,…. {why}",
        "Write --only store_id=330,337, and in double quotes a value that has a comma: --only 'name=\"Smith, J\",Lee'.",
    )


def decided_by(reason: str | None, who: str | None) -> Author:
    """Return the author of a decision, by default the user of this machine; a blank reason or name is refused."""
    if who is None:
        with suppress(KeyError, OSError):  # in a container, a user may have no name
            who = getpass.getuser()
    from platform_assets.engine.platform import Author

    why, who = (reason or "").strip(), (who or "").strip()
    for name, value, todo in (
        ("reason", why, 'Add --reason "checked with the till vendor".'),
        ("by", who, 'Add --by "zoe", or set LOGNAME for a command without it.'),
    ):
        if not value:
            what = f"A decision needs --{name}: it is kept for the next person."
            raise UsageError(what, todo)
    # Of runs in a container each is process 1.
    return Author(run=f"process {os.getpid()} {uuid4().hex[:8]}", why=why, who=who)
