"""CSV whose records span lines, as it streams past: each record on a line of its own.

A file is split at line ends wherever several tasks read it at once, so one within quotes must be none. What is a record
is decided here alone: a field that begins with a quote goes on to the next single one (RFC 4180). Nor may a character
zero be there, which Spark leaves out within quotes, and without them does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from platform_assets.records.line_copies import MARK

LONGEST_FIELD = 1 << 24
"""Bytes within which a quote has to be closed."""

_MARK = MARK.encode()
_BOM = b"\xef\xbb\xbf"
_PLAIN = re.compile(rb'(?:(?:"(?:[^"\r\n\0]++|"")*+"|[^",\r\n][^,\r\n]*+|)(?:,|\r\n?|\n))*+')
"""Fields on one line, each with what ends it."""
_QUOTED = re.compile(rb'"(?:[^"]++|"")*+"')
_END = re.compile(rb",|\r\n?|\n|\Z")
_REST_OF_FIELD = re.compile(rb"[^,\r\n]*+(?:,|\r\n?|\n|\Z)")
_REST_OF_LINE = re.compile(rb"[^\r\n]*+(?:\r\n?|\n|\Z)")
_LINE_END = re.compile(rb"[\r\n]")
_ZERO = b"\0"


def on_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The content of a CSV file with each record on one line."""
    records = Records()
    for chunk in chunks:
        yield records.take(chunk)
    yield records.end()


class Records:
    """Brings each record onto one line, in memory that does not grow with the file.

    A quote that is not closed within `LONGEST_FIELD`, or only by one with something behind it, opens nothing: its line
    ends where the line ends, and the records after it are read as if it were not there.
    """

    def __init__(self) -> None:
        self.marked = 0
        """Fields with a line end in them, or a zero."""
        self._open = b""
        self._enough = 0
        self._is_first = True

    def take(self, chunk: bytes) -> bytes:
        """What can be said once some more bytes came."""
        self._open += chunk
        if len(self._open) < self._enough:
            return b""
        return self._said(final=False)

    def end(self) -> bytes:
        """What is left at the end of the file."""
        return self._said(final=True)

    def _said(self, *, final: bool) -> bytes:
        content = self._open
        if self._is_first and len(content) < len(_BOM) and not final:
            return b""
        start = len(_BOM) if self._is_first and content.startswith(_BOM) else 0
        self._is_first = False
        ends, spans = _walk(content, start, final=final)
        self.marked += len(spans)
        self._open = content[ends:]
        # A field that stays open is looked at again only once there is twice as much of it.
        self._enough = min(2 * len(self._open), LONGEST_FIELD + 1)
        return _joined(content[:ends], spans)


def _joined(content: bytes, spans: Iterable[tuple[int, int]]) -> bytes:
    parts: list[bytes] = []
    at = 0
    for begins, ends in spans:
        parts.append(content[at:begins].replace(_MARK, _MARK + b"m"))
        field = content[begins:ends].replace(_MARK, _MARK + b"m")
        field = field.replace(b"\n", _MARK + b"n").replace(b"\r", _MARK + b"r")
        parts.append(field.replace(_ZERO, _MARK + b"z"))
        at = ends
    parts.append(content[at:].replace(_MARK, _MARK + b"m"))
    return b"".join(parts)


def _walk(content: bytes, start: int, *, final: bool) -> tuple[int, list[tuple[int, int]]]:
    """How far fields are complete, and where those lie that a line cannot hold as they are."""
    spans: list[tuple[int, int]] = []
    at = start
    while True:
        at = _after(_PLAIN, content, at)
        if at == len(content):
            return at, spans
        given_up = final or len(content) - at > LONGEST_FIELD
        quoted = _QUOTED.match(content, at)
        if quoted is None and content[at] != ord('"'):
            return (len(content) if given_up else at), spans
        if (quoted is None or quoted.end() == len(content)) and not given_up:
            return at, spans
        is_long = quoted is None or quoted.end() - at > LONGEST_FIELD
        spans_lines = quoted is None or _LINE_END.search(content, at, quoted.end()) is not None
        ended = None if quoted is None else _END.match(content, quoted.end())
        if quoted is None or (spans_lines and (ended is None or is_long)):
            at = _after(_REST_OF_LINE, content, at)
        elif ended is None:
            rest = _after(_REST_OF_FIELD, content, quoted.end())
            if rest == len(content) and not given_up:
                return at, spans
            spans += [(at, quoted.end())] if _ZERO in quoted[0] else []
            at = rest
        else:
            spans += [(at, quoted.end())] if spans_lines or _ZERO in quoted[0] else []
            at = ended.end()


def _after(pattern: re.Pattern[bytes], content: bytes, at: int) -> int:
    matched = pattern.match(content, at)
    assert matched is not None  # each of them matches nothing, too
    return matched.end()
