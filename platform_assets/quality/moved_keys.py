"""Records that moved between keys that are computed and keys that are carried over: together the day is no account."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from platform_assets.contracts import Contract
from platform_assets.quality.findings import Finding
from platform_assets.words import counted


@dataclass(frozen=True)
class MovedKeys:
    """What moved into or out of the keys that alone are computed, since the rest of a day was.

    Args:
        source: table of the records.
        examples: a few of them, as people may see them.
        others: a few of the keys that they went to or came from.
        unknown: why nobody can tell any more; empty where it is known.
    """

    source: str
    records: int = 0
    examples: Sequence[str] = ()
    others: Sequence[str] = ()
    unknown: str = ""


def moved_keys_finding(contract: Contract, day: date, moved: MovedKeys) -> Finding:
    """Return a day whose computed rows and carried rows would count records twice, or not at all; it always blocks."""
    if moved.unknown:
        what, then = f"whether records of {moved.source} moved between keys is not known: {moved.unknown}", ""
    else:
        what = f"{counted(moved.records, 'record')} of {moved.source} moved between these keys and others"
        then = f"; name {' and '.join(moved.others)}, too, or" if moved.others else ";"
    first = f", first {moved.examples[0]}" if moved.examples else ""
    todo = f"{then or ';'} compute the day whole"
    return Finding(
        check="contract",
        day=day,
        severity="block",
        message=f"{contract.name} on {day}: {what}{first}. Beside what is carried over they would count twice or not "
        f"at all{todo}",
        expected="no record moved between the computed keys and others",
        actual=what,
        examples=tuple(moved.examples),
        numbers={"records_moved": moved.records},
    )
