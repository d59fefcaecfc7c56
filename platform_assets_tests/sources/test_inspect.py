"""A file that cannot be taken whole is refused whole, packed or not, with a reason that names what is wrong in it."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import os
import zipfile
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.contracts import Column, Contract, Csv, LandingFiles
from platform_assets.contracts.landing import format_of
from platform_assets.records import raw_rows
from platform_assets.sources import text as stream
from platform_assets.sources.compression import CHUNK
from platform_assets.sources.inspect import Inspection, inspect
from platform_assets.sources.landing import ChangedError, LandedFile, LinkError
from platform_assets.sources.limits import LimitError, Limits
from platform_assets.sources.listing import FolderArea, list_landing
from platform_assets.sources.rewriting import JsonRecords
from platform_assets.sources.rewriting import lines_of as lines_as_copied
from platform_assets_tests.support.cost import cost_of

CONTRACT = Contract(
    name="raw.visits",
    description="Visits.",
    owner="tests@example.com",
    columns=(
        Column("id", "long", "Number.", nullable=False),
        Column("at", "timestamp", "When.", nullable=False),
        Column("paid", "decimal(12,2)", "Dollars."),
        Column("note", "string", "Words."),
    ),
    key=("id",),
    source=LandingFiles("visits"),
    event_time="at",
)


SPARSE = replace(CONTRACT, columns=(*CONTRACT.columns[:3], replace(CONTRACT.columns[3], may_be_absent=True)))
"""Whose files may lack the note."""


HEADER = "id,at,paid,note"


ROW = "1,2017-01-01T10:00:00Z,2.50,hello"


OBJECT = '{"id": 1, "at": "2017-01-01T10:00:00Z", "paid": 2.5, "note": "he]}l\\"lo"}'


WHEN = datetime(2017, 1, 1, 10, tzinfo=UTC)


EXPECTED = "expected are id, at, paid, note"


LACKS_ALL = f"lacks the column id, at, paid, note; {EXPECTED}; its first line was taken for the header"


BEHIND = "has a header whose field 5 has text after its closing quote; quote as RFC 4180 says"


RESERVED = "has the column _line, a name the platform keeps for itself; rename it"


TIME = "has more as TIME, which Spark does not read; write it as text or as a number"


AT_IS_WHOLE = "has at as int64, which cannot become timestamp"


WHERE_NULL = "where that means null, declare it with may_be_absent=True"


def landed_in(root: Path) -> tuple[LandedFile, ...]:
    source = LandingFiles("visits")
    return list_landing(FolderArea(root), source, {}, until=date(2017, 1, 1), settle_s=0).pending


@pytest.fixture
def look(tmp_path):
    def inspected(
        name: str, content: bytes | str, contract: Contract = CONTRACT, limits: Limits = Limits()
    ) -> Inspection:
        folder = tmp_path / "visits" / "2017-01-01"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        [file] = landed_in(tmp_path)
        return inspect(file, contract, limits)

    return inspected


def columns(**other: pa.Array) -> dict[str, pa.Array]:
    return {
        "id": pa.array([1]),
        "at": pa.array([WHEN], pa.timestamp("us", "UTC")),
        "paid": pa.array([Decimal("2.50")], pa.decimal128(12, 2)),
        "note": pa.array(["hello"]),
    } | other


def parquet(table: pa.Table | dict[str, pa.Array], **how: object) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), buffer, **how)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "text",
    [
        f"{HEADER}\n{ROW}\n{ROW}\n",
        f"{HEADER}\r\n{ROW}\r\n{ROW}",
        f"{HEADER}\r{ROW}\r{ROW}\r",
        f"\ufeff{HEADER}\n{ROW}\n{ROW}\n",
        f"\n \n{HEADER}\n\n{ROW}\n\t\n{ROW}\n\x00\n",
        f'"id","at","paid","note"\n{ROW}\n1,2017-01-01T10:00:00Z,2.50,"a, ""b"""\n',
        f' id , at,paid,note\n{ROW}\n1,2,"open\n',
        f'{HEADER}\n{ROW}\n1,2017-01-01T10:00:00Z,2.50,5" wide\n',
    ],
)
def test_a_csv_file_has_as_many_rows_as_lines_that_are_not_blank(look, text):
    found = look("a.csv", text)
    assert found.reason is None
    assert found.landed == 2
    assert found.columns == ("id", "at", "paid", "note")


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("id,at,paid", f"lacks the column note; expected are id, at, paid, note; {WHERE_NULL}"),
        (
            "id,at,paid,notes",
            f"lacks the column note; it has notes, which the contract does not declare; {EXPECTED}; {WHERE_NULL}",
        ),
        ("id,at", f"lacks the column paid, note; expected are id, at, paid, note; {WHERE_NULL}"),
        ("paid,note", "lacks the column id, at; expected are id, at, paid, note"),
        (
            "Visits of January,,",
            f"has the column without a name more than once; {LACKS_ALL}: Visits of January,,",
        ),
        (
            "1,2017-01-01T10:00:00Z,2.50,hello",
            f"{LACKS_ALL}: 1,2017-01-01T10:00:00Z,2.50,hello",
        ),
        (
            "id,paid,paid,_line",
            f"has the column paid more than once; lacks the column at, note; {EXPECTED}; {RESERVED}",
        ),
        (
            'id,at,paid, note,"x"y',
            f"{BEHIND}; has blanks within the name ' note', and perhaps beside the texts below it; write it without",
        ),
        ("id,at,paid,note,paid", "has the column paid more than once"),
        ("id,at,paid,note,PAID", "has the column PAID, paid more than once"),
        ("id,at,paid,note,,", "has the column without a name more than once"),
        ("id,at,paid,note,\u0131d", "has the column id, \u0131d more than once"),
        ("id,at,paid,note,\u0130D", "has the column id, \u0130D more than once"),
        ("id,at,paid,note,_l\u0131ne", "has the column _l\u0131ne, a name the platform keeps for itself; rename it"),
        (
            "ID,at,paid,note",
            "lacks the column id; it has ID, which the contract does not declare; expected are id, at, paid, note",
        ),
        ("id,at,paid,note,_line", "has the column _line, a name the platform keeps for itself; rename it"),
    ],
)
def test_columns_that_are_not_the_contracts_refuse_the_file(look, header, reason):
    found = look("a.csv", f"{header}\n{ROW}\n")
    assert found.reason == reason


