"""`releases`: what was published, newest first."""

from __future__ import annotations

from typing import Annotated

import typer

from platform_assets.cli.commands.release_view import pin_json, publication_json
from platform_assets.cli.console import console, escape, platform_to_look, print_json
from platform_assets.cli.grids import Entries
from platform_assets.cli.options import AsJson
from platform_assets.operations.pins import Pin, described, pinned_releases
from platform_assets.records.history import PublicationRecord
from platform_assets.words import counted


def releases(
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 20,
    pinned: Annotated[bool, typer.Option("--pinned", help="Only releases that are pinned.")] = False,
    as_json: AsJson = False,
) -> None:
    """List what was published: release, when, what of which tables, by whom and why, and who pinned it."""
    with platform_to_look() as platform:
        pins = pinned_releases(platform, as_far_as_readable=True)
        names = [name for name, number in platform.ledger.indexed().items() if number in pins or not pinned]
        shown = [record for name in names[: -limit - 1 : -1] if (record := platform.ledger.publication(name))]
    if as_json:
        print_json([_json(record, pins.get(record.release)) for record in shown])
        return
    if not shown:
        console.print("No release is pinned." if pinned else "Nothing was published yet.")
        return
    entries = Entries()
    for record in shown:
        days = ", ".join(f"{table} {counted(count, 'day')}" for table, count in _days(record).items())
        said = f"{record.created_at:%Y-%m-%d %H:%M:%S}  {record.what} by {record.who}: {record.why}"
        entries.add(
            str(record.release),
            escape(said) + ("  [yellow]pinned[/]" if record.release in pins else ""),
            escape(days or "no days"),
            f"[dim]publication {escape(record.publication)}, run {escape(record.run)}[/]",
        )
    console.print(entries)
    for pin in pins.values():
        console.print(f"Release {pin.release} is {described(pin)}", markup=False, highlight=False, soft_wrap=True)
    if len(names) > len(shown):
        console.print(f"{len(names) - len(shown):,} older ones: --limit {len(names)}", highlight=False, soft_wrap=True)


def _days(record: PublicationRecord) -> dict[str, int]:
    counts: dict[str, int] = {}
    for day in record.days:
        counts[day.table] = counts.get(day.table, 0) + 1
    return counts


def _json(record: PublicationRecord, pin: Pin | None) -> dict[str, object]:
    return publication_json(record) | {"days": _days(record), "pin": pin_json(pin) if pin else None}
