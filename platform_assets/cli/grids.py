"""How tables and facts look in a terminal of any width.

They are laid out here and not by Rich, whose tables fill every line with blanks, cut or break names where room is
short, and take two milliseconds for a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.text import Text

from platform_assets.report import Cell, Facts, Mark, Table
from platform_assets.visible import visible

_LONGEST_WORD = 44
"""Characters of a word that stays whole whatever the column; a longer one (a payload, a deep path) may be folded."""
_BETWEEN = 2
"""Characters between two columns."""
_MARGIN = 1
_INDENT = 3
"""Characters before what stands below the first column."""

_Row = Sequence[Text]


class Grid:
    """A table whose numbers and names are never cut.

    Where its columns do not fit side by side, the first has a line of its own with the others below, once for rows in
    turn that have the same, and all but numbers may be folded; where that does not do, all stand one below another.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table, width = self._table, options.max_width
        head = [Text(visible(name), "table.header") for name in table.columns]
        rows = [[*map(_text, row), *[Text()] * (len(head) - len(row))] for row in table.rows]
        right = [name in table.right for name in table.columns]
        whole = [name in table.whole for name in table.columns]
        if table.title:
            yield Text(visible(table.title), "table.title")
        if widths := _widths([head, *rows], right, whole, width - _MARGIN):
            yield Segment.line()
            yield from _block(console, [head], right, widths, _MARGIN)
            yield from _rule(widths, 0)
            yield from _block(console, rows, right, widths, _MARGIN)
            yield Segment.line()
        elif table.columns[0] and (
            widths := _widths(others := [row[1:] for row in (head, *rows)], right[1:], whole[1:], width - _INDENT)
            or _widths(others, right[1:], [False] * len(others[0]), width - _INDENT)
        ):
            yield Segment.line()
            for number, (_, alike) in enumerate(groupby([head, *rows], lambda row: row[0].plain)):
                below = list(alike)
                yield from _block(console, [below[0][:1]], [False], [width - _MARGIN], _MARGIN)
                yield from _block(console, [row[1:] for row in below], right[1:], widths, _INDENT)
                if not number:
                    yield from _rule(widths, _INDENT - _MARGIN)
            yield Segment.line()
        else:
            yield from _upright(console, head, rows, width)


class Entries:
    """Facts: of each its name, or its number, and beside it what there is to say of it."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [[Text(visible(name), "bold"), _text(tuple(lines))] for name, lines in self._facts.entries]
        first = max((row[0].cell_len for row in rows), default=0)
        widths = [first, max(options.max_width - first - _BETWEEN, 1)]
        yield from _block(console, rows, [self._facts.right, False], widths, 0)


def _text(cell: Cell) -> Text:
    if isinstance(cell, Mark):
        return Text(visible(cell.text), cell.tone)
    return Text("\n".join(map(visible, [cell] if isinstance(cell, str) else cell)))


def _widths(rows: Sequence[_Row], right: Sequence[bool], whole: Sequence[bool], width: int) -> list[int]:
    """The width of each column with which all fit side by side into so many characters; none where they do not."""
    least: list[int] = []
    most: list[int] = []
    for column in range(len(right)):
        texts = [row[column].plain for row in rows]
        most.append(max(cell_len(line) for text in texts for line in text.split("\n")))
        longest = max((cell_len(word) for text in texts for word in text.split()), default=0)
        least.append(most[-1] if right[column] or whole[column] else min(longest, _LONGEST_WORD))
    left = width - _taken(least)
    if left < 0:
        return []
    wants = sorted(range(len(least)), key=lambda n: most[n] - least[n])
    for others, n in zip(range(len(wants), 0, -1), wants, strict=True):
        more = min(most[n] - least[n], left // others)
        least[n] += more
        left -= more
    return least


def _taken(widths: Sequence[int]) -> int:
    """Characters of a line of columns."""
    return sum(widths) + _BETWEEN * (len(widths) - 1)


def _rule(widths: Sequence[int], indent: int) -> Iterator[Segment]:
    yield Segment(" " * _MARGIN + "─" * (_taken(widths) + indent) + "\n")


def _block(
    console: Console, rows: Sequence[_Row], right: Sequence[bool], widths: Sequence[int], margin: int
) -> Iterator[Segment]:
    """Rows in columns of these widths, with nothing behind the last sign of a line."""
    for row in rows:
        folded = [_folded(console, cell, width) for cell, width in zip(row, widths, strict=True)]
        for parts in zip_longest(*folded, fillvalue=Text()):
            line = Text(" " * margin)
            for part, is_right, width in zip(parts, right, widths, strict=True):
                blanks = " " * (width - part.cell_len)
                line.append(blanks if is_right else "").append_text(part).append("" if is_right else blanks)
                line.append(" " * _BETWEEN)
            line.rstrip()
            yield from line.render(console)
            yield Segment.line()


def _folded(console: Console, cell: Text, width: int) -> list[Text]:
    """The lines of a cell; values too long for their column are broken between words."""
    if cell.cell_len <= width and "\n" not in cell.plain:
        return [cell]
    lines = list(cell.wrap(console, width, overflow="fold"))
    for line in lines:
        line.rstrip()
    return lines


def _upright(console: Console, head: _Row, rows: Sequence[_Row], width: int) -> Iterator[Segment]:
    """A line for each value that there is, behind the name of its column; the names alone where there are no rows."""
    room = max(name.cell_len for name in head)
    widths = [room, max(width - room - _BETWEEN, 1)]
    if not rows:
        yield from _block(console, [[Text("  ").join(head)]], [False], [width], 0)
    for row in rows:
        pairs = [[name, cell] for name, cell in zip(head, row, strict=True) if cell.plain]
        yield from _block(console, pairs, [False, False], widths, 0)
        yield Segment.line()
