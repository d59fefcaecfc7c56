"""The names by which rows are read that did not get through."""

from __future__ import annotations


def refused_table(raw: str) -> str:
    """Return where rows refused at parsing go, for a raw table."""
    return f"refused.{raw.partition('.')[2]}"


def quarantine_table(silver: str) -> str:
    """Return where rows that break a rule go, for a silver table."""
    return f"quarantine.{silver.partition('.')[2]}"


def with_quarantine(table: str) -> tuple[str, ...]:
    """Return a table and, of a silver one, its quarantine: a gold table of the same name has none."""
    return (table, quarantine_table(table)) if table.startswith("silver.") else (table,)


SUPERSEDED = "superseded."
"""Before the name of a silver table without its layer: the rows of which newer versions count, looked up in raw."""
