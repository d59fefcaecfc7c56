"""How tables look in a terminal, the same in every command."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from copy import copy
from dataclasses import replace

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

_LONGEST_WORD = 44
"""Characters of a word that stays whole whatever the column; a longer one (a payload, a deep path) may be folded."""
_BETWEEN = 2
"""Characters between two columns."""


class Grid(Table):
    """A table whose numbers and names are never cut: what does not fit side by side stands one below another."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = self._fitted(console, options)
        if widths is not None:
            fitted = copy(self)
            fitted.columns = [replace(column, width=width) for column, width in zip(self.columns, widths, strict=True)]
            yield from Table.__rich_console__(fitted, console, options)
            return
        if self.title is not None:
            yield Text.from_markup(str(self.title), style="table.title", emoji=False)
        if not self.row_count:
            yield Text("  ".join(str(column.header) for column in self.columns), style="table.header", overflow="fold")
        for row in zip(*(column.cells for column in self.columns), strict=True):
            upright = Table.grid(padding=(0, _BETWEEN))
            upright.add_column(style="table.header", no_wrap=True)
            upright.add_column(overflow="fold")
            for column, cell in zip(self.columns, row, strict=True):
                if Measurement.get(console, options, cell).maximum:
                    upright.add_row(column.header, cell)
            yield upright
            yield ""

    def _fitted(self, console: Console, options: ConsoleOptions) -> list[int] | None:
        """The width of each column, with which all fit side by side; None where they do not.

        Rich would take what is lacking from the widest columns, whatever words stand there.
        """
        wide = options.update(max_width=10_000)
        least: list[int] = []
        most: list[int] = []
        for column in self.columns:
            sizes = [Measurement.get(console, wide, cell) for cell in (column.header, *column.cells)]
            most.append(max(size.maximum for size in sizes))
            longest = max(size.minimum for size in sizes)
            least.append(most[-1] if column.no_wrap else min(longest, _LONGEST_WORD))
        left = options.max_width - _BETWEEN * len(self.columns) - sum(least)
        if left < 0:
            return None
        wants = sorted(range(len(least)), key=lambda n: most[n] - least[n])
        for others, n in zip(range(len(wants), 0, -1), wants, strict=True):
            more = min(most[n] - least[n], left // others)
            least[n] += more
            left -= more
        return least


def new_grid(title: str, names: Iterable[str], right: Collection[str] = (), whole: Collection[str] = ()) -> Grid:
    """A grid without rows.

    Args:
        title: above it.
        names: of its columns.
        right: columns aligned at the right: numbers, which are never folded.
        whole: columns whose values are never folded either.
    """
    grid = Grid(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in names:
        is_whole = name in whole or name in right
        grid.add_column(name, justify="right" if name in right else "left", no_wrap=is_whole, overflow="fold")
    return grid
