"""The names of the tables where rows go that did not get through."""

from __future__ import annotations


def refused_table(raw: str) -> str:
    """Where rows refused at parsing go, for a raw table."""
    return f"refused.{raw.partition('.')[2]}"


def quarantine_table(silver: str) -> str:
    """Where rows that break a rule go, for a silver table."""
    return f"quarantine.{silver.partition('.')[2]}"
