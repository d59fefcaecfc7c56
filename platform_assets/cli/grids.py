"""How tables look in a terminal, the same in every command.

They are laid out here and not by Rich, whose tables fill every line with blanks, cut or break names where room is
short, and take half a millisecond for a row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.text import Text

_LONGEST_WORD = 44
"""Characters of a word that stays whole whatever the column; a longer one (a payload, a deep path) may be folded."""
_BETWEEN = 2
"""Characters between two columns."""
_MARGIN = 1
_INDENT = 3
"""Characters before what stands below the first column."""


@dataclass(frozen=True)
class _Column:
    """A column of a grid.

    Args:
        name: above it.
        is_right: whether it is aligned at the right.
        is_whole: whether its values are never folded.
    """

    name: str
    is_right: bool
    is_whole: bool


class Grid:
    """A table whose numbers and names are never cut.

    Where its columns do not fit side by side, the first has a line of its own with the others below, once for rows in
    turn that have the same, and all but numbers may be folded; where that does not do, all stand one below another.

    Args:
        title: above it, in Rich's markup.
        columns: from left to right.
    """

    def __init__(self, title: str, columns: Sequence[_Column]) -> None:
        self._title = title
        self._columns = columns
        self._rows: list[tuple[str | Text, ...]] = []

    def add_row(self, *cells: str | Text) -> None:
        """A value for each column, in Rich's markup where it is no text yet; columns left out at the end are empty."""
        missing = len(self._columns) - len(cells)
        self._rows.append((*cells, *[""] * missing))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.from_markup(self._title, style="table.title", emoji=False)
        columns, width = self._columns, options.max_width
        rows = [
            [console.render_str(cell, highlight=False) if isinstance(cell, str) else cell for cell in row]
            for row in self._rows
        ]

        def side_by_side(row: Sequence[Text]) -> Iterator[Segment]:
            yield from _lines(console, columns, row, widths, _MARGIN)

        above = ""

        def below_the_first(row: Sequence[Text]) -> Iterator[Segment]:
            nonlocal above
            if row[0].plain != above:
                yield from _lines(console, columns[:1], row[:1], [width - _MARGIN], _MARGIN)
            above = row[0].plain
            yield from _lines(console, columns[1:], row[1:], widths, _INDENT)

        if widths := _fitted(columns, rows, width - _MARGIN):
            yield from _headed(columns, rows, side_by_side, _taken(widths))
        elif columns[0].name and (
            widths := _fitted(columns[1:], others := [row[1:] for row in rows], width - _INDENT)
            or _fitted(columns[1:], others, width - _INDENT, fold=True)
        ):
            yield from _headed(columns, rows, below_the_first, _INDENT - _MARGIN + _taken(widths))
        else:
            yield from _upright(console, columns, rows, width)


class Entries:
    """A list without headings: of each entry its number or name, and beside it what there is to say of it.

    Args:
        are_named: whether they have names, which are aligned at the left.
    """

    def __init__(self, *, are_named: bool = False) -> None:
        self._entries: list[tuple[str, str]] = []
        self._first = _Column("", is_right=not are_named, is_whole=True)

    def add(self, number: str, *lines: str) -> None:
        """An entry, its lines in Rich's markup."""
        self._entries.append((number, "\n".join(lines)))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = [self._first, _Column("", False, False)]
        first = max((len(number) for number, _ in self._entries), default=0)
        widths = [first, max(options.max_width - first - _BETWEEN, 1)]
        for number, lines in self._entries:
            cells = [Text.styled(number, "bold"), console.render_str(lines, highlight=False)]
            yield from _lines(console, columns, cells, widths, 0)


def new_grid(title: str, names: Iterable[str], right: Collection[str] = (), whole: Collection[str] = ()) -> Grid:
    """A grid without rows.

    Args:
        right: columns aligned at the right: numbers, which are never folded.
    """
    return Grid(title, [_Column(name, name in right, name in whole or name in right) for name in names])


def _fitted(columns: Sequence[_Column], rows: Sequence[Sequence[Text]], width: int, *, fold: bool = False) -> list[int]:
    """The width of each column, with which all fit side by side into so many characters; none where they do not.

    Args:
        fold: whether all but numbers may be folded between words.
    """
    least: list[int] = []
    most: list[int] = []
    for number, column in enumerate(columns):
        texts = [column.name, *(row[number].plain for row in rows)]
        most.append(max(cell_len(line) for text in texts for line in text.split("\n")))
        longest = max((cell_len(word) for text in texts for word in text.split()), default=0)
        least.append(most[-1] if column.is_right or (column.is_whole and not fold) else min(longest, _LONGEST_WORD))
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


def _headed(
    columns: Sequence[_Column],
    rows: Sequence[Sequence[Text]],
    laid_out: Callable[[Sequence[Text]], Iterator[Segment]],
    width: int,
) -> Iterator[Segment]:
    """Headings, a rule, and the rows, each laid out as the headings are."""
    yield Segment.line()
    yield from laid_out(_headings(columns))
    yield Segment(" " * _MARGIN + "─" * width + "\n")
    for row in rows:
        yield from laid_out(row)
    yield Segment.line()


def _upright(
    console: Console, columns: Sequence[_Column], rows: Sequence[Sequence[Text]], width: int
) -> Iterator[Segment]:
    """A line for each value that there is, behind the name of its column; the names alone where there are no rows."""
    names = _headings(columns)
    room = max(name.cell_len for name in names)
    pair = [_Column("", False, True), _Column("", False, False)]
    if not rows:
        yield from _lines(console, pair[1:], [Text("  ").join(names)], [width], 0)
    for row in rows:
        for name, cell in zip(names, row, strict=True):
            if cell.plain:
                yield from _lines(console, pair, [name, cell], [room, max(width - room - _BETWEEN, 1)], 0)
        yield Segment.line()


def _headings(columns: Sequence[_Column]) -> list[Text]:
    return [Text.styled(column.name, "table.header") for column in columns]


def _lines(
    console: Console, columns: Sequence[_Column], cells: Sequence[Text], widths: Sequence[int], margin: int
) -> Iterator[Segment]:
    """One row, with nothing behind its last sign; values too long for their column are broken between words."""
    folded = [_folded(console, cell, width) for cell, width in zip(cells, widths, strict=True)]
    for parts in zip_longest(*folded):
        blanks = margin
        for column, part, width in zip(columns, parts, widths, strict=True):
            filled = part.cell_len if part else 0
            if part and filled:
                yield Segment(" " * (blanks + (width - filled if column.is_right else 0)))
                yield from part.render(console)
                blanks = 0
            rest = 0 if part and filled and column.is_right else width - filled
            blanks += rest + _BETWEEN
        yield Segment.line()


def _folded(console: Console, cell: Text, width: int) -> list[Text]:
    if cell.cell_len <= width and "\n" not in cell.plain:
        return [cell]
    lines = list(cell.wrap(console, width, overflow="fold"))
    for line in lines:
        line.rstrip()
    return lines