@pytest.mark.parametrize("header", ["note,paid,id,at", "id,at,paid,note,more", "id,at,paid,note,", "id,at,paid,note,`"])
def test_another_order_or_an_extra_column_does_not(look, header):
    assert look("a.csv", f"{header}\n").reason is None


def test_an_extra_column_is_noted(look):
    assert look("a.csv", f"{HEADER},more\n").notes == ("extra column more kept in _rescued",)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a.csv", "is empty: not even a header line"),
        ("a.parquet", "is not a Parquet file: "),
        ("a.jsonl", None),
    ],
)
def test_a_file_of_no_bytes(look, name, reason):
    found = look(name, b"")
    assert found.landed == 0
    assert (found.reason or "").startswith(reason or "")
    assert (found.reason is None) == (reason is None)


def test_a_header_alone_and_an_empty_file_of_json_lines_have_no_rows(look, tmp_path):
    assert look("a.csv", HEADER).landed == 0
    (tmp_path / "visits" / "2017-01-01" / "a.csv").unlink()
    assert look("a.jsonl", "\n\n").notes == ("empty file: no rows",)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            f"{HEADER}\n{ROW}\n1,2,3,caf".encode() + b"\xe9\n",
            "is not UTF-8 text: line 3 has the byte 0xe9; write it as UTF-8",
        ),
        (HEADER.encode("utf-16"), "is UTF-16 text; write it as UTF-8"),
        (
            f"{HEADER}\n{ROW}".encode("utf-16-le"),
            "looks like UTF-16 text without its mark, with a zero byte beside each letter; write it as UTF-8",
        ),
    ],
)
def test_text_in_another_encoding_is_refused_by_what_it_is(look, name, content, reason):
    declare = ", or declare its encoding by Csv(...)" if name == "a.csv" and not reason.startswith("looks") else ""
    assert look(name, content).reason == f"{reason}{declare}"


@pytest.mark.parametrize(
    ("declared", "content", "reason"),
    [
        ("cp1252", f"{HEADER}\n{ROW}é€\n".encode("cp1252"), None),
        ("utf-16", f"{HEADER}\n{ROW}☃\n".encode("utf-16"), None),
        ("utf-16-le", f"{HEADER}\n{ROW}☃\n".encode("utf-16-le"), None),
        ("shift_jis", f"{HEADER}\n{ROW}日本\n".encode("shift_jis"), None),
        ("cp1252", f"{HEADER}\n{ROW}\n1,2,3,".encode() + b"\x81\n", "is not cp1252 text: line 3 has the byte 0x81; "),
        ("cp1252", f"{HEADER}\n{ROW}\n".encode("utf-8-sig"), "begins as utf-8 text does, and its contract declares cp"),
        ("latin-1", f"{HEADER}\n{ROW}\n".encode("utf-16"), "begins as utf-16 text does, and its contract declares "),
        ("utf-16", f"{HEADER}\n{ROW}\n".encode("utf-16-le"), "has no mark of UTF-16 at its beginning; declare "),
    ],
)
def test_text_in_a_declared_encoding_is_taken_and_in_another_one_refused(look, declared, content, reason):
    contract = replace(CONTRACT, source=LandingFiles("visits", csv=Csv(encoding=declared)))
    found = look("a.csv", content, contract)
    assert found.reason is None if reason is None else (found.reason or "").startswith(reason)
    assert (found.landed == 1) == (reason is None)


def test_an_excel_file_is_left_with_what_to_do(tmp_path):
    folder = tmp_path / "visits" / "2017-01-01"
    folder.mkdir(parents=True)
    (folder / "a.XLSX").write_bytes(b"PK")
    [problem] = list_landing(FolderArea(tmp_path), LandingFiles("visits"), {}, until=WHEN.date(), settle_s=0).problems
    assert problem.message.startswith("is an Excel file, which is not read; save each sheet as CSV")


