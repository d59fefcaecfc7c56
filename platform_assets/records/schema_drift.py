"""Schema drift: how columns that a source sent differ from those of a contract, as notes of arrivals.

A note is a sentence for a person that is read back here: arrivals keep their notes in manifests, so no other record is
needed to say which file showed a drift first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, NamedTuple

from platform_assets.contracts import Contract

Kind = Literal["extra", "missing", "wider"]

SOURCE_COLUMNS = "platform.source_columns"
"""Name, in the footer of a file that was read from a database, of the columns that its table has."""
_LONGEST = 120
_MOST = 100
"""Columns that the notes of one file name."""
_EXTRA = re.compile(r"extra column (.*) (kept in [a-z_]\w*|left out|refused)", re.DOTALL)
_DECLARED = re.compile(r"column ([a-z]\w*) ((is missing|came as).*)", re.DOTALL)
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_DIGITS = {"int": 9, "long": 18}
"""Digits of which all numbers fit."""


class Drift(NamedTuple):
    """A difference between a column of a source and its declaration; `what` follows the column's name in a sentence."""

    kind: Kind
    column: str
    what: str


@dataclass(frozen=True)
class DriftEvent:
    """A drift of a raw table, with the file that showed it first.

    Args:
        first: path of that file; of a source that is read its name has the offsets, or the position.
        since: when its publication was made.
        files: that showed it, the newest published at `last`.
    """

    table: str
    drift: Drift
    first: str
    arrival_date: date
    since: datetime
    last: datetime
    files: int


def extra_notes(names: Iterable[str], outcome: str) -> Iterator[str]:
    """Yield the notes of columns that no contract declares, the first hundred of them."""
    for number, name in enumerate(names):
        if number == _MOST:
            return
        short = name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"
        yield f"extra column {short or 'without a name'} {outcome}"


def missing_note(name: str, perhaps: str) -> str:
    """Return the note of a declared column that a file lacks, and of the column that may be it by another name."""
    return f"column {name} is missing" + (f", and {perhaps[:_LONGEST]} may be its new name" if perhaps else "")


def wider_note(name: str, came: str, declared: str) -> str | None:
    """Return the note of a number whose type holds more than the contract's; None if it does not.

    Floating-point numbers are not meant: programs write whole numbers with gaps so.
    """
    came_whole, came_scale = _digits(came)
    whole, scale = _digits(declared)
    if whole is None or came_whole is None or (came_whole <= whole and came_scale <= scale):
        return None
    return f"column {name} came as {came}, wider than {declared}: values that do not fit are refused"


def _digits(type_: str) -> tuple[int | None, int]:
    """Return the digits before and after the point that all values of a type have room for; None of other types."""
    if found := _DECIMAL.fullmatch(type_):
        return int(found[1]) - int(found[2]), int(found[2])
    return _DIGITS.get(type_), 0


def drift_in(note: str) -> Drift | None:
    """Return the drift that a note tells of; None of other notes."""
    if found := _EXTRA.fullmatch(note):
        return Drift("extra", found[1], found[2])
    if found := _DECLARED.fullmatch(note):
        return Drift("missing" if found[3] == "is missing" else "wider", found[1], found[2])
    return None


class Noted(NamedTuple):
    """Equal notes of arrivals of a table: the first arrival, when it and the newest were published, how many."""

    table: str
    notes: Collection[str]
    path: str
    arrival_date: date
    since: datetime
    last: datetime
    files: int


def is_declared(drift: Drift, contract: Contract) -> bool:
    """Return whether a contract says by now what a drift shows, so that later files drift no more."""
    if drift.kind == "extra":
        columns = [c for c in contract.columns if contract.source is None or c.name != contract.source.rescued_in]
        places = {".".join(map(str, column.path)) for column in columns}
        return drift.column in places.union(*(column.names for column in columns))
    now = next((column for column in contract.columns if column.name == drift.column), None)
    if now is None or drift.kind == "missing":
        return now is None or now.may_be_absent or any(name in drift.what for name in now.names[:-1])
    return f"wider than {now.type}:" not in drift.what


def events(noted: Iterable[Noted]) -> tuple[DriftEvent, ...]:
    """Return each drift of each table once, by the file that showed it first, the oldest first."""
    found: dict[tuple[str, Kind, str], DriftEvent] = {}
    for group in sorted(noted, key=lambda each: (each.since, each.arrival_date, each.path)):
        for drift in filter(None, map(drift_in, group.notes)):
            key = group.table, drift.kind, drift.column
            first = found.get(key)
            found[key] = DriftEvent(
                group.table,
                drift,
                first.first if first else group.path,
                first.arrival_date if first else group.arrival_date,
                first.since if first else group.since,
                max(first.last, group.last) if first else group.last,
                (first.files if first else 0) + group.files,
            )
    return tuple(found.values())
