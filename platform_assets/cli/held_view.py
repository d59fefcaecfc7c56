"""How held days look: what holds them, what readers see instead, and the commands that take out what came since."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from platform_assets.cli.console import console, say

if TYPE_CHECKING:
    from platform_assets.operations.lineage.held_days import HeldDay


def print_held(held: Iterable[HeldDay], *, of: str | None = None) -> None:
    """A red line for each held day, and below it what may be to blame.

    Args:
        of: the table that was asked about: a day of another one holds it from there.
    """
    shown = tuple(held)
    for day in shown:
        through = "held through" if of not in (None, day.hold.table) else "held"
        say(f"[red]{through}[/]", f"{day.hold.table} {day.hold.day} {day.sentence}")
        if day.withdrawals:
            console.print("  New since then; what should not have come is taken out with", highlight=False)
            for command in day.withdrawals:
                console.print(f"  {command}", markup=False, highlight=False, soft_wrap=True, emoji=False)
    if shown:
        one = shown[0].hold
        again = f"{one.table} --days {one.day}" if len(shown) == 1 else "TABLE --days DAY"
        console.print(
            f"A held day is tried again once its input or code changes; `platform-assets refresh {again} --force` does "
            "at once. docs/on-call.md says what to do.",
            highlight=False,
            soft_wrap=True,
        )


def held_json(day: HeldDay) -> dict[str, Any]:
    """A held day for programs."""
    return {
        "table": day.hold.table,
        "day": day.hold.day,
        "gate": day.hold.gate,
        "reason": day.hold.reason,
        "since": day.since,
        "readers_see": None
        if day.shown is None or day.shown_by is None
        else {"rows": day.shown.delivered, "release": day.shown_by.release, "published": day.shown_by.created_at},
        "new_arrivals": [arrival.path for arrival in day.arrivals],
    }
