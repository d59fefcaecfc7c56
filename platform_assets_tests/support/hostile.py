"""Files and text that nobody would write by accident, each with what is wrong with it.

Every file is for raw.readings and made in memory, the same in every process; none takes more than a few megabytes.
"""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from platform_assets.sources.limits import Limits
from platform_assets.words import as_code, visible

BOUNDS = Limits(file_mib=8, file_rows=50_000, file_columns=50, file_nesting=8, line_mib=1)
"""Bounds that small files can pass."""

HEADER = "sensor,measured_at,celsius"
ROW = "a,2017-01-01T10:00:00Z,20.00"
OBJECT = '{"sensor": "a", "measured_at": "2017-01-01T10:00:00Z", "celsius": "20.00"}'
WHEN = datetime(2017, 1, 1, 10, tzinfo=UTC)
packed = partial(gzip.compress, mtime=0)
BLANK = b"\n" * 8 + b" " * 55 + b"\n"
"""Lines that are no rows: each is looked at, and the short ones cost the most."""


def csv(*rows: str, header: str = HEADER) -> bytes:
    """A CSV file of some rows."""
    return "".join(f"{line}\n" for line in (header, *rows)).encode()


def lines(*objects: str) -> bytes:
    """JSON lines."""
    return "".join(f"{line}\n" for line in objects).encode()


def one(field: str, written: str) -> str:
    """An object with one field as it is written, the others good."""
    good = {"sensor": '"a"', "measured_at": '"2017-01-01T10:00:00Z"', "celsius": '"20.00"'}
    return "{" + ", ".join(f'"{name}": {value}' for name, value in (good | {field: written}).items()) + "}"


def parquet(how: dict[str, object] | None = None, rows: int = 1, **other: pa.Array) -> bytes:
    """A Parquet file with a good row, and columns that are other or more."""
    columns = {
        "sensor": pa.array(["a"] * rows),
        "measured_at": pa.array([WHEN] * rows, pa.timestamp("us", "UTC")),
        "celsius": pa.array([Decimal("20.00")] * rows, pa.decimal128(6, 2)),
    }
    sink = io.BytesIO()
    pq.write_table(pa.table(columns | other), sink, **(how or {}))
    return sink.getvalue()


def parquet_for_spark(said: str, **other: pa.Array) -> bytes:
    """A Parquet file that says beside its schema which types Spark is to read, as those do that Spark wrote."""
    sink = io.BytesIO()
    table = pq.read_table(io.BytesIO(parquet(**other)))
    pq.write_table(table.replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": said}), sink)
    return sink.getvalue()


def spark_schema(types: list[tuple[str, str]]) -> str:
    """As Spark writes names and types."""
    fields = [{"name": name, "type": type_, "nullable": True, "metadata": {}} for name, type_ in types]
    return json.dumps({"type": "struct", "fields": fields})


def _of_a_class() -> bytes:
    """The type of its column is a class, which whoever reads it loads and makes an object of."""
    name = "org.apache.spark.ml.linalg.VectorUDT"
    type_ = f'{{"\\u0074ype": "udt", "class": "{name}", "pyClass": "this.Zen", "sqlType": "string"}}'
    said = '{"type": "struct", "fields": [{"name": "more", "type": %s, "nullable": true, "metadata": {}}]}'
    return parquet_for_spark(said % type_, more=pa.array(["a"]))


def nested(depth: int) -> pa.Array:
    """A field that lies so deep in others."""
    value: object = 1
    for _ in range(depth - 1):
        value = {"a": value}
    return pa.array([value])


def renamed(was: str, by: bytes, **other: pa.Array) -> bytes:
    """A Parquet file in which bytes of a name, or of anything else, are replaced by as many."""
    content = parquet({"compression": "none", "store_schema": False}, **other)
    assert was.encode() in content
    return content.replace(was.encode(), by)


def _cut(content: bytes, at: int) -> bytes:
    return content[:at]


def _footer_of(length: int) -> bytes:
    good = parquet()
    return good[:-8] + length.to_bytes(4, "little") + good[-4:]


def _many_groups() -> bytes:
    sink = io.BytesIO()
    table = pq.read_table(io.BytesIO(parquet()))
    with pq.ParquetWriter(sink, table.schema) as writer:
        for _ in range(2000):
            writer.write_table(table)
    return sink.getvalue()


def _few(values: list[str], rows: int) -> pa.Array:
    """Some texts again and again, each of which is written once."""
    places = pa.array([n % len(values) for n in range(rows)], pa.int32())
    return pa.DictionaryArray.from_arrays(places, pa.array(values))


def _within(values: pa.Array) -> pa.Array:
    """Each in a list, in a field."""
    lists = pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), values)
    return pa.StructArray.from_arrays([lists], ["a"])


