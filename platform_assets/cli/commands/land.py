"""`land`: play the sample year's arrivals into the landing area."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

from platform_assets.cli.console import UsageError, parse_day
from platform_assets.cli.progress import telling
from platform_assets.report import Report, picked
from platform_assets.settings import load_settings
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.domains.retail.sample import Rates

_TAKEN_BY = "platform_assets.domains.retail"


def land(
    until: Annotated[str | None, typer.Option(help="Newest arrival date to land, YYYY-MM-DD; all by default.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed lets other lines go wrong.")] = 1,
    days: Annotated[int | None, typer.Option(min=1, help="Days of sales; the whole calendar by default.")] = None,
    scale: Annotated[int, typer.Option(min=1, help="Times as many lines a day.")] = 1,
    rate: Annotated[list[str] | None, typer.Option(help="A share of lines, such as late=0.05; repeatable.")] = None,
) -> Report:
    """Land the sample's files up to an arrival date, day by day; what is there already is left alone."""
    from platform_assets.domains.retail.sample import SampleError, Simulation
    from platform_assets.domains.retail.sample import land as land_files

    settings = load_settings()
    if _TAKEN_BY not in settings.domains:
        raise UsageError(
            f"`land` delivers the sample of {_TAKEN_BY}, which PLATFORM_DOMAINS does not name: no table would take it.",
            f"Put files of your own into {settings.landing}/<folder of the source>/<date they arrive>/ instead.",
        )
    last = settings.calendar_last or settings.last_day()
    whole = (last - settings.calendar_first).days + 1
    try:
        simulation = Simulation(
            seed=seed, first=settings.calendar_first, days=days or whole, scale=scale, rates=_rates(rate or [])
        )
    except SampleError as error:
        raise UsageError(error.what, error.todo) from error
    newest = parse_day(until) if until else simulation.last_arrival
    with telling("landing") as progress:
        landed = land_files(simulation, settings.landing_folder, newest, progress)
    taken = f"Landed {counted(landed.files, 'file')} with {counted(landed.rows, 'row')} up to {landed.newest}."
    then = "Take them in with `platform-assets refresh`, or by materializing the raw tables in Dagster."
    nothing = f"Nothing to land: everything up to {landed.newest} is there already."
    data = picked(landed, "files rows newest", root=settings.landing_folder)
    return Report([taken, then] if landed.files else [nothing], data)


def _rates(given: list[str]) -> Rates:
    from platform_assets.domains.retail.sample import Rates

    known = {rate.name for rate in fields(Rates)}
    values: dict[str, float] = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            values[name] = float(value)
        except ValueError:
            name = ""
        if name not in known:
            raise UsageError(
                f"{text!r} is not a rate.", f"Write <name>=<share>, with one of {', '.join(sorted(known))}."
            )
    return Rates(**values)
