"""`land`: play the sample year's arrivals into the landing area."""

from __future__ import annotations

from typing import Annotated

import typer


def land(
    until: Annotated[str | None, typer.Option(help="Newest arrival date to land, YYYY-MM-DD; all by default.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed makes another year.")] = 1,
    days: Annotated[int | None, typer.Option(min=1, help="Days of sales; the whole calendar by default.")] = None,
    scale: Annotated[int, typer.Option(min=1, help="Times as many lines a day.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Land the sample year's files up to an arrival date; what is there already is left alone."""
    ...