def _lying_page() -> bytes:
    """The first page says that it becomes 2 GiB: its header is longer by what is taken from its end."""
    content = parquet({"compression": "none", "use_dictionary": False})
    size = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0).column(0).total_compressed_size
    page = content[4 : 4 + size]
    assert (page[:3], page[4]) == (b"\x15\x00\x15", 0x15), "its type, its two sizes"
    page = page[:3] + b"\xfe\xff\xff\xff\x0f\x15" + bytes([page[5] - 8]) + page[6:-4]
    return content[:4] + page + content[4 + size :]


def _told(was: bytes, by: bytes) -> bytes:
    """Forty rows, of which the footer says something else."""
    content = parquet({"compression": "none"}, rows=40)
    at = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    assert was in content[at:]
    return content[:at] + content[at:-8].replace(was, by) + content[-8:]


_SPLIT: dict[str, object] = {
    "use_dictionary": False,
    "column_encoding": dict.fromkeys(HEADER.split(","), "PLAIN") | {"more": "BYTE_STREAM_SPLIT"},
}
_IN_DELTAS: dict[str, object] = {
    "compression": "zstd",
    "use_dictionary": False,
    "column_encoding": {"sensor": "DELTA_BYTE_ARRAY", "measured_at": "PLAIN", "celsius": "PLAIN"},
    "data_page_size": 1 << 20,
}
_SMALL: dict[str, object] = {"compression": "zstd", "store_schema": False, "data_page_size": 1 << 30}


def _same(rows: int) -> pa.Array:
    return pa.nulls(rows, pa.int64()).fill_null(7)


