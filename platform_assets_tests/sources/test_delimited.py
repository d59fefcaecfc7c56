"""Records of any dialect are what was written, however the text comes in pieces, or broken with a reason."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.contracts import Csv
from platform_assets.records.raw_rows import BROKEN, restored
from platform_assets.sources.delimited import Delimited
from platform_assets.sources.limits import LimitError, Limits
from platform_assets_tests.support.cost import cost_of

SIGNS = st.sampled_from([";", "\t", "|", "§", "^", "]"])
FIELDS = st.text(alphabet="ab ;\t|§^]\\\"',\n\r\0\ufdd0é", max_size=6)


def pieces(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def read(form: Csv, text: str, size: int = 1 << 18) -> list[tuple[int, str]]:
    return [*Delimited(form, Limits(line_mib=1)).records(pieces(text, size))]


def characters(form: Csv, text: str) -> int:
    """Of all records, or of the error that ends them."""
    try:
        return sum(len(line) for _, line in Delimited(form, Limits(line_mib=1)).records(pieces(text, 1 << 18)))
    except LimitError as error:
        return len(str(error))


def fields(line: str) -> list[str]:
    [record] = csv.reader([line])
    return [restored(field) for field in record]


@given(
    rows=st.lists(st.lists(FIELDS, min_size=2, max_size=2), min_size=1, max_size=5),
    sign=SIGNS,
    quote=st.sampled_from(['"', "'", "`"]),
    escape=st.sampled_from([None, "\\"]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    size=st.integers(1, 30),
)
def test_what_a_writer_of_the_dialect_wrote_comes_back(rows, sign, quote, escape, end, size):
    sink = io.StringIO(newline="")
    how = {"delimiter": sign, "quotechar": quote, "escapechar": escape, "doublequote": escape is None}
    csv.writer(sink, lineterminator=end, quoting=csv.QUOTE_ALL, **how).writerows([["x", "y"], *rows])
    found = read(Csv(delimiter=sign, quote=quote, escape=escape), sink.getvalue(), size)
    assert [fields(line) for _, line in found] == [["x", "y"], *rows]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_and_each_broken_record_says_why_and_keeps_its_text(size, end):
    rows = [
        "r;r",
        '"',
        "x;y",
        "1;a b",
        '2;"p',
        'q"',
        "",
        "3;plain 'x",
        '4;a"b',
        '5;"c"d',
        "6;7;8",
        '9;"open',
        "10;z",
        "s;1",
    ]
    found = read(Csv(delimiter=";", skip_first=2, skip_last=1), end.join(rows), size)
    numbers = [number for number, _ in found]
    assert numbers == [3, 4, 5, 8, 9, 10, 11, 12, 13]
    broken = {line.split(BROKEN)[1]: restored(line.split(BROKEN)[2]) for _, line in found if line.startswith(BROKEN)}
    assert broken == {
        "field 2 has a quote inside an unquoted field": '4;a"b',
        "field 2 has text after its closing quote": '5;"c"d',
        "not 2 fields": "6;7;8",
        "field 2 opens a quote that is never closed": '9;"open',
    }
    assert fields(found[2][1]) == ["2", f"p{end}q"]
    assert fields(found[3][1]) == ["3", "plain 'x"]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (Csv(delimiter=";"), 'a;b\n1;"' + "x" * (1 << 22) + "\n2;3\n"),
        (Csv(delimiter=";", escape="\\"), "a;b\n" + '"\\\\";\\\n' * (1 << 12)),
        (Csv(delimiter=";"), "a;b\n" + '"""' * (1 << 20)),
        (Csv(columns=("a",), widths=(4,)), "x" * (1 << 22)),
    ],
    ids=["open quote", "escapes", "quotes", "one line"],
)
def test_hostile_text_costs_no_more_than_its_size(form, text):
    size, cost = cost_of(characters, form, text)
    assert size > 0
    assert cost.memory < 1 << 25
    assert cost.seconds < 20  # where it were looked at anew and again, hours


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_an_escape_takes_signs_as_text_and_leaves_others(size):
    text = 'a,b\nx\\,y,\\N\n"q\\"\\\\",C:\\dir\nz\\\nw,1\n"v\\\r\n",\\\\\\"\n2,3\\'
    found = read(Csv(delimiter=",", escape="\\"), text, size)
    rows = [["x,y", "\\N"], ['q"\\', "C:\\dir"], ["z\nw", "1"], ["v\r\n", '\\"']]
    assert [fields(line) for _, line in found[1:-1]] == rows
    assert found[-1][1].startswith(f"{BROKEN}field 2 ends with an escape character{BROKEN}")


def test_a_quoted_blank_is_no_blank_line():
    found = read(Csv(delimiter=";"), 'a\n" "\n\n""\n')
    assert found == [(1, "a"), (2, '" "'), (4, '""')]
