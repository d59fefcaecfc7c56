"""What commands share: consoles, exit codes, options, JSON."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import typer
from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderableType
from rich.markup import escape as without_markup
from rich.segment import Segment

from platform_assets.errors import PlatformError
from platform_assets.report import (
    Calendar,
    Details,
    Facts,
    Heading,
    Listing,
    Note,
    Plot,
    Points,
    Quote,
    Report,
    Table,
    plain,
)
from platform_assets.visible import visible

if TYPE_CHECKING:
    from platform_assets.engine.platform import Platform
    from platform_assets.planning.selection import Selection
    from platform_assets.settings import Settings

EXIT_LOOK = 1
EXIT_USAGE = 2
EXIT_FAILED = 3
EXIT_INTERRUPTED = 130
"""What shells say of a command that Ctrl-C ended."""

_TWO_DAYS = re.compile(r"(\d{4}-\d\d-\d\d)\D+(\d{4}-\d\d-\d\d)")
"""Perhaps a range as others write it."""

_UNBROKEN = 1000
"""Characters of a line that no terminal breaks."""

# Rich would leave out colours alone, and a reader of plain text stumbles over codes for bold and dim as well.
_COLOURS: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
_NUMPY = "numpy"


class _Console(Console):
    """As wide as the terminal; into a file or a pipe, each row and name stays on one line, for what reads it next.

    Nothing that it prints acts on a terminal but its own colours, whatever the text holds.
    """

    def print(self, *objects: Any, markup: bool | None = None, **options: Any) -> None:
        """As Rich does; text without markup is of others, so a line break in it is none of ours."""
        if markup is False:
            objects = tuple(visible(text) if isinstance(text, str) else text for text in objects)
        super().print(*objects, markup=markup, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """As Rich does, with what is of others made visible; it only begins lines where the platform did."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(self._shown(segment.text), segment.style)

    def _shown(self, text: str) -> str:
        """Text as the output can have it: lines of tables, and letters, that its encoding has not are others."""
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


# What is between colons is no picture, and their list takes long to import.
console = _Console(emoji=False, color_system=_COLOURS)
errors = _Console(stderr=True, emoji=False, color_system=_COLOURS)


class UsageError(PlatformError):
    """An argument cannot be understood."""

    is_misspelt = True


def parse_day(text: str, settings: Settings | None = None) -> date:
    """A day as an argument.

    Args:
        settings: with the calendar that the day must lie in; any day will do without.

    Raises:
        UsageError: not a date, or outside the calendar.
    """
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
    """Days as an argument: one day, a range `A..B` with both ends, or several of them with commas.

    Args:
        settings: with the calendar that the days must lie in; any days will do without.

    Raises:
        UsageError: a part is no day, is outside the calendar, or is a range that ends before it starts.
    """
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


def selected(table: str | None, days: str | None, settings: Settings) -> Selection:
    """The table and the days that a person names with a command; all of what is not named.

    Raises:
        UsageError: as for `parse_days`.
    """
    from platform_assets.planning.selection import Selection

    return Selection(
        frozenset() if table is None else frozenset({table}), None if days is None else parse_days(days, settings)
    )


@contextmanager
def opened_platform(settings: Settings | None = None) -> Iterator[Platform]:
    """The platform for a command; what had to be mended to open it is told on standard error.

    Args:
        settings: those that the command has loaded for something else already.
    """
    from platform_assets.operations.opening import open_platform
    from platform_assets.settings import load_settings

    settings = settings or load_settings()
    with open_platform(settings, _mended) as platform:
        yield platform


@contextmanager
def platform_to_look(settings: Settings | None = None) -> Iterator[Platform]:
    """The platform for a command that only shows something, also where nothing can be written.

    Args:
        settings: those that the command has loaded for something else already.
    """
    from platform_assets.operations.opening import open_platform_to_look
    from platform_assets.settings import load_settings

    def limited(text: str) -> None:
        say("[yellow]note[/]", text, to=errors)

    with open_platform_to_look(settings or load_settings(), _mended, limited) as platform:
        yield platform


def _mended(text: str) -> None:
    say("[yellow]mended[/]", text, to=errors)


def escape(text: str) -> str:
    """Text of others for where Rich's markup is understood: nothing in it is markup, and all of it is visible."""
    return without_markup(visible(text))


def say(head: str, text: str, *more: str, to: Console = console) -> None:
    """A line with a marked head; whatever the text holds (a file's name, what a source wrote) is only text."""
    line = f"{head} {escape(text)}" if text else head
    to.print("\n".join((line, *map(escape, more))), highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    print(json.dumps(plain(value), indent=2))


def print_parts(parts: Iterable[Any]) -> None:
    """Print the parts of a report for people; what only a page has room for is left out."""
    from platform_assets.cli.grids import Entries, Grid

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
            case Table():
                console.print(Grid(part))
            case Facts():
                console.print(Entries(part))
            case Details():
                print_parts(part.parts if part.everywhere else ())
            case Calendar() | Plot() | Listing():
                pass
            case _:
                console.print(part, highlight=False)


def show(report: Report, as_json: bool) -> None:
    """Print a report for people or for programs.

    Raises:
        typer.Exit: something in it needs a look.
    """
    if as_json:
        print_json(report.data)
    else:
        print_parts(report.parts)
    if report.needs_a_look:
        raise typer.Exit(EXIT_LOOK)


def write_page(file: Path, text: str) -> None:
    """Write a page to where somebody wants it.

    Raises:
        UsageError: that cannot be written.
    """
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{file} cannot be written: {error.strerror}.", "Name a file in a folder that is there."
        ) from error


@contextmanager
def without_numpy() -> Iterator[None]:
    """For a command that reads with Arrow and is done: of what is imported within, nothing finds NumPy.

    Arrow works without it, as the libraries do that come after it; to import it takes several times as long as Arrow
    itself, since its OpenBLAS starts a thread for each core, to multiply matrices, and each first waits busily. Who has
    imported either already goes on as before.
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