def _one_list(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def _footer_of_one_column(rest: bytes) -> bytes:
    """A file that is only a footer: one column, then its number of rows, and groups of rows."""
    root, leaf = b"\x48\x04root\x15\x02\0", b"\x15\x02\x25\x02\x18\x01a\0"
    footer = b"\x15\x02\x19\x2c" + root + leaf + rest + b"\0"
    return b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def _columns_beyond_its_schema() -> bytes:
    """51 bytes that end whoever reads them with Arrow: of one column, with two in its only group of rows."""
    return _footer_of_one_column(b"\x16\0\x19\x1c" + b"\x19\x2c" + 2 * b"\x26\0\0" + b"\x16\0\x16\0\0")


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    # CSV
    "empty.csv": (lambda: b"", "is empty"),
    "long_header.csv": (lambda: csv(ROW, header=f"{HEADER},{'x' * 200_000}"), "has a field of more than 131,072"),
    "long_name.csv": (lambda: csv(ROW, header=f"{HEADER},{'x' * 2000}"), "has a column with a name of 2,000"),
    "wide.csv": (lambda: csv(header=HEADER + "".join(f",c{n}" for n in range(100))), "has 103 columns, more than 50"),
    "commas.csv": (lambda: csv(ROW, header="," * 900_000), "has 900,001 columns, more than 50"),
    "commas_below.csv": (lambda: csv("," * 900_000), "has 900,001 fields in row 2"),
    "semicolons.csv": (lambda: csv(header=";" * 100_000), "has a column with a name of 100,000"),
    "long_line.csv": (lambda: csv(ROW, "x" * 2_000_000), "has more than 1,048,576 bytes in row 3"),
    "long_blank.csv": (lambda: csv(ROW, "\0" * 2_000_000), "has more than 1,048,576 bytes in row 3"),
    "open_for_ever.csv": (lambda: csv(ROW, '"' + "a," * 1_500_000), "has more than 1,048,576 bytes in row 3"),
    "many_rows.csv": (lambda: csv(*["1,2,3"] * 60_000), "has more than 50,000 rows"),
    "overlong.csv": (lambda: csv() + b"\xc0\xaf,2017-01-01T10:00:00Z,1\n", "is not UTF-8 text"),
    "utf32.csv": (lambda: csv(ROW).decode().encode("utf-32"), "is UTF-16 text"),
    "parquet_inside.csv": (parquet, "is not UTF-8 text"),
    "bomb.csv.gz": (lambda: packed(csv() + b"1,2,3\n" * (12 << 20), 1), "has more than 50,000 rows"),
    "zeros.csv.gz": (lambda: packed(csv() + b"\0" * (80 << 20), 1), "has more than 1,048,576 bytes in row 2"),
    "blank_lines.csv.gz": (lambda: packed(csv() + BLANK * (65 << 14), 9), "becomes more than 67,108,864 bytes"),
    "padded_within.csv.gz": (
        lambda: packed(csv(ROW)) + b"\0" * 9 + packed(csv(ROW)),
        "is damaged gzip: ",
    ),
    "flags.csv.gz": (lambda: b"\x1f\x8b\x08\xe0" + packed(csv(ROW))[4:], "is damaged gzip: "),
    "latin.jsonl.gz": (lambda: packed(b'{"sensor": "caf\xe9"}\n'), "is not UTF-8 text"),
    "long_array.jsonl": (lambda: f"[{OBJECT},".encode() * 20_000, "has more than 1,048,576 bytes in line 1"),
    "brackets.jsonl": (lambda: b"[" * 500_000, "is JSON that was cut short in line 1"),
    "braces.jsonl": (lambda: b'{"a":' * 100_000, "has no line that is a JSON object"),
    "lacking.jsonl": (lambda: lines('{"sensor": "a"}'), "lacks the column measured_at, celsius in all its objects"),
    "many_names.jsonl": (lambda: lines("{" + ",".join(f'"k{n}":1' for n in range(90_000)) + "}"), "lacks the column"),
    "long_line.jsonl": (lambda: lines(OBJECT, one("sensor", f'"{"x" * 2_000_000}"')), "has more than 1,048,576 bytes"),
    "many_rows.jsonl": (lambda: b"{}\n" * 60_000, "has more than 50,000 rows"),
    # Parquet
    "empty.parquet": (lambda: b"", "is not a Parquet file"),
    "half.parquet": (lambda: _cut(parquet(), 400), "is not a Parquet file"),
    "long_footer.parquet": (lambda: _footer_of(2**31), "is not a Parquet file"),
    "encrypted.parquet": (lambda: parquet()[:-4] + b"PARE", "is not a Parquet file"),
    "lacking.parquet": (lambda: renamed("celsius", b"CELSIUS"), "lacks the column celsius; it has CELSIUS"),
    "latin_within.parquet": (
        lambda: renamed("QQcafeQQ", b"QQcaf\xe9QQ", more=pa.array([{"QQcafeQQ": 7}])),
        "has a column whose name is not UTF-8",
    ),
    "two_names.parquet": (lambda: parquet(more=pa.array([{"a": 1, "A": 2}])), "has the field more.A, more.a more than"),
    "nested.parquet": (lambda: parquet(more=nested(20)), "has fields 20 deep in each other, more than 8"),
    "nested_far.parquet": (lambda: parquet(more=nested(150)), "is not a Parquet file: Parquet schema too deeply"),
    "wide.parquet": (lambda: parquet(**{f"c{n}": pa.array([1]) for n in range(100)}), "has 103 columns, more than 50"),
    "long_name.parquet": (lambda: parquet(**{"x" * 2000: pa.array([1])}), "has a column with a name of 2,000"),
    "no_name.parquet": (lambda: parquet(**{"": pa.array([1])}), "has a column without a name"),
    "many_rows.parquet": (lambda: parquet(rows=60_000), "has more than 50,000 rows"),
    "bomb.parquet": (
        lambda: parquet({"compression": "zstd", "use_dictionary": False}, 4, more=pa.array(["\0" * (20 << 20)] * 4)),
        "becomes more than 67,108,864 bytes unpacked",
    ),
    "repeated.parquet": (
        lambda: parquet({"compression": "zstd"}, 20_000, sensor=_few(["x" * 10_000, "y" * 10_000], 20_000)),
        "repeats its values to more than 67,108,864 bytes",
    ),
    "repeated_within.parquet": (
        lambda: parquet({"compression": "zstd"}, 20_000, more=_within(_few(["x" * 10_000], 20_000))),
        "repeats its values to more than 67,108,864 bytes",
    ),
    "deltas.parquet": (lambda: parquet(_IN_DELTAS, 2000, sensor=pa.array(["x" * 50_000] * 2000)), "repeats its values"),
    "fixed.parquet": (
        lambda: parquet(_SMALL, 80, more=pa.array([b"x" * 900_000] * 80, pa.binary(900_000))),
        "repeats its values",
    ),
    "long_list.parquet": (lambda: parquet(_SMALL, more=_one_list(_same(9_000_000))), "repeats its values"),
    "long_list_of_none.parquet": (
        lambda: parquet(_SMALL, more=_one_list(pa.nulls(9_000_000, pa.int64()))),
        "repeats its values",
    ),
    "list.parquet": (lambda: parquet(_SMALL, more=_one_list(_same(200_000))), "has more than 1,048,576 bytes in row 1"),
    "value.parquet": (lambda: parquet(more=pa.array(["x" * 2_000_000])), "has more than 1,048,576 bytes in row 1"),
    "value_further.parquet": (
        lambda: parquet(rows=500, more=pa.array([*["x"] * 400, "x" * 2_000_000, *["x"] * 99])),
        "has more than 1,048,576 bytes in row 401",
    ),
    "class.parquet": (_of_a_class, "has a type of Spark's that is a program's class"),
    "for_spark.parquet": (lambda: parquet_for_spark("{"), "has Spark metadata that is not a Spark schema"),
    "for_spark_twice.parquet": (
        lambda: parquet_for_spark(spark_schema([("sensor", "string")])[:-1] + ', "type": "struct"}'),
        "has Spark metadata that is not a Spark schema",
    ),
    "months.parquet": (
        lambda: parquet_for_spark(spark_schema([("more", "interval year")]), more=pa.array([20], pa.int32())),
        "says to Spark that more is interval year, and holds int32",
    ),
    "fewer_than_none.parquet": (
        lambda: _footer_of_one_column(b"\x16\x01\x19\x0c"),
        "is corrupt: its footer counts -1 rows",
    ),
    "end.parquet": (_columns_beyond_its_schema, "ends the process that looks into it"),
    "header_of_a_page.parquet": (
        lambda: parquet()[:40] + b"\xff" * 50 + parquet()[90:],
        "is corrupt: ",
    ),
    "more_rows_told.parquet": (lambda: _told(b"\x16\x50", b"\x16\x52"), "is corrupt: its footer counts other rows"),
    "encoding.parquet": (
        lambda: parquet(_SPLIT, more=pa.array([1.5])),
        "has columns encoded as BYTE_STREAM_SPLIT, which Spark does not read",
    ),
    "broken_page.parquet": (
        lambda: parquet({"compression": "zstd"}).replace(b"\x28\xb5\x2f\xfd", b"\xff" * 4),
        "is corrupt",
    ),
    "page.parquet": (_lying_page, "is corrupt: "),
    "nanoseconds.parquet": (
        lambda: parquet(more=pa.array([[WHEN]], pa.list_(pa.timestamp("ns")))),
        "has more.list.element in nanoseconds",
    ),
    "binary.parquet": (lambda: parquet(celsius=pa.array([b"\xff"])), "has celsius as binary"),
}
"""Refused before Spark sees them, each with the beginning of the reason."""

