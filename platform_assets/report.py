"""Reports of features as one value: parts for people, and data for programs.

`cli.console` shows parts in a terminal. Here they become Markdown, or a self-contained page: one file, no script,
escaped throughout.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from decimal import Decimal
from html import escape
from io import StringIO
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from platform_assets.words import as_code, visible

if TYPE_CHECKING:
    from markupsafe import Markup


Tone = Literal["", "bold", "bold red", "cyan", "dim", "green", "red", "yellow"]


class Mark(NamedTuple):
    """A few words in a tone."""

    text: str
    tone: Tone


Cell = str | Mark | tuple[str, ...]
"""Words, marked words, or lines."""
Figure = float | Decimal | None
Pair = tuple[int | Decimal | None, int | Decimal | None]
"""A figure before and after; None where there was nothing."""


@dataclass(frozen=True)
class Note:
    """A line that begins with a marked word; with `todo` also what to do, on a line below.

    Its mark comes second, so that one reads the tone first.
    """

    tone: Tone
    mark: str
    text: str = ""
    todo: str = ""


@dataclass(frozen=True)
class Heading:
    """A heading; `level` 1 is that of the whole report."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Quote:
    """A paragraph written by a person."""

    text: str


@dataclass(frozen=True)
class Points:
    """Sentences, each on a line of its own.

    Args:
        quoted: whether they contain foreign text.
    """

    lines: Sequence[str]
    quoted: bool = False


@dataclass(frozen=True)
class Table:
    """A table.

    Args:
        title: above it; in Markdown and on a page it is a heading.
        rows: a cell for each column; missing ones at the end are empty.
        right: names of right-aligned columns: numbers, which are never wrapped.
        whole: names of columns whose values are never wrapped.
        quoted: names of columns with foreign text or hashes.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    right: Collection[str] = ()
    whole: Collection[str] = ()
    quoted: Collection[str] = ()


@dataclass(frozen=True)
class Facts:
    """Names or numbers, each with its lines.

    Args:
        right: whether names are numbers, right-aligned.
    """

    entries: Sequence[tuple[str, Sequence[str]]]
    right: bool = False


@dataclass(frozen=True)
class Calendar:
    """A day in each cell: a few characters, a shade from 0 to 4, and its description. Only a page shows it.

    Args:
        key: meaning of the shades.
    """

    title: str
    key: str
    days: Mapping[date, tuple[str, int, str]]


@dataclass(frozen=True)
class Plot:
    """Figures of days before and after, as two lines. Only a page shows it."""

    title: str
    days: Mapping[date, tuple[Figure, Figure]]


@dataclass(frozen=True)
class Listing:
    """A file, as written. Only a page shows it."""

    text: str


@dataclass(frozen=True)
class Details:
    """Parts that a page shows below a line that opens them; without a title they are open.

    Args:
        everywhere: whether they are shown elsewhere as well; others are only on a page.
    """

    title: str
    parts: Sequence[Part]
    everywhere: bool = False


Part = str | Note | Heading | Quote | Points | Table | Facts | Calendar | Plot | Listing | Details
"""A text is a paragraph: nothing in it is taken for markup."""


@dataclass(frozen=True)
class Report:
    """A feature's report.

    Args:
        parts: for people, in their order; a generator is walked once, and only for people.
        data: for programs, as JSON after `plain`.
        needs_a_look: whether a person should do something.
    """

    parts: Iterable[Any]
    data: Any
    needs_a_look: bool = False


def picked(value: object, names: str, **more: object) -> dict[str, Any]:
    """Return some fields of a value by name, with additional ones."""
    return {name: getattr(value, name) for name in names.split()} | more


def plain(value: Any) -> Any:
    """Return a value for JSON: records as objects of their shown fields, values without a form as text."""
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value) if field.repr}
    if hasattr(value, "model_dump"):
        return plain(value.model_dump())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value), key=str)
    return str(value)


_BEFORE, _AFTER = "#8a5a00", "#0b57d0"
_MANY = 100
"""Days from which on marks would hide each other."""
_PROLOGUE = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_BESIDES = re.compile(r"\s*<metadata>.*?</metadata>|\s*<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)
"""What Matplotlib says of itself, and a style for the whole page that the picture stands in."""
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")


def markdown(parts: Iterable[Part]) -> list[str]:
    """Return a report as lines of Markdown, without parts meant only for a page."""
    lines: list[str] = []
    for part in parts:
        if block := markdown(part.parts if part.everywhere else ()) if isinstance(part, Details) else [*_block(part)]:
            lines += ["", *block] if lines else block
    return lines


def _block(part: Part) -> Iterator[str]:
    match part:
        case str():
            yield from [part] if part else []
        case Heading():
            yield f"{'#' * part.level} {part.text}"
        case Quote():
            yield as_code(part.text)
        case Points():
            yield from (f"- {as_code(line) if part.quoted else line}" for line in part.lines)
        case Note():
            yield f"- **{part.mark}**: {part.text} {part.todo}".rstrip()
        case Facts():
            yield from (f"- {name}: {'; '.join(lines)}" for name, lines in part.entries)
        case Table():
            yield from [f"**{part.title}**", ""] if part.title else []
            yield _row(part.columns)
            yield _row(["---:" if name in part.right else "---" for name in part.columns])
            for row in part.rows:
                cells = zip_longest(part.columns, map(_text, row), fillvalue="")
                yield _row([as_code(cell) if cell and name in part.quoted else cell for name, cell in cells])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(cell: Cell) -> str:
    if isinstance(cell, Mark):
        return cell.text
    return cell if isinstance(cell, str) else "; ".join(cell)


def page(title: str, parts: Iterable[Part]) -> str:
    """Return a report as a page of HTML without scripts."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("platform_assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: visible(value, breaks=True) if type(value) is str else value,
    )
    environment.filters.update(
        beside=lambda columns, row: zip_longest(columns, row, fillvalue=""),
        drawn=_drawn,
        kind=lambda part: type(part).__name__,
        months=_months,
        spans=_spans,
    )
    return environment.get_template("report.html").render(title=title, parts=list(parts))


