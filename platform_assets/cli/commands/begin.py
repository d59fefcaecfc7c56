"""`init`, `check`, `test`, and the sample year's files: a domain of your own, its mistakes, and tests of its tables."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.console import EXIT_FAILED, UsageError, declared_tables, show
from platform_assets.cli.options import AsJson, DryRun
from platform_assets.cli.progress import telling
from platform_assets.cli.session import computing
from platform_assets.contracts import Catalogue, Column
from platform_assets.contracts.columns import IDENTIFIER
from platform_assets.engine.catalogue import Mistake, advice, load_catalogue, mistakes_in
from platform_assets.engine.user_code import function_mistakes, refuse_wrong_functions
from platform_assets.errors import PlatformError
from platform_assets.operations.table_tests.files import ENDING, test_files, tests_in
from platform_assets.project import (
    PROJECT_FILE,
    installation_root,
    project_folder,
    project_or_installed,
    read_settings_file,
)
from platform_assets.report import Note, Part, Points, Report, plain
from platform_assets.settings import Settings, load_settings
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.sources.inference import Proposal

_OF_DAGSTER = ("dagster.yaml", "workspace.yaml")
"""With them `dagster dev` in the project's folder shows what `up` does."""
_IN_A_SOURCE = re.compile(r"([A-Z][A-Z0-9_]*):([^/?]+)(?:\?(.*))?")
"""A variable with a URL, a table or topic there, and what else its source declares, as in the query of a URL."""
_MOST_LETTERS = 30
"""Limit of a domain's name, so that table names made from it stay valid."""


def init(
    domain: Annotated[str, typer.Argument(help="Name of the domain, and of its package.")],
    more: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="More files of --from, as a shell lists them.")
    ] = None,
    into: Annotated[Path, typer.Option("--into", help="Folder in which the project's folder is made.")] = Path(),
    sql: Annotated[bool, typer.Option("--sql", help="Queries instead of Python functions.")] = False,
    files: Annotated[
        list[Path] | None,
        typer.Option("--from", help="Files of one table, or a Delta table, repeatable; or VARIABLE:TABLE, …:TOPIC."),
    ] = None,
    dry_run: DryRun = False,
) -> Report:
    """Write a project with a domain of your own: settings, contracts, transforms, and tests.

    It has sample orders, or with `--from` the columns of your files, with every guess marked; or of a table of
    PostgreSQL or a topic of Kafka, as `SHOP_DATABASE_URL:public.orders`, where the variable has the URL. In an existing
    project it adds only the package.
    """
    if more and not files:
        raise UsageError(f"{more[0]} is one argument too many.", "Name files behind --from.")
    files = [*(files or ()), *(more or ())]
    home = into.expanduser().resolve()
    if not IDENTIFIER.fullmatch(domain) or len(domain) > _MOST_LETTERS or iskeyword(domain):
        name = f"at most {_MOST_LETTERS} lower-case letters, digits and underscores, beginning with a letter"
        raise UsageError(f"{domain!r} cannot name a domain.", f"Use {name}, and no word of Python's own.")
    project = project_folder(home)
    target = (project or home) / domain
    if target.exists() or target.is_symlink():
        raise UsageError(f"{target} is there already, and nothing is overwritten.", "Choose another name, or --into.")
    domains = _domains(project)
    used = {part for package in domains for part in package.split(".")}
    if domain in used or domain in sys.stdlib_module_names or find_spec(domain) is not None:
        raise UsageError(f"The name {domain!r} is in use: Python finds a module of that name.", "Choose another one.")
    found = _proposal(files, domain) if files else None
    written = dict(project_files(domain, found, ", ".join(file.name for file in files), sql=sql))
    parts: list[Part] = [] if found is None else [*_guesses(found, domain)]
    if dry_run:
        contracts = written[f"{domain}/contracts.py"]
        return Report([*parts, *contracts.splitlines()], {"contracts": contracts, "guesses": found and found.notes})
    home.mkdir(parents=True, exist_ok=True)
    # All at once: a half-written package would be taken for a person's work.
    with TemporaryDirectory(prefix=f".{domain}-", dir=target.parent) as folder:
        made = Path(folder) / domain
        for name, content in written.items():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).write_text(content, encoding="utf-8")
        for name in _OF_DAGSTER:
            shutil.copyfile(project_or_installed(name, installation_root()), made / name)
        (made / domain if project else made).rename(target)
    if project:
        steps = [f"  write domains = {json.dumps([*domains, domain])} in {project / PROJECT_FILE}"]
    else:
        steps = [f"  cd {shlex.quote(str(target))}    # platform.toml says there which platform it is: no variables"]
    if found and not project:
        first, last = found.days
        steps.append(f"  # platform.toml: the calendar is {first}..{last}, as in the files; for more set calendar_last")
    steps += _landing_steps(files or (), found, domain, is_new=project is None)
    steps += [
        "  platform-assets check                # contracts and transforms, before any row",
        "  platform-assets test                 # rows in, rows out; pytest runs the tests, too",
        "  platform-assets refresh",
        f"docs/{'sql-tables' if sql else 'first-table'}.md goes on from there; docs/contracts.md has every field.",
    ]
    data = {"written": target, "guesses": found and found.notes, "next": [line.strip() for line in steps]}
    return Report([*parts, Note("green", "written", str(target)), "Next:", *steps], data)