_GREATEST = pa.array([2**63 - 1], pa.timestamp("ms", "UTC"))

SPARKS: dict[str, tuple[Callable[[], bytes], str]] = {
    "uuid.parquet": (lambda: parquet(more=pa.array([b"0123456789abcdef"], pa.uuid())), "UUID"),
    "greatest_moment.parquet": (
        lambda: parquet(measured_at=_GREATEST),
        "overflow",
    ),
    "fewer_rows_told.parquet": (lambda: _told(b"\x16\x50", b"\x16\x4e"), "not match its own metadata"),
    "greatest_beside.parquet": (lambda: parquet(more=_GREATEST), "overflow"),
}
"""Refused because Spark fails with them, each with a word of the reason."""

ROWS: dict[str, tuple[Callable[[], bytes], int, int]] = {
    "far_future.parquet": (lambda: parquet(measured_at=pa.array([9 * 10**18], pa.timestamp("us", "UTC"))), 0, 1),
    "far_past.parquet": (lambda: parquet(measured_at=pa.array([-9 * 10**18], pa.timestamp("us", "UTC"))), 0, 1),
    "exponents.csv": (lambda: csv(*(f"a,2017-01-01T10:00:00Z,{n}" for n in ("1e-2147483647", "1e-300000000"))), 0, 2),
    "exponents.jsonl": (lambda: lines(*(one("celsius", n) for n in ("1e-300000000", "1e400000000", "1E+99999"))), 0, 3),
    "digits.jsonl": (lambda: lines(one("celsius", "9" * 5000), one("celsius", "0." + "0" * 5000 + "1")), 0, 2),
    "deep.jsonl": (lambda: lines(OBJECT, one("sensor", "[" * 5000 + "]" * 5000)), 1, 1),
    "twice.jsonl": (lambda: lines(OBJECT, OBJECT + OBJECT, OBJECT + "]"), 1, 2),
    "long_field.csv": (lambda: csv(ROW, f'a,2017-01-01T10:00:00Z,"{"1" * 200_000}'), 1, 1),
    "open_quote.csv": (lambda: csv(ROW, 'a,2017-01-01T10:00:00Z,"20.00'), 1, 1),
    "fields_twice.jsonl": (lambda: lines(OBJECT, "{" + '"a":1,' * 100_000 + OBJECT[1:]), 1, 1),
    "deep_numbers.jsonl": (lambda: lines(OBJECT, one("sensor", "[" * 900 + "1.0" + "]" * 900)), 1, 1),
    "long_list.jsonl": (lambda: lines(one("sensor", "[" + "1.50, " * 150_000 + "0]")), 1, 0),
    "long_text.csv": (lambda: csv(f"{'x' * 200_000},2017-01-01T10:00:00Z,1"), 1, 0),
    "many_lines.csv": (lambda: csv('"' + "a\n" * 5000 + '",2017-01-01T10:00:00Z,1'), 1, 0),
    "quotes.csv": (lambda: csv(ROW, *['"' * n for n in range(1, 60)]), 1, 29),
    "years.csv": (lambda: csv(*(f"a,{y}-01-01T10:00:00Z,1" for y in ("0000", "10000", "292278994", "-0001"))), 0, 4),
    "zone.csv": (lambda: csv("a,2017-01-01T10:00:00+99:99,1", "a,2017-01-01T25:61:61Z,1", "a,NaN,inf"), 0, 3),
    "formula.csv": (
        lambda: csv("\"=cmd|' /C calc'!A0\",2017-01-01T10:00:00Z,1", "\x1b[31m,2017-01-01T11:00:00Z,1"),
        2,
        0,
    ),
    "many_members.csv.gz": (lambda: packed(csv(ROW)) + packed(b"") * 20_000, 1, 0),
    "groups.parquet": (_many_groups, 2000, 0),
    "no_rows.parquet": (lambda: parquet(rows=0), 0, 0),
}


