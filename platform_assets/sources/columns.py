"""Compare the columns of a landed file with its contract: names in every format, headers of CSV."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from typing import Any

from platform_assets.contracts import Column, Contract
from platform_assets.records.raw_rows import BROKEN, MARK, UNREADABLE, WHOLE, restored
from platform_assets.records.schema_drift import extra_notes, missing_note
from platform_assets.sources.limits import Limits
from platform_assets.sources.text import BLANK, UNMARKED_UTF_16, Lines

RESERVED = frozenset({"_arrival", "_arrival_date", "_broken", "_file_path", "_line", "_metadata", "_place", "_rescued"})
"""Names the platform needs for itself while it parses a file."""

_WHERE_NULL = "where that means null, declare it with may_be_absent=True"
_SHOWN = 100
"""Objects of a file whose names are all looked at."""
_MOST_NAMES = 1000
"""Names that no contract declares, kept for what may be meant by a missing one."""

LONGEST_NAME = 1000
"""Characters of a column's name that is looked at."""
_NAMES_SHOWN = 10
_LETTERS_SHOWN = 60
_MOST_FIELDS = 20_000
"""Spark's CSV parser gives up on a whole file at a line with more."""
Path = tuple[str | int, ...]
"""Of a value in an object of JSON."""
_LINE_SHOWN = 100
"""Characters of a line."""
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}
"""What programs write in place of commas where a comma is the sign of decimals, or on request."""


def wrong_columns(columns: Sequence[str], contract: Contract) -> str | None:
    """Return all faults of the columns of a file that names them once.

    Spark ignores case, so names that differ only in case are one name twice.
    """
    assert contract.source is not None
    longest = max((len(name) for name in columns), default=0)
    extra, kept_in = extra_columns(columns, contract), contract.source.rescued_in
    repeated = listed([name or "without a name" for name in repeated_names(columns)])
    reserved = ", ".join(sorted({name for name in columns if folded(name) in RESERVED}))
    reasons = (
        f"has a column with a name of {longest:,} characters, more than {LONGEST_NAME:,}; shorten it"
        if longest > LONGEST_NAME
        else None,
        f"has the column {repeated} more than once" if repeated else None,
        missing_columns(columns, contract),
        f"has the column {reserved}, a name the platform keeps for itself; rename it" if reserved else None,
        f"has the column {kept_in}, in which {contract.name} keeps those that it does not declare; rename `rescued_in` "
        "of its source"
        if kept_in in columns
        else None,
        f"has the column {listed(extra)}, which the contract does not declare, and its source has schema_drift='fail'; "
        "declare it, or rescue or ignore it"
        if extra and contract.source.schema_drift == "fail"
        else None,
    )
    return "; ".join(filter(None, reasons)) or None


def missing_columns(names: Collection[str], contract: Contract, where: str = "") -> str | None:
    """Return that a file lacks columns, similar names in it, and what to do; None if it has all.

    A column that may be absent counts as missing if the file has its name in other letters, which is then a mistake.
    """
    if not (missing := _missing(names, contract)):
        return None
    renamed_to = _renamed_to(missing, names, contract)
    meant = list(dict.fromkeys(renamed_to.values()))
    parts = [
        f"lacks the column {', '.join(map(shown_in_files, missing))}{where}",
        f"it has {', '.join(meant)}, which the contract does not declare" if meant else "",
        f"expected are {', '.join(map(shown_in_files, contract.columns))}",
        "" if any(column.may_be_absent or column.name in contract.needed for column in missing) else _WHERE_NULL,
    ]
    return "; ".join(part for part in parts if part)


def _missing(names: Collection[str], contract: Contract) -> list[Column]:
    has = {folded(name) for name in names}
    return [c for c in contract.columns if c.name not in names and not (c.may_be_absent and c.name not in has)]


def _renamed_to(missing: Sequence[Column], names: Iterable[str], contract: Contract) -> dict[str, str]:
    """Return what missing columns may be called now: names like theirs that no contract declares."""
    new = {folded(name): name for name in names if name and name not in contract.column_names}
    close = {column.name: get_close_matches(column.name, new, 1) for column in missing}
    return {name: new[found] for name, matches in close.items() for found in matches}