@pytest.mark.parametrize(("sign", "called"), [(";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")])
@pytest.mark.parametrize("header", [HEADER, HEADER.upper().replace("ID", "id"), '"id","at","paid","note"'])
def test_other_signs_between_fields_are_named(look, sign, called, header):
    found = look("a.csv", f"{header}\n{ROW}\n".replace(",", sign))
    assert (
        found.reason
        == f"looks separated by {called} instead of commas; declare csv=Csv(delimiter={sign!r}) in its source"
    )


@pytest.mark.parametrize("header", ["id,at,paid", "id;,at,paid", "a;b;c"])
def test_a_header_that_names_no_more_columns_by_another_sign_is_one_with_commas(look, header):
    assert "lacks the column" in look("a.csv", f"{header}\n{ROW}\n").reason


@pytest.mark.parametrize(
    "text",
    [
        "{broken",
        "{broken\n\n1\nnull\n",
        '"note"\n[1, 2]\n{"id": 1} {"id": 2}',
        json.dumps({"id": 1}, indent=2),
    ],
)
def test_json_lines_without_any_object_are_refused_whole_as_csv_without_a_column_is(look, text):
    """A file of one object over several lines is one of them."""
    found = look("a.jsonl", text)
    assert found.reason == "has no line that is a JSON object; deliver one object per line"
    assert found.landed == len(list(filter(None, text.splitlines())))


def test_a_record_that_spans_lines_is_one_row(look):
    spans = look("a.csv", f'{HEADER}\n{ROW}\n1,2017-01-01T10:00:00Z,2.50,"two\n\n""lines"""\n{ROW}\n')
    assert (spans.reason, spans.landed, spans.is_read_as_lines) == (None, 3, True)
    plain = look("a.csv", f'{HEADER}\n{ROW}\n1,2017-01-01T10:00:00Z,2.50,"one line"\n')
    assert (plain.reason, plain.landed, plain.is_read_as_lines) == (None, 2, False)


def test_a_columns_name_may_span_lines(look):
    assert look("a.csv", f'{HEADER},"more\nof it"\n').columns == ("id", "at", "paid", "note", "more\nof it")


@pytest.mark.parametrize("quoted", ["2017", '2017-01-01T10:00:00Z,2.50,"two'])
@pytest.mark.parametrize("rest", [ROW, '1,2017-01-01T10:00:00Z,2.50,"hello"'])
def test_a_quote_that_nothing_closes_swallows_no_row_after_it(look, quoted, rest):
    found = look("a.csv", f'{HEADER}\n{ROW}\n1,"{quoted}\n{rest}\n{ROW}')
    assert (found.reason, found.landed, found.is_read_as_lines) == (None, 4, True)


@pytest.mark.parametrize("other", ["id,at,note,paid", '"at", "id",paid,note', "id,at,paid,words", "at,id"])
def test_another_header_within_a_file_refuses_it_since_what_is_below_would_be_taken_by_the_first(look, other):
    reason = "has another header in row 3, header included; deliver what is below it by itself"
    assert look("a.csv", f"{HEADER}\n{ROW}\n{other}\n{ROW}\n").reason == reason
    assert look("a.csv", f"{HEADER}\n{ROW}\n").reason is None
    whole = look("a.csv", f"{HEADER}\n{ROW}\n{other.replace('id', 'idea')}\n{HEADER}\n1,2,look at,id\n")
    assert (whole.reason, whole.landed) == (None, 4)


def test_a_line_with_more_fields_than_spark_can_split_refuses_its_file(look):
    found = look("a.csv", f"{HEADER}\n{ROW}\n{',' * 30_000}\n")
    assert found.reason == "has 30,001 fields in row 3, header included"


def test_a_field_too_large_to_look_into_refuses_its_file_where_it_is_in_the_header(look):
    large = "x" * (csv.field_size_limit() + 1)
    row = f"1,2017-01-01T10:00:00Z,2.50,{large}"
    assert (look("a.csv", f"{HEADER}\n{row}\n").reason, look("a.csv", f"{HEADER}\n{row}\n").landed) == (None, 1)
    assert look("a.csv", f'{HEADER}\n{ROW}\n1,2017-01-01T10:00:00Z,2.50,"{large}\n').reason is None
    assert look("a.csv", f"id,{large}\n{ROW}\n").reason == (
        "has a field of more than 131,072 characters in row 1, header included"
    )


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize("filled", ["x", " ", "\0"])
def test_a_line_that_nobody_could_hold_refuses_its_file_blank_or_not(look, name, filled):
    long = filled * 2_000_000
    bounds = Limits(line_mib=1)
    found = look(name, f"{HEADER}\n\n{ROW}\n{long}\n{ROW}\n", limits=bounds)
    assert found.reason == "has more than 1,048,576 bytes in row 3, blank lines not counted; deliver shorter rows"
    assert found.landed == (1 if name == "a.csv" else 2)
    assert look(name, f"{long}\n{ROW}\n", limits=bounds).reason == (
        "has more than 1,048,576 bytes in row 1, blank lines not counted; deliver shorter rows"
    )
    if name == "a.jsonl":
        array = look(name, f"[{ROW * 50_000}]", limits=bounds)
        assert array.reason == "is broken JSON in line 1: , should be where : is"


