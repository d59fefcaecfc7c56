"""`releases`: what was published, newest first."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from platform_assets.cli.console import console, counted, print_json, reading
from platform_assets.cli.release_view import pin_json, publication_json
from platform_assets.engine.pins import Pin, described, pinned_releases
from platform_assets.ledger.records import PublicationRecord


def releases(
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 20,
    pinned: Annotated[bool, typer.Option("--pinned", help="Only releases that are pinned.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """List what was published: release, when, what of which tables, by whom and why, and who pinned it."""
    with reading() as platform:
        pins = pinned_releases(platform)
        names = [name for name, number in platform.ledger.indexed().items() if number in pins or not pinned]
        shown = [found for name in names[: -limit - 1 : -1] if (found := platform.ledger.publication(name))]
    if as_json:
        print_json([_json(one, pins.get(one.release)) for one in shown])
        return
    if not shown:
        console.print("No release is pinned." if pinned else "Nothing was published yet.")
        return
    grid = Table(title="Releases", title_justify="left")
    for heading in ("release", "publication", "when (UTC)", "kind", "days", "by", "run", "why"):
        grid.add_column(heading, justify="right" if heading == "release" else "left", overflow="fold")
    for one in shown:
        days = "\n".join(f"{table}: {counted(count, 'day')}" for table, count in _days(one).items())
        when = f"{one.created_at:%Y-%m-%d %H:%M:%S}"
        number = f"{one.release}\npinned" if one.release in pins else str(one.release)
        grid.add_row(number, one.publication, when, one.kind, days, one.who, one.run, one.why)
    console.print(grid, markup=False)
    for pin in pins.values():
        console.print(f"Release {pin.release} is {described(pin)}", markup=False, highlight=False, soft_wrap=True)
    if len(names) > len(shown):
        console.print(f"{len(names) - len(shown):,} older ones: --limit {len(names)}", highlight=False)


def _days(one: PublicationRecord) -> dict[str, int]:
    found: dict[str, int] = {}
    for day in one.days:
        found[day.table] = found.get(day.table, 0) + 1
    return found


def _json(one: PublicationRecord, pin: Pin | None) -> dict[str, object]:
    return publication_json(one) | {"days": _days(one), "pin": pin_json(pin) if pin else None}
