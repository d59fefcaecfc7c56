"""Numbers in sentences, the same in every room."""

from __future__ import annotations


def counted(number: int, noun: str, does: str = "") -> str:
    """A number with its noun, and what it does: 1 day, 2,000 days; 1 row waits, 2 rows wait."""
    if number == 1:
        return f"1 {noun}{f' {does}s' if does else ''}"
    return f"{number:,} {noun}s{f' {does}' if does else ''}"
