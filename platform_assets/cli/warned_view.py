"""How days look that were published with warnings: table, day, gate and figures, of many the first few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from platform_assets.cli.console import console, say
from platform_assets.records.history import DayRecord
from platform_assets.records.manifest import DayContent, Warned
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.lineage.warned_days import WarnedDay

_SHOWN = 5
"""Warnings of a run that are named."""

ALL = "platform-assets status --warnings"
"""The command that shows all."""


class DayWarning(NamedTuple):
    """What a gate found of a published day."""

    table: str
    day: date
    warned: Warned

    def __str__(self) -> str:
        return f"{self.table} {self.day} {self.warned}"

    @classmethod
    def of(cls, table: str, days: Mapping[date, DayContent] | Mapping[date, DayRecord]) -> Iterator[Self]:
        """Those of some days of a table, the newest day first."""
        for day in sorted(days, reverse=True):
            yield from (cls(table, day, warned) for warned in days[day].warnings)

    def json(self) -> dict[str, Any]:
        """For programs."""
        return {"table": self.table, "day": self.day, **self.warned.model_dump()}


def print_warnings(warnings: Sequence[DayWarning], stage: str | None) -> None:
    """How many days a run published, or left in a stage, with warnings, and the first of these."""
    if not warnings:
        return
    days = len({(warning.table, warning.day) for warning in warnings})
    done = f"{'was' if days == 1 else 'were'} {'staged' if stage else 'published'} with warnings"
    command = f"platform-assets stage show {stage}" if stage else ALL
    say("[yellow]warned[/]", f"{counted(days, 'day')} {done}; `{command}` shows all:")
    for warning in warnings[:_SHOWN]:
        say(" ", str(warning))
    if (more := len(warnings) - _SHOWN) > 0:
        say(" ", f"and {counted(more, 'more warning')}")


def print_warned_tables(warned: Iterable[DayRecord]) -> None:
    """A line for each table with days that were published with warnings, and where more is said of them."""
    by_table: dict[str, list[DayRecord]] = {}
    for record in warned:
        by_table.setdefault(record.table, []).append(record)
    for table, records in by_table.items():
        newest = records[0]
        gates = Counter(gate for record in records for gate in {each.gate for each in record.warnings})
        counts = ", ".join(f"{count:,} by {gate}" for gate, count in gates.most_common())
        last = f"published last: {newest.day} {newest.warnings[0]}"
        say("[yellow]warned[/]", f"{table}: {counted(len(records), 'day')} with warnings ({counts}); {last}")
    if by_table:
        say(" ", f"`{ALL}` shows all; `why TABLE DAY` also what came with it")


def print_warned_days(warned: Sequence[DayRecord]) -> None:
    """A line for each warning, as they are given."""
    for record in warned:
        for warning in record.warnings:
            say("[yellow]warned[/]", str(DayWarning(record.table, record.day, warning)))
    if not warned:
        console.print("[green]No warnings:[/] as far as gates could judge the days readers see, they found nothing")
        say(" ", "but what somebody has accepted: `why TABLE DAY` and `audit decisions` tell of it.")
        say(" ", "Where history is too short, volume looks only for days that lost more than half of their rows.")


def warnings_json(warned: Iterable[DayRecord]) -> list[dict[str, Any]]:
    """The same for programs."""
    return [
        DayWarning(record.table, record.day, warning).json() | {"publication": record.publication}
        for record in warned
        for warning in record.warnings
    ]


def print_warned_day(day: WarnedDay) -> None:
    """What gates found of a day, and below it what may be to blame."""
    from platform_assets.operations.lineage.held_days import withdrawals

    record = day.record
    since = f" since {day.since.created_at:%Y-%m-%d %H:%M} UTC, release {day.since.release}" if day.since else ""
    for warned in record.warnings:
        say("[yellow]warned[/]", f"{record.table} {record.day}{since}: {warned}")
    if commands := withdrawals([day]):
        console.print("  New with that; what should not have come is taken out with", highlight=False, soft_wrap=True)
        for command in commands:
            console.print(f"  {command}", markup=False, highlight=False, soft_wrap=True)
    say(" ", "Readers see the day: a warning keeps nothing back. docs/on-call.md says what to do.")


def warned_json(day: WarnedDay | None) -> dict[str, Any] | None:
    """The same for programs; None where no gate warned."""
    if day is None:
        return None
    return {
        "warnings": [warned.model_dump() for warned in day.record.warnings],
        "since": None if day.since is None else day.since.created_at,
        "release": None if day.since is None else day.since.release,
        "new_arrivals": [arrival.path for arrival in day.arrivals],
    }
