"""How a landed text file is copied for Spark, which splits files at line ends: each record on a line of its own."""

from __future__ import annotations

ENDING = ".lines"
"""Of the copy, after the file's whole name: one that Spark does not unpack."""

MARK = "\ufdd0"
"""Stands, with a letter after it, for what Spark would not read within quotes, and for itself; no text has it."""

MARKED = ((f"{MARK}n", "\n"), (f"{MARK}r", "\r"), (f"{MARK}z", "\0"), (f"{MARK}m", MARK))
"""What is written, and what it stands for, in the order in which it has to be put back."""


def restored(text: str) -> str:
    """A text as it was before its record came onto one line."""
    for written, meant in MARKED:
        text = text.replace(written, meant)
    return text