PIECES = st.sampled_from([
    b"\n", b"\r", b"\r\n", b" ", b"\t", b"\0", b"a", b",", b'"', b"id,at,paid,note", b"1,2,3,x", b'1,2,3,"x',
    "é".encode(), "☃".encode(), "😀".encode(), b"\xe9", b"\xf0\x9f", b"\xef\xbb\xbf", b"\x0b", b"\x85", b"[",
])  # fmt: skip


@given(st.lists(PIECES, max_size=30).map(b"".join), st.integers(1, 9))
def test_a_file_that_streams_past_is_the_file_as_a_whole(content, chunk):
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "CHUNK", chunk)
        place = Path(folder, "visits", "2017-01-01", "a.csv")
        place.parent.mkdir(parents=True)
        place.write_bytes(content)
        [file] = landed_in(Path(folder))
        shown: list[bytes] = []
        where: tuple[int, int] | None = None
        try:
            content.decode()
        except UnicodeDecodeError as error:
            where = (content.count(b"\n", 0, error.start) + 1, content[error.start])
        if where:
            with pytest.raises(stream.EncodingError) as caught:
                stream.scan(file, lambda lines: None)
            assert (caught.value.line, caught.value.byte) == where
            return
        expected = [line for line in content.splitlines() if line.strip(bytes(range(33)))]

        def look(lines: stream.Lines) -> None:
            assert lines.before == len(shown)
            assert len(lines.bare) == len(lines.whole())
            shown.extend(lines.whole())

        found = stream.scan(file, look)
        assert (found.lines, shown) == (len(expected), expected)
        assert found.beginning == (expected[0][:chunk] if expected else b"")


