"""`check`: everything that can be known of contracts and transforms before any row is read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Annotated

import typer

from platform_assets.cli.console import EXIT_FAILED, show
from platform_assets.cli.options import AsJson
from platform_assets.cli.session import computing
from platform_assets.contracts import Catalogue
from platform_assets.engine.catalogue import load_catalogue
from platform_assets.engine.functions import function_mistakes
from platform_assets.engine.mistake import Mistake, advice, mistakes_in
from platform_assets.errors import PlatformError
from platform_assets.report import Note, Part, Report
from platform_assets.settings import Settings, load_settings
from platform_assets.words import counted


def check(
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
        later = ["Functions and expressions can be looked at once this is mended."]
        show(_report(mistakes_in(error, ", ".join(settings.domains)), (), more=later), as_json)
        raise typer.Exit(EXIT_FAILED) from error
    names = catalogue.with_inputs(catalogue[name].name for name in tables or catalogue.names)
    mistakes = list(function_mistakes(catalogue, names))
    try:
        mistakes += _analysed(settings, catalogue, names, mistakes)
    except PlatformError:
        show(_report(mistakes, names), as_json)
        raise
    right = Note("green", "Nothing is wrong", f"with {counted(len(names), 'table')}: {', '.join(names)}.")
    advised = list(advice(catalogue, names))
    show(_report(mistakes, names, advised, [] if mistakes else [right]), as_json)
    if mistakes:
        raise typer.Exit(EXIT_FAILED)


def _analysed(
    settings: Settings, catalogue: Catalogue, names: Collection[str], mistakes: Sequence[Mistake]
) -> list[Mistake]:
    """Return what Spark's analyser finds besides; only here Spark is imported and started."""
    tables = {mistake.table for mistake in mistakes}
    packages = {mistake.package for mistake in mistakes if mistake.table is None}
    without = [name for name in names if name in tables or catalogue.domain_of(name).transforms in packages]
    with computing(settings, "check", brief=True, at_once=True) as (spark, _):
        from platform_assets.engine.step.analysis import analysis_mistakes  # while Java starts

        return list(analysis_mistakes(catalogue, names, spark(), without))


def _report(
    mistakes: Iterable[Mistake], names: Sequence[str], advised: Sequence[Mistake] = (), more: Sequence[Part] = ()
) -> Report:
    mistakes = list(dict.fromkeys(mistakes))
    parts: list[Part] = [Note("bold red", "wrong", *_told(one)) for one in mistakes]
    parts += [Note("yellow", "look", *_told(one)) for one in advised]
    if mistakes:
        parts.append(f"{counted(len(mistakes), 'mistake')} in all.")
    data = {"mistakes": [one.json() for one in mistakes], "advice": [one.json() for one in advised]}
    return Report([*parts, *more], data | {"tables": names})


def _told(mistake: Mistake) -> tuple[str, str]:
    where = " ".join(part for part in (mistake.table or mistake.package, mistake.field) if part)
    return f"{where}: {mistake.what}", mistake.todo
