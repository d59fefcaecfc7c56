"""`verify`: published days computed again from what they were made from, and compared."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.console import UsageError, opened_platform, selected
from platform_assets.cli.options import Days, drawn
from platform_assets.cli.session import computing
from platform_assets.lakehouse.staging_folders import private_folder
from platform_assets.planning.selection import Draw
from platform_assets.report import Cell, Mark, Note, Part, Report, Table, picked
from platform_assets.settings import Settings, load_settings
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.verify import TableVerified, Verdict

_DRAWN = 3
_VERDICTS: tuple[Verdict, ...] = ("equal", "different", "not verifiable")


def verify(
    table: Annotated[str | None, typer.Argument(help="<layer>.<table>; every table by default.")] = None,
    days: Days = None,
    sample: Annotated[
        int | None, typer.Option(min=0, help=f"Days to draw besides the newest of each table; {_DRAWN} by default.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="What to draw by; another one every day by default.")] = None,
    keys: Annotated[bool, typer.Option("--keys", help="Name keys of silver that lie on two days instead.")] = False,
) -> Report:
    """Compute published days again from what they were made from; exit code 1 if one comes out otherwise."""
    settings = load_settings()
    if keys:
        if (days, sample, seed) != (None, None, None):
            raise UsageError("--keys looks at whole tables.", "Leave out --days, --sample and --seed.")
        return _look_at_keys(settings, table)
    draw = drawn(days, sample, seed, _DRAWN, settings)
    tables = _verified(settings, table, days, draw)
    seed = draw.seed if draw else None
    data = {"seed": seed, "tables": [_json(verified) for verified in tables]}
    return Report(_parts(tables, seed), data, any(verified.of("different") for verified in tables))


def _look_at_keys(settings: Settings, table: str | None) -> Report:
    from platform_assets.engine.step.repeated_keys import keys_on_two_days

    with opened_platform(settings) as platform:
        found = keys_on_two_days(platform, [table] if table else platform.catalogue.names)
    parts = []
    for name, repeated in found.items():
        keys = "; ".join([name, *map(str, repeated)])
        parts.append(Note("red", "counted twice", keys) if repeated else Note("green", "once", keys))
    data = {"tables": {name: [one._asdict() for one in repeated] for name, repeated in found.items()}}
    nothing = ["Here is no silver table whose records can move between days."]
    return Report(parts or nothing, data, any(found.values()))


def _verified(settings: Settings, table: str | None, days: str | None, draw: Draw | None) -> Sequence[TableVerified]:
    from platform_assets.operations.verify import verify as verify_days

    with _ended_by_a_signal(), opened_platform(settings) as platform:
        only = selected(None if table is None else platform.catalogue[table].name, days, settings)
        # The session inside of the folder: nobody writes there any more when it is removed.
        with private_folder(platform.lake) as folder, computing(settings, "verify") as (spark, progress):
            return verify_days(platform, spark, only, folder, progress, draw)


@contextmanager
def _ended_by_a_signal() -> Iterator[None]:
    """Treat being told to end like Ctrl-C: what was computed is removed first."""

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
    if seed is not None:
        yield f"Drawn by --seed {seed}."


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