def extra_columns(names: Iterable[str], contract: Contract) -> list[str]:
    """Return the names that a contract does not declare."""
    kept_in = contract.source and contract.source.rescued_in
    return [name for name in names if name not in contract.column_names or name == kept_in]


def drift_notes(
    names: Collection[str], contract: Contract, wider: Iterable[str] = (), outcome: str = ""
) -> tuple[str, ...]:
    """Return notes of how the columns of a file differ from those of its contract; none where it has none of these.

    Args:
        outcome: what becomes of extra columns; by default as the source declares.
    """
    assert contract.source is not None
    if not {*names} & {*contract.column_names}:
        return ()
    missing = _missing(names, contract)
    meant = _renamed_to(missing, names, contract)
    return (
        *(missing_note(column.name, meant.get(column.name, "")) for column in missing),
        *extra_notes(extra_columns(names, contract), outcome or contract.source.drift_outcome),
        *wider,
    )


def shown_in_files(column: Column) -> str:
    """Return a column's name, and its name or path in files if it differs."""
    place = column.source_name or ".".join(map(str, column.path))
    return f"{column.name} (as {place})" if place else column.name


def renamed(names: Iterable[str], contract: Contract) -> tuple[str, ...]:
    """Return the names of a file's columns in its contract."""
    declared = {column.source_name: column.name for column in contract.columns if column.source_name}
    return tuple(declared.get(name, name) for name in names)


class JsonNames:
    """Collect the names in a file of JSON lines as it streams past; parse objects until every column was seen."""

    def __init__(self, contract: Contract, *, is_marked: bool = False) -> None:
        self._contract = contract
        self._is_marked = is_marked
        kept_in = contract.source and contract.source.rescued_in
        self._declared = [name for name in contract.column_names if name != kept_in]
        self._unseen = {f'"{name}"'.encode(): name for name in self._declared}
        self._paths = {path for c in contract.columns for path in ([c.path] if c.path else [(n,) for n in c.names])}
        self._undeclared: dict[str, None] = {}
        self.objects = 0
        """Number of parsed objects; 0 means that the file has none."""

    def look(self, lines: Lines) -> None:
        """Collect the names of some lines, except lines that are not objects: these rows are refused alone."""
        names_more = bool(self._unseen) and self._may_name(lines.content)
        some = lines.whole() if self.objects < _SHOWN or names_more else lines.content.lstrip(BLANK).split(b"\n", 1)[:1]
        for number, line in enumerate(some):
            if number == 0 or self.objects < _SHOWN or (self._unseen and self._may_name(line)):
                self._take(line)

    def missing(self) -> str | None:
        """Return missing columns; none for a file without any object."""
        if not self.objects or not self._unseen:
            return None
        return missing_columns(self._names, self._contract, " in all its objects")

    @property
    def notes(self) -> tuple[str, ...]:
        """Return how the names differ from the contract's, of the first hundred objects and some later ones."""
        return drift_notes(self._names, self._contract) if self.objects else ()

    @property
    def _names(self) -> list[str]:
        unseen = {*self._unseen.values()}
        return [name for name in self._declared if name not in unseen] + [*self._undeclared]

    def _may_name(self, content: bytes) -> bool:
        """Return whether an object may have an unseen column; its name can be written with escapes, too."""
        return b"\\u" in content or any(name in content for name in self._unseen)

    def _take(self, line: bytes) -> None:
        text = line.decode("utf-8-sig", "replace")  # decoded before: it is sound
        flat, _, whole = text.partition(WHOLE) if self._is_marked else (text, "", "")
        found = _object(restored(flat) if self._is_marked else flat)
        if found is None:
            return
        self.objects += 1
        self._unseen = {written: name for written, name in self._unseen.items() if name not in found}
        delivered = (_object(restored(whole)) or {}) if whole else found
        if UNREADABLE in delivered:  # a record of a reading, with fields that say why its row is refused
            return
        names = _others(delivered, self._paths) if whole else found
        others = (_sound(name) for name in names if name not in self._declared and len(name) <= LONGEST_NAME)
        self._undeclared |= dict.fromkeys(islice(others, _MOST_NAMES - len(self._undeclared)))


