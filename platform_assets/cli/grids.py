"""How tables look in a terminal, the same in every command."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rich.box import SIMPLE_HEAD
from rich.table import Table


def new_grid(title: str, names: Iterable[str], right: Collection[str] = (), whole: Collection[str] = ()) -> Table:
    """A grid without rows.

    Args:
        title: above it.
        names: of its columns.
        right: columns aligned at the right: numbers.
        whole: columns whose values are never folded, however narrow the terminal.
    """
    grid = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in names:
        grid.add_column(name, justify="right" if name in right else "left", no_wrap=name in whole, overflow="fold")
    return grid
