"""Rewrite a text file that Spark cannot split: each record on one line, in UTF-8.

For JSON each object of an array, with values at the contract's paths. No value is formatted again: a number, a list and
an object stay as written, character by character.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from platform_assets.contracts import Contract
from platform_assets.records.raw_rows import MARK, WHOLE
from platform_assets.sources.compression import CHUNK, ContentError, unpacked
from platform_assets.sources.delimited import BLANK, Delimited, Record, marked, split_lines, too_long
from platform_assets.sources.landing import LandedFile
from platform_assets.sources.limits import Limits
from platform_assets.sources.text import BLANK as BLANK_BYTES
from platform_assets.sources.text import EncodingError, on_lines

_AT_ONCE = 4096
_LINE_END = f"{MARK}n".encode()
_MARKS = {"utf-8": codecs.BOM_UTF8, "utf-16": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}


def is_rewritten(file: LandedFile, contract: Contract, limits: Limits = Limits()) -> bool:
    """Return whether a text file has records other than its lines, by its contract or its beginning."""
    assert contract.source is not None
    if file.format == "csv":
        return contract.source.csv is not None and bool(contract.source.csv.dialect)
    if contract.source.records or has_paths(contract):
        return True
    begins = next(unpacked(file, limits), b"")
    return begins.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")


def rewritten(file: LandedFile, contract: Contract, limits: Limits = Limits()) -> Iterator[bytes]:
    """Yield the rewritten lines of such a file, piece by piece."""
    lines: list[str] = []
    size = 0
    for _, text in _records(file, contract, limits):
        lines.append(text)
        size += len(text)
        if size >= CHUNK or len(lines) == _AT_ONCE:
            yield "\n".join([*lines, ""]).encode()
            lines, size = [], 0
    if lines:
        yield "\n".join([*lines, ""]).encode()


def _records(file: LandedFile, contract: Contract, limits: Limits) -> Iterator[Record]:
    assert contract.source is not None
    if file.format == "csv":
        form = contract.source.csv
        assert form is not None
        return Delimited(form, limits).records(_decoded(unpacked(file, limits), form.encoding))
    return JsonRecords(contract, limits).records(_decoded(unpacked(file, limits), "utf-8"))


def _decoded(content: Iterable[bytes], encoding: str) -> Iterator[str]:
    """Yield the text of a file, without its byte order mark."""
    decoder = codecs.getincrementaldecoder(encoding)()
    name, begins, line, is_first = codecs.lookup(encoding).name, b"", 1, True
    for chunk in chain(content, [b""]):
        if not begins:
            begins = chunk[:4]
            others = [of for of, mark in _MARKS.items() if begins.startswith(mark) and not name.startswith(of[:5])]
            for other in others if not name.startswith("utf-32") else ():
                raise ContentError(f"begins as {other} text does, and its contract declares {encoding}; correct either")
            if name == "utf-16" and not begins.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise ContentError("has no mark of UTF-16 at its beginning; declare utf-16-le or utf-16-be")
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            # It may begin with what was left of the chunk before: a part of a character, in which no line ends.
            line += error.object.count(b"\n", 0, error.start)
            raise EncodingError(line, error.object[error.start], begins, encoding) from None
        line += text.count("\n")
        if is_first and text:
            text, is_first = text.removeprefix("\ufeff"), False
        yield text


def lines_of(file: LandedFile, limits: Limits = Limits(), contract: Contract | None = None) -> Iterator[bytes]:
    """Return the copy that Spark reads instead of a file, piece by piece."""
    if contract is not None and (file.format == "json" or is_rewritten(file, contract, limits)):
        return rewritten(file, contract, limits)
    content = unpacked(file, limits)
    return on_lines(content) if file.format == "csv" else content


def line_numbers(
    file: LandedFile, rows: Collection[int], limits: Limits, contract: Contract
) -> Iterator[tuple[int, int]]:
    """Yield the line in a text file where each of some rows begins, both counted from 1."""
    row, line, rest, last = -(file.format == "csv"), 1, b"", max(rows, default=0)
    if is_rewritten(file, contract, limits):
        for number, (begins, _) in enumerate(_records(file, contract, limits), row + 1):
            if number in rows:
                yield number, begins
            if number >= last:
                return
        return
    for chunk in chain(lines_of(file, limits), [b"\n"]):
        *whole, rest = (rest + chunk).split(b"\n")
        for text in whole:
            row += bool(text.strip(BLANK_BYTES))
            if row in rows and text.strip(BLANK_BYTES):
                yield row, line
            if row >= last:
                return
            line += 1 + text.count(_LINE_END)


_SPACE = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(r'"(?:[^"\\]++|\\[\s\S])*+"|[\[\]{}]|"')
_SCALAR = re.compile(r"[^\s,:\]}]++")
# Numbers stay texts: Python makes none of one that is too long, which Spark may read.
_SKIP = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode
_NO_OBJECT = "null"


@dataclass
class _Place:
    """A place in objects: columns that have the value there, and places within it."""

    columns: list[str] = field(default_factory=list)
    within: dict[str | int, _Place] = field(default_factory=dict)

    def nulls(self) -> Iterator[tuple[str, str]]:
        """Yield the columns of all places within one that is null, or after the end of a list."""
        for place in self.within.values():
            yield from ((column, "null") for column in place.columns)
            yield from place.nulls()


def has_paths(contract: Contract) -> bool:
    """Return whether a contract names columns differently from JSON objects."""
    return any(column.path or column.source_name for column in contract.columns)


def _places(contract: Contract) -> _Place:
    root = _Place()
    for column in contract.columns:
        for path in [column.path] if column.path else [(name,) for name in column.names]:
            place = root
            for step in path:
                place = place.within.setdefault(step, _Place())
            place.columns.append(column.name)
    return root


class JsonRecords:
    """Read the objects of a file, in memory that does not grow with it."""

    def __init__(self, contract: Contract, limits: Limits) -> None:
        assert contract.source is not None
        self._records = contract.source.records
        self._places = _places(contract) if has_paths(contract) else None
        self._longest = limits.line_bytes
        self._texts: Iterator[str] = iter(())
        self._text = ""
        self._at = 0
        self._line = 1

    def records(self, texts: Iterator[str]) -> Iterator[Record]:
        """Yield every object of an array, or line that is not blank."""
        self._texts = texts
        if self._records or self._next() == "[":
            yield from self._of_document()
            return
        for line, text in enumerate(split_lines(chain([self._text[self._at :]], texts), self._longest), self._line):
            if text.strip(BLANK):
                yield line, self._record(text)

    def _of_document(self) -> Iterator[Record]:
        for name in self._records:
            self._expect("{")
            while (found := self._name()) != name:
                if found is None:
                    where = ".".join(self._records)
                    raise ContentError(f"has no array {where}, where its contract has its records")
                self._value()
                self._expect(",}", f"in the object that should have {name}")
                if self._text[self._at - 1] == "}":
                    self._at -= 1
        self._expect("[")
        is_first = True
        while self._next() != "]":
            if not is_first:
                self._expect(",")
            self._next()
            line = self._line
            yield line, self._record(self._value())
            is_first = False
        self._expect("]")
        for name in reversed(self._records):
            while self._next() == ",":
                self._expect(",")
                if self._name() == name:
                    raise ContentError(f"names {name} twice in the object of line {self._line}")
                self._value()
            self._expect("}")
        if self._next():
            raise ContentError(f"has something behind its JSON document in line {self._line}")

    def _name(self) -> str | None:
        """Return the next name in an object, past its colon; None at its end."""
        if not self._next():
            self._expect(",")  # which says that there is no more
        if self._next() == "}":
            return None
        written = self._value()
        self._expect(":")
        name = json.loads(written) if written.startswith('"') else None
        if not isinstance(name, str):
            raise ContentError(f"is broken JSON in line {self._line}: a name of a field is no text")
        return name

    def _next(self) -> str:
        """Return the next character that is not white space; empty at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            ends = space.end() if space else self._at
            self._pass(ends)
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._fill():
                return ""

    def _expect(self, signs: str, where: str = "") -> None:
        found = self._next()
        if not found:
            raise ContentError(f"is JSON that was cut short in line {self._line}; deliver it whole")
        if found not in signs:
            what = f"{' or '.join(signs)} should be where {found} is {where}".rstrip()
            raise ContentError(f"is broken JSON in line {self._line}: {what}")
        self._pass(self._at + 1)

    def _pass(self, to: int) -> None:
        self._line += self._text.count("\n", self._at, to)
        self._at = to

    def _fill(self) -> bool:
        """Read on until there is twice as much as is unprocessed; return whether there was more."""
        parts = [self._text[self._at :]]
        if len(parts[0]) > self._longest:
            raise too_long(self._longest, self._line)
        size, enough = len(parts[0]), 2 * len(parts[0]) + 1
        while size < enough and (text := next(self._texts, None)) is not None:
            parts.append(text)
            size += len(text)
        is_more = size > len(parts[0])
        self._text, self._at = "".join(parts), 0
        return is_more

    def _value(self) -> str:
        """Return the next value as written."""
        if not self._next():
            self._expect("")  # which says that there is no more
        while (ends := self._end_of_value()) is None:
            if not self._fill():
                raise ContentError(f"is JSON that was cut short in line {self._line}; deliver it whole")
        value = self._text[self._at : ends]
        self._pass(ends)
        return value

    def _end_of_value(self) -> int | None:
        """Return where a value ends, valid or not; None if it may continue."""
        text, at = self._text, self._at
        if text[at] not in '"[{':
            scalar = _SCALAR.match(text, at)
            if scalar is None:
                raise ContentError(f"is broken JSON in line {self._line}: a value should be where {text[at]} is")
            return scalar.end() if scalar.end() < len(text) else None
        try:
            return _SKIP(text, at)[1]
        except (ValueError, RecursionError):
            pass
        depth = 0
        for token in _TOKEN.finditer(text, at):
            if token[0] == '"':  # nothing closes it yet
                return None
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
            if depth == 0:
                return token.end()
        return None

    def _record(self, text: str) -> str:
        """Return an object for Spark: values by columns, then the object as delivered."""
        if self._places is None:
            return marked(text)
        found: list[tuple[str, str]] = []
        try:
            ends, is_rest = _walk(text, _space(text, 0), self._places, found)
            is_one = _space(text, ends) == len(text) and text.lstrip().startswith("{")
        except (ValueError, LookupError, RecursionError, StopIteration):
            is_one = is_rest = False
        if is_rest:
            found.append(("_rest", "true"))
        flat = ",".join(f'"{name}":{value}' for name, value in found)
        return f"{marked(f'{{{flat}}}') if is_one else _NO_OBJECT}{WHOLE}{marked(text)}"


