"""Deletes with nothing but their key: without an event time they lie on the day they arrived."""

from __future__ import annotations

from platform_assets.contracts import Contract
from platform_assets.words import counted

UNDATED = "brings deletes without "
"""How the note of an arrival begins that has deletes which have found no record yet."""


def waiting_note(contract: Contract, keys: int) -> str:
    """Say of an arrival for a raw table how many keys of its deletes have no record yet."""
    lack = f"{UNDATED}{contract.event_time}: {counted(keys, 'key')} of them without a record"
    return f"{lack} within {counted(contract.restatement_window_days, 'day')}, for which they wait"
