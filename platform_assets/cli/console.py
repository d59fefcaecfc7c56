"""Shared by commands: consoles, exit codes, options, JSON."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from functools import partial
from itertools import groupby, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import typer
from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderableType, RenderResult
from rich.markup import escape as without_markup
from rich.segment import Segment
from rich.text import Text

from platform_assets.errors import PlatformError
from platform_assets.report import (
    Calendar,
    Cell,
    Details,
    Facts,
    Heading,
    Listing,
    Mark,
    Note,
    Plot,
    Points,
    Quote,
    Report,
    Table,
    plain,
)
from platform_assets.words import visible

if TYPE_CHECKING:
    from platform_assets.contracts import Catalogue
    from platform_assets.engine.platform import Platform
    from platform_assets.planning.selection import Selection
    from platform_assets.settings import Settings

EXIT_LOOK = 1
EXIT_USAGE = 2
EXIT_FAILED = 3
EXIT_INTERRUPTED = 130

_TWO_DAYS = re.compile(r"(\d{4}-\d\d-\d\d)\D+(\d{4}-\d\d-\d\d)")

_UNBROKEN = 1000
"""Characters of a line that no terminal breaks."""

# Rich would leave out colours alone, and a reader of plain text stumbles over codes for bold and dim as well.
_COLOURS: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
_NUMPY = "numpy"
_MENDED = "[yellow]mended[/]"


class _Console(Console):
    """Write as wide as the terminal; in a file or a pipe each row stays on one line for the next program.

    Control characters in foreign text are made visible: only our own colours act on a terminal.
    """

    def print(self, *objects: Any, markup: bool | None = None, **options: Any) -> None:
        """Print as Rich does. Text without markup is foreign text: line breaks in it are made visible."""
        if markup is False:
            objects = tuple(visible(text) if isinstance(text, str) else text for text in objects)
        super().print(*objects, markup=markup, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Render as Rich does, with control characters of foreign text made visible."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(self._shown(segment.text), segment.style)

    def _shown(self, text: str) -> str:
        """Return text as the output's encoding can show it: other lines and letters are replaced."""
        shown = visible(text, breaks=True)
        if self.encoding.startswith("utf"):
            return shown
        return shown.replace("─", "-").encode(self.encoding, "replace").decode(self.encoding)

    @property
    def size(self) -> ConsoleDimensions:
        size = super().size
        if self._width is None and not self.is_terminal and not os.environ.get("COLUMNS"):
            return ConsoleDimensions(_UNBROKEN, size.height)
        return size

    @size.setter
    def size(self, size: tuple[int, int]) -> None:
        self._width, self._height = size


# Words between colons are no emoji, and their list takes long to import.
console = _Console(emoji=False, color_system=_COLOURS)
errors = _Console(stderr=True, emoji=False, color_system=_COLOURS)


class UsageError(PlatformError):
    """An argument cannot be understood."""

    is_misspelt = True


def parse_day(text: str, settings: Settings | None = None) -> date:
    """Return a day given as an argument; with settings it must be in their calendar."""
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is not a day.", "Write it as YYYY-MM-DD, for example 2017-03-31.") from error
    if settings is None:
        return day
    first, last = settings.calendar_first, settings.last_day()
    if not first <= day <= last:
        raise UsageError(f"{day} is outside the calendar, {first} to {last}.", "Name a day of the calendar.")
    return day


def parse_days(text: str, settings: Settings | None = None) -> frozenset[date]:
    """Return days given as an argument: one day, a range `A..B` with both ends, or several, separated by commas."""
    days: set[date] = set()
    for part in text.split(","):
        if ".." not in part and (both := _TWO_DAYS.fullmatch(part.strip())):
            raise UsageError(f"{part.strip()!r} is not a day.", f"A range is written {both[1]}..{both[2]}.")
        first, dots, last = part.strip().partition("..")
        start = parse_day(first, settings)
        end = parse_day(last, settings) if dots else start
        if end < start:
            raise UsageError(f"The range {part.strip()!r} ends before it starts.", "Write the older day first.")
        days.update(start + timedelta(days=n) for n in range((end - start).days + 1))
    return frozenset(days)


def selected(platform: Platform, names: Sequence[str] | None, days: str | None) -> Selection:
    """Return the tables and days of a request; all if none is named."""
    from platform_assets.planning.selection import Selection

    tables = selected_tables(platform, names or ())
    return Selection(tables, None if days is None else parse_days(days, platform.settings))


