"""Options with one meaning in every command: spelling, help text, and parsing of values."""

from __future__ import annotations

import csv
import getpass
import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer

from platform_assets.cli.console import UsageError
from platform_assets.report import Report

if TYPE_CHECKING:
    from platform_assets.engine.platform import Author

AsJson = Annotated[bool, typer.Option("--json", help="For programs: JSON, also of an error.")]
_DAYS = "Only these days: YYYY-MM-DD, A..B with both ends, or several with commas."
Days = Annotated[str | None, typer.Option("--days", metavar="DAYS", help=_DAYS)]
NeededDays = Annotated[str | None, typer.Option("--days", metavar="DAYS", help=f"{_DAYS} \\[required]")]
DaysOrDay = Annotated[str | None, typer.Option("--days", "--day", metavar="DAYS", help=_DAYS)]
OneDay = Annotated[str, typer.Argument(metavar="DAY", help="YYYY-MM-DD.")]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="COLUMN=VALUE,…", help="Only rows of these keys; the others are copied unchanged."),
]
TableName = Annotated[str, typer.Argument(help="<layer>.<table>, for example gold.daily_sales.")]
_REASON = "Why, for the next person."
Reason = Annotated[str | None, typer.Option("--reason", help=_REASON)]
NeededReason = Annotated[str | None, typer.Option("--reason", help=f"{_REASON} \\[required]")]
ReasonButDry = Annotated[str | None, typer.Option("--reason", help=f"{_REASON} \\[required, but for --dry-run]")]
By = Annotated[str | None, typer.Option("--by", help="Who decides; the user by default, who is recorded in any case.")]
Cascade = Annotated[bool, typer.Option("--cascade", help="Also undo later publications of the days.")]
UntilLifted = Annotated[
    bool, typer.Option("--until-lifted", help="Until `undo rollback:TABLE`: new input or code does not end it.")
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Most rows to list.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done and change nothing.")]


def call_with(name: str, function: Callable[..., Report], given: Mapping[str, Any]) -> Report:
    """Call a command's function for one kind of thing, with the options that were given.

    Raises:
        UsageError: this kind does not have an option that was given.
    """
    known = inspect.signature(function).parameters
    used = {key: value for key, value in given.items() if not (value is None or value is False or value == [])}
    for key in used.keys() - known.keys():
        if key in _BESIDES:
            raise UsageError(f"`{name}` takes no {_BESIDES[key]}.", "Leave it out.")
        raise UsageError(f"`{name}` has no --{key.replace('_', '-')}.", "Leave it out; --help says which has it.")
    return function(**used)


def only_one(name: str, names: Sequence[str]) -> str:
    """Return the only name given to a section; empty if there is none."""
    if len(names) > 1:
        raise UsageError(f"`{name}` takes one name, not {len(names)}.", "Name one of them.")
    return next(iter(names), "")


_BESIDES = {"names": "names", "everything": "--all", "engine": "--views"}


_QUOTED = re.compile(r'((?:^|,)\s*"(?:[^"]|"")*")\s*(?=,|\Z)')
"""A value in double quotes with the blanks behind it, at which `csv` stops."""


def parse_keys(options: Sequence[str]) -> dict[str, list[str]]:
    """Parse values of columns, given as COLUMN=VALUE,…; values of a column that is named several times are joined.

    The values are a line of CSV; blanks around a value are removed.
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
    """Return the author of a decision, by default the current user; refuse a blank reason or name."""
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
