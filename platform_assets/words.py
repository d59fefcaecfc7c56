"""Write numbers and lists in sentences, alike in every room."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_FIGURE = re.compile(r"(?<!\S)[^\s'\"]*\d[^\s'\"]*")
"""Sizes, times and hashes; not what is quoted, as names of columns are."""


def counted(number: int, noun: str, does: str = "") -> str:
    """Return a number with its noun, and what it does: 1 day, 2,000 days; 1 row waits, 2 rows wait."""
    if number == 1:
        return f"1 {noun}{f' {does}s' if does else ''}"
    return f"{number:,} {noun}s{f' {does}' if does else ''}"


def size(count: int) -> str:
    """Return bytes for people."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} GB"


def lasting(seconds: float) -> str:
    """Return a time for people."""
    if seconds < 120:
        return f"{seconds:,.1f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def without_figures(message: str) -> str:
    """Return what is the same of messages that differ in figures alone."""
    return _FIGURE.sub("…", message)


def alike(files: Iterable[tuple[str, str]], most: int | None = None) -> Iterator[str]:
    """Yield one line for all files of which the same is to be said but for figures, with one of them as an example.

    Args:
        files: paths, each with what is to be said of it.
        most: lines; how many files have others is the last one then.
    """
    by_kind: dict[str, list[tuple[str, str]]] = {}
    for path, message in dict.fromkeys(files):  # a file that two tables take is told once
        by_kind.setdefault(without_figures(message), []).append((path, message))
    kinds = list(by_kind.values())
    for (path, message), *others in kinds[:most]:
        more = f" (and {counted(len(others), 'other file')} likewise)" if others else ""
        yield f"{path}{more} {message}"
    if rest := [] if most is None else kinds[most:]:
        yield f"{counted(sum(map(len, rest)), 'more file')}, for {counted(len(rest), 'other reason')}"