def _space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _walk(text: str, at: int, place: _Place, found: list[tuple[str, str]]) -> tuple[int, bool]:
    """Find the values of columns in an object or a list; return where it ends, and whether it has other content.

    A repeated name in an object refuses its row, like a column found twice.
    """
    closes, is_more, seen = {"{": "}", "[": "]"}[text[at]], False, set[str | int]()
    at = _space(text, at + 1)
    while text[at] != closes or seen:
        name: str | int = len(seen)
        if closes == "}":
            if text[at] != '"':
                raise ValueError
            name, at = _SKIP(text, at)
            at = _space(text, at)
            if text[at] != ":":
                raise ValueError
            at = _space(text, at + 1)
        if name in seen:
            found += [("_twice", "0"), ("_twice", "0")]
        seen.add(name)
        there = place.within.get(name)
        if there and there.within and text[at] in "{[":
            ends, is_rest = _walk(text, at, there, found)
            is_more |= is_rest
        else:
            ends = _SKIP(text, at)[1]
            is_null = text.startswith("null", at)
            is_more |= not is_null if there and not there.columns else there is None
            found += there.nulls() if there and is_null else ()
        found += [(column, text[at:ends]) for column in (there.columns if there else ())]
        at = _space(text, ends)
        if text[at] == closes:
            break
        if text[at] != ",":
            raise ValueError
        at = _space(text, at + 1)
    if closes == "]":
        found += _Place(within={n: there for n, there in place.within.items() if n not in seen}).nulls()
    return at + 1, is_more