@pytest.mark.parametrize(
    ("name", "row"),
    [
        pytest.param("a.csv", ROW, marks=pytest.mark.proof),
        pytest.param("q.csv", f'"{ROW}"', marks=pytest.mark.proof),
        ("s.csv", f'1,2,3,"two\n{"lines" * 40}"'),
        pytest.param("a.jsonl", json.dumps({"id": 1, "at": 2, "paid": 3, "note": "hello"}), marks=pytest.mark.proof),
        pytest.param("sparse.jsonl", '{"more": {"note": "paid"}, "id": 1, "at": 2}', marks=pytest.mark.proof),
        pytest.param("b.csv", "1,,,", marks=pytest.mark.proof),
    ],
)
def test_a_file_takes_no_more_memory_than_a_small_part_of_it(tmp_path, name, row):
    file = tmp_path / "visits" / "2017-01-01" / name
    file.parent.mkdir(parents=True)
    rows = 9_000_000 // len(row) // 200 * 200
    with file.open("w") as written:
        written.write(f"{HEADER}\n")
        written.writelines(f"{row}\n{row}\n" * 100 for _ in range(rows // 200))
    [landed] = landed_in(tmp_path)
    found, cost = cost_of(inspect, landed, CONTRACT)
    assert (found.reason is None) == (name != "sparse.jsonl")
    assert found.landed == rows + name.endswith("jsonl")
    assert cost.memory < 30 * CHUNK


def lines_of(*rows: dict[str, object]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


WHOLE = {"id": 1, "at": "2017-01-01T10:00:00Z", "paid": 2.5, "note": "hello"}


SHORT = {name: value for name, value in WHOLE.items() if name != "note"}


LACKS_NOTE = "lacks the column note in all its objects; "


@pytest.mark.parametrize(
    "text",
    [
        lines_of(WHOLE, SHORT),
        lines_of(*[SHORT] * 500, SHORT | {"note": None}),
        lines_of(*[SHORT | {"more": "note"}] * 500, WHOLE, SHORT),
        lines_of(*[SHORT | {"more": {"note": 1}}] * 500, {"note": "its own line"}),
        '{"id": 1, "at": 2, "paid": 3}\n{"n\\u006fte": 4}\n',
        '\ufeff{"id": 1, "at": 2, "paid": 3, "note" : 4}\n',
        '{"id": 1, "at": 2}\r{"paid": 3, "note": 4}',
        '{"id": 1, "at": 2, "paid": ' + "9" * 5000 + ', "note": -1e999999}',
        '{"id": 1\n[1, 2]\n' + lines_of(WHOLE) + '"note"\n{"id": 1} {"id": 2}\n',
    ],
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.json.gz"])
def test_json_lines_have_a_column_where_any_object_of_theirs_has_it(look, monkeypatch, name, text):
    """Lines that are none are refused one by one, as long as there is one that is."""
    monkeypatch.setattr(stream, "CHUNK", 1000)
    content = gzip.compress(text.encode()) if name.endswith("gz") else text
    assert look(name, content).reason is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (lines_of(SHORT), f"{LACKS_NOTE}expected are id, at, paid, note; {WHERE_NULL}"),
        (lines_of(*[SHORT | {"more": ["note", {"note": 1}]}] * 500), f"{LACKS_NOTE}expected are id, at, paid, note; "),
        (
            lines_of(*[SHORT] * 50, SHORT | {"notes": "x", "n": 1}),
            f"{LACKS_NOTE}it has notes, which the contract does ",
        ),
        (lines_of(SHORT | {"Note": "x"}), f"{LACKS_NOTE}it has Note, which the contract does not declare; "),
        (lines_of(SHORT) + '{"note": broken\n{"note": 1} {"note": 2}\n["note"]\n', f"{LACKS_NOTE}expected are "),
        ("{}\n", "lacks the column id, at, paid, note in all its objects; expected are id, at, paid, note"),
    ],
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.json.gz"])
def test_json_lines_none_of_which_has_a_column_are_refused_with_what_may_be_meant(
    look, monkeypatch, name, text, reason
):
    monkeypatch.setattr(stream, "CHUNK", 1000)
    refused = look(name, gzip.compress(text.encode()) if name.endswith("gz") else text)
    assert (refused.reason or "").startswith(reason)
    assert refused.landed == len(text.splitlines())


@pytest.mark.parametrize("more", ["", "notes"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_files_of_every_format_may_lack_a_column_that_may_be_absent_and_no_other(look, name, more):
    def file(*left_out: str, written: str = more) -> bytes | str:
        row = {name: value for name, value in (WHOLE | {written: "x"}).items() if name and name not in left_out}
        if name == "a.jsonl":
            return lines_of(row)
        if name == "a.csv":
            return f"{','.join(row)}\n{','.join(map(str, row.values()))}\n"
        return parquet({column: pa.array([str(value)]) for column, value in row.items()})

    assert look(name, file("note"), SPARSE).reason is None
    assert (look(name, file("note")).reason or "").startswith("lacks the column note")
    assert (look(name, file("note", "paid"), SPARSE).reason or "").startswith("lacks the column paid")
    capital = look(name, file("note", written="NOTE"), SPARSE)
    assert "; it has NOTE, which the contract does not declare" in (capital.reason or "")
    assert "may_be_absent" not in (capital.reason or ""), "it is declared so already"


@pytest.mark.parametrize(
    ("text", "landed", "reason"),
    [
        ("[]", 0, None),
        (f"\ufeff [\n{OBJECT},\n{OBJECT}\n]\n", 2, None),
        (f"[{OBJECT}, 1.5e3, [], {{}}, {{broken }}, null ]", 6, None),
        ("[[1, 2], 3]", 2, "has no line that is a JSON object; deliver one object per line"),
        (f"[{OBJECT},\n{OBJECT}", 0, "is JSON that was cut short in line 2; deliver it whole"),
        (f"[{OBJECT},\n{OBJECT[:30]}", 0, "is JSON that was cut short in line 2; deliver it whole"),
        (f"[{OBJECT}\n{OBJECT}]", 0, "is broken JSON in line 2: , should be where { is"),
        (f"[{OBJECT},,{OBJECT}]", 0, "is broken JSON in line 1: a value should be where , is"),
        (f"[{OBJECT}]\n[{OBJECT}]", 0, "has something behind its JSON document in line 2"),
    ],
)
def test_a_json_array_has_its_objects_as_rows_or_is_refused_with_the_line_that_is_wrong(look, text, landed, reason):
    found = look("a.json", text)
    assert (found.reason, found.landed) == (reason, landed)
    assert reason or found.is_read_as_lines


@pytest.mark.parametrize(
    ("text", "landed", "reason"),
    [
        ('{"n": [1, {}], "data": {"x": 1, "rows": [%s, 7],\n"y": {}}, "z": 1}\n', 2, None),
        ('{"data": {"rows": [%s]}', 0, "is JSON that was cut short in line 1; deliver it whole"),
        ('{"data": {"rows": [%s]},\n"data": {"rows": []}}', 0, "names data twice in the object of line 2"),
        ('{"data": {"row": [%s]}}', 0, "has no array data.rows, where its contract has its records"),
        ('{"data": [%s]}', 0, "is broken JSON in line 1: { should be where [ is"),
        ('{"data": {"rows": [%s]}} {}', 0, "has something behind its JSON document in line 1"),
        ("%s\n", 0, "has no array data.rows, where its contract has its records"),
    ],
)
def test_a_json_document_has_its_records_where_its_contract_says(look, text, landed, reason):
    contract = replace(CONTRACT, source=LandingFiles("visits", records=("data", "rows")))
    found = look("a.json", text % OBJECT, contract)
    assert (found.reason, found.landed) == (reason, landed)


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ('{"who": {"names": ["Ann"]}}', {"note": "Ann"}),
        ('{"who": {"names": []}}', {"note": None}),
        ('{"who": {"names": null}}', {"note": None}),
        ('{"who": null}', {"note": None}),
        ('{"who": {}}', {}),
        ('{"who": 7}', {"_rest": True}),
        ("{}", {}),
    ],
)
def test_what_a_null_or_a_short_list_has_at_a_path_is_null_and_not_missing(place, found):
    name = replace(CONTRACT.columns[3], path=("who", "names", 0))
    contract = replace(CONTRACT, columns=(*CONTRACT.columns[:3], name))
    [(_, line)] = JsonRecords(contract, Limits()).records(iter([f"{place}\n"]))
    assert json.loads(line.partition(raw_rows.WHOLE)[0]) == found


def test_a_whole_parquet_file_has_the_rows_of_its_footer(look):
    found = look("a.parquet", parquet(columns()))
    assert (found.reason, found.landed, found.columns) == (None, 1, ("id", "at", "paid", "note"))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda content: b"PAR1 no parquet at all", "is not a Parquet file: "),
        (lambda content: content[: len(content) // 2], "is not a Parquet file: "),
        (lambda content: content[:-4] + b"PAR2", "is not a Parquet file: "),
        (lambda content: content[:-60] + b"\xff" * 52 + content[-8:], "is not a Parquet file: "),
    ],
)
def test_a_parquet_file_without_a_sound_footer_is_refused(look, change, reason):
    found = look("a.parquet", change(parquet(columns())))
    assert (found.reason or "").startswith(reason)
    assert found.landed == 0


def test_a_parquet_file_with_a_broken_page_is_found_out_by_reading_it(look):
    content = parquet(columns(), compression="zstd").replace(b"\x28\xb5\x2f\xfd", b"\xff" * 4)
    assert (look("a.parquet", content).reason or "").startswith("is corrupt: ")


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"paid": pa.array([b"x"])}, "has paid as binary, which cannot become decimal(12,2)"),
        ({"paid": pa.array([[1]])}, "has paid as list<element: int64>, which cannot become decimal(12,2)"),
        ({"note": pa.array([b"caf\xe9"])}, "has note as binary, which cannot become string"),
        ({"at": pa.array([1])}, AT_IS_WHOLE),
        ({"id": pa.array([True])}, "has id as bool, which cannot become long"),
        (
            {"id": pa.array([True]), "at": pa.array([1]), "_line": pa.array([1]), "more": pa.array([time(1)])},
            f"{RESERVED}; {TIME}; has id as bool, which cannot become long; {AT_IS_WHOLE}",
        ),
        ({"id": pa.array([date(2017, 1, 1)])}, "has id as date32[day], which cannot become long"),
        (
            {"more": pa.array([[WHEN]], pa.list_(pa.timestamp("ns")))},
            "has more.list.element in nanoseconds, which Spark does not read; write microseconds",
        ),
        (
            {"more": pa.array([time(1)], pa.time64("us"))},
            TIME,
        ),
        (
            {"more": pa.array([1.5], pa.float16())},
            "has more as FLOAT16, which Spark does not read; write it as text or as a number",
        ),
        (
            {"more": pa.array([Decimal("1.5")], pa.decimal256(50, 2))},
            "has more with 50 digits; Spark reads at most 38",
        ),
        ({"_metadata": pa.array([1])}, "has the column _metadata, a name the platform keeps for itself; rename it"),
        ({"Note": pa.array([1])}, "has the column Note, note more than once"),
        ({"\u0131d": pa.array([1])}, "has the column id, \u0131d more than once"),
        ({"": pa.array([1])}, "has a column without a name"),
        ({"more": pa.array([{"b": 1, "B": 2}])}, "has the field more.B, more.b more than once"),
        (
            {"more": pa.array([[{"a": {"\u0131": 1, "i": 2}}]])},
            "has the field more.element.a.i, more.element.a.\u0131 more than once",
        ),
    ],
)
def test_a_parquet_type_that_cannot_be_read_or_would_have_to_be_guessed_is_named(look, other, reason):
    assert look("a.parquet", parquet(columns(**other))).reason == reason


