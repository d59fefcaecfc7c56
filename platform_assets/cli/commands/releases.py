"""`releases`: what was published, newest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

import typer

from platform_assets.cli.commands.release import pin_json, publication_json
from platform_assets.cli.console import platform_to_look
from platform_assets.operations.pins import described, pinned_releases
from platform_assets.records.history import PublicationRecord
from platform_assets.report import Facts, Part, Report
from platform_assets.words import counted


def releases(
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 20,
    pinned: Annotated[bool, typer.Option("--pinned", help="Only releases that are pinned.")] = False,
) -> Report:
    """List what was published: release, when, what of which tables, by whom and why, and who pinned it."""
    with platform_to_look() as platform:
        pins = pinned_releases(platform, as_far_as_readable=True)
        names = [name for name, number in platform.ledger.indexed().items() if number in pins or not pinned]
        shown = [record for name in names[: -limit - 1 : -1] if (record := platform.ledger.publication(name))]
    data = [
        publication_json(record)
        | {"days": _days(record), "pin": pin_json(pin) if (pin := pins.get(record.release)) else None}
        for record in shown
    ]
    nothing = "No release is pinned." if pinned else "Nothing was published yet."

    def parts() -> Iterator[Part]:
        entries = []
        for record in shown:
            mark = "  pinned" if record.release in pins else ""
            what = f"{record.created_at:%Y-%m-%d %H:%M:%S}  {record.what} by {record.who}: {record.why}{mark}"
            days = ", ".join(f"{table} {counted(count, 'day')}" for table, count in _days(record).items())
            by = f"publication {record.publication}, run {record.run}"
            entries.append((str(record.release), (what, days or "no days", by)))
        yield Facts(entries, right=True)
        yield from (f"Release {pin.release} is {described(pin)}" for pin in pins.values())
        if len(names) > len(shown):
            yield f"{len(names) - len(shown):,} older ones: --limit {len(names)}"

    return Report(parts() if shown else [nothing], data)


def _days(record: PublicationRecord) -> dict[str, int]:
    return dict(Counter(day.table for day in record.days))
