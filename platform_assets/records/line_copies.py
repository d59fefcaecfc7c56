"""How a landed text file is copied for Spark, which splits files at line ends: each record on a line of its own."""

from __future__ import annotations

ENDING = ".lines"
"""Of the copy, after the file's whole name: one that Spark does not unpack."""

MARK = "\ufdd0"
"""Stands, with a letter after it, for what Spark would not read within quotes, and for itself; no text has it."""

MARKED = ((f"{MARK}n", "\n"), (f"{MARK}r", "\r"), (f"{MARK}z", "\0"), (f"{MARK}m", MARK))
"""What is written, and what it stands for, in the order in which it has to be put back."""

BROKEN = f"{MARK}b"
"""Stands before and after what is wrong with a broken record, at the beginning of its line."""

MARKED_IN_BROKEN = ((f"{MARK}q", '"'), (f"{MARK}c", ","), *MARKED)
"""As `MARKED`, of a broken record: so that whoever splits its line finds one field without quotes."""


def restored(text: str) -> str:
    """Return a text as it was before its record came onto one line."""
    for written, meant in MARKED_IN_BROKEN:
        text = text.replace(written, meant)
    return text
