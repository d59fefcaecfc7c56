"""Options that mean the same in every command, each with one spelling and one help text."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="For programs: JSON, also of an error.")]
_DAYS = "Only these days: YYYY-MM-DD, A..B with both ends, or several with commas."
Days = Annotated[str | None, typer.Option("--days", metavar="DAYS", help=_DAYS)]
"""Understood by `console.parse_days`."""
DaysOrDay = Annotated[str | None, typer.Option("--days", "--day", metavar="DAYS", help=_DAYS)]
"""The same, for a command that mostly gets one."""
OneDay = Annotated[str, typer.Argument(metavar="DAY", help="YYYY-MM-DD.")]
"""Understood by `console.parse_day`."""
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="COLUMN=VALUE,…", help="Only rows of these keys; the others are carried over."),
]
"""Understood by `keys.parse_keys`."""
TableName = Annotated[str, typer.Argument(help="<layer>.<table>, for example gold.daily_sales.")]
OneTable = Annotated[str | None, typer.Option("--table", help="Only this table.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Why, for the next person.")]
By = Annotated[str | None, typer.Option("--by", help="Who decides; the user by default, who is recorded in any case.")]
"""Both understood by `decisions.decided_by`."""
Cascade = Annotated[bool, typer.Option("--cascade", help="Also what later publications made of the days.")]
UntilLifted = Annotated[
    bool, typer.Option("--until-lifted", help="Until `rollback --lift`: new input or code does not end it.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done and change nothing.")]
