"""The bar on a terminal: one line for what is being done, below the lines of what is finished."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from platform_assets.cli.narration import Now


class Bar:
    """A bar that can be shown, drawn anew and taken away again.

    Args:
        out: a terminal.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._console = Console(file=out, emoji=False)
        self._shown: Progress | None = None

    def print(self, lines: Iterable[str]) -> None:
        """Lines that stay, above the bar."""
        for line in lines:
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def draw(self, now: Now) -> None:
        """Show what is being done."""
        bars = self._shown or _bars(self._console)
        done, total = (now.reached, now.work.total) if now.work and now.work.total else (0, None)
        [task] = bars.task_ids
        seconds = f"{now.seconds:,.0f} s"
        bars.update(task, description=now.doing, completed=done, total=total, count=now.count, seconds=seconds)
        self._console.size = self._size()
        if self._shown is None:
            self._shown = bars
            bars.start()
            # Rich hides it, and whoever kills the process would be left without one.
            self._console.show_cursor()
        bars.refresh()

    def remove(self) -> None:
        """Leave the terminal as if there had never been a bar."""
        if self._shown:
            self._shown.stop()
            self._shown = None

    def _size(self) -> tuple[int, int]:
        """Rich would ask the standard streams, which may lead elsewhere by now."""
        columns, lines = os.get_terminal_size(self._out.fileno())
        return columns or 80, lines or 25


def _bars(console: Console) -> Progress:
    """What is too wide for the terminal is cut: a line that wraps could not be drawn over."""
    whole = Column(no_wrap=True)
    bars = Progress(
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[count]}", markup=False, table_column=whole),
        TextColumn("{task.fields[seconds]}", markup=False, table_column=whole),
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bars.add_task("", total=None, count="", seconds="")
    return bars
