"""How held days look: what holds them, what readers see instead, and the commands that take out what came since."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from platform_assets.cli.console import console, say
from platform_assets.planning.windows import as_named
from platform_assets.quality.findings import ACCEPTABLE
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.lineage.held_days import HeldDay

_SHOWN = 5
"""Ranges of days that are named."""

_IN_SHORT = 5
"""Lines of held days where there is more to tell than them."""


def print_held(held: Iterable[HeldDay], *, of: str | None = None, in_short: bool = False) -> None:
    """A red line for each held day, and below it what may be to blame.

    Args:
        of: the table that was asked about: a day of another one holds it from there.
        in_short: whether a few lines stand for all, where there is news besides that they would hide.
    """
    from platform_assets.operations.lineage.held_days import together, withdrawals

    shown = tuple(held)
    groups = together(shown)
    told = groups[:_IN_SHORT] if in_short else groups
    for days in told:
        first = days[0].hold
        through = "held through" if of not in (None, first.table) else "held"
        say(f"[red]{through}[/]", _line(days))
        # What is new on days that are only tied to another is not what holds them; it is named where that one is.
        commands = () if len(days) > 1 and days[0].is_tied else withdrawals(days)
        if commands:
            console.print(
                "  New since then; what should not have come is taken out with (a command may name several)",
                highlight=False,
                soft_wrap=True,
            )
            for command in commands:
                console.print(f"  {command}", markup=False, highlight=False, soft_wrap=True)
    if more := sum(map(len, groups[len(told) :])):
        say("[red]held[/]", f"{counted(more, 'more day')}; `platform-assets stale` names them")
    _print_what_ends_it(shown)


def _print_what_ends_it(held: Sequence[HeldDay]) -> None:
    """When held days are tried again, and how else they are published; what would end a rollback."""
    lasting = [day for day in held if any(hold.lasts for hold in day.holds)]
    put_back = [day for day in held if day.is_put_back and day not in lasting]
    refused = [day for day in held if not day.is_put_back]
    lines = []
    if refused:
        lines.append("A held day is tried again once its input or code changes; docs/on-call.md says what to do.")
    if any(day.hold.gate == "contract" for day in refused):
        lines.append("What breaks a contract the table's own function can have made, too: look at it beside what came.")
    if odd := [day for day in refused if day.hold.gate in ACCEPTABLE and not day.undelivered]:
        lines.append(f"Right, only unusual? `platform-assets accept {_named(odd)} --reason … --by …` publishes it.")
    for table in sorted({day.undelivered for day in refused if day.undelivered}):
        lines.append(
            f"Nothing was delivered yet for {table} on such a day: the file that brings it ends that. "
            "`delivers=Weekdays(…)` or `EveryDays(…)` in its contract says of which days rows are expected, "
            "`closed_days` of which none are."
        )
    if put_back:
        lines.append(
            "A day that was rolled back stays so until its input or code changes; `platform-assets refresh "
            f"{_named(put_back)} --force` would end the rollback at once."
        )
    if lasting:
        lines.append(
            "A day that was rolled back until it is lifted waits for a person, whatever comes: "
            f"`platform-assets rollback --lift {_named(lasting)} --reason … --by …` has it computed again."
        )
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def _named(held: Sequence[HeldDay]) -> str:
    """A day for a command, or what is to be put there for one of several."""
    return f"{held[0].hold.table} --days {held[0].hold.day}" if len(held) == 1 else "TABLE --days DAY"


def _line(days: Sequence[HeldDay]) -> str:
    first = days[0]
    if len(days) == 1:
        return f"{first.hold.table} {first.hold.day} {first.sentence}"
    spans = as_named([day.hold.day for day in days])
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
        "held_before": None
        if day.older is None
        else {"gate": day.older.hold.gate, "reason": day.older.hold.reason, "since": day.older.since},
        "readers_see": None
        if day.shown is None or day.shown_by is None
        else {"rows": day.shown.delivered, "release": day.shown_by.release, "published": day.shown_by.created_at},
        "new_arrivals": [arrival.path for arrival in day.arrivals],
    }
