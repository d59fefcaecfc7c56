"""What Spark is given in place of a text file that it cannot split as it is: each record on one line, in UTF-8."""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from platform_assets.contracts import Contract
from platform_assets.records.raw_rows import MARK
from platform_assets.sources.compression import CHUNK, ContentError, unpacked
from platform_assets.sources.delimited import Delimited, Record
from platform_assets.sources.json_records import JsonRecords, has_paths
from platform_assets.sources.landing import LandedFile
from platform_assets.sources.limits import Limits
from platform_assets.sources.text import BLANK, EncodingError, on_lines

_AT_ONCE = 4096
_LINE_END = f"{MARK}n".encode()
_MARKS = {"utf-8": codecs.BOM_UTF8, "utf-16": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}


def is_rewritten(file: LandedFile, contract: Contract, limits: Limits = Limits()) -> bool:
    """Return whether a text file has other records for Spark than its lines, by its contract or as it begins.

    Raises:
        ContentError, LimitError, ChangedError, LinkError, OSError: it cannot be read.
    """
    assert contract.source is not None
    if file.format == "csv":
        return contract.source.csv is not None and bool(contract.source.csv.dialect)
    if contract.source.records or has_paths(contract):
        return True
    begins = next(unpacked(file, limits), b"")
    return begins.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")


def rewritten(file: LandedFile, contract: Contract, limits: Limits = Limits()) -> Iterator[bytes]:
    """Yield the lines that Spark is given of such a file, piece by piece.

    Raises:
        ContentError, EncodingError, LimitError: it cannot be taken.
        ChangedError, LinkError, OSError: it cannot be read, or is not what was listed.
    """
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
    """Yield the text of a file, without the mark that says its encoding."""
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
    """Return the content of the copy that Spark reads in place of a file, piece by piece.

    Args:
        file: CSV, or JSON lines, which have no record on several lines; with its contract any text file.
    """
    if contract is not None and (file.format == "json" or is_rewritten(file, contract, limits)):
        return rewritten(file, contract, limits)
    content = unpacked(file, limits)
    return on_lines(content) if file.format == "csv" else content


def line_numbers(
    file: LandedFile, rows: Collection[int], limits: Limits, contract: Contract
) -> Iterator[tuple[int, int]]:
    """Yield in which line of a text file some of its rows begin, both counted from 1.

    Args:
        file: CSV, with its header if its contract does not write that, or JSON.
    """
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
            row += bool(text.strip(BLANK))
            if row in rows and text.strip(BLANK):
                yield row, line
            if row >= last:
                return
            line += 1 + text.count(_LINE_END)