def good(number: int) -> tuple[str, bytes]:
    """A good file of one reading, in one format or another: its name and content."""
    row = ROW.replace("a,", f"good{number},", 1)
    match number % 4:
        case 0:
            return f"good{number}.csv", csv(row)
        case 1:
            return f"good{number}.jsonl", lines(one("sensor", f'"good{number}"'))
        case 2:
            return f"good{number}.csv.gz", packed(csv(row))
        case _:
            return f"good{number}.parquet", parquet(sensor=pa.array([f"good{number}"]))


PIECES: st.SearchStrategy[bytes] = st.one_of(
    st.binary(max_size=30),
    st.sampled_from([
        HEADER.encode(), ROW.encode(), OBJECT.encode(), b"\n", b"\r\n", b"\r", b",", b'"', b'""', b"\0",
        b"\xef\xbb\xbf", b"{", b"}", b"[", b"]", b":", b"\\u", b"\\ud83d", b"PAR1", b"PARE", b"\x1f\x8b\x08",
        b"1e-300000000", b"NaN", "\ufdd0".encode(), "\ufdd0n".encode(), b" " * 40, b"x" * 5000,
    ]),
)  # fmt: skip
SEEDS: dict[str, bytes] = {
    "a.csv": csv(ROW, 'b,2017-01-01T11:00:00Z,"1"'),
    "a.jsonl": lines(OBJECT, OBJECT),
    "a.csv.gz": packed(csv(ROW)),
    "a.jsonl.gz": packed(lines(OBJECT)),
    "a.parquet": parquet(rows=3),
}


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, bytes]:
    """A file of any bytes, or a good one with some of them cut out, put in, or replaced."""
    name = draw(st.sampled_from([*SEEDS]))
    if draw(st.booleans()):
        content = b"".join(draw(st.lists(PIECES, max_size=12)))
        return name, packed(content) if name.endswith("gz") and draw(st.booleans()) else content
    content = SEEDS[name]
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        out = draw(st.integers(0, 12))
        content = content[:at] + draw(PIECES) + content[at + out :]
    return name, content


