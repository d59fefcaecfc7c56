"""`ack`: a person looked at broken files or warnings; they ask for no look until they change."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from platform_assets.cli.console import UsageError, opened_platform, parse_days
from platform_assets.cli.options import DaysOrDay
from platform_assets.engine.platform import Author
from platform_assets.operations.acknowledge import Finding, acknowledge
from platform_assets.operations.status import look
from platform_assets.report import Note, Report

Findings = Annotated[
    list[str],
    typer.Argument(metavar="FILE|TABLE…", help="Files as `status files` has them, or tables with warnings."),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="When it ends, UTC, as 2017-04-09 or 2017-04-09T18:00.")
]


def parse_time(text: str) -> datetime:
    """Return a time in UTC."""
    try:
        end = datetime.fromisoformat(text)
        return end.astimezone(UTC) if end.tzinfo else end.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{text!r} is not a time.", "Write it as 2017-04-09T18:00, in UTC.") from error


def ack(
    findings: Findings,
    author: Author,
    days: DaysOrDay = None,
    until: Until = None,
) -> Report:
    """Acknowledge broken files, or warnings of a table: exit code 1 and lines stop until they change."""
    wanted, end = parse_days(days) if days else None, parse_time(until) if until else None
    with opened_platform() as platform:
        known = look(platform, with_metrics=False)
        there: list[Finding] = [*known.landing, *known.refused.there, *known.warned]
        made = acknowledge(platform, there, findings, author, days=wanted, until=end)
    ends = f"until {end:%Y-%m-%d %H:%M} UTC, or until it changes" if end else "until it changes"
    return Report([Note("", "acknowledged", f"{each.finding} {ends}") for each in made], made)
