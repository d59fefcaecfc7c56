"""`verify`: published days computed again from what they were made from, and compared."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.console import EXIT_LOOK, UsageError, console, opened_platform, print_json, say, selected
from platform_assets.cli.grids import new_grid
from platform_assets.cli.options import AsJson, Days
from platform_assets.cli.progress import telling
from platform_assets.cli.session import session_on_demand
from platform_assets.lakehouse.staging_folders import private_folder
from platform_assets.planning.selection import Draw
from platform_assets.settings import Settings, load_settings
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.verify import TableVerified, Verified

_DRAWN = 3
"""Days drawn from each table besides its newest."""


def verify(
    context: typer.Context,
    table: Annotated[str | None, typer.Argument(help="<layer>.<table>; every table by default.")] = None,
    days: Days = None,
    sample: Annotated[
        int | None, typer.Option(min=0, help=f"Days to draw besides the newest of each table; {_DRAWN} by default.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="What to draw by; another one every day by default.")] = None,
    keys: Annotated[bool, typer.Option("--keys", help="Name keys of silver that lie on two days instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compute published days again from what they were made from; exit code 1 if one comes out otherwise."""
    settings = load_settings()
    if keys and (days, sample, seed) != (None, None, None):
        raise UsageError("--keys looks at whole tables.", "Leave out --days, --sample and --seed.")
    if keys:
        _look_at_keys(settings, table, as_json=as_json)
        return
    if days is not None and (sample is not None or seed is not None):
        raise UsageError("Days are either named or drawn.", "Leave out --days, or --sample and --seed.")
    draw = None
    if days is None:
        drawn_by = settings.current_day().toordinal() if seed is None else seed
        draw = Draw(_DRAWN if sample is None else sample, drawn_by)
    tables = _verified(context, settings, table, days, draw)
    if as_json:
        print_json({"seed": draw.seed if draw else None, "tables": [_as_json(verified) for verified in tables]})
    else:
        _print(tables, draw.seed if draw else None)
    if any(verified.of("different") for verified in tables):
        raise typer.Exit(EXIT_LOOK)


def _look_at_keys(settings: Settings, table: str | None, *, as_json: bool) -> None:
    from platform_assets.engine.step.repeated_keys import keys_on_two_days

    with opened_platform(settings) as platform:
        found = keys_on_two_days(platform, [table] if table else platform.catalogue.names)
    if as_json:
        print_json({"tables": {name: [one._asdict() for one in repeated] for name, repeated in found.items()}})
    elif not found:
        console.print("Here is no silver table whose records can move between days.")
    for name, repeated in found.items() if not as_json else ():
        say("[red]counted twice[/]" if repeated else "[green]once[/]", "; ".join([name, *map(str, repeated)]))
    if any(found.values()):
        raise typer.Exit(EXIT_LOOK)


def _verified(
    context: typer.Context, settings: Settings, table: str | None, days: str | None, draw: Draw | None
) -> Sequence[TableVerified]:
    from platform_assets.operations.verify import verify as verify_days

    with _ended_by_a_signal(), opened_platform(settings) as platform:
        only = selected(None if table is None else platform.catalogue[table].name, days, settings)
        # The session inside of the folder: nobody writes there any more when it is removed.
        with (
            private_folder(platform.lake) as folder,
            telling(context, "verify") as progress,
            session_on_demand(settings, progress) as spark,
        ):
            return verify_days(platform, spark, only, folder, progress, draw)


@contextmanager
def _ended_by_a_signal() -> Iterator[None]:
    """Being told to end is like Ctrl-C: what was computed is removed first."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _print(tables: Sequence[TableVerified], seed: int | None) -> None:
    names = ("table", "days", "equal", "different", "not verifiable")
    grid = new_grid("Computed again and compared", names, right=names[1:], whole=names)
    for verified in tables:
        different = len(verified.of("different"))
        grid.add_row(
            verified.table,
            f"{len(verified.days):,}",
            f"{len(verified.of('equal')):,}",
            f"[red]{different:,}[/]" if different else "0",
            f"{len(verified.of('not verifiable')):,}",
        )
    console.print(grid)
    for verified in tables:
        for day in verified.of("different"):
            _print_difference(verified.table, day)
        for reason, days in _reasons(verified).items():
            more = f" and {counted(len(days) - 1, 'more day')}" if len(days) > 1 else ""
            say("[yellow]not verifiable[/]", f"{verified.table} {days[0]}{more}: {reason}")
    if seed is not None:
        console.print(f"Drawn by --seed {seed}.")


def _print_difference(table: str, day: Verified) -> None:
    say("[red]different[/]", f"{table} {day.day}: {day.reason}")
    say("  published", f"{counted(day.expected.rows, 'row')}, digest {day.expected}")
    if day.actual is not None:
        say("  found    ", f"{counted(day.actual.rows, 'row')}, digest {day.actual}")
    for example in day.examples:
        say("   ", example)


def _reasons(verified: TableVerified) -> dict[str, list[date]]:
    """Days that cannot be verified, by the reason."""
    by_reason: dict[str, list[date]] = {}
    for day in verified.of("not verifiable"):
        by_reason.setdefault(day.reason, []).append(day.day)
    return by_reason


def _as_json(verified: TableVerified) -> dict[str, Any]:
    return {
        "table": verified.table,
        "equal": len(verified.of("equal")),
        "different": len(verified.of("different")),
        "not_verifiable": len(verified.of("not verifiable")),
        "days": [
            {
                "day": day.day,
                "verdict": day.verdict,
                "reason": day.reason,
                "expected": str(day.expected),
                "found": str(day.actual) if day.actual else None,
                "examples": day.examples,
            }
            for day in verified.days
        ],
    }