HOSTILE = "x\x1b[2J\x9b1m\u202e\u200b[red]y![p](http:e)<img src=q>`c`\r\nError: all is lost"
"""As a value, a reason or a name; without a slash, so that it can be the name of a file."""

SHOWN = visible(HOSTILE)
_BEGINS = SHOWN[: SHOWN.index("[red]")]
_ACTIVE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202e]")


def faults(output: str) -> Iterator[str]:
    """What an output for people does with hostile text but to show it whole, in one line."""
    if found := _ACTIVE.search(output):
        yield f"lets {found[0]!a} through: {output[max(found.start() - 60, 0) : found.end() + 20]!a}"
    if re.search(r"^\s*Error: all is lost", output, re.MULTILINE):
        yield "has a line that the platform did not write"
    for begins in re.finditer(re.escape(_BEGINS), output):
        if not output.startswith(SHOWN, begins.start()):
            yield f"does not show all of it: {output[begins.start() :][:120]!r}"


def faults_of_markdown(written: str) -> Iterator[str]:
    """The same of Markdown, where it must be within code besides."""
    yield from faults(written)
    for begins in re.finditer(re.escape(SHOWN), written):
        before = written[written.rfind("\n", 0, begins.start()) + 1 : begins.start()]
        fences = [run for run in re.findall("`+", before) if len(run) == 2]
        if len(fences) % 2 == 0:
            yield f"is Markdown: {written[begins.start() - 40 :][:120]!r}"


assert as_code(HOSTILE).startswith("``")
