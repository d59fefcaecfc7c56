"""The columns that a landed file has, held against those of its contract: the same in every format."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from itertools import islice

from platform_assets.contracts import Contract
from platform_assets.sources.names import LONGEST_NAME, folded, listed, repeated_names
from platform_assets.sources.text import Lines

RESERVED = frozenset({"_arrival", "_arrival_date", "_broken", "_file_path", "_line", "_metadata", "_place", "_rescued"})
"""Names the platform needs for itself while it parses a file."""

_WHERE_NULL = "where that means null, declare it with may_be_absent=True"
_SHOWN = 100
"""Objects of a file of which all names are looked at, whatever was seen before."""
_MOST_NAMES = 1000
"""Names that no contract declares, kept for what may be meant by a missing one."""


def wrong_columns(columns: Sequence[str], contract: Contract) -> str | None:
    """All that is wrong with the columns of a file that names them once.

    Spark does not tell capital letters from small ones, so names that differ only in them are one name twice.
    """
    longest = max((len(name) for name in columns), default=0)
    repeated = listed([name or "without a name" for name in repeated_names(columns)])
    reserved = ", ".join(sorted({name for name in columns if folded(name) in RESERVED}))
    reasons = (
        f"has a column with a name of {longest:,} characters, more than {LONGEST_NAME:,}; shorten it"
        if longest > LONGEST_NAME
        else None,
        f"has the column {repeated} more than once" if repeated else None,
        missing_columns(columns, contract),
        f"has the column {reserved}, a name the platform keeps for itself; rename it" if reserved else None,
    )
    return "; ".join(filter(None, reasons)) or None


def missing_columns(names: Collection[str], contract: Contract, where: str = "") -> str | None:
    """That a file lacks columns which it should have, what it may have instead, and what to do; None if it has all.

    A column that may be absent is missing where the file has its name in other letters, which is then a mistake.

    Args:
        names: of the file's columns.
        contract: of its table.
        where: it lacks them, if that needs to be said.
    """
    has = {folded(name) for name in names}
    missing = [c for c in contract.columns if c.name not in names and not (c.may_be_absent and c.name not in has)]
    if not missing:
        return None
    undeclared = {folded(name): name for name in names if name and name not in contract.column_names}
    close = (get_close_matches(column.name, undeclared, 1) for column in missing)
    meant = list(dict.fromkeys(undeclared[match] for matches in close for match in matches))
    parts = [
        f"lacks the column {', '.join(column.name for column in missing)}{where}",
        f"it has {', '.join(meant)}, which the contract does not declare" if meant else "",
        f"expected are {', '.join(contract.column_names)}",
        "" if any(column.may_be_absent or column.name in contract.needed for column in missing) else _WHERE_NULL,
    ]
    return "; ".join(part for part in parts if part)


class JsonNames:
    """The names in a file of JSON lines while it streams past; objects are read only until every column was seen.

    Args:
        contract: of its table.
    """

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._unseen = {f'"{name}"'.encode(): name for name in contract.column_names}
        self._undeclared: set[str] = set()
        self.objects = 0
        """How many were looked at: only of a file without any none, since lines are looked at until there are some."""

    def look(self, lines: Lines) -> None:
        """Take the names of some lines; a line that is no object says nothing, since its row is refused by itself."""
        if not self._unseen or (self.objects >= _SHOWN and not self._may_name(lines.content)):
            return
        for line in lines.whole():
            if self.objects < _SHOWN or self._may_name(line):
                self._take(line)
                if not self._unseen:
                    return

    def missing(self) -> str | None:
        """As `missing_columns`; nothing of a file without any object."""
        if not self.objects or not self._unseen:
            return None
        seen = {*self._contract.column_names} - {*self._unseen.values()}
        return missing_columns(seen | self._undeclared, self._contract, " in all its objects")

    def _may_name(self, content: bytes) -> bool:
        """Whether an object in it may have a column that was not seen; one can be written with escapes, too."""
        return b"\\u" in content or any(name in content for name in self._unseen)

    def _take(self, line: bytes) -> None:
        names = _names(line)
        if names is None:
            return
        self.objects += 1
        self._unseen = {written: name for written, name in self._unseen.items() if name not in names}
        others = (name for name in names - {*self._contract.column_names} if len(name) <= LONGEST_NAME)
        self._undeclared |= {*islice(others, _MOST_NAMES - len(self._undeclared))}


def _names(line: bytes) -> set[str] | None:
    """The names at the top of an object; None where the line is not just one."""
    try:
        # Numbers stay as they are written: Python makes none of one that is too long, which Spark may read.
        value = json.loads(line.decode("utf-8-sig"), parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    return set(value) if isinstance(value, dict) else None
