"""`test`: whether tables come out of given rows as their tests expect."""

from __future__ import annotations

from typing import Annotated

import typer

from platform_assets.cli.console import UsageError, declared_tables
from platform_assets.cli.session import computing
from platform_assets.engine.catalogue import load_catalogue
from platform_assets.engine.user_code import refuse_wrong_functions
from platform_assets.operations.table_tests.files import ENDING, test_files, tests_in
from platform_assets.report import Note, Part, Points, Report
from platform_assets.settings import load_settings
from platform_assets.words import counted


def test(
    tables: Annotated[list[str] | None, typer.Argument(help="Tables whose tests are run; all by default.")] = None,  # noqa: PT028
) -> Report:
    """Run tests of tables: rows in, computed in a lake of their own, rows out; exit code 1 if any differ."""
    settings = load_settings()
    catalogue = load_catalogue(settings)
    refuse_wrong_functions(catalogue)
    names = declared_tables(catalogue, tables or ())
    found = [each for file in test_files(settings.domains) for each in tests_in(file, catalogue) if each.table in names]
    if not found:
        what = f"There is no test of {', '.join(sorted(names))}."
        raise UsageError(what, f"Write one into <table>{ENDING} in the domain's package: docs/table-tests.md.")
    parts: list[Part] = []
    data = []
    with computing(settings, "test", brief=True, at_once=True) as (spark, progress):
        from platform_assets.operations.table_tests.run import TableTests

        run = TableTests(settings, spark, catalogue, progress, found)
        for each in found:
            lines, title = run.differences(each), f"{each.table}: {each.name}"
            if lines:
                parts += [Note("bold red", "differs", f"{title} ({each.place})"), Points(tuple(lines))]
            else:
                parts.append(Note("green", "ok", title))
            data.append({"table": each.table, "test": each.name, "place": each.place, "differences": lines})
    failed = sum(bool(one["differences"]) for one in data)
    return Report([*parts, f"{counted(len(data), 'test')}: {failed or 'none'} with differences."], data, bool(failed))
