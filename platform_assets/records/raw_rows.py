"""Raw rows on disk, also for readers without Spark: their kinds, and how lines are copied for Spark."""

from __future__ import annotations

RECORD, VOID, TOMBSTONE, WITHDRAWAL, ERASED = "record", "void", "tombstone", "withdrawal", "erased"
"""The first two were delivered. A tombstone says that another day has a newer version of a key; a withdrawal, that all
rows of an arrival on a day count no more. An erased row has lost everything but its origin: it is counted, and enters
no table."""

BREACH = "breach"
"""Never on disk: while versions are compared, a record whose breach of a rule takes its key back."""


ENDING = ".lines"
"""Of the copy, after the file's whole name: one that Spark does not unpack."""

MARK = "\ufdd0"
"""Stands, with a letter after it, for what Spark would not read within quotes, and for itself; no text has it."""

MARKED = ((f"{MARK}n", "\n"), (f"{MARK}r", "\r"), (f"{MARK}z", "\0"), (f"{MARK}m", MARK))
"""Each escape and the text it stands for, in the order of decoding."""

BROKEN = f"{MARK}b"
"""Encloses the problem of a broken record, at the beginning of its line."""

MARKED_IN_BROKEN = ((f"{MARK}q", '"'), (f"{MARK}c", ","), *MARKED)
"""As `MARKED`, for a broken record, so that its line splits into one field without quotes."""


WHOLE = f"{MARK}w"
"""Stands, in a line of JSON whose values were looked up by their paths, before the object as it was delivered."""


UNREADABLE = "_unreadable"
"""Field of a line that a source which is read has written: why nothing could be made of the record."""


def restored(text: str) -> str:
    """Return the original text of a record that was put on one line."""
    for written, meant in MARKED_IN_BROKEN:
        text = text.replace(written, meant)
    return text
