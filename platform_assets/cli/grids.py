"""How tables look in a terminal, the same in every command."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

_READABLE = 16
"""Characters that a folded column needs at least, if it has as many in one word."""
_BETWEEN = 2
"""Characters between two columns."""


class Grid(Table):
    """A table whose numbers and names are never cut: what does not fit side by side stands one below another."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self.row_count or self._least_width(console, options) <= options.max_width:
            yield from super().__rich_console__(console, options)
            return
        if self.title is not None:
            yield Text.from_markup(str(self.title), style="table.title")
        for row in zip(*(column.cells for column in self.columns), strict=True):
            upright = Table.grid(padding=(0, _BETWEEN))
            upright.add_column(style="table.header", no_wrap=True)
            upright.add_column(overflow="fold")
            for column, cell in zip(self.columns, row, strict=True):
                if Measurement.get(console, options, cell).maximum:
                    upright.add_row(column.header, cell)
            yield upright
            yield ""

    def _least_width(self, console: Console, options: ConsoleOptions) -> int:
        wide = options.update(max_width=10_000)

        def least(column: Column) -> int:
            sizes = [Measurement.get(console, wide, cell) for cell in (column.header, *column.cells)]
            if column.no_wrap:
                return max(size.maximum for size in sizes)
            return min(max(size.minimum for size in sizes), _READABLE)

        return sum(map(least, self.columns)) + _BETWEEN * len(self.columns)


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
