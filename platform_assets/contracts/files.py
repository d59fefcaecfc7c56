"""How a source writes its text files: the dialect of its CSV, dates that are not ISO."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field

from platform_assets.contracts.errors import ContractError, check_declaration

Lines = Annotated[int, Field(ge=0, le=10_000)]
"""A number of lines to leave out."""

_ENDING = re.compile(r"(\.[a-z0-9_-]{1,16}){1,3}")
_NO_TEXT = {"idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "utf-7"}
"""Encodings of Python that are none of files."""
_OF_RECORDS = ("delimiter", "quote", "escape", "encoding", "columns", "widths", "skip_first", "skip_last")
_LINE_ENDS = "\r\n\0\ufeff\ufdd0"


@dataclass(frozen=True)
class Csv:
    r"""Declare how a source writes CSV, or text of fixed width, where it is not as RFC 4180 and UTF-8 have it.

    Args:
        delimiter: one character between fields, as `;` or a tab (`"\t"`).
        quote: one character around fields, doubled within them; None if quotes are text like any other.
        escape: one character that has a quote, a delimiter, a line end or itself taken as text. Before any other
            character it is text itself.
        encoding: by its name in Python, as `cp1252`, `latin-1` or `utf-16`.
        columns: names of all columns in the files' order, for files without a header. `""` is a column without a name.
        widths: characters of each of `columns`, in place of a delimiter. Blanks around a value are left out, and a line
            of another length refuses its row.
        skip_first: lines before the header, or before the first row of files without one.
        skip_last: records at the end that are no rows, such as totals. Blank lines do not count.
        nulls: texts that mean no value, as `("NA", "-9999")`, in columns without `nulls` of their own.
        decimal: the sign before decimals, `.` or `,`.
        thousands: one character between groups of three digits; by default it refuses the row.
        endings: other endings of such files, as `(".txt", ".dat")`.
    """

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    encoding: str = "utf-8"
    columns: tuple[str, ...] = ()
    widths: tuple[int, ...] = ()
    skip_first: Lines = 0
    skip_last: Lines = 0
    nulls: tuple[str, ...] = ()
    decimal: Literal[".", ","] = "."
    thousands: str | None = None
    endings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_declaration(self, "Csv(...)", self._problems)

    def _problems(self) -> Iterator[ContractError]:
        signs = {"delimiter": self.delimiter, "quote": self.quote, "escape": self.escape, "thousands": self.thousands}
        for name, sign in signs.items():
            if sign is not None and (len(sign) != 1 or sign in _LINE_ENDS):
                todo = f"Give `{name}` one character, and no line end{'' if name == 'delimiter' else ', or None'}."
                yield ContractError(f"Csv(...) has {name}={sign!r}, which is not one character.", todo, field=name)
        given = [sign for sign in (self.delimiter, self.quote, self.escape) if sign is not None]
        if len({*given}) < len(given) and self.escape != self.quote:
            what = "has one character for two of `delimiter`, `quote` and `escape`"
            yield ContractError(f"Csv(...) {what}.", "Give each another one.", field="delimiter")
        if self.thousands is not None and (self.thousands == self.decimal or self.thousands in "+-eE0123456789"):
            what = f"Csv(...) has thousands={self.thousands!r} beside decimal={self.decimal!r}."
            yield ContractError(what, 'Give `thousands` another sign, as "." beside ",".', field="thousands")
        if not _is_encoding(self.encoding):
            todo = "Name one that Python knows, as utf-8, cp1252, latin-1, utf-16 or shift_jis."
            yield ContractError(f"Csv(...) has the unknown encoding {self.encoding!r}.", todo, field="encoding")
        named = [name for name in self.columns if name]
        if len({*named}) < len(named) or (self.columns and not named):
            todo = 'Name each column once, and one that has no name "".'
            yield ContractError("Csv(...) names a column twice, or none.", todo, field="columns")
        if self.widths and (len(self.widths) != len(self.columns) or min(self.widths) < 1):
            what = f"Csv(...) has {len(self.widths)} widths for {len(self.columns)} columns, or a width below 1."
            yield ContractError(what, "Give one width for each of `columns`, in characters.", field="widths")
        for ending in self.endings:
            if not _ENDING.fullmatch(ending) or ending.startswith((".parquet", ".xls")):
                todo = "Give the end of files' names in small letters, as .txt."
                yield ContractError(f"Csv(...) cannot take files by the ending {ending!r}.", todo, field="endings")

    @property
    def dialect(self) -> dict[str, Any]:
        """Return the declarations that affect how records are read, whatever their fields mean."""
        return declared_parts(self, *_OF_RECORDS)


def declared_parts(declared: object, *names: str) -> dict[str, Any]:
    """Return which of some fields differ from their defaults, as JSON values."""
    values = {
        name: getattr(declared, name) for name in names if getattr(declared, name) != getattr(type(declared), name)
    }
    return {name: [*value] if isinstance(value, tuple) else value for name, value in values.items()}


def _is_encoding(name: str) -> bool:
    try:
        return codecs.lookup(name).name not in _NO_TEXT and bool("a".encode(name))
    except (LookupError, ValueError, TypeError):
        return False


_DIGITS = {"Y": r"\d{4}", "m": r"\d{1,2}", "d": r"\d{1,2}", "H": r"\d{1,2}", "M": r"\d{1,2}", "S": r"\d{1,2}"}
_DIGITS |= {"y": r"\d{2}", "I": r"0?[1-9]|1[0-2]", "f": r"\d{1,9}"}
_DIRECTIVES = _DIGITS | {"b": r"[A-Za-z]{3}", "B": r"[A-Za-z]{3,9}", "p": r"[AaPp][Mm]", "z": r"Z|[+-]\d{2}:?\d{2}"}
_SHORTEST = {**dict.fromkeys("mdHMS", r"\d{2}"), "I": r"0[1-9]|1[0-2]"}
"""Of numbers that others follow without anything between."""
_PARTS = re.compile(r"%(.)|([^%]+)|%")


def date_pattern(pattern: str, type_: str) -> tuple[str, dict[str, int]]:
    """Return a regular expression for whole texts of a `strptime` pattern, and the group of each directive.

    Raises:
        ValueError: a column of the type cannot have such a pattern; the text says why.
    """
    parts = [(found[1], found[2] or "") for found in _PARTS.finditer(pattern)]
    groups: dict[str, int] = {}
    regex = ""
    for n, (directive, text) in enumerate(parts):
        if not directive:
            if not text.isascii() or not text.isprintable() or {*text} & {*"'\\`"} or not text:
                raise ValueError("has a sign that no pattern may have")
            regex += re.escape(text)
            continue
        if directive not in _DIRECTIVES:
            raise ValueError(f"has %{directive}, and known are {', '.join(f'%{known}' for known in _DIRECTIVES)}")
        if directive in groups:
            raise ValueError(f"has %{directive} twice")
        groups[directive] = len(groups) + 1
        beside = [*parts[max(n - 1, 0) : n], *parts[n + 1 : n + 2]]
        is_dense = any(
            other in _DIGITS if other else text[:1].isdigit() or text[-1:].isdigit() for other, text in beside
        )
        regex += f"({_SHORTEST[directive] if is_dense and directive in _SHORTEST else _DIRECTIVES[directive]})"
    for names in ("Yy", "mbB", "d", "HI"):
        if len({*names} & groups.keys()) > 1:
            raise ValueError(f"has two of {', '.join(f'%{name}' for name in names)}")
        if names != "HI" and not {*names} & groups.keys():
            raise ValueError("lacks the year (%Y), the month (%m) or the day (%d)")
    if ("I" in groups) != ("p" in groups):
        raise ValueError("has one of %I and %p without the other")
    times = [{*"HI"}, {"M"}, {"S"}, {"f"}]
    if any(here & groups.keys() and not before & groups.keys() for before, here in pairwise(times)):
        raise ValueError("has minutes without hours, seconds without minutes, or a fraction without seconds")
    if "z" in groups and not {*"HI"} & groups.keys():
        raise ValueError("has an offset without a time")
    if type_ == "date" and groups.keys() & {*"HIMSfpz"}:
        raise ValueError("has a time, which a date has none of")
    return rf"^\s*{regex}\s*$", groups