def selected_tables(platform: Platform, names: Sequence[str]) -> frozenset[str]:
    """Return the tables that selectors select."""
    from platform_assets.planning.selection import select

    return select(platform.catalogue, names, lambda: _stale_tables(platform))


def declared_tables(catalogue: Catalogue, names: Sequence[str]) -> frozenset[str]:
    """Return the tables that selectors select, for a command that needs only contracts; all tables by default."""
    from platform_assets.planning.selection import select

    def stale() -> frozenset[str]:
        with platform_to_look() as platform:
            return _stale_tables(platform)

    return select(catalogue, names or catalogue.names, stale)


def _stale_tables(platform: Platform) -> frozenset[str]:
    from platform_assets.engine.pending import intakes
    from platform_assets.engine.state.planner import outlook

    return frozenset(step.table for step in outlook(platform, intakes(platform)).everything.steps)


def computed_tables(platform: Platform, names: Sequence[str]) -> list[str]:
    """Return the selected tables in order, without raw tables unless they are named."""
    chosen = selected_tables(platform, names)
    computed = [one.name for one in platform.catalogue if one.name in chosen and (one.inputs or one.name in names)]
    if chosen and not computed:
        raise UsageError(f"{' '.join(names)} selects raw tables only.", "Select silver or gold tables.")
    return computed


@contextmanager
def opened_platform(settings: Settings | None = None) -> Iterator[Platform]:
    """Open the platform for a command. Repairs made while opening are reported on standard error."""
    from platform_assets.operations.opening import open_platform
    from platform_assets.settings import load_settings

    with open_platform(settings or load_settings(), partial(say, _MENDED, to=errors)) as platform:
        yield platform


@contextmanager
def platform_to_look(settings: Settings | None = None) -> Iterator[Platform]:
    """Open the platform for a command that only reads, also on a read-only disk."""
    from platform_assets.operations.opening import open_platform_to_look
    from platform_assets.settings import load_settings

    limited = partial(say, "[yellow]note[/]", to=errors)
    with open_platform_to_look(settings or load_settings(), partial(say, _MENDED, to=errors), limited) as platform:
        yield platform


def escape(text: str) -> str:
    """Return foreign text for Rich's markup: nothing in it is markup, and all of it is visible."""
    return without_markup(visible(text))


