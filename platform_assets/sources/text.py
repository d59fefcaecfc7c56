"""Read a text file as it streams past: unpack it, count its lines, decode it, and write it so that Spark can split it.

Lines end with a line feed, a carriage return or both. Lines that Spark drops as blank do not count.

A CSV file is split at line ends wherever several tasks read it at once, so one within quotes must be none: each record
is brought onto one line. Nor may a character zero be there, which Spark leaves out within quotes, and without them does
not. A field that begins with a quote goes on to the next single one, which a comma or a line end follows; any other
field has no quote in it, as RFC 4180 says. A record that is written otherwise can be read in two ways: it is marked as
broken, with the reason, and its row is refused, however Spark would read it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from platform_assets.records.raw_rows import BROKEN, MARKED_IN_BROKEN
from platform_assets.sources.compression import CHUNK, unpacked
from platform_assets.sources.landing import LandedFile
from platform_assets.sources.limits import Limits

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
_BREAK = re.compile(rb"[\r\n]")
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
    """Write each record on one line, in memory that does not grow with the file.

    A quote that is not closed within `LONGEST_FIELD`, or only on another line and followed by other text, opens
    nothing: its record is broken, and ends with the line.
    """

    def __init__(self) -> None:
        self.marked = 0
        """Fields with a line end in them, or a zero, and broken records."""
        self._open = b""
        self._enough = 0
        self._is_first = True

    def take(self, chunk: bytes) -> bytes:
        """Return what is complete after some more bytes."""
        self._open += chunk
        if len(self._open) < self._enough:
            return b""
        return self._said(final=False)

    def end(self) -> bytes:
        """Return the rest at the end of the file."""
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
"""Start and end of a field or broken record that has to change, and its problem."""


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
    """Return where the last complete record ends, and the parts that a line must contain in another form."""
    spans: list[_Span] = []
    of_record: list[_Span] = []
    fault, record, at = "", start, start
    while True:
        begins, at = at, _after(_PLAIN, content, at)
        if begins < at and (last := max(content.rfind(b"\n", begins, at), content.rfind(b"\r", begins, at))) >= 0:
            if fault and (line_end := _BREAK.search(content, begins, at)):
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
    """Return the end of an unquoted field, its terminator, and its problem."""
    ends = _after(_REST_OF_FIELD, content, at)
    field = content[at:ends].rstrip(b",\r\n")
    if _QUOTE in field:
        return at, ends, "has a quote inside an unquoted field"
    is_in_apostrophes = len(field) > 1 and field[0] == field[-1] == _APOSTROPHE
    return at, ends, "is quoted with apostrophes" if is_in_apostrophes else ""


def _quoted(content: bytes, at: int, quoted: re.Match[bytes] | None) -> tuple[int, int, str]:
    """Return the rest of a field that begins with a quote."""
    ended = None if quoted is None else _END.match(content, quoted.end())
    if quoted is not None and ended is not None and quoted.end() - at <= LONGEST_FIELD:
        return quoted.end(), ended.end(), ""
    if quoted is None or _BREAK.search(content, at, quoted.end()) is not None:
        return at, _after(_REST_OF_LINE, content, at), "opens a quote that is never closed"
    ends = _after(_REST_OF_FIELD, content, quoted.end())
    return quoted.end(), ends, "has text after its closing quote"


def _after(pattern: re.Pattern[bytes], content: bytes, at: int) -> int:
    matched = pattern.match(content, at)
    assert matched is not None  # each of them matches nothing, too
    return matched.end()


AS_UTF_8 = "write it as UTF-8"
UNMARKED_UTF_16 = f"looks like UTF-16 text without its mark, with a zero byte beside each letter; {AS_UTF_8}"

BLANK = bytes(range(33))
"""What Spark takes for white space when it drops blank lines."""
_WITHIN_LINES = BLANK.translate(None, b"\r\n")


class EncodingError(Exception):
    """A file is not text in the encoding that its contract declares, or in UTF-8.

    Args:
        line: line number from 1, counted by line feeds.
        byte: the invalid byte.
        begins: the first bytes of the file, which identify some other encodings.
        encoding: the expected encoding.
    """

    def __init__(self, line: int, byte: int, begins: bytes, encoding: str = "UTF-8") -> None:
        super().__init__(line, byte, begins, encoding)
        self.encoding = encoding
        self.line = line
        self.byte = byte
        self.is_utf16 = begins.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


@dataclass(frozen=True)
class Lines:
    """Whole lines of a file that are not blank."""

    before: int
    bare: Sequence[bytes]
    content: bytes

    def whole(self) -> list[bytes]:
        """Return the lines as they are."""
        lines = self.content.splitlines()
        return lines if len(lines) == len(self.bare) else [line for line in lines if line.strip(BLANK)]


@dataclass(frozen=True)
class Scan:
    """Content of a scanned file.

    Args:
        lines: number of lines that are not blank, up to an exceeded limit.
        beginning: beginning of the first of them.
        wrong: problem of the first line that cannot be ingested, or of the file from there on.
    """

    lines: int
    beginning: bytes
    wrong: str | None


Look = Callable[[Lines], str | None]
"""Returns the problem of some lines, if any."""


def scan(
    file: LandedFile,
    look: Look,
    records: Records | None = None,
    limits: Limits = Limits(),
    content: Iterable[bytes] | None = None,
) -> Scan:
    """Read a file once, to its end, or to where it exceeds a limit.

    Args:
        content: rewritten content for Spark, if any.
        look: called with the lines until it finds a fault. A line that is too long is a fault by itself.
        records: join records that span lines, if the format has such; its first line is a header.
    """
    decoder, splitter = _Decoder(), _Splitter(look, limits, headers=int(file.format == "csv"))
    for chunk in unpacked(file, limits) if content is None else content:
        decoder.take(chunk)
        splitter.take(records.take(chunk) if records else chunk)
        if splitter.is_beyond:
            break
    else:
        decoder.take(b"", final=True)
        splitter.take(records.end() if records else b"")
        splitter.end()
    return Scan(splitter.count, splitter.beginning, splitter.wrong)


class _Decoder:
    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._line = 1
        self._begins = b""

    def take(self, chunk: bytes, *, final: bool = False) -> None:
        self._begins = self._begins or chunk[:2]
        try:
            self._decoder.decode(chunk, final)
        except UnicodeDecodeError as error:
            # It may begin with what was left of the chunk before: a part of a character, in which no line ends.
            line = self._line + error.object.count(b"\n", 0, error.start)
            raise EncodingError(line, error.object[error.start], self._begins) from None
        self._line += chunk.count(b"\n")


class _Splitter:
    def __init__(self, look: Look, limits: Limits, headers: int) -> None:
        self.count = 0
        self.beginning = b""
        self.wrong: str | None = None
        self.is_beyond = False
        """Whether a bound was passed, so that the rest is not worth reading."""
        self._look = look
        self._limits = limits
        self._headers = headers
        self._open = b""

    def take(self, content: bytes) -> None:
        for at in range(0, len(content), CHUNK):
            if self.is_beyond:
                return
            self._take(content[at : at + CHUNK])

    def _take(self, chunk: bytes) -> None:
        ends = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
        if ends:
            self._close(self._open + chunk[:ends])
            self._open = b""
        self._open += chunk[ends:]
        if len(self._open) > self._limits.line_bytes:
            # Blank or not: looking for its end holds all of it.
            self.beginning = self.beginning or self._open.lstrip(BLANK)[:CHUNK]
            self._end_at(
                f"has more than {self._limits.line_bytes:,} bytes in row {self.count + 1}, blank lines not counted; "
                "deliver shorter rows"
            )

    def end(self) -> None:
        if not self.is_beyond:
            self._close(self._open)

    def _close(self, content: bytes) -> None:
        # The white space of all lines at once: to strip each by itself takes several times as long.
        bare = list(filter(None, content.translate(None, _WITHIN_LINES).splitlines()))
        if bare and self.wrong is None:
            lines = Lines(self.count, bare, content)
            self.beginning = self.beginning or lines.whole()[0][:CHUNK]
            self.wrong = self._look(lines)
        self.count += len(bare)
        if reason := self._limits.too_many_rows(self.count - self._headers):
            self._end_at(reason)

    def _end_at(self, reason: str) -> None:
        self.wrong = self.wrong or reason
        self.is_beyond = True