@pytest.mark.parametrize(
    "other",
    [
        {"id": pa.array([1], pa.uint16())},
        {"id": pa.array([1.0])},
        {"id": pa.array(["1"])},
        {"paid": pa.array([2.5])},
        {"paid": pa.nulls(1)},
        {"at": pa.array(["2017-01-01T10:00:00Z"])},
        {"at": pa.array([WHEN], pa.timestamp("ms"))},
        {"at": pa.array([WHEN], pa.timestamp("ns", "UTC"))},
        {"at": pa.array([date(2017, 1, 1)])},
        {"note": pa.array(["a"]).dictionary_encode()},
        {"note": pa.array(["a"], pa.large_string())},
        {"note": pa.array([1.5])},
        {"more": pa.array([[{"a": {"b": 1}, "b": {"a": 1}}]])},
        {"odd `name.": pa.array([1])},
    ],
)
def test_other_parquet_types_can_be_taken_value_by_value(look, other):
    assert look("a.parquet", parquet(columns(**other))).reason is None


def test_nanoseconds_in_the_older_form_can_be_taken(look):
    table = pa.table(columns(at=pa.array([WHEN], pa.timestamp("ns"))))
    assert look("a.parquet", parquet(table, use_deprecated_int96_timestamps=True)).reason is None


def test_a_codec_that_spark_lacks_is_named(look):
    found = look("a.parquet", parquet(columns(), compression="brotli"))
    assert found.reason == "is compressed with BROTLI; known are GZIP, LZ4, SNAPPY, UNCOMPRESSED, ZSTD"


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.csv.gz", "a.parquet"])
def test_a_file_that_vanished_is_not_judged(look, tmp_path, name):
    look(name, f"{HEADER}\n")
    [file] = landed_in(tmp_path)
    file.file.unlink()
    with pytest.raises(FileNotFoundError):
        inspect(file, CONTRACT)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.csv.gz", "a.parquet"])
