"""The names of the tables where rows go that did not get through."""

from __future__ import annotations

from platform_assets.contracts.table import Contract


def refused_table(contract: Contract) -> str:
    """Where rows refused at parsing go, for a raw table."""
    return f"refused.{contract.table}"


def quarantine_table(contract: Contract) -> str:
    """Where rows that break a rule go, for a silver table."""
    return f"quarantine.{contract.table}"
