"""How held days look: what holds them, what readers see instead, and the commands that take out what came since."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from platform_assets.cli.console import console, say
from platform_assets.planning.windows import ranges
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.lineage.held_days import HeldDay

_SHOWN = 5
"""Ranges of days that are named."""


def print_held(held: Iterable[HeldDay], *, of: str | None = None) -> None:
    """A red line for each held day, and below it what may be to blame.

    Args:
        of: the table that was asked about: a day of another one holds it from there.
    """
    from platform_assets.operations.lineage.held_days import together, withdrawals

    shown = tuple(held)
    for days in together(shown):
        first = days[0].hold
        through = "held through" if of not in (None, first.table) else "held"
        say(f"[red]{through}[/]", _line(days))
        # What is new on days that are only tied to another is not what holds them; it is named where that one is.
        commands = () if len(days) > 1 and days[0].is_tied else withdrawals(days)
        if commands:
            console.print("  New since then; what should not have come is taken out with", highlight=False)
            for command in commands:
                console.print(f"  {command}", markup=False, highlight=False, soft_wrap=True)
    if shown:
        one = shown[0].hold
        again = f"{one.table} --days {one.day}" if len(shown) == 1 else "TABLE --days DAY"
        console.print(
            f"A held day is tried again once its input or code changes; `platform-assets refresh {again} --force` does "
            "at once. docs/on-call.md says what to do.",
            highlight=False,
            soft_wrap=True,
        )


def _line(days: Sequence[HeldDay]) -> str:
    first = days[0]
    if len(days) == 1:
        return f"{first.hold.table} {first.hold.day} {first.sentence}"
    spans = [f"{a}" if a == b else f"{a}..{b}" for a, b in ranges([day.hold.day for day in days])]
    more = f" and {len(spans) - _SHOWN:,} more ranges" if len(spans) > _SHOWN else ""
    named = f"{first.hold.table}, {counted(len(days), 'day')}: {','.join(spans[:_SHOWN])}{more}"
    return f"{named}; each for the like of {first.hold.day}, {first.sentence}"


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
