"""A record of a CSV file is a record, however many lines it spans: as Python's own csv module reads it."""

from __future__ import annotations

import csv
import io
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.records.line_copies import MARK, restored
from platform_assets.sources import records
from platform_assets.sources.records import Records, on_lines

TEXT = st.text(
    st.sampled_from([*'a,"\r\n \t', "é", "\x0b", "\x85", "\u2028", "\0", MARK, "n", "m", "z", "\ufeff"]), max_size=8
)
ROWS = st.lists(st.lists(TEXT, min_size=2, max_size=4), min_size=1, max_size=8)
DIALECTS = st.sampled_from([
    ("\n", csv.QUOTE_ALL), ("\r\n", csv.QUOTE_ALL), ("\r", csv.QUOTE_ALL), ("\r\n", csv.QUOTE_MINIMAL),
])  # fmt: skip
BYTES = st.lists(
    st.sampled_from(
        [b'"', b'""', b",", b"\0", b"\n", b"\r\n", b"\r", b"a", b" ", b"", MARK.encode(), MARK.encode()[:2]]
    ),
    max_size=40,
).map(b"".join)


def written(rows: list[list[str]], ends: str, quoting: Literal[0, 1]) -> str:
    stream = io.StringIO(newline="")
    csv.writer(stream, lineterminator=ends, quoting=quoting).writerows(rows)
    return stream.getvalue()


def joined(content: bytes, size: int) -> bytes:
    return b"".join(on_lines(content[at : at + size] for at in range(0, len(content), size)))


@given(ROWS, DIALECTS, st.integers(1, 9), st.booleans(), st.booleans())
def test_what_pythons_csv_module_writes_is_read_as_that_module_reads_it(rows, dialect, size, with_bom, ends_open):
    text = written(rows, *dialect)
    text = text.removesuffix(dialect[0]) if ends_open else text
    content = ("\ufeff" if with_bom else "").encode() + text.encode()
    assert list(csv.reader(io.StringIO(text, newline=""))) == rows
    lines = [line for line in joined(content, size).splitlines() if line]
    if with_bom:
        lines[0] = lines[0].removeprefix("\ufeff".encode())
    read = [next(csv.reader([line.decode()], strict=True)) for line in lines]
    assert [[restored(field) for field in fields] for fields in read] == rows


@given(BYTES, st.integers(1, 9), st.sampled_from([4, 1 << 24]))
def test_whatever_a_file_holds_nothing_of_it_is_lost_and_its_pieces_make_no_difference(content, size, longest):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "LONGEST_FIELD", longest)
        pieces = joined(content, size)
        back = pieces
        for mark, meant in ((b"n", b"\n"), (b"r", b"\r"), (b"z", b"\0"), (b"m", MARK.encode())):
            back = back.replace(MARK.encode() + mark, meant)
        assert back == content
        if longest > len(content):
            assert pieces == joined(content, len(content) + 1)


def test_a_quote_that_is_closed_too_late_opens_nothing(monkeypatch):
    monkeypatch.setattr(records, "LONGEST_FIELD", 100)
    content = b'1,"' + b"a\n" * 200 + b'",b\n2,"c\nd"\n'
    lines = joined(content, 7).splitlines()
    assert (len(lines), lines[-1]) == (202, f'2,"c{MARK}nd"'.encode())


def test_how_many_fields_are_marked_is_counted():
    found = Records()
    found.take(b'a,"b\n",c\n"d","e\r\nf\n')
    found.take(b'",""\n')
    found.end()
    assert found.marked == 2


def test_a_zero_within_quotes_is_marked_and_blank_lines_stay_blank():
    """Spark leaves it out there, and so would make one text, or one key, of two."""
    content = b'"a\0,","b\0"c,d\0\n\0\n'
    z = f"{MARK}z".encode()
    assert joined(content, 3) == b'"a' + z + b',","b' + z + b'"c,d\0\n\0\n'