def test_what_lies_in_place_of_a_listed_file_is_neither_followed_nor_waited_for(look, tmp_path, name):
    look(name, f"{HEADER}\n")
    [file] = landed_in(tmp_path)
    file.file.rename(tmp_path / "elsewhere")
    file.file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LinkError):
        inspect(file, CONTRACT)
    file.file.unlink()
    os.mkfifo(file.file)
    with pytest.raises(ChangedError):
        inspect(file, CONTRACT)
    if name != "a.parquet":
        with pytest.raises(ChangedError):
            next(lines_as_copied(file))
    file.file.unlink()
    file.file.write_bytes(b"longer than what was listed")
    with pytest.raises(ChangedError):
        inspect(file, CONTRACT)


def test_a_name_that_spark_cannot_open_is_refused(look):
    reason = "has a colon and one of {}[]*?\\ in its path, which Spark cannot open; rename it"
    assert look("10:05 [a].csv", f"{HEADER}\n{ROW}\n").reason == reason


def test_a_parquet_file_with_a_columns_name_that_is_not_utf8_is_refused(look):
    """As a writer leaves it that takes its names from a source in Latin 1."""
    content = parquet(columns(QQcafeQQ=pa.array([7])), store_schema=False, compression="none")
    assert b"QQcafeQQ" in content
    assert look("a.parquet", content.replace(b"QQcafeQQ", b"QQcaf\xe9QQ")).reason is not None


CSV = f"{HEADER}\n{ROW}\n{ROW}\n".encode()


JSON = b'{"id": 1, "at": "2017-01-01T10:00:00Z", "paid": 2.5, "note": "hello"}\n'


packed = partial(gzip.compress, mtime=0)  # the same bytes in every process, since tests are named after them


PACKED = packed(CSV)


def compressed(content: bytes) -> bytes:
    return bytes(pa.compress(content, "zstd", asbytes=True))


ZSTD, BZ2 = compressed(CSV), bz2.compress(CSV)