def _others(value: Mapping[str, Any], paths: Collection[Path], above: Path = ()) -> Iterator[str]:
    """Yield where an object has something that no column has, by names joined with points."""
    for name, inner in value.items():
        path = (*above, name)
        if path not in paths and inner is not None:
            is_on_the_way = any(each[: len(path)] == path for each in paths)
            if is_on_the_way and isinstance(inner, dict):
                yield from _others(inner, paths, path)
            elif not is_on_the_way:
                yield ".".join(map(str, path))


def _sound(name: str) -> str:
    """Return a name with halves of characters as JSON writes them, for nothing can store these."""
    return name.encode(errors="backslashreplace").decode()


def _object(line: str) -> dict[str, Any] | None:
    """Return an object of JSON, numbers as texts; None if the line is not exactly one object."""
    try:
        # Numbers stay as they are written: Python makes none of one that is too long, which Spark may read.
        value = json.loads(line, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def folded(name: str) -> str:
    """Return a form shared by names that are the same name to Spark.

    Spark treats letters as the same that share an upper-case or a lower-case letter: also an i with two dots.
    """
    return name.upper().casefold().replace("i\u0307", "i")


def repeated_names(names: Sequence[str]) -> list[str]:
    """Return the names that occur more than once, sorted."""
    times = Counter(map(folded, names))
    return sorted({name for name in names if times[folded(name)] > 1})


def listed(names: Collection[str]) -> str:
    """Return the first few of some names, and how many more there are: a file may have any number, of any length."""
    shown = [
        name if len(name) <= _LETTERS_SHOWN else f"{name[:_LETTERS_SHOWN]}…" for name in islice(names, _NAMES_SHOWN)
    ]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


class CsvColumns:
    """Columns of a CSV file while it streams past."""

    def __init__(self, contract: Contract, limits: Limits) -> None:
        self.line: str = ""
        self.columns: tuple[str, ...] = ()
        self.wrong: str | None = None
        """All that is wrong with the header."""
        self._contract = contract
        self._limits = limits
        self._needed = {*contract.key, contract.event_time or ""}
        ends = rb'[ \t]*(?:[",\r\n]|' + MARK.encode() + rb"|\Z)"
        names = contract.column(contract.event_time).names if contract.event_time else ("",)
        self._may_be_header = re.compile(b"(?:" + b"|".join(re.escape(name.encode()) for name in names) + b")" + ends)

    def look(self, lines: Lines) -> str | None:
        """Return the problem of the first line that cannot be ingested, also of the header."""
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
            reasons.append(f"its first line was taken for the header: {text[:_LINE_SHOWN]}")
        return "; ".join(filter(None, reasons)) or None

    def _column(self, name: str) -> str:
        """Return the column for a name in a header, ignoring blanks around the contract's name."""
        [bare] = renamed([name.strip()], self._contract)
        return bare if bare in self._contract.column_names or not bare else name

    def _padded(self, names: Collection[str]) -> str | None:
        """Return the problem of a text column with blanks around its name: in texts blanks have a meaning."""
        texts = {name for column in self._contract.columns if column.type == "string" for name in column.names}
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
    """Return the problem of a record marked as broken, and the record as delivered."""
    if not line.startswith(BROKEN):
        return "", line
    _, fault, text = line.split(BROKEN, 2)
    return fault, restored(text)


def _other_format(header: str, names: Collection[str], contract: Contract) -> str | None:
    """Return the format of a file whose header has too few names for CSV, if it is plain."""
    if "\0" in header:
        return UNMARKED_UTF_16
    declared = {name for column in contract.columns for name in column.names}
    for sign, called in _SEPARATORS.items():
        if 0 < header.count(sign) < _MOST_FIELDS and len(declared.intersection(_split(header, sign))) > len(
            declared.intersection(names)
        ):
            return f"looks separated by {called} instead of commas; declare csv=Csv(delimiter={sign!r}) in its source"
    return None


def _split(header: str, sign: str) -> set[str]:
    return {name.strip() for name in next(csv.reader([header], delimiter=sign))}