def _domains(project: Path | None) -> Sequence[str]:
    """Return the domains of the project that a package is added to, independent of the working directory."""
    given = read_settings_file(project / PROJECT_FILE).get("domains") if project else None
    return given if isinstance(given, list) else load_settings().domains


def _proposal(files: Sequence[Path], domain: str) -> Proposal:
    from platform_assets.sources.inference import propose

    if len(files) == 1 and (named := _IN_A_SOURCE.fullmatch(str(files[0]))):
        from platform_assets.sources.first_look import proposed

        with telling("looking at the source"):
            return proposed(*named.groups(default=""), folder=domain)
    with telling("looking at the files"):
        return propose([file.expanduser() for file in files], domain)


def _guesses(found: Proposal, domain: str) -> Iterator[Part]:
    first, last = found.days
    yield f"{counted(found.rows, 'row')} of {first} to {last}; written into {domain}/contracts.py, for you to decide:"
    lines = {what: f"{what}={in_python(value)}" for what, value in found.chosen.items()}
    for what, (how, why) in sorted(found.notes.items(), key=lambda note: note[1][0]):
        yield Note("yellow" if how == "guess" else "green", how, f"{lines.get(what, what)}: {why}")


def _landing_steps(files: Sequence[Path], found: Proposal | None, domain: str, *, is_new: bool) -> Iterator[str]:
    if found and found.chosen["source"].is_read:
        return
    if found is None:
        yield from [f"  mkdir -p landing && cp -r {domain}/sample/deliveries/. landing/"] if is_new else []
        return
    folder = f"{'landing' if is_new else '<landing>'}/{domain}/{found.days[1]}"
    yield f"  mkdir -p {folder}    # <folder of the source>/<day on which the file arrived>"
    for path in (file.expanduser().resolve() for file in files):
        yield f"  {'# write as Parquet:' if path.is_dir() else 'cp'} {shlex.quote(str(path))} {folder}/"