def say(head: str, text: str, *more: str, to: Console = console) -> None:
    """Print a line with a marked head. The rest is plain text without markup."""
    line = f"{head} {escape(text)}" if text else head
    to.print("\n".join((line, *map(escape, more))), highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    print(json.dumps(plain(value), indent=2))


def print_parts(parts: Iterable[Any]) -> None:
    """Print the parts of a report for people; parts meant only for a page are left out."""
    for part in parts:
        match part:
            case str() | Quote():
                text = part if isinstance(part, str) else part.text
                console.print(text, markup=False, highlight=False, soft_wrap=True)
            case Points():
                print_parts(f"  {line}" if part.quoted else line for line in part.lines)
            case Note():
                mark = escape(part.mark)
                say(f"[{part.tone}]{mark}[/]" if part.tone else mark, part.text)
                if part.todo:
                    say("  [bold]What to do:[/]", part.todo)
            case Heading():
                console.print(part.text, style="table.title", markup=False, highlight=False)
            case Table() | Facts():
                console.print(Grid(part))
            case Details():
                print_parts(part.parts if part.everywhere else ())
            case Calendar() | Plot() | Listing():
                pass
            case _:
                console.print(part, highlight=False)


def show(report: Report, as_json: bool) -> None:
    """Print a report for people or for programs; exit with 1 if something in it needs a look."""
    if as_json:
        print_json(report.data)
    else:
        print_parts(report.parts)
    if report.needs_a_look:
        raise typer.Exit(EXIT_LOOK)


def write_page(file: Path, text: str) -> None:
    """Write a page to a file."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        what = f"{file} cannot be written: {error.strerror}."
        raise UsageError(what, "Name a file in a folder that is there.") from error


@contextmanager
def without_numpy() -> Iterator[None]:
    """Prevent the import of NumPy in this block, for a command that only reads with Arrow.

    Arrow and the libraries after it work without it, and importing it takes several times as long as Arrow itself: its
    OpenBLAS starts a busily waiting thread for each core. If NumPy or Arrow is imported already, this does nothing.
    """
    if {_NUMPY, "pyarrow"} & sys.modules.keys():
        yield
        return
    modules = cast("dict[str, Any]", sys.modules)
    modules[_NUMPY] = None  # Python's own way to say that there is no such module
    try:
        yield
    finally:
        del modules[_NUMPY]


_LONGEST_WORD = 44
"""Longest word that is never folded in a column; a longer one (a payload, a deep path) may be."""
_BETWEEN = 2
_MARGIN = 1
_INDENT = 3
"""Characters before what stands below the first column."""

_Row = Sequence[Text]


class Grid:
    """Draw a table, or facts: numbers and names are never cut. Rich's own table pads lines, and takes 2 ms a row.

    If columns do not fit side by side, the first gets a line of its own with the others below, and texts are wrapped;
    if that does not fit either, all columns are stacked.
    """

    def __init__(self, part: Table | Facts) -> None:
        self._part = part

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table, width = self._part, options.max_width
        if isinstance(table, Facts):
            facts = [[Text(visible(name), "bold"), _text(tuple(lines))] for name, lines in table.entries]
            first = max((row[0].cell_len for row in facts), default=0)
            yield from _block(console, facts, [table.right, False], [first, max(width - first - _BETWEEN, 1)], 0)
            return
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


def _text(cell: Cell) -> Text:
    if isinstance(cell, Mark):
        return Text(visible(cell.text), cell.tone)
    return Text("\n".join(map(visible, [cell] if isinstance(cell, str) else cell)))


def _widths(rows: Sequence[_Row], right: Sequence[bool], whole: Sequence[bool], width: int) -> list[int]:
    """Return the widths with which all columns fit side by side into so many characters; None if they do not."""
    least: list[int] = []
    most: list[int] = []
    for column in range(len(right)):
        texts = [row[column].plain for row in rows]
        most.append(max(cell_len(line) for text in texts for line in text.split("\n")))
        longest = max((cell_len(word) for text in texts for word in text.split()), default=0)
        least.append(most[-1] if right[column] or whole[column] else min(longest, _LONGEST_WORD))
    left = width - _total_width(least)
    if left < 0:
        return []
    wants = sorted(range(len(least)), key=lambda n: most[n] - least[n])
    for others, n in zip(range(len(wants), 0, -1), wants, strict=True):
        more = min(most[n] - least[n], left // others)
        least[n] += more
        left -= more
    return least


def _total_width(widths: Sequence[int]) -> int:
    return sum(widths) + _BETWEEN * (len(widths) - 1)


def _rule(widths: Sequence[int], indent: int) -> Iterator[Segment]:
    yield Segment(" " * _MARGIN + "─" * (_total_width(widths) + indent) + "\n")


def _block(
    console: Console, rows: Sequence[_Row], right: Sequence[bool], widths: Sequence[int], margin: int
) -> Iterator[Segment]:
    """Draw rows in columns of these widths, without trailing blanks."""
    for row in rows:
        folded = [_folded_lines(console, cell, width) for cell, width in zip(row, widths, strict=True)]
        for parts in zip_longest(*folded, fillvalue=Text()):
            line = Text(" " * margin)
            for part, is_right, width in zip(parts, right, widths, strict=True):
                blanks = " " * (width - part.cell_len)
                line.append(blanks if is_right else "").append_text(part).append("" if is_right else blanks)
                line.append(" " * _BETWEEN)
            line.rstrip()
            yield from line.render(console)
            yield Segment.line()


def _folded_lines(console: Console, cell: Text, width: int) -> list[Text]:
    """Return the lines of a cell; long values are broken between words."""
    if cell.cell_len <= width and "\n" not in cell.plain:
        return [cell]
    lines = list(cell.wrap(console, width, overflow="fold"))
    for line in lines:
        line.rstrip()
    return lines


def _upright(console: Console, head: _Row, rows: Sequence[_Row], width: int) -> Iterator[Segment]:
    """Draw a line for each value, after the name of its column; without rows only the names."""
    room = max(name.cell_len for name in head)
    widths = [room, max(width - room - _BETWEEN, 1)]
    if not rows:
        yield from _block(console, [[Text("  ").join(head)]], [False], [width], 0)
    for row in rows:
        pairs = [[name, cell] for name, cell in zip(head, row, strict=True) if cell.plain]
        yield from _block(console, pairs, [False, False], widths, 0)
        yield Segment.line()
