"""How pairs of figures look, before and after: rows, bytes, and the sums of amounts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from platform_assets.cli.console import console, say
from platform_assets.cli.grids import new_grid

if TYPE_CHECKING:
    from platform_assets.operations.lineage.amount_changes import Amount, AmountChanges

_SUMS_SHOWN = 4


def became(then: Any, now: Any, shown: Callable[[Any], str] = "{:,}".format) -> str:
    """What a figure was and is, once where that is the same; None is of what is not there."""
    before, after = ("not there" if number is None else shown(number) for number in (then, now))
    return after if before == after else f"{before} → {after}"


def sums_shown(moved: Mapping[str, tuple[Any, Any]]) -> str:
    """Sums that differ, a line each; of many the first."""
    shown = [f"sum of {name} {became(*pair)}" for name, pair in list(moved.items())[:_SUMS_SHOWN]]
    more = f"\nand {len(moved) - _SUMS_SHOWN} more: --json" if len(moved) > _SUMS_SHOWN else ""
    return "\n".join(shown) + more


def print_amounts(changes: AmountChanges, days: Mapping[str, Collection[date]]) -> None:
    """Which sums of tables differ over some of their days, by how much, and of which tables they are not told."""
    numbers = ("before", "after", "difference")
    grid = new_grid("Amounts", ("table", "sum of", *numbers), right=numbers, whole=("table", "sum of"))
    moved = {table: sums for table, of_it in days.items() if (sums := changes.of(table, of_it))}
    for table, sums in moved.items():
        for name, (before, after) in list(sums.items())[:_SUMS_SHOWN]:
            difference = "" if before is None or after is None else f"{after - before:+,}"
            sides = ("not there" if one is None else f"{one:,}" for one in (before, after))
            grid.add_row(table, name, *sides, difference)
        if len(sums) > _SUMS_SHOWN:
            grid.add_row(table, f"and {len(sums) - _SUMS_SHOWN} more: --json")
    if moved:
        console.print(grid)
    print_unread(changes)


def print_unread(changes: AmountChanges) -> None:
    """Of which tables amounts are not told."""
    for table, why in changes.unread.items():
        say("[yellow]amounts not told[/]", f"{table}: {why}")


def sums_json(moved: Mapping[str, tuple[Amount | None, Amount | None]]) -> dict[str, Any]:
    """Sums that differ, for programs."""
    return {name: {"before": before, "after": after} for name, (before, after) in moved.items()}
