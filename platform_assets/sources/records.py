"""CSV as it streams past: each record on a line of its own, and judged by RFC 4180, here alone.

A file is split at line ends wherever several tasks read it at once, so one within quotes must be none. Nor may a
character zero be there, which Spark leaves out within quotes, and without them does not.

A field that begins with a quote goes on to the next single one, which a comma or a line end follows; any other field
has no quote in it. A record that is written otherwise can be read in two ways. It is marked as broken, with the reason,
and its row is refused whatever Spark would make of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from platform_assets.records.raw_rows import BROKEN, MARKED_IN_BROKEN

LONGEST_FIELD = 1 << 24
"""Bytes within which a quote has to be closed, and a record has to end: no line may have more."""

_BOM = b"\xef\xbb\xbf"
_QUOTE, _APOSTROPHE = b"\"'"
_PLAIN = re.compile(rb"""(?:(?:"(?:[^"\r\n\0]++|"")*+"|[^"',\r\n][^",\r\n]*+|'[^",\r\n]*+(?<!')|)(?:,|\r\n?|\n))*+""")
"""Sound fields on one line, each with what ends it."""
_QUOTED = re.compile(rb'"(?:[^"]++|"")*+"')
_END = re.compile(rb",|\r\n?|\n|\Z")
_REST_OF_FIELD = re.compile(rb"[^,\r\n]*+(?:,|\r\n?|\n|\Z)")
_REST_OF_LINE = re.compile(rb"[^\r\n]*+(?:\r\n?|\n|\Z)")
_FIELD = re.compile(rb'(?:"(?:[^"]++|"")*+")?+[^,]*+,')
_LINE_END = re.compile(rb"[\r\n]")
_LINE_ENDS = b"\r\n"
_TO_MARK = re.compile(rb"[\r\n\0]")
_MARKED_IN_BROKEN = [(written.encode(), meant.encode()) for written, meant in reversed(MARKED_IN_BROKEN)]
"""What a line cannot hold, the mark itself first."""
_MARKED = [(written, meant) for written, meant in _MARKED_IN_BROKEN if meant not in (b'"', b",")]


def on_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the content of a CSV file with each record on one line."""
    records = Records()
    for chunk in chunks:
        yield records.take(chunk)
    yield records.end()


class Records:
    """Brings each record onto one line, in memory that does not grow with the file.

    A quote that is not closed within `LONGEST_FIELD`, or only on another line and with something behind it, opens
    nothing: its record is broken, and ends where the line ends.
    """

    def __init__(self) -> None:
        self.marked = 0
        """Fields with a line end in them, or a zero, and broken records."""
        self._open = b""
        self._enough = 0
        self._is_first = True

    def take(self, chunk: bytes) -> bytes:
        """Return what can be said once some more bytes came."""
        self._open += chunk
        if len(self._open) < self._enough:
            return b""
        return self._said(final=False)

    def end(self) -> bytes:
        """Return what is left at the end of the file."""
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
        # A record that stays open is looked at again only once there is twice as much of it.
        self._enough = min(2 * len(self._open), LONGEST_FIELD + 1)
        return _joined(content[:ends], spans)


_Span = tuple[int, int, str]
"""From where to where a field, or a broken record, cannot stay as it is, and what is wrong with it."""


def _joined(content: bytes, spans: Iterable[_Span]) -> bytes:
    parts: list[bytes] = []
    at = 0
    for begins, ends, fault in spans:
        parts.append(_marked(content[at:begins], _MARKED[:1]))
        if fault:
            parts.append(f"{BROKEN}{fault}{BROKEN}".encode())
        parts.append(_marked(content[begins:ends], _MARKED_IN_BROKEN if fault else _MARKED))
        at = ends
    parts.append(_marked(content[at:], _MARKED[:1]))
    return b"".join(parts)


def _marked(content: bytes, marks: Iterable[tuple[bytes, bytes]]) -> bytes:
    for written, meant in marks:
        content = content.replace(meant, written)
    return content


def _walk(content: bytes, start: int, *, final: bool) -> tuple[int, list[_Span]]:
    """Return how far records are complete, and where those parts of them lie that a line cannot hold as they are."""
    spans: list[_Span] = []
    of_record: list[_Span] = []
    fault, record, at = "", start, start
    while True:
        begins, at = at, _after(_PLAIN, content, at)
        if begins < at and (last := max(content.rfind(b"\n", begins, at), content.rfind(b"\r", begins, at))) >= 0:
            if fault and (line_end := _LINE_END.search(content, begins, at)):
                of_record = [(record, line_end.start(), fault)]
            spans += of_record
            fault, of_record, record = "", [], last + 1
        if at == len(content):
            break
        given_up = final or len(content) - at > LONGEST_FIELD
        quoted = _QUOTED.match(content, at)
        if content[at] == _QUOTE and (quoted is None or quoted.end() == len(content)) and not given_up:
            break
        outside, ends, wrong = _unquoted(content, at) if content[at] != _QUOTE else _quoted(content, at, quoted)
        if ends == len(content) and not given_up:
            break
        if wrong and not fault:
            number = len(_FIELD.findall(content, record, at)) + 1
            fault = f"field {number} {wrong}; quote as RFC 4180 says"
        elif _TO_MARK.search(content, at, outside):
            of_record.append((at, outside, ""))
        at = ends
        if content[at - 1] in _LINE_ENDS:
            if fault:
                of_record = [(record, record + len(content[record:at].rstrip(_LINE_ENDS)), fault)]
            spans += of_record
            fault, of_record, record = "", [], at
    if final:
        return at, spans + ([(record, at, fault)] if fault else of_record)
    # A longer record has its file refused, for a line that is too long.
    return (record, spans) if at - record <= LONGEST_FIELD else (at, spans + of_record)


def _unquoted(content: bytes, at: int) -> tuple[int, int, str]:
    """From where a field has no quotes around it, where it ends with what ends it, and what is wrong with it."""
    ends = _after(_REST_OF_FIELD, content, at)
    field = content[at:ends].rstrip(b",\r\n")
    if _QUOTE in field:
        return at, ends, "has a quote in it and does not begin with one"
    is_in_apostrophes = len(field) > 1 and field[0] == field[-1] == _APOSTROPHE
    return at, ends, "is quoted with apostrophes" if is_in_apostrophes else ""


def _quoted(content: bytes, at: int, quoted: re.Match[bytes] | None) -> tuple[int, int, str]:
    """Return the rest of a field that begins with a quote."""
    ended = None if quoted is None else _END.match(content, quoted.end())
    if quoted is not None and ended is not None and quoted.end() - at <= LONGEST_FIELD:
        return quoted.end(), ended.end(), ""
    if quoted is None or _LINE_END.search(content, at, quoted.end()) is not None:
        return at, _after(_REST_OF_LINE, content, at), "opens a quote that nothing closes"
    ends = _after(_REST_OF_FIELD, content, quoted.end())
    return quoted.end(), ends, "has something behind the quote that closes it"


def _after(pattern: re.Pattern[bytes], content: bytes, at: int) -> int:
    matched = pattern.match(content, at)
    assert matched is not None  # each of them matches nothing, too
    return matched.end()
