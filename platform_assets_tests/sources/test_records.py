"""A record of a CSV file is a record, however many lines it spans: as Python's own csv module reads it."""

from __future__ import annotations

import csv
import io
import re
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.records.raw_rows import BROKEN, MARK, MARKED_IN_BROKEN, restored
from platform_assets.sources import text as streaming
from platform_assets.sources.text import Records, on_lines

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
        patch.setattr(streaming, "LONGEST_FIELD", longest)
        pieces = joined(content, size)
        back = re.sub(BROKEN.encode() + b"field .*?" + BROKEN.encode(), b"", pieces)
        for mark, meant in MARKED_IN_BROKEN:
            back = back.replace(mark.encode(), meant.encode())
        assert back == content
        if longest > len(content):
            assert pieces == joined(content, len(content) + 1)


def test_a_quote_that_is_closed_too_late_opens_nothing(monkeypatch):
    monkeypatch.setattr(streaming, "LONGEST_FIELD", 100)
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
    assert joined(b'"a\0,",c,d\0\n\0\n', 3) == b'"a' + f"{MARK}z".encode() + b',",c,d\0\n\0\n'


HAS_A_QUOTE = "has a quote inside an unquoted field"
BEHIND = "has text after its closing quote"
OPEN = "opens a quote that is never closed"
APOSTROPHES = "is quoted with apostrophes"


@pytest.mark.parametrize(
    ("record", "fault"),
    [
        ('12" pipe,y,z', f"1 {HAS_A_QUOTE}"),
        ('x,12" pipe,"y\nz"', f"2 {HAS_A_QUOTE}"),
        ('x"y, z",w', f"1 {HAS_A_QUOTE}"),
        ('x, "y", "z"', f"2 {HAS_A_QUOTE}"),
        ('"x,y","a ""b""",c"', f"3 {HAS_A_QUOTE}"),
        ('x,y,z"', f"3 {HAS_A_QUOTE}"),
        ('"x"y,z', f"1 {BEHIND}"),
        ('"x\ny",z,"" x', f"3 {BEHIND}"),
        ('x,"y"\0', f"2 {BEHIND}"),
        (r'"he said \"hi\"",y', f"1 {BEHIND}"),
        (r'x,y,"he said \"hi\" twice"', f"3 {BEHIND}"),
        (r'"\"",x,"\""', f"1 {BEHIND}"),
        ('x,"y,z', f"2 {OPEN}"),
        (r'x,y,"12\""', f"3 {OPEN}"),
        ("x,'y',z", f"2 {APOSTROPHES}"),
        ("''", f"1 {APOSTROPHES}"),
    ],
)
@pytest.mark.parametrize("ends", ["", "\n", "\r", "\r\n", "\n1,'t is,'\n", '\n1,"a\nb",c\r\n'])
@pytest.mark.parametrize("size", [1, 1000])
def test_what_can_be_read_in_two_ways_is_a_broken_record_in_every_field(record, fault, ends, size):
    """The records before and after it are none, whatever its quotes would make of them."""
    before, broken, *after = joined(f"a,b\n{record}{ends}".encode(), size).decode().splitlines()
    _, said, text = broken.split(BROKEN)
    assert (before, said, restored(text)) == ("a,b", f"field {fault}; quote as RFC 4180 says", record)
    assert {line.startswith("1,") for line in after} <= {True}
    assert not {*text} & {*'",\n'}