def check(
    tables: Annotated[list[str] | None, typer.Argument(help="These tables and their inputs; all by default.")] = None,
    sources: Annotated[
        bool, typer.Option("--sources", help="Compare raw tables with what their sources send now instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check contracts and transforms of all domains without reading rows; exit code 3 with a list of all mistakes.

    With --sources it looks at the newest file of each raw table, or a sample of what it reads, and shows how columns
    differ from the contract; exit code 1 if any do.
    """
    settings = load_settings()
    if sources:
        show(_sources_report(settings, tables or ()), as_json)
        return
    try:
        catalogue = load_catalogue(settings)
    except PlatformError as error:
        later = ["Functions and expressions can be looked at once this is mended."]
        show(_mistakes_report(mistakes_in(error, ", ".join(settings.domains)), (), more=later), as_json)
        raise typer.Exit(EXIT_FAILED) from error
    names = catalogue.with_inputs(declared_tables(catalogue, tables or ()))
    mistakes = list(function_mistakes(catalogue, names))
    try:
        mistakes += _analysis(settings, catalogue, names, mistakes)
    except PlatformError:
        show(_mistakes_report(mistakes, names), as_json)
        raise
    right = Note("green", "Nothing is wrong", f"with {counted(len(names), 'table')}: {', '.join(names)}.")
    advised = list(advice(catalogue, names))
    show(_mistakes_report(mistakes, names, advised, [] if mistakes else [right]), as_json)
    if mistakes:
        raise typer.Exit(EXIT_FAILED)


def _sources_report(settings: Settings, tables: Sequence[str]) -> Report:
    from platform_assets.operations.source_check import check_source

    catalogue = load_catalogue(settings)
    raw = [catalogue[name] for name in declared_tables(catalogue, tables) if catalogue[name].source]
    with telling("looking at sources"):
        found = [check_source(settings, contract) for contract in raw]
    parts: list[Part] = []
    for each in found:
        if not each.looked_at:
            parts.append(Note("", "nothing there", f"to compare {each.table} with"))
        elif not each.wrong and not each.drift:
            parts.append(Note("green", "as declared", f"{each.table}: {each.looked_at}"))
        parts += [Note("yellow", "drift", f"{each.table}: {note}, in {each.looked_at}") for note in each.drift]
        parts += [Note("red", "wrong", f"{each.table}: {each.looked_at} {each.wrong}")] if each.wrong else []
        parts += [f"  to declare: {in_python(column)}" for column in each.proposed]
    data = [plain(each) | {"proposed": [in_python(column) for column in each.proposed]} for each in found]
    return Report(parts, {"sources": data}, any(each.wrong or each.drift for each in found))


def _analysis(
    settings: Settings, catalogue: Catalogue, names: Collection[str], mistakes: Sequence[Mistake]
) -> list[Mistake]:
    """Return the mistakes that Spark's analyser finds; only this check starts Spark."""
    tables = {mistake.table for mistake in mistakes}
    packages = {mistake.package for mistake in mistakes if mistake.table is None}
    without = [name for name in names if name in tables or catalogue.domain_of(name).transforms in packages]
    with computing(settings, "check", brief=True, at_once=True) as (spark, _):
        from platform_assets.engine.step.analysis import analysis_mistakes  # while Java starts

        return list(analysis_mistakes(catalogue, names, spark(), without))


def _mistakes_report(
    mistakes: Iterable[Mistake], names: Sequence[str], advised: Sequence[Mistake] = (), more: Sequence[Part] = ()
) -> Report:
    mistakes = list(dict.fromkeys(mistakes))
    parts: list[Part] = [Note("bold red", "wrong", *_mistake_shown(one)) for one in mistakes]
    parts += [Note("yellow", "look", *_mistake_shown(one)) for one in advised]
    if mistakes:
        parts.append(f"{counted(len(mistakes), 'mistake')} in all.")
    data = {"mistakes": [one.json() for one in mistakes], "advice": [one.json() for one in advised]}
    return Report([*parts, *more], data | {"tables": names})


def _mistake_shown(mistake: Mistake) -> tuple[str, str]:
    where = " ".join(part for part in (mistake.table or mistake.package, mistake.field) if part)
    return f"{where}: {mistake.what}", mistake.todo


TEMPLATE = Path(__file__).parents[1] / "template"
_FOUND = Path(__file__).parents[1] / "template_found"
"""What takes the place of the template's orders for files that were looked at."""
_ENDING = ".txt"
"""Ending of files in the templates, so that they are no modules."""
_OF_PYTHON, _OF_SQL = ("silver.py", "gold.py"), ".sql"
"""What they have of either language alone."""
_NAME = re.compile(r"(?<![a-z@])example(?![a-z])")
"""The placeholder for the domain; not the one in an address at example.com."""
_OF_ORDERS = re.compile(r"example/(contracts|sample|tests|transforms/(silver|gold))")
_CALENDAR = ("2024-03-01", "2024-03-05")
_WINDOW_DAYS = 90
"""That a contract takes unasked by default."""


def project_files(domain: str, found: Proposal | None, origin: str, *, sql: bool) -> Iterator[tuple[str, str]]:
    """Yield the files of a new project by path: with sample orders, or as proposed for your files.

    Args:
        domain: its name; in proposals also the name of its tables.
        origin: the names of the files.
        sql: whether tables are queries.
    """
    values = _values(found, domain, origin) if found else {}
    for source in sorted(path for path in (*TEMPLATE.rglob("*"), *_FOUND.rglob("*")) if path.is_file()):
        is_found = source.is_relative_to(_FOUND)
        name = str(source.relative_to(_FOUND if is_found else TEMPLATE)).removesuffix(_ENDING)
        if name.endswith(_OF_PYTHON if sql else _OF_SQL):
            continue
        text = source.read_text(encoding="utf-8")
        if is_found and found:
            yield f"{domain}/{name.replace('NAME', domain)}", Template(text).substitute(values)
        elif not is_found and not (found and _OF_ORDERS.match(name)):
            for day, other in zip(_CALENDAR, found.days if found else (), strict=False):
                text = text.replace(day, str(other))
            yield _NAME.sub(domain, name), _NAME.sub(domain, text)


def _values(found: Proposal, domain: str, origin: str) -> dict[str, str]:
    """Return the values of the template's placeholders."""
    summed = [
        Column(column.name, f"decimal(28,{column.digits[1]})", f"Sum of {column.name}.")
        for column in found.columns
        if column.digits and column.additive and column.name != "row_count"
    ]
    total: dict[str, str | None] = {"row_count": str(len(found.typed))}
    for name in (column.name for column in summed):
        values = [Decimal(value) for row in found.typed if (value := row[name]) is not None]
        total[name] = str(sum(values)) if values else None
    back = (found.days[1] - found.days[0]).days
    # Else the first rows of a file with all history would wait in the late queue.
    window = {"restatement_window_days": back + _WINDOW_DAYS} if back > _WINDOW_DAYS else {}
    source = found.chosen["source"]
    module, kind = type(source).__module__, type(source).__name__
    own = {"PostgresTable": "READING", "KafkaTopic": "RECORD"}.get(kind, "")
    stated = {what: value for what, value in found.chosen.items() if value is not None} | window
    keys = [{name: row[name] for name in found.chosen["key"]} for row in found.typed]
    return {
        "name": domain,
        "origin": origin,
        "rows": f"{found.rows:,}",
        "csv": ", Csv" if source.csv else "",
        "files": "" if own else "LandingFiles, ",
        "read": f"\nfrom {module} import {own}, {kind}" if own else "",
        "columns": _declared({column.name: in_python(column) for column in found.columns}, found.notes)
        + (f"\n    *{own}," if own else ""),
        "fields": _declared({what: f"{what}={in_python(value)}" for what, value in stated.items()}, found.notes),
        "key": in_python(found.chosen["key"]),
        "sums": "".join(f"\n        {in_python(column)}," for column in summed),
        "python_sums": "".join(f'\n        F.sum("{c.name}").cast("{c.type}").alias("{c.name}"),' for c in summed),
        "sql_sums": "".join(f",\n    CAST(sum(`{c.name}`) AS {c.type}) AS `{c.name}`" for c in summed),
        "day": str(found.day),
        "given": _yaml(found.given),
        "keys": _yaml(keys),
        "typed": _yaml(found.typed),
        "summed": _yaml([total]),
    }


def _declared(parts: Mapping[str, str], notes: Mapping[str, tuple[str, str]]) -> str:
    """Return declarations, each on its own line below the evidence for it."""
    lines = ((f"    # {': '.join(notes[name])}\n" if name in notes else "") + f"    {parts[name]}," for name in parts)
    return "\n".join(lines)


def _yaml(rows: Iterable[Mapping[str, str | None]]) -> str:
    return "\n".join(f"      - {json.dumps(row, ensure_ascii=False)}" for row in rows)


def in_python(value: Any) -> str:
    """Return a declaration as Python source, without default values."""
    if isinstance(value, tuple):
        return f"({', '.join(map(in_python, value))}{',' if len(value) == 1 else ''})"
    if not is_dataclass(value):
        return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
    parts = []
    for each in fields(value):
        here = getattr(value, each.name)
        is_first = each.name in ("name", "type", "description", "folder")
        if is_first or here != each.default:
            parts.append(in_python(here) if is_first else f"{each.name}={in_python(here)}")
    return f"{type(value).__name__}({', '.join(parts)})"


def test(
    tables: Annotated[list[str] | None, typer.Argument(help="Tables or selectors; all by default.")] = None,  # noqa: PT028
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
