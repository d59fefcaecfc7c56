"""Convert text of any dialect, or of fixed width, to the CSV that Spark reads: one record per line.

A record that could be read in two ways is marked as broken, with the reason, and keeps its text as delivered.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from platform_assets.contracts.files import Csv
from platform_assets.records.raw_rows import BROKEN, MARKED, MARKED_IN_BROKEN
from platform_assets.sources.limits import LimitError, Limits

Record = tuple[int, str]
"""The line in which a record begins, counted from 1, and its text on one line; 0 if the file has no such line."""

_LINE = re.compile(r"[^\r\n]*+(?:\r\n|\n|\r(?!\Z))")
_LAST_LINE = re.compile(r"[^\r\n]*+(?:\r\n?|\n|\Z)")
_ENDS = re.compile(r"\r\n?|\n")
_TO_QUOTE = re.compile('[",\r\n\0\ufdd0]')
BLANK = "".join(map(chr, range(33)))
"""What Spark takes for white space when it drops blank lines."""


def split_lines(texts: Iterable[str], longest: int) -> Iterator[str]:
    """Yield the lines of a text that comes in pieces, without their ends."""
    open_line, number = "", 1
    for text in texts:
        open_line, at = open_line + text, 0
        for line in _LINE.finditer(open_line):
            yield line[0].rstrip("\r\n")
            at, number = line.end(), number + 1
        open_line = open_line[at:]
        if len(open_line) > longest:
            raise too_long(longest, number)
    yield from (line[0].rstrip("\r\n") for line in _LAST_LINE.finditer(open_line) if line[0])


def too_long(longest: int, line: int) -> LimitError:
    """Return the error of a file with a line, or a record, that is too long."""
    return LimitError(f"has more than {longest:,} bytes in line {line}; deliver shorter lines")


def marked(text: str) -> str:
    """Return a text for one line: `records.raw_rows` defines the marks for line ends and the mark itself."""
    for written, meant in reversed(MARKED):
        text = text.replace(meant, written)
    return text


def _broken(fault: str, text: str) -> str:
    for written, meant in reversed(MARKED_IN_BROKEN):
        text = text.replace(meant, written)
    return f"{BROKEN}{fault}{BROKEN}{text}"


def _line(fields: Sequence[str]) -> str:
    """Return fields as a line of CSV, which is never blank."""
    if _TO_QUOTE.search("".join(fields)):
        fields = [_quoted(field) if _TO_QUOTE.search(field) else field for field in fields]
    line = ",".join(fields)
    return line if line.strip(BLANK) else f'"{line}"'


def _quoted(field: str) -> str:
    doubled = field.replace('"', '""')
    return f'"{marked(doubled)}"'


_Found = tuple[int, list[str] | None, str, str]
"""Of a record its line, its fields if a quote or an escape is in it, what is wrong with it, and its text."""


class Delimited:
    """Read the records of a file, in memory that does not grow with it."""

    def __init__(self, form: Csv, limits: Limits) -> None:
        self._form = form
        self._longest = limits.line_bytes
        sign, quote = re.escape(form.delimiter), re.escape(form.quote or "")
        escape = re.escape(form.escape) if form.escape and form.escape != form.quote else ""
        escaped = rf"{escape}(?:\r\n|[\s\S])" if escape else "(?!)"
        within = rf"(?:[^{quote}{escape}]++|{quote * 2}|{escaped})*+" if quote else "(?!)"
        self._quoted = re.compile(f"{quote}{within}{quote}")
        self._field = re.compile(
            rf"(?:{quote}({within}){quote}|((?:[^{quote}{sign}{escape}\r\n]++|{escaped})*+))({sign}|\r\n?|\n|\Z)"
        )
        self._unquoted = re.compile(rf"(?:[^{sign}{escape}\r\n]++|{escaped})*+(?!{sign}|[\r\n])")
        self._special = re.compile(f"[{quote}{escape}]" if quote or escape else "(?!)")
        taken = rf"(\r\n|[{quote}{sign}{escape}\r\n])"
        self._escapes = re.compile(f"{escape}{taken}") if escape else None
        self._within = re.compile(f"{escape or '(?!)'}{taken}|{quote}({quote})")
        ends = [sum(form.widths[:n]) for n in range(len(form.widths) + 1)]
        self._places = [slice(*between) for between in pairwise(ends)]
        self._blank = BLANK if form.widths else BLANK.replace(form.delimiter, "")

    def records(self, texts: Iterator[str]) -> Iterator[Record]:
        """Yield the header, from the contract if the file has none, and every record that is not blank."""
        sign, signs = self._form.delimiter, len(self._form.columns) - 1
        if self._form.columns:
            yield 0, _line(self._form.columns)
        waiting: deque[_Found] = deque()
        for record in self._found(texts):
            if signs >= 0:
                waiting.append(record)
                if len(waiting) <= self._form.skip_last:
                    continue
                record = waiting.popleft()
            number, fields, fault, text = record
            if fields is None and text.count(sign) == signs and not _TO_QUOTE.search(text):
                yield number, text.replace(sign, ",")
                continue
            fields = text.split(sign) if fields is None else fields
            if signs < 0:  # it is the header
                signs = len(fields) - 1
            if not fault and len(fields) - 1 != signs:
                fault = f"not {signs + 1} fields"
            yield number, _broken(fault, text) if fault else _line(fields)

    def _found(self, texts: Iterator[str]) -> Iterator[_Found]:
        text, at, number, skipped, enough, final = "", 0, 1, 0, 0, False
        while not final:
            chunk = next(texts, None)
            final = chunk is None
            text, at = text[at:] + (chunk or ""), 0
            if len(text) < enough and not final:
                continue
            special, one_line = -1, _LAST_LINE if final else _LINE
            while at < len(text):
                line = one_line.match(text, at)
                if skipped < self._form.skip_first and line:
                    skipped, number, at = skipped + 1, number + 1, line.end()
                    continue
                if special < at:
                    found = self._special.search(text, at)
                    special = len(text) if found is None else found.start()
                if line is not None and (self._places or line.end() <= special):
                    fields, fault = self._cut(line[0].rstrip("\r\n")) if self._places else (None, "")
                    lines, ends = 1, line.end()
                elif not self._places and (read := self._record(text, at, final=final)) is not None:
                    fields, fault, ends = read
                    lines = len(_ENDS.findall(text, at, ends))
                else:
                    break
                delivered = text[at:ends].rstrip("\r\n")
                if fault or delivered.strip(self._blank):
                    yield number, fields, fault, delivered
                number, at = number + lines, ends
            if len(text) - at > self._longest:
                raise too_long(self._longest, number)
            # A record that stays open is looked at again only once there is twice as much of it.
            enough = 2 * (len(text) - at)

    def _record(self, text: str, at: int, *, final: bool) -> tuple[list[str], str, int] | None:
        """Return the fields of the record at an offset, its fault, and its end; None if it is incomplete."""
        fields: list[str] = []
        while found := self._field.match(text, at):
            quoted, unquoted, ended = found.groups()
            at = found.end()
            if at == len(text) and not final and ended != self._form.delimiter and ended != "\n":
                return None
            if quoted is not None:
                is_plain = not self._special.search(quoted)
                fields.append(quoted if is_plain else self._within.sub(lambda one: one[1] or one[2], quoted))
            else:
                fields.append(self._escapes.sub(r"\1", unquoted) if self._escapes else unquoted)
            if ended != self._form.delimiter:
                return fields, "", at
        fault = self._fault(text, at, final=final)
        line = (_LAST_LINE if final else _LINE).match(text, at)
        return (fields, f"field {len(fields) + 1} {fault}", line.end()) if fault and line else None

    def _fault(self, text: str, at: int, *, final: bool) -> str:
        """Return why no field can be read at an offset; empty if more text could complete one."""
        if self._form.quote is None or not text.startswith(self._form.quote, at):
            unquoted = self._unquoted.match(text, at)
            is_last = unquoted is not None and unquoted.end() == len(text) - 1
            if is_last and not final:
                return ""
            return "ends with an escape character" if is_last else "has a quote inside an unquoted field"
        quoted = self._quoted.match(text, at)
        if quoted is None and not final and len(text) - at <= self._longest:
            return ""
        if quoted is None or _ENDS.search(quoted[0]):
            return "opens a quote that is never closed"
        return "has text after its closing quote"

    def _cut(self, line: str) -> tuple[list[str], str]:
        most = self._places[-1].stop
        if len(line) < most or line[most:].strip(BLANK):
            return [line], f"{len(line)} characters instead of {most}" if line.strip(BLANK) else ""
        return [line[place].strip(BLANK) for place in self._places], ""