def _spans(text: str) -> Markup:
    """Return text as HTML, with Markdown's code marked."""
    from markupsafe import Markup

    shown = str(Markup.escape(visible(text, breaks=True)))
    return Markup(_CODE.sub(r"<code>\2</code>", shown))  # noqa: S704 escaped above


def _months(days: Mapping[date, tuple[str, int, str]]) -> list[tuple[str, list[tuple[str, int, str] | None]]]:
    """Return the months with such days, each with the content of its days."""
    months = sorted({(day.year, day.month) for day in days})
    return [
        (f"{year}-{month:02}", [days.get(date(year, month, n + 1)) for n in range(monthrange(year, month)[1])])
        for year, month in months
    ]


def _drawn(plot: Plot) -> Markup:
    """Draw two lines by day: before is dashed with open circles, after is solid with filled squares."""
    from markupsafe import Markup
    from matplotlib import rc_context
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
    from matplotlib.figure import Figure

    days = sorted(plot.days)
    at = date2num(days)
    size, width = (5.0, 1.6) if len(days) <= _MANY else (0.0, 1.2)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": plot.title, "font.family": "sans-serif", "font.size": 9}):
        figure = Figure(figsize=(7.2, 2.3), layout="constrained")
        axes = figure.subplots()
        before, after = (_numbers([plot.days[day] for day in days], side) for side in (0, 1))
        axes.plot(at, before, "o--", color=_BEFORE, mfc="white", ms=size, lw=width, label="before")
        axes.plot(at, after, "s-", color=_AFTER, ms=size, lw=width, label="after")
        axes.set_title(plot.title, loc="left", fontsize=10)
        axes.set_ylim(bottom=min(0.0, *axes.get_ylim()))
        locator = AutoDateLocator()
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        axes.yaxis.set_major_formatter("{x:,.10g}")
        axes.grid(axis="y", alpha=0.3)
        axes.legend(loc="best", fontsize=8, framealpha=0.9)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        out = StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    svg = _BESIDES.sub("", _PROLOGUE.sub("", out.getvalue()))
    label = f'<svg role="img" aria-label="{escape(plot.title)}, before and after" '
    return Markup(svg.replace("<svg ", label, 1))  # noqa: S704 made of titles that are escaped, and of numbers


def _numbers(pairs: Sequence[tuple[Figure, Figure]], side: int) -> list[float]:
    return [float("nan") if pair[side] is None else float(pair[side] or 0) for pair in pairs]
