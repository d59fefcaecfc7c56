"""`diff` of releases, stages, backfills, tables and engines; `admin verify`, which computes days again to compare."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.changes_view import columns_parts, comparison_json
from platform_assets.cli.commands.read import column_names
from platform_assets.cli.console import (
    UsageError,
    opened_platform,
    parse_days,
    platform_to_look,
    selected,
    selected_tables,
    write_page,
)
from platform_assets.cli.options import Days, Limit, call_with, decided_by, only_one
from platform_assets.cli.session import computing
from platform_assets.contracts.checks import Tolerance
from platform_assets.contracts.table import LAYERS
from platform_assets.engine.admissions import admissions, engine_of, why_not_admitted, why_spark
from platform_assets.lakehouse.errors import UnknownReleaseError
from platform_assets.operations.pins import release_number
from platform_assets.operations.plan_record import backfill_names
from platform_assets.operations.stages.store import stage_names
from platform_assets.planning.selection import Draw, is_selector
from platform_assets.quality.sides import SidesBeside, difference, facts, key_sentence
from platform_assets.report import Cell, Heading, Mark, Note, Part, Points, Report, Table, page, picked
from platform_assets.settings import Settings, load_settings
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.verify import EnginesBeside, EngineVerified, TableVerified, Verdict

_ENGINES = ["spark", "sail"]
_BACKFILL, _STAGE = "backfill:", "stage:"
_WHAT = (
    "Releases, by number, pin or publication; a stage; a backfill, by name or file; spark sail; or two of gold.sales, "
    "gold.sales@RELEASE, gold.sales@stage:NAME, and folders or files. Then, but for these, tables."
)


def diff(
    what: Annotated[list[str], typer.Argument(metavar="A [B] [TABLE]", help=_WHAT)],
    days: Days = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="COLUMN,…", help="Tables: sums by these; event_date: of each day.")
    ] = None,
    tolerance: Annotated[str | None, typer.Option(help="Tables: what may differ, as `0.05, 0.1 %, 161 keys`.")] = None,
    drill: Annotated[bool, typer.Option("--drill", help="Tables: name the keys that differ.")] = False,
    html: Annotated[Path | None, typer.Option(help="Tables: also write a page to keep there.")] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, max=1000, help="The file of a backfill: days to compute; 3 by default.")
    ] = None,
    examples: Annotated[
        int | None, typer.Option(min=0, max=1000, help="A backfill, engines: keys to show of each way to differ.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="A backfill: for a pull request.")] = False,
    limit: Limit = None,
) -> Report:
    """Show what differs from A to B; releases, stages and backfills are compared with the current release by default.

    Exit code 1 if the days of a backfill or of two engines differ, or two tables by more than the tolerance.
    """
    from platform_assets.cli.commands.backfill import backfill_diff
    from platform_assets.cli.commands.diff import engines_diff, sides_diff
    from platform_assets.cli.commands.release import releases_diff, stage_diff

    given: dict[str, Any] = {
        "days": days,
        "by": by,
        "tolerance": tolerance,
        "drill": drill,
        "html": html,
        "sample": sample,
    }
    given |= {"examples": examples, "markdown": markdown, "limit": limit}
    first, *others = what
    if what[:2] == _ENGINES:
        return call_with("diff spark sail", engines_diff, given | {"names": what[2:]})
    if _is_side(first):
        if len(others) != 1:
            raise UsageError("Two sides are compared.", "Name both, as `diff gold.daily_sales gold.daily_sales@12`.")
        return call_with("diff TABLE TABLE", sides_diff, given | {"left": first, "right": others[0]})
    kind = _kind_of(first)
    if kind == _BACKFILL:
        return call_with("diff BACKFILL", backfill_diff, given | {"plan": first.removeprefix(kind), "names": others})
    if kind == _STAGE:
        return call_with("diff STAGE", stage_diff, given | {"name": first.removeprefix(kind), "names": others})
    after = others[:1] if others and not (is_selector(others[0]) or _is_side(others[0])) else []
    given |= {"before": first, "after": next(iter(after), None), "names": others[len(after) :]}
    return call_with("diff RELEASE", releases_diff, given)


def _is_side(text: str) -> bool:
    if text.startswith((_STAGE, _BACKFILL)) or _is_file(text):
        return False
    layer, dot, _ = text.partition(".")
    return (bool(dot) and layer in LAYERS) or bool({"@", "/"} & set(text)) or Path(text).suffix in (".csv", ".parquet")


def _is_file(text: str) -> bool:
    return Path(text).suffix in (".yaml", ".yml")


def _kind_of(text: str) -> str:
    """Return whether a word names a backfill or a stage; empty for a release."""
    if _is_file(text):
        return _BACKFILL
    for kind in (_BACKFILL, _STAGE):
        if text.startswith(kind):
            return kind
    with opened_platform() as platform:
        try:
            release_number(platform.ledger, text)
        except UnknownReleaseError:
            if text in stage_names(platform.lake):
                return _STAGE
            if text in backfill_names(platform.lake):
                return _BACKFILL
            raise
    return ""


_DRAWN, _DRAWN_BESIDE = 3, 5
BACKFILL = "backfill:"
Seed = Annotated[int | None, typer.Option(help="Seed of the sample; another one every day by default.")]
_VERDICTS: tuple[Verdict, ...] = ("equal", "different", "not verifiable")


def verify(
    tables: Annotated[
        list[str] | None, typer.Argument(metavar="TABLE", help="All by default; or backfill:NAME, all its days.")
    ] = None,
    days: Days = None,
    sample: Annotated[
        int | None,
        typer.Option(min=0, help=f"Days to draw besides the newest; {_DRAWN} by default, {_DRAWN_BESIDE} to admit."),
    ] = None,
    seed: Seed = None,
    keys: Annotated[bool, typer.Option("--keys", help="Name keys of silver that are on two days instead.")] = False,
    admit: Annotated[bool, typer.Option("--admit", help="On Sail, too; a table that is alike is admitted.")] = False,
) -> Report:
    """Recompute published days from their original inputs; exit code 1 if one differs."""
    settings, names = load_settings(), tables or []
    given = {"days": days, "sample": sample, "seed": seed}
    if keys:
        return call_with("admin verify --keys", _look_at_keys, {**given, "names": names})
    if admit:
        return call_with("admin verify --admit", _admit, {**given, "names": names})
    if names and names[0].startswith(BACKFILL):
        from platform_assets.cli.commands.backfill import replay

        named = only_one("admin verify", names).removeprefix(BACKFILL)
        return call_with("admin verify backfill:NAME", replay, {**given, "name": named})
    draw = _draw(days, sample, seed, _DRAWN, settings)
    return _verified(_verify_days(settings, names, days, draw), draw)


def _verified(tables: Sequence[TableVerified], draw: Draw | None) -> Report:
    seed = draw.seed if draw else None
    data = {"seed": seed, "tables": [_json(verified) for verified in tables]}
    return Report(_parts(tables, seed), data, any(verified.of("different") for verified in tables))


def _draw(days: str | None, sample: int | None, seed: int | None, by_default: int, settings: Settings) -> Draw | None:
    """Return how unnamed days are sampled: `by_default` of them, other ones every day."""
    if days is None:
        by = settings.current_day().toordinal() if seed is None else seed
        return Draw(by_default if sample is None else sample, by)
    if sample is not None or seed is not None:
        raise UsageError("Days are either named or drawn.", "Leave out --days, or --sample and --seed.")
    return None


def _look_at_keys(names: Sequence[str] = ()) -> Report:
    from platform_assets.engine.moves import keys_on_two_days

    with opened_platform() as platform:
        found = keys_on_two_days(platform, sorted(selected_tables(platform, names)) or platform.catalogue.names)
    parts = []
    for name, repeated in found.items():
        keys = "; ".join([name, *map(str, repeated)])
        parts.append(Note("red", "counted twice", keys) if repeated else Note("green", "once", keys))
    data = {"tables": {name: [one._asdict() for one in repeated] for name, repeated in found.items()}}
    nothing = ["Here is no silver table whose records can move between days."]
    return Report(parts or nothing, data, any(found.values()))


def _verify_days(
    settings: Settings, names: Sequence[str], days: str | None, draw: Draw | None
) -> Sequence[TableVerified]:
    from platform_assets.lakehouse.staging_folders import private_folder
    from platform_assets.operations.verify import verify as verify_days

    with _ended_by_a_signal(), opened_platform(settings) as platform:
        only = selected(platform, names, days)
        # The session inside of the folder: no process writes there any more when it is removed.
        with private_folder(platform.lake) as folder, computing(settings, "verify") as (spark, progress):
            return verify_days(platform, spark, only, folder, progress, draw)


@contextmanager
def _ended_by_a_signal() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C: computed files are removed first."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _parts(tables: Sequence[TableVerified], seed: int | None) -> Iterator[Part]:
    rows: list[Sequence[Cell]] = []
    for verified in tables:
        counts = [f"{len(verified.of(verdict)):,}" for verdict in _VERDICTS]
        different: Cell = counts[1] if counts[1] == "0" else Mark(counts[1], "red")
        rows.append((verified.table, f"{len(verified.days):,}", counts[0], different, counts[2]))
    names = ("table", "days", *_VERDICTS)
    yield Table("Computed again and compared", names, rows, right=names[1:], whole=names)
    for verified in tables:
        yield from _differing_parts(verified)
    if seed is not None:
        yield f"Drawn by --seed {seed}."


def _differing_parts(verified: TableVerified) -> Iterator[Part]:
    """Show each day that differs, and one unverifiable day for each reason."""
    for day in verified.of("different"):
        yield Note("red", "different", f"{verified.table} {day.day}: {day.reason}")
        yield Note("", "  published", f"{counted(day.expected.rows, 'row')}, digest {day.expected}")
        if day.actual is not None:
            yield Note("", "  found    ", f"{counted(day.actual.rows, 'row')}, digest {day.actual}")
        yield from (f"    {example}" for example in day.examples)
    by_reason: dict[str, list[date]] = {}
    for day in verified.of("not verifiable"):
        by_reason.setdefault(day.reason, []).append(day.day)
    for reason, days in by_reason.items():
        more = f" and {counted(len(days) - 1, 'more day')}" if len(days) > 1 else ""
        yield Note("yellow", "not verifiable", f"{verified.table} {days[0]}{more}: {reason}")


def _json(verified: TableVerified) -> dict[str, Any]:
    counts = {verdict.replace(" ", "_"): len(verified.of(verdict)) for verdict in _VERDICTS}
    return {
        "table": verified.table,
        **counts,
        "days": [
            picked(day, "day verdict reason examples", expected=str(day.expected), found=day.actual and str(day.actual))
            for day in verified.days
        ],
    }


def sides_diff(
    left: str,
    right: str,
    days: str | None = None,
    by: str | None = None,
    tolerance: str = "",
    limit: int = 20,
    html: Path | None = None,
    *,
    drill: bool = False,
) -> Report:
    """Compare two sides: columns and rows, the content of each day, and with --drill the keys that differ.

    Exit code 1 if they differ by more than the tolerance.
    """
    from platform_assets.operations.reconcile import reconcile as compare

    allowed = Tolerance.parse(tolerance)
    with opened_platform() as platform:
        chosen = None if days is None else parse_days(days, platform.settings)
        with computing(platform.settings, "comparing") as (spark, progress):
            sides, columns = (left, right), column_names(by) or None
            found = compare(
                platform, spark, sides, chosen, columns, allowed, drill=drill, most=limit, progress=progress
            )
    own = {"agree": found.agree, "tolerance": str(found.tolerance), "sums": found.sums}
    if html is not None:
        title = f"Reconciled: {' and '.join(found.names)} {'agree' if found.agree else 'differ'}"
        write_page(html, page(title, [Heading(title, 1), *_sides_parts(found, None)]))
    return Report(_sides_parts(found, limit), asdict(found) | own, not found.agree)


def _sides_parts(found: SidesBeside, limit: int | None) -> Iterator[Part]:
    yield Points([*facts(found)])
    if found.differing:
        numbers = ("left", "right", "difference")
        rows = []
        for day in found.differing[:limit]:
            for name, pair in day.figures.items():
                shown = ("none" if one is None else f"{one:,}" for one in pair)
                rows.append((str(day.day), day.outcome, name, *shown, difference(*pair) or ""))
        yield Table("Days that differ", ("day", "", "figure", *numbers), rows, numbers, ("day", "figure"))
        if limit and len(found.differing) > limit:
            yield f"and {counted(len(found.differing) - limit, 'more day')}: --limit"
        if limit and found.counts is None:
            yield "--drill names the keys that differ."
    if found.keys:
        yield Points([key_sentence(key) for key in found.keys], quoted=True)


def engines() -> Report:
    """Show which engine computes each table, and why."""
    with platform_to_look() as platform:
        known = admissions(platform)
        shown = [
            {
                "table": contract.name,
                "engine": engine_of(platform, contract),
                "why": why_spark(platform, contract),
                "admitted": not (why_not := why_not_admitted(platform, contract.name)),
                "not_admitted": why_not,
                "days": len(known[contract.name].days) if contract.name in known else 0,
            }
            for contract in platform.catalogue
            if contract.inputs
        ]
    rows = []
    for row in shown:
        admitted = "; admitted to Sail" if row["why"] and row["admitted"] else ""
        why = f"{row['why'] or 'admitted'}{admitted}"
        rows.append((str(row["table"]), str(row["engine"]), f"{row['days']:,}", why))
    names = ("table", "engine", "days compared", "why")
    return Report([Table("Engines", names, rows, ("days compared",), ("table",))], {"tables": shown})


def _admit(
    names: Sequence[str] = (), days: str | None = None, sample: int | None = None, seed: int | None = None
) -> Report:
    """Compute published days on Spark and on Sail; admit the table to Sail if all equal the published days.

    The admission holds for this code version and contract. It needs a look if the table is not admitted.
    """
    table = only_one("admin verify --admit", names)
    if not table:
        raise UsageError("--admit is about one table.", "Name it, as `admin verify gold.daily_sales --admit`.")
    from platform_assets.lakehouse.staging_folders import private_folder
    from platform_assets.operations.verify import verify_engine

    draw = _draw(days, sample, seed, _DRAWN_BESIDE, load_settings())
    with opened_platform() as platform:
        named = None if days is None else parse_days(days, platform.settings)
        author = decided_by("verify --admit", None)
        with (
            private_folder(platform.lake) as folder,
            computing(platform.settings, "verify") as (spark, progress),
        ):
            found = verify_engine(platform, spark, table, named, draw, folder, author, progress)
    admission = found.admission
    data = picked(found, "table", admitted=not admission.refused, why_not=admission.refused)
    data |= picked(admission, "days rows") | {
        "engines": {
            name: [
                {"table": one.table} | {verdict: [day.day for day in one.of(verdict)] for verdict in _VERDICTS}
                for one in tables
            ]
            for name, tables in found.by_engine.items()
        }
    }
    return Report(_verified_parts(found), data, bool(admission.refused))


def engines_diff(names: Sequence[str] = (), days: str | None = None, examples: int = 5) -> Report:
    """Compute days on both engines and show differences by column and key; nothing is published.

    A table that differs is no longer admitted to Sail. It needs a look if anything differs.
    """
    table = only_one("diff spark sail", names)
    if not table:
        raise UsageError("Say which table both are to compute.", "Name it, as `diff spark sail gold.daily_sales`.")
    from platform_assets.operations.verify import compare_engines

    if days is None:
        raise UsageError("Say which days are to be computed.", "Add --days 2017-03-31, or A..B.")
    with opened_platform() as platform:
        wanted = parse_days(days, platform.settings)
        with computing(platform.settings, "comparing") as (spark, progress):
            found = compare_engines(platform, spark, table, wanted, examples, progress)
    data = picked(
        found,
        "table differing quarantines columns examples",
        equal=not found.differing,
        days=[comparison_json(day) for day in found.days],
        taken_off=found.was_admitted,
    )
    return Report(_beside_parts(found), data, bool(found.differing))


def _verified_parts(found: EngineVerified) -> Iterator[Part]:
    for name, tables in found.by_engine.items():
        for verified in tables:
            counts = ", ".join(f"{len(verified.of(verdict)):,} {verdict}" for verdict in _VERDICTS)
            yield Note("", name.capitalize(), f"{verified.table}: {counts}")
            yield from _differing_parts(verified)
    if why := found.admission.refused:
        yield Note("yellow", "not admitted", f"{found.table} is computed by Spark: {why}.")
    else:
        days = counted(len(found.admission.days), "day")
        rows = counted(found.admission.rows, "row")
        yield Note("green", "admitted", f"{found.table}: {days}, {rows}, alike on both engines.")


def _beside_parts(found: EnginesBeside) -> Iterator[Part]:
    days = counted(len(found.days), "day")
    if not found.differing:
        yield f"Before is Spark, after is Sail: {days} of {found.table} alike."
        return
    yield f"Before is Spark, after is Sail: {len(found.differing):,} of {days} of {found.table} differ."
    yield from columns_parts(found.table, found.columns, found.examples)
    if found.quarantines:
        days = counted(len(found.quarantines), "day")
        kept = f"rows that break a rule are kept otherwise on {days}, first {found.quarantines[0]}."
        yield Note("", "quarantine", kept)
    if found.was_admitted:
        yield Note("yellow", "taken off", f"{found.table} is computed by Spark from now on.")