def zipped(*names: str, flags: int = 0) -> bytes:
    """The same bytes in every process."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as stream:
        for name in names:
            stream.writestr(zipfile.ZipInfo(name), b"" if name.endswith("/") else CSV)
    content = archive.getvalue()
    at = content.index(b"PK\x01\x02") if flags else 0
    return content[: at + 8] + bytes([flags]) + content[at + 9 :] if flags else content


@pytest.fixture
def look_into(tmp_path: Path):
    def inspected(name: str, content: bytes, **bounds: int) -> Inspection:
        return inspect(landed(tmp_path, name, content), CONTRACT, Limits(**bounds))

    return inspected


def landed(root: Path, name: str, content: bytes):
    file = root / "visits" / "2017-01-01" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    assert CONTRACT.source is not None
    [found] = list_landing(FolderArea(root), CONTRACT.source, {}, until=date(2017, 1, 1), settle_s=0).pending
    return found


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.csv.gz", "csv"),
        ("a.CSV.GZ", "csv"),
        ("a.jsonl.gz", "json"),
        ("a.b.ndjson.gz", "json"),
        ("a.json.gz", "json"),
        ("a.json", "json"),
        ("a.parquet", "parquet"),
        ("a.csv.zst", "csv"),
        ("a.json.Bz2", "json"),
        ("a.csv.zip", "csv"),
        ("a.zip", None),
        ("a.xlsx", None),
        ("a.parquet.gz", None),
        ("a.gz", None),
        ("csv.gz", None),
        ("csv", None),
    ],
)
def test_a_text_file_may_be_compressed_and_its_ending_says_so(name, kind):
    assert format_of(name) == kind


@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        ("a.csv.gz", PACKED, 2),
        ("a.CSV.GZ", PACKED, 2),
        ("a.csv.gz", packed(CSV[:40]) + packed(b"") + packed(CSV[40:]), 2),
        ("a.jsonl.gz", packed(JSON * 3), 3),
        ("a.json.gz", packed(b""), 0),
        ("a.csv.zst", ZSTD, 2),
        ("a.csv.zst", b"\x50\x2a\x4d\x18\x01\0\0\0x" + ZSTD + compressed(ROW.encode()), 3),
        ("a.csv.bz2", BZ2 + bz2.compress(ROW.encode()), 3),
        ("a.jsonl.BZ2", bz2.compress(JSON * 3), 3),
        ("a.csv.zip", zipped("__MACOSX/._a.csv", "folder/", "folder/a.csv"), 2),
    ],
)
def test_a_compressed_file_has_the_rows_that_are_in_it(look_into, name, content, rows):
    found = look_into(name, content)
    assert (found.reason, found.landed) == (None, rows)
    assert found.is_read_as_lines != name.endswith("gz")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.csv.gz", b"", "is gzip that was cut short; deliver it whole"),
        ("a.csv.gz", PACKED[:-3], "is gzip that was cut short; deliver it whole"),
        ("a.csv.gz", PACKED[:30], "is gzip that was cut short; deliver it whole"),
        ("a.jsonl.gz", packed(JSON) + packed(JSON)[:20], "is gzip that was cut short; deliver it whole"),
        ("a.csv.gz", CSV, "is not gzip, though its name ends with .gz"),
        ("a.csv.gz", PACKED[:20] + b"\xff" * 20 + PACKED[40:], "is damaged gzip: "),
        ("a.csv.gz", PACKED[:-8] + b"\0\0\0\0" + PACKED[-4:], "is damaged gzip: "),
        ("a.csv.gz", PACKED + b"more and more", "is damaged gzip: "),
        ("a.CSV.GZ", PACKED + b"\0" * 512, "is damaged gzip: "),
        ("a.csv.gz", packed(PACKED), "is not UTF-8 text: line 1 has the byte 0x8b"),
        ("a.csv.gz", packed(b"PAR1\x15\x04\xff"), "is not UTF-8 text: "),
        ("a.csv.gz", packed(JSON), "lacks the column id, at, paid, note; "),
        ("a.jsonl.gz", packed(b"[" + JSON), "is JSON that was cut short in line 2; "),
        ("a.csv", PACKED, "is gzip; let its name say so: a.csv.gz"),
        ("a.csv.zst", ZSTD[:-3], "is zstandard that was cut short; deliver it whole"),
        ("a.csv.zst", ZSTD + b"more", "is damaged zstandard: "),
        ("a.csv.zst", PACKED, "is not zstandard, though its name ends with .zst"),
        ("a.csv", ZSTD, "is zstandard; let its name say so: a.csv.zst"),
        ("a.csv.bz2", BZ2[: len(BZ2) // 2], "is bzip2 that was cut short; deliver it whole"),
        ("a.csv.bz2", BZ2[:40] + b"\xff" * 9 + BZ2[49:], "is damaged bzip2: "),
        ("a.csv.bz2", b"", "is bzip2 that was cut short; deliver it whole"),
        ("a.csv.zip", zipped("a.csv")[:-30], "is zip that was cut short; deliver it whole"),
        ("a.csv.zip", zipped("a.csv").replace(CSV[:40], CSV[:39] + b"x"), "is a damaged zip archive: Bad CRC-32"),
        ("a.csv.zip", zipped("a.csv", "b.csv"), "is a zip archive of 2 files (a.csv, b.csv); deliver each by itself"),
        ("a.csv.zip", zipped(), "is a zip archive of 0 files; deliver each by itself"),
        ("a.csv.zip", zipped("a.csv", flags=1), "is an encrypted zip archive; deliver it without a password"),
    ],
)
def test_a_compressed_file_that_is_not_what_its_name_says_is_refused(look_into, name, content, reason):
    assert (look_into(name, content).reason or "").startswith(reason)


def test_a_small_file_that_becomes_too_large_is_refused_before_it_does(look_into, tmp_path):
    bomb = packed(CSV + (b"1,2,3," + b"x" * 1017 + b"\n") * (1 << 16), compresslevel=1)
    found, cost = cost_of(inspect, landed(tmp_path, "a.csv.gz", bomb), CONTRACT, Limits(unpacked_ratio=50))
    most = max(50 * len(bomb), 1 << 26)
    assert found.reason == (
        f"becomes more than {most:,} bytes unpacked, 50 times its size; "
        "deliver it in parts, or set PLATFORM_UNPACKED_RATIO higher and deliver it anew"
    )
    assert cost.memory < 1 << 24
    with pytest.raises(LimitError):
        sum(map(len, lines_as_copied(landed(tmp_path, "a.csv.gz", bomb), Limits(unpacked_ratio=50))))
    assert look_into("a.csv.gz", bomb, unpacked_ratio=1000).reason is None


def test_a_compressed_file_with_records_that_span_lines_is_read_as_lines(look_into, tmp_path):
    content = packed(CSV + b'1,2017-01-01T10:00:00Z,2.50,"two\nlines"\n')
    found = look_into("a.csv.gz", content)
    assert (found.reason, found.landed, found.is_read_as_lines) == (None, 3, True)
    copy = b"".join(lines_as_copied(landed(tmp_path, "a.csv.gz", content)))
    assert len(copy.splitlines()) == 4


@pytest.mark.parametrize("begins", [b"", b"  \n "])
def test_names_of_later_objects_are_read_with_their_blanks(look, monkeypatch, begins):
    monkeypatch.setattr(stream, "CHUNK", 1000)
    found = look("a.jsonl", begins + lines_of(*[WHOLE | {"Shop No": 1}] * 500).encode())
    assert found.notes == ("extra column Shop No kept in _rescued",)


def test_a_name_with_half_of_a_character_is_noted_as_json_writes_it(look):
    """In a manifest nothing else could be written."""
    found = look("a.jsonl", lines_of(WHOLE | {"\ud800x": 1}))
    assert found.notes == ("extra column \\ud800x kept in _rescued",)


def test_a_reading_of_which_no_record_can_be_decoded_is_refused_row_by_row(look):
    reason = dict.fromkeys(column.name for column in CONTRACT.columns) | {"_unreadable": "why", "_value": "x"}
    found = look("a.jsonl", lines_of(reason))
    assert (found.reason, found.notes) == (None, ())
