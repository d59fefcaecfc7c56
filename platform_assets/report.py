"""Say what a feature found as one value: parts that people read, and the data that programs get.

Put here what a report is made of. How parts look is elsewhere: in a terminal `cli.console`, in Markdown and on a page
`report_pages`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Literal, NamedTuple

Tone = Literal["", "bold", "bold red", "cyan", "dim", "green", "red", "yellow"]


class Mark(NamedTuple):
    """A few words in a tone of their own."""

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
    """A paragraph that somebody wrote."""

    text: str


@dataclass(frozen=True)
class Points:
    """Sentences, each on a line of its own.

    Args:
        quoted: whether they hold what others wrote.
    """

    lines: Sequence[str]
    quoted: bool = False


@dataclass(frozen=True)
class Table:
    """A table.

    Args:
        title: above it; in Markdown and on a page a heading stands there instead.
        columns: their names.
        rows: a cell for each column; those left out at the end are empty.
        right: names of columns aligned at the right: numbers, which are never folded.
        whole: names of columns whose values are never folded.
        quoted: names of columns that hold what others wrote, or hashes.
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
        entries: each with a name.
        right: whether names are numbers, aligned at the right.
    """

    entries: Sequence[tuple[str, Sequence[str]]]
    right: bool = False


@dataclass(frozen=True)
class Calendar:
    """A day in each cell: a few characters, a shade from 0 to 4, and all of it in words. Only a page shows it.

    Args:
        key: what the shades mean.
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
    """A file, as it is written. Only a page shows it."""

    text: str


@dataclass(frozen=True)
class Details:
    """Parts that a page shows below a line that opens them; without a title they are open.

    Args:
        everywhere: whether they are shown elsewhere as well; only a page has room for the others.
    """

    title: str
    parts: Sequence[Part]
    everywhere: bool = False


Part = str | Note | Heading | Quote | Points | Table | Facts | Calendar | Plot | Listing | Details
"""A text is a paragraph, of whatever origin: nothing in it is taken for markup."""


@dataclass(frozen=True)
class Report:
    """What a feature found.

    Args:
        parts: for people, in their order; a generator is walked once, and only for people.
        data: for programs, as JSON takes it after `plain`.
        needs_a_look: whether a person should do something.
    """

    parts: Iterable[Any]
    data: Any
    needs_a_look: bool = False


def picked(value: object, names: str, **more: object) -> dict[str, Any]:
    """Return some fields of a value, by name, and others beside them.

    Args:
        names: of the fields, with blanks between.
    """
    return {name: getattr(value, name) for name in names.split()} | more


def plain(value: Any) -> Any:
    """Return a value as JSON takes it: records as objects of the fields that they show, what has no form as text."""
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
