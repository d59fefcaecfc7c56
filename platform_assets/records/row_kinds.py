"""Kinds of raw rows, for those too who look at raw files without Spark."""

from __future__ import annotations

RECORD, VOID, TOMBSTONE, WITHDRAWAL, ERASED = "record", "void", "tombstone", "withdrawal", "erased"
"""The first two were delivered. A tombstone says that another day has a newer version of a key, a withdrawal that all
rows of an arrival on a day count no more. What is erased has lost everything but where it came from: it is counted,
and enters no table."""

BREACH = "breach"
"""Never on disk: while versions are compared, a record whose breach of a rule takes its key back."""
