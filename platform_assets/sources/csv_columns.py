"""The header of a CSV file, held against its contract, and the lines below it that no header may stand above."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection
from contextlib import suppress

from platform_assets.contracts import Contract
from platform_assets.records.line_copies import BROKEN, MARK, restored
from platform_assets.sources.columns import wrong_columns
from platform_assets.sources.limits import Limits
from platform_assets.sources.names import listed
from platform_assets.sources.text import UNMARKED_UTF_16, Lines

_MOST_FIELDS = 20_000
"""Spark's CSV parser gives up on a whole file at a line with more."""
_SHOWN = 100
"""Characters of a line."""
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}
"""What programs write in place of commas where a comma is the sign of decimals, or on request."""


class CsvColumns:
    """The columns of a CSV file while it streams past.

    Args:
        contract: of its table.
        limits: of its columns.
    """

    def __init__(self, contract: Contract, limits: Limits) -> None:
        self.line: str = ""
        self.columns: tuple[str, ...] = ()
        self.wrong: str | None = None
        """All that is wrong with the header."""
        self._contract = contract
        self._limits = limits
        self._needed = {*contract.key, contract.event_time or ""}
        ends = rb'[ \t]*(?:[",\r\n]|' + MARK.encode() + rb"|\Z)"
        self._may_be_header = re.compile(re.escape((contract.event_time or "").encode()) + ends)

    def look(self, lines: Lines) -> str | None:
        """Find what is wrong with the first line that cannot be taken, besides the header."""
        if lines.before == 0:
            self.line = lines.whole()[0].decode("utf-8-sig")
            self.wrong = self._wrong_header()
        if max(map(len, lines.bare)) < _MOST_FIELDS and not self._may_be_header.search(lines.content):
            return None
        numbered = enumerate(lines.whole(), lines.before + 1)
        wrong = (self._wrong_line(line, number) for number, line in numbered if number > 1)
        return next(filter(None, wrong), None)

    def _wrong_header(self) -> str | None:
        fault, text = _unbroken(self.line)
        if text.count(",") >= _MOST_FIELDS:
            return self._limits.too_many_columns(text.count(",") + 1)
        try:
            names = [restored(name) for name in next(csv.reader([text]), [""])]
        except csv.Error:
            return f"has a field of more than {csv.field_size_limit():,} characters in row 1, header included"
        if reason := self._limits.too_many_columns(len(names)):
            return reason
        self.columns = tuple(map(self._column, names))
        reasons = [
            wrong_columns(self.columns, self._contract),
            f"has a header whose {fault}" if fault else None,
            self._padded(names),
        ]
        if reasons[0] is not None and (other := _other_format(text, names, self._contract)):
            return other
        if text and not {*self.columns} & {*self._contract.column_names}:
            reasons.append(f"its first line was taken for the header: {text[:_SHOWN]}")
        return "; ".join(filter(None, reasons)) or None

    def _column(self, name: str) -> str:
        """The column that a name in a header means: blanks beside one of the contract's are no part of it."""
        bare = name.strip()
        return bare if bare in self._contract.column_names or not bare else name

    def _padded(self, names: Collection[str]) -> str | None:
        """That a column of texts has blanks beside its name: they are not numbers, whose blanks mean nothing."""
        texts = {column.name for column in self._contract.columns if column.type == "string"}
        padded = [repr(name) for name in names if name != (bare := name.strip()) and bare in texts]
        if not padded:
            return None
        return f"has blanks within the name {listed(padded)}, and perhaps beside the texts below it; write it without"

    def _wrong_line(self, line: bytes, number: int) -> str | None:
        if len(line) > _MOST_FIELDS and line.count(b",") >= _MOST_FIELDS:
            return f"has {line.count(b',') + 1:,} fields in row {number}, header included"
        if self._may_be_header.search(line):
            with suppress(csv.Error):  # a field is larger than this reader takes: no header
                read = csv.reader([_unbroken(line.decode())[1]], skipinitialspace=True)
                names = tuple(map(self._column, next(read)))
                if self._needed.issubset(names) and names != self.columns:
                    return f"has another header in row {number}, header included; deliver what is below it by itself"
        return None


def _unbroken(line: str) -> tuple[str, str]:
    """What is wrong with a record that is marked as broken, and the record as it was delivered."""
    if not line.startswith(BROKEN):
        return "", line
    _, fault, text = line.split(BROKEN, 2)
    return fault, restored(text)


def _other_format(header: str, names: Collection[str], contract: Contract) -> str | None:
    """What a file is whose header names too little as CSV, if it is plain: all of its records would read wrong."""
    if "\0" in header:
        return UNMARKED_UTF_16
    declared = {*contract.column_names}
    for sign, called in _SEPARATORS.items():
        if 0 < header.count(sign) < _MOST_FIELDS and len(declared.intersection(_split(header, sign))) > len(
            declared.intersection(names)
        ):
            return f"looks separated by {called} instead of commas; separate and quote as RFC 4180 says"
    return None


def _split(header: str, sign: str) -> set[str]:
    return {name.strip() for name in next(csv.reader([header], delimiter=sign))}
