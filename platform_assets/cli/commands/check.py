"""`check`: everything that can be known of contracts and transforms before any row is read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated

import typer

from platform_assets.cli.console import EXIT_FAILED, console, print_json, say
from platform_assets.cli.options import AsJson
from platform_assets.cli.progress import telling
from platform_assets.cli.session import session_on_demand
from platform_assets.contracts import Catalogue
from platform_assets.engine.catalogue import load_catalogue
from platform_assets.engine.functions import function_mistakes
from platform_assets.engine.mistake import Mistake, advice, mistakes_in
from platform_assets.errors import PlatformError
from platform_assets.settings import Settings, load_settings
from platform_assets.words import counted


def check(
    context: typer.Context,
    tables: Annotated[
        list[str] | None, typer.Argument(help="These and what they are made from; all by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check contracts and transforms of all domains, without a row; exit code 3 with all that is wrong."""
    settings = load_settings()
    try:
        catalogue = load_catalogue(settings)
    except PlatformError as error:
        _tell(mistakes_in(error, ", ".join(settings.domains)), (), as_json)
        if not as_json:
            console.print("Functions and expressions can be looked at once this is mended.")
        raise typer.Exit(EXIT_FAILED) from error
    names = _with_inputs(catalogue, tables or catalogue.names)
    mistakes = list(function_mistakes(catalogue, names))
    try:
        mistakes += _analysed(context, settings, catalogue, names, mistakes)
    except PlatformError:
        _tell(mistakes, names, as_json)
        raise
    _end(mistakes, names, as_json, list(advice(catalogue, names)))


def _with_inputs(catalogue: Catalogue, tables: Collection[str]) -> tuple[str, ...]:
    """Tables and all that they are made from.

    Raises:
        UnknownTableError: there is no such table.
    """
    return catalogue.with_inputs(catalogue[name].name for name in tables)


def _analysed(
    context: typer.Context,
    settings: Settings,
    catalogue: Catalogue,
    names: Collection[str],
    mistakes: Sequence[Mistake],
) -> list[Mistake]:
    """What Spark's analyser finds besides; only here Spark is imported and started."""
    tables = {mistake.table for mistake in mistakes}
    packages = {mistake.package for mistake in mistakes if mistake.table is None}
    without = [name for name in names if name in tables or catalogue.domain_of(name).transforms in packages]
    with (
        telling(context, "check") as progress,
        session_on_demand(settings, progress, brief=True, at_once=True) as spark,
    ):
        from platform_assets.engine.step.analysis import analysis_mistakes  # while Java starts

        return list(analysis_mistakes(catalogue, names, spark(), without))


def _end(mistakes: Sequence[Mistake], names: Sequence[str], as_json: bool, seldom_meant: Sequence[Mistake]) -> None:
    _tell(mistakes, names, as_json, seldom_meant)
    if mistakes:
        raise typer.Exit(EXIT_FAILED)
    if not as_json:
        console.print(f"[green]Nothing is wrong[/] with {counted(len(names), 'table')}: {', '.join(names)}.")


def _tell(
    mistakes: Sequence[Mistake], names: Sequence[str], as_json: bool, seldom_meant: Sequence[Mistake] = ()
) -> None:
    mistakes = list(dict.fromkeys(mistakes))
    if as_json:
        advised = [one.json() for one in seldom_meant]
        print_json({"tables": list(names), "mistakes": [one.json() for one in mistakes], "advice": advised})
        return
    marks = [(mistake, "[bold red]wrong[/]") for mistake in mistakes]
    for mistake, mark in [*marks, *((one, "[yellow]look[/] ") for one in seldom_meant)]:
        where = " ".join(part for part in (mistake.table or mistake.package, mistake.field) if part)
        say(mark, f"{where}: {mistake.what}")
        say("      [bold]What to do:[/]", mistake.todo)
    if mistakes:
        console.print(f"{counted(len(mistakes), 'mistake')} in all.")
