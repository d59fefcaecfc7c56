"""Delivered fields become values exactly, or their row is refused with the reason and what came.

One refresh takes files of every kind; each test looks at some of its rows.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from platform_assets.contracts import Column, Contract, Domain, LandingFiles
from platform_assets.engine.results import IngestResult
from platform_assets.records.manifest import Arrival
from platform_assets.settings import load_settings
from platform_assets_tests.support.installation import JARS
from platform_assets_tests.support.world import World

FIRST, LAST = date(2017, 1, 1), date(2017, 1, 3)
ARRIVAL = "2017-01-02"
COLUMNS = {
    "id": "long",
    "at": "timestamp",
    "n": "int",
    "price": "decimal(12,2)",
    "wide": "decimal(20,2)",
    "widest": "decimal(38,2)",
    "fine": "decimal(20,12)",
    "flag": "boolean",
    "born": "date",
    "label": "string",
    "ratio": "double",
}
VOIDS = {"id": "id", "at": "at", "written": "at", "gone": "flag", "n": "n", "price": "price", "born": "born"}
"""Columns of rows that can be taken back, each with the one of the same type above."""

DOMAIN = Domain(
    name="kinds",
    tables=(
        Contract(
            name="raw.kinds",
            description="A column of every type.",
            owner="tests@example.com",
            columns=tuple(Column(n, type_, "A value.", nullable=n not in ("id", "at")) for n, type_ in COLUMNS.items()),
            key=("id",),
            source=LandingFiles("kinds"),
            event_time="at",
        ),
        Contract(
            name="raw.voids",
            description="Rows that can be taken back.",
            owner="tests@example.com",
            columns=tuple(Column(n, COLUMNS[t], "A value.", nullable=t not in ("id", "at")) for n, t in VOIDS.items()),
            key=("id",),
            source=LandingFiles("voids"),
            event_time="at",
            updated_at="written",
            voided="gone",
        ),
        Contract(
            name="raw.sparse",
            description="Rows whose files may lack most of it.",
            owner="tests@example.com",
            columns=tuple(
                Column(n, type_, "A value.", nullable=n not in ("id", "at"), may_be_absent=n not in ("id", "at"))
                for n, type_ in COLUMNS.items()
            ),
            key=("id",),
            source=LandingFiles("sparse"),
            event_time="at",
        ),
    ),
    transforms="platform_assets_tests.support.domains.transforms",
)
GOOD = {
    "at": "2017-01-02T10:00:00Z",
    "n": "1",
    "price": "2.50",
    "wide": "1.00",
    "widest": "1.00",
    "fine": "0.5",
    "flag": "true",
    "born": "2001-02-03",
    "label": "a",
    "ratio": "0.5",
}
ZEROS = ["a\0b", "a\0,b", "\0,", "a,\0\nb"]
"""Texts with a character zero, which in CSV are quoted or not."""
REFUSED, WAITS = "refused", "waits"
EXACT = [
    '"label": [ {"p" : 10.10, "q":"]} \\" \u00e9 \\u00e9"} ,1e2, 12345678901234.56]',
    '"more": [1.50, {"label": 2}], "l\\u0061bel": {"a": 1.10, "a":2.0}',
    '"label":[0.12345678901234567890]',
    '"label": [1.5e+9999]',
    '"label": [[],{}] ',
    f'"label": {"[" * 100}1.0{"]" * 100}',
    '"label": -0',
]
"""Fields of JSON lines whose last value becomes a text as it stands there, to the byte."""
TWICE, NO_OBJECT = "broken line: names a field twice", "broken line: not one JSON object"
NOT_TAKEN = [
    ('"label": "b", "label": "c"', TWICE),
    ('"label": "b", "l\\u0061bel": "c"', TWICE),
    ('"n": null, "n": 3', TWICE),
    ('"x": 1, "x": 1', TWICE),
    ('"label": NaN', NO_OBJECT),
    ('"label": [-Infinity]', NO_OBJECT),
    ('"ratio": Infinity', NO_OBJECT),
    ('"x": +INF', NO_OBJECT),
    (f'"label": {"[" * 101}1.0{"]" * 101}', "broken line: nested more than 100 deep"),
    ('"n": 20e1', "n: not int: 20e1"),
    ('"born": [2001, 2.0]', "born: not date: [2001, 2.0]"),
    ('"price": 1.2345e1', "price: not decimal(12,2): 1.2345e1"),
    ('"price": {"amount" : 2.50}', 'price: not decimal(12,2): {"amount" : 2.50}'),
]
"""Fields of JSON lines, and why the row is refused, in the words that were delivered."""
HAS_A_QUOTE = "has a quote inside an unquoted field"
BROKEN_CSV = [
    (r'2001-02-03,"he said \"hi\"",1', "10 has text after its closing quote"),
    ('2001-02-03,x"y, z",1', f"10 {HAS_A_QUOTE}"),
    ('2001-02-03,"x",1"', f"11 {HAS_A_QUOTE}"),
    ("2001-02-03,'x',1", "10 is quoted with apostrophes"),
    ('2001-02-03,x,"1', "11 opens a quote that is never closed"),
    ('"2001-02-03"x,"two\nlines",1', "9 has text after its closing quote"),
]
"""Ends of CSV rows that can be read in two ways, and which field is broken, and how."""


def at(day: int, hour: int = 0, minute: int = 0, second: int = 0, microsecond: int = 0) -> datetime:
    return datetime(2017, 1, day, hour, minute, second, microsecond, UTC)


TEXTS: list[tuple[str, str, Any]] = [
    ("n", "7", 7),
    ("n", "-7", -7),
    ("n", " 7 ", 7),
    ("n", "7.0", REFUSED),
    ("n", "2147483648", REFUSED),
    ("n", "seven", REFUSED),
    ("id", "one", REFUSED),
    ("price", "2.5", Decimal("2.50")),
    ("price", "2.500", Decimal("2.50")),
    ("price", "2.505", REFUSED),
    ("price", "2.5000000001", REFUSED),
    ("price", "1.25E2", Decimal("125.00")),
    ("price", "2.4999999999999996", REFUSED),
    ("price", "10000000000", REFUSED),
    ("price", "1e400", REFUSED),
    ("price", "$ 1.99", REFUSED),
    ("price", "1,99", REFUSED),
    ("wide", "123456789012345678.91", Decimal("123456789012345678.91")),
    ("price", "1e-999", REFUSED),
    ("price", "1e-999999999", REFUSED),
    ("price", "0E+999999999", REFUSED),
    ("widest", "123456789012345678901234567890123456.12", Decimal("123456789012345678901234567890123456.12")),
    ("widest", "-123456789012345678901234567890123456.1200", Decimal("-123456789012345678901234567890123456.12")),
    ("widest", "123456789012345678901234567890123456", Decimal(123456789012345678901234567890123456)),
    ("widest", "123456789012345678901234567890123456.125", REFUSED),
    ("widest", "1234567890123456789012345678901234567", REFUSED),
    ("fine", "0.123456789012", Decimal("0.123456789012")),
    ("fine", "0.1234567890125", REFUSED),
    ("flag", "false", False),
    ("flag", "maybe", REFUSED),
    ("born", "2017-02-28", date(2017, 2, 28)),
    ("born", "2017-02-29", REFUSED),
    ("born", "2017-02-28 or so", REFUSED),
    ("born", "2017-01-01T23:30:00-05:00", REFUSED),
    ("at", "2017-01-02 10:00:00", at(2, 10)),
    ("at", "2017-01-01T23:30:00-05:00", at(2, 4, 30)),
    ("at", "2017-01-02T10:00:00.123456Z", at(2, 10, 0, 0, 123456)),
    ("at", "2017-01-02 10:00:00.1234560", at(2, 10, 0, 0, 123456)),
    ("at", "2017-01-02T10:00:00.1234561Z", REFUSED),
    ("at", "2017-01-02T10:00:00.123456001+01:00", REFUSED),
    ("at", "2017-01-02", at(2)),
    ("at", "2017-01-02T25:00:00Z", REFUSED),
    ("at", "10:05:00", REFUSED),
    ("at", "1483351200", REFUSED),
    ("at", "2016-12-31T23:59:59Z", datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ("at", "2017-01-04T00:00:00Z", at(4)),
    ("at", "2017-01-03T23:59:59-01:00", at(4, 0, 59, 59)),
    ("at", "2018-01-03T00:00:00Z", datetime(2018, 1, 3, tzinfo=UTC)),
    ("at", "0000-12-31T23:59:59Z", REFUSED),
    ("at", "0001-01-01T00:30:00+01:00", REFUSED),
    ("at", "9999-12-31T23:30:00-01:00", REFUSED),
    ("at", "2018-01-04T00:00:00Z", WAITS),
    ("at", "2016-10-03T23:59:59Z", WAITS),
    ("at", "0001-01-01T00:00:00Z", WAITS),
    ("at", "9999-12-31T23:59:59Z", WAITS),
    ("label", 'say "hi", \\ and go', 'say "hi", \\ and go'),
    ("label", " spaced ", " spaced "),
    ("label", "Ünï☃", "Ünï☃"),
    ("ratio", "1e-3", 0.001),
    ("ratio", "-.5E0", -0.5),
    ("ratio", "inf", float("inf")),
    ("ratio", "-9" + "0" * 307, -9e307),
    ("ratio", "-1e400", REFUSED),
    ("ratio", "1" + "0" * 400, REFUSED),
    ("ratio", "0.001e-400", REFUSED),
    ("ratio", "0e400", 0.0),
    ("ratio", "half", REFUSED),
    ("ratio", "0x1p3", REFUSED),
]
"""(column, text, what becomes of it) of rows that are otherwise good."""


def texts(start: int) -> list[dict[str, str]]:
    """A row for each case, numbered; a case of `id` keeps its text."""
    return [{"id": str(start + n)} | GOOD | {name: text} for n, (name, text, _) in enumerate(TEXTS)]


def json_line(number: int, text: str) -> str:
    """A line of JSON with some fields as they are written, and good ones in place of others."""
    written = set(re.findall(r'"(\w+)" ?:', text.replace(r"\u0061", "a")))
    return json.dumps({n: v for n, v in ({"id": number} | GOOD).items() if n not in written})[:-1] + f", {text}}}"


def csv_of(rows: list[dict[str, str]], *, header: list[str] | None = None) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(header or list(COLUMNS))
    writer.writerows(row.values() for row in rows)
    return buffer.getvalue()


def parquet_of(columns: dict[str, pa.Array]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def typed(ids: list[int], **columns: pa.Array) -> dict[str, pa.Array]:
    """Columns of a Parquet file with the contract's types, but for those given."""
    size = len(ids)
    return {
        "id": pa.array(ids, pa.int64()),
        "at": pa.array([at(2, 10)] * size, pa.timestamp("us", "UTC")),
        "n": pa.array([1] * size, pa.int32()),
        "price": pa.array([Decimal("2.50")] * size, pa.decimal128(12, 2)),
        "wide": pa.array([Decimal("1.00")] * size, pa.decimal128(20, 2)),
        "widest": pa.array([Decimal("1.00")] * size, pa.decimal128(38, 2)),
        "fine": pa.array([Decimal("0.5")] * size, pa.decimal128(20, 12)),
        "flag": pa.array([True] * size),
        "born": pa.array([date(2001, 2, 3)] * size, pa.date32()),
        "label": pa.array(["a"] * size),
        "ratio": pa.array([0.5] * size, pa.float64()),
    } | columns


def void_files() -> dict[str, bytes | str]:
    """Rows of which all but key, place in the order and the void itself may be anything."""
    good = {"id": "1", "at": GOOD["at"], "written": GOOD["at"], "gone": "true", "n": "1", "price": "2.50", "born": ""}
    odd = {"n": "two", "price": "1.999", "born": "long ago"}
    cases = [
        good,
        good | odd,
        good | odd | {"gone": "false"},
        good | odd | {"gone": ""},
        good | {"gone": "maybe"},
        good | odd | {"id": "x"},
        good | odd | {"at": "noon"},
        good | odd | {"written": ""},
    ]
    files: dict[str, bytes | str] = {}
    for first, name in ((10, "v.csv"), (20, "v.jsonl")):
        rows = [row | ({"id": str(first + n)} if row["id"] == "1" else {}) for n, row in enumerate(cases)]
        as_json = "".join(json.dumps({k: v or None for k, v in row.items()}) + "\n" for row in rows)
        files[name] = csv_of(rows, header=list(VOIDS)) if name.endswith("csv") else as_json
    moments = pa.array([at(2, 10)] * 2, pa.timestamp("us", "UTC"))
    files["v.parquet"] = parquet_of(
        {
            "id": pa.array([30, 31]),
            "at": moments,
            "written": moments,
            "gone": pa.array([True, False]),
            "n": pa.array([2.5, 2.5]),
            "price": pa.array([2.505, 2.505]),
            "born": pa.array([date(2001, 2, 3)] * 2),
        }
    )
    return files


def sparse_files() -> dict[str, bytes | str]:
    """Two rows each, the first whole but for its file's columns, the second with a price that is none."""
    files: dict[str, bytes | str] = {}
    for first, name in ((10, "s.csv"), (20, "s.csv.gz"), (30, "s.jsonl"), (40, "s.jsonl.gz"), (50, "s.parquet")):
        row = {"id": str(first), "at": GOOD["at"], "price": "2.50", "label": "a", "more": "x"}
        rows = [row, row | {"id": str(first + 1), "price": "two"}]
        if "csv" in name:
            content = csv_of(rows, header=list(row)).encode()
        elif "json" in name:
            content = "".join(json.dumps(row) + "\n" for row in rows).encode()
        else:
            content = parquet_of({column: pa.array([row[column] for row in rows]) for column in row})
        files[name] = gzip.compress(content) if name.endswith("gz") else content
    return files


def undecoded(texts: list[bytes]) -> pa.Array:
    """A column of text as programs write it that do not look at the bytes."""
    return pa.Array.from_buffers(pa.string(), len(texts), pa.array(texts, pa.binary()).buffers())


class Taken:
    """What one refresh made of all files."""

    def __init__(self, world: World, result: IngestResult, voids: IngestResult, sparse: IngestResult) -> None:
        self.sparse = {row["id"]: row for row in world.rows("raw.sparse")}
        self.sparse_refused = {row["_reason"]: json.loads(row["_payload"]) for row in world.rows("refused.sparse")}
        self.arrivals_of_sparse = sparse.arrivals
        self.voids = {row["id"]: row for row in world.rows("raw.voids")}
        self.voids_refused = {row["_reason"] for row in world.rows("refused.voids")}
        self.arrivals_of_voids = voids.arrivals
        self.arrivals: dict[str, Arrival] = {found.path.split("/")[-1]: found for found in result.arrivals}
        self.raw = {row["id"]: row for row in world.rows("raw.kinds")}
        self.raw_rows = len(world.rows("raw.kinds"))
        self.letters = world.rows("refused.kinds")
        self.waiting = {row["id"]: row for row in world.rows("late.kinds")}

    def reason(self, number: int) -> str:
        """Why the row with this id was refused."""
        return str(self.letter(number)["_reason"])

    def letter(self, number: int) -> dict[str, Any]:
        [found] = [row for row in self.letters if re.search(rf'"id": ?"?{number}\b', row["_payload"])]
        return found


@pytest.fixture(scope="module")
def taken(tmp_path_factory, spark):
    state = tmp_path_factory.mktemp("kinds")
    dates = {"calendar_first": FIRST, "calendar_last": LAST, "today": LAST}
    world = World(load_settings(state=state, jars=JARS, domains=__name__, **dates), spark)

    def deliver(name: str, content: str | bytes) -> None:
        world.deliver("kinds", ARRIVAL, name, content)

    deliver("texts.csv", csv_of(texts(1000)))
    deliver("texts.jsonl", "".join(json.dumps(row) + "\n" for row in texts(2000)))

    numbers = [
        '"n": 7',
        '"n": 7.5',
        '"price": 2.50',
        '"price": 2.505',
        '"wide": 123456789012345678.91',
        '"flag": true',
        '"label": "x", "more": {"b": [1, 2]}',
        '"price": {"amount": 2.50}',
        '"n": null',
        '"meta": {"wide": 12345678901234567.01}, "wide": 12345678901234567.02',
        '"more": 12345678901234567.01, "wide" : -12345678901234567.02 ',
        '"note": "\\": 1.5, \\"wide\\": 2.5", "wide": 12345678901234567.02, "more": [1.5, {"wide": 1.25}]',
        '"widest": 123456789012345678901234567890123456.12',
        '"widest": 123456789012345678901234567890123456.125',
        '"label": 1.10',
        '"label": 12345678901234567.81',
        '"label": 1E2',
        '"label": -1e400',
        '"label": "1.5", "ratio": 1.50',
        '"label": 7, "wide": 1e3',
        *EXACT,
        *(text for text, _ in NOT_TAKEN),
    ]
    good_json = json.dumps({"id": "%d"} | GOOD)[:-1].replace('"%d"', "%d")
    lines = [json_line(3000 + n, text) for n, text in enumerate(numbers)]
    lines += [
        good_json % 3100 + '} {"id": 3101}',
        good_json % 3102 + "},",
        "[" + good_json % 3103 + "}]",
        good_json % 3104,
        "null",
        "12",
        "{}",
        good_json.replace('"', "'") % 3105 + "}",
        good_json % 3106 + '}], [{"id": 3107}',
        "\t \x00",
        "",
        json_line(3108, '"label": "a } b"') + "  ",
        json_line(3110, r'"label": "a\ud83d"'),
        json_line(3111, r'"label": "\uDE00a"'),
        json_line(3112, r'"label": "\ud83d\\\ude00"'),
        json_line(3113, r'"label": "\ud83d\uDE00"'),
        json_line(3114, r'"label": "\\ud83d"'),
    ]
    deliver("lines.jsonl", b"\xef\xbb\xbf" + "\r\n".join(lines).encode())

    rows = [{"id": str(4000 + n)} | GOOD for n in range(3)]
    with_more = [row | {"x": "more", "": ""} for row in rows]
    deliver("extra.csv", csv_of(with_more, header=[*COLUMNS, "odd `name.", ""]))
    unnamed = [{"id": "4010"} | GOOD | {"": "nameless", "x": "named"}]
    deliver("unnamed.csv", csv_of(unnamed, header=[*COLUMNS, "", f"_Column_{len(COLUMNS) + 1}"]))
    good_line = ",".join(({"id": "%d"} | GOOD).values())
    broken = [
        good_line % 4100 + ",0",
        (good_line % 4101).rpartition(",")[0],
        '"' + good_line % 4102,
        "\x00",
        "   ",
        good_line % 4103,
    ]
    deliver("broken.csv", b"\xef\xbb\xbf" + "\r".join([",".join(COLUMNS), *broken]).encode())
    quoted = [f"{(good_line % (4400 + n)).rsplit(',', 3)[0]},{end}" for n, (end, _) in enumerate(BROKEN_CSV)]
    deliver("quotes.csv", "\n".join([",".join(COLUMNS), *quoted, good_line % 4499, ""]))
    empty = {"id": "4200", "at": GOOD["at"]} | {name: "" for name in COLUMNS if name not in ("id", "at")}
    deliver("empty.csv", csv_of([empty, {"id": ""} | GOOD, {"id": "4202"} | GOOD | {"at": ""}]))
    zeros = [{"id": str(4300 + n)} | GOOD | {"label": text} for n, text in enumerate(ZEROS)]
    deliver("zeros.csv", csv_of(zeros))
    deliver("zeros.jsonl", "".join(json.dumps(row | {"id": str(int(row["id"]) + 10)}) + "\n" for row in zeros))
    deliver("header.csv", ",".join(COLUMNS) + "\n")

    deliver(
        "doubles.parquet",
        parquet_of(
            typed(
                [5000, 5001, 5002, 5003],
                price=pa.array([2.50, 2.505, 0.1 + 0.2, float("nan")]),
                n=pa.array([1.0, 2.0, 2.5, 3.0]),
            )
        ),
    )
    deliver("small.parquet", parquet_of(typed([5100], id=pa.array([5100], pa.int32()), n=pa.array([5], pa.int64()))))
    deliver("huge.parquet", parquet_of(typed([5200, 5201], n=pa.array([2**31, 2**31 - 1], pa.int64()))))
    deliver(
        "strings.parquet",
        parquet_of({name: pa.array(["5300" if name == "id" else GOOD[name]] * 1) for name in COLUMNS}),
    )
    deliver(
        "wide.parquet",
        parquet_of(
            typed(
                [5400, 5401],
                price=pa.array([Decimal("2.500"), Decimal("2.501")], pa.decimal128(20, 3)),
                at=pa.array([datetime(2017, 1, 2, 10)] * 2, pa.timestamp("ms")),  # noqa: DTZ001 - without a zone
                born=pa.array([at(2), at(2, 1)], pa.timestamp("us", "UTC")),
                label=pa.array([1, 2]),
                more=pa.array([{"b": [1, 2]}, None]),
            )
        ),
    )
    deliver("nulls.parquet", parquet_of(typed([5500, 5501], id=pa.array([5500, None], pa.int64()), n=pa.nulls(2))))
    deliver("none.parquet", parquet_of({name: values[:0] for name, values in typed([1]).items()}))
    labels = [b"caf\xe9", b"caf\xc3\xa9"]
    deliver("latin.parquet", parquet_of(typed([5600, 5601], label=undecoded(labels))))
    deliver("latin_number.parquet", parquet_of(typed([5602, 5603], n=undecoded([b"7\xe9", b"7"]))))
    for name, content in void_files().items():
        world.deliver("voids", ARRIVAL, name, content)
    for name, content in sparse_files().items():
        world.deliver("sparse", ARRIVAL, name, content)
    return Taken(world, *world.refresh().ingests)


def test_every_row_of_every_file_is_taken_or_refused_and_only_once(taken):
    """The first of the module: it waits for the twenty files that all its tests look at."""
    assert len(taken.arrivals) == 20
    for arrival in taken.arrivals.values():
        assert arrival.reason is None
        assert arrival.landed == arrival.taken + arrival.refused + arrival.late, arrival
    assert taken.raw_rows == len(taken.raw) == sum(arrival.taken for arrival in taken.arrivals.values())
    assert len(taken.letters) == sum(arrival.refused for arrival in taken.arrivals.values())
    assert len(taken.waiting) == sum(arrival.late for arrival in taken.arrivals.values())


@pytest.mark.parametrize("start", [1000, 2000], ids=["csv", "json"])
def test_a_text_becomes_exactly_its_value_or_its_row_is_refused(taken, start):
    found = {}
    for n, (name, text, _) in enumerate(TEXTS):
        row = taken.raw.get(start + n)
        found[name, text] = row[name] if row else WAITS if start + n in taken.waiting else REFUSED
    assert found == {(name, text): value for name, text, value in TEXTS}


@pytest.mark.parametrize("start", [1000, 2000], ids=["csv", "json"])
def test_a_refused_row_names_its_field_and_keeps_what_came(taken, start):
    refused = [(start + n, name, text) for n, (name, text, value) in enumerate(TEXTS) if value == REFUSED]
    for number, name, text in refused:
        if name == "id":
            continue
        letter = taken.letter(number)
        assert letter["_reason"].startswith(f"{name}: "), letter
        assert json.loads(letter["_payload"])[name] == text
        assert letter["_arrival"] == f"kinds/{ARRIVAL}/texts.{'csv' if start == 1000 else 'jsonl'}"
        assert letter["event_date"] == date.fromisoformat(ARRIVAL)
    assert "id: not long: one" in {row["_reason"] for row in taken.letters}


def test_a_day_that_no_computation_can_hold_is_refused_by_name(taken):
    reasons = {row["_reason"] for row in taken.letters}
    assert {f"at: {day} is not in the years 1 to 9999" for day in ("0000-12-31", "+10000-01-01")} <= reasons


def test_rows_lie_on_the_utc_day_of_their_event(taken):
    for row in (*taken.raw.values(), *taken.waiting.values()):
        assert row["event_date"] == row["at"].astimezone(UTC).date()


def test_json_numbers_keep_all_their_digits(taken):
    assert taken.raw[3000]["n"] == 7
    assert taken.reason(3001) == "n: not int: 7.5"
    assert taken.raw[3002]["price"] == Decimal("2.50")
    assert taken.reason(3003).startswith("price: not decimal(12,2): 2.505")
    assert taken.raw[3004]["wide"] == Decimal("123456789012345678.91")
    assert taken.raw[3005]["flag"] is True
    assert taken.reason(3007).startswith("price: not decimal(12,2): {")
    assert taken.raw[3008]["n"] is None
    assert taken.raw[3009]["wide"] == Decimal("12345678901234567.02")
    assert taken.raw[3010]["wide"] == Decimal("-12345678901234567.02")
    assert taken.raw[3011]["wide"] == Decimal("12345678901234567.02")
    assert taken.raw[3012]["widest"] == Decimal("123456789012345678901234567890123456.12")
    assert taken.reason(3013) == "widest: not decimal(38,2): 123456789012345678901234567890123456.125"


def test_a_json_number_becomes_a_text_as_it_stands_in_its_line(taken):
    labels = {number: taken.raw[number]["label"] for number in range(3014, 3020)}
    assert list(labels.values()) == ["1.10", "12345678901234567.81", "1E2", "-1e400", "1.5", "7"]
    assert (taken.raw[3018]["ratio"], taken.raw[3019]["wide"]) == (1.5, Decimal(1000))


def test_a_list_or_an_object_becomes_a_text_as_it_stands_in_its_line_to_the_byte(taken):
    delivered = [text.rpartition('bel":')[2].strip() for text in EXACT]
    assert [taken.raw[3020 + n]["label"] for n in range(len(EXACT))] == delivered


@pytest.mark.parametrize("n", range(len(NOT_TAKEN)))
def test_json_that_means_two_things_or_nothing_is_refused_in_the_words_that_came(taken, n):
    text, reason = NOT_TAKEN[n]
    number = 3020 + len(EXACT) + n
    letter = taken.letter(number)
    assert (letter["_reason"], letter["_payload"], number in taken.raw) == (reason, json_line(number, text), False)


def test_a_csv_record_that_can_be_read_in_two_ways_is_refused_as_it_came_and_no_other_with_it(taken):
    letters = {row["_payload"]: row["_reason"] for row in taken.letters if row["_arrival"].endswith("quotes.csv")}
    assert [(payload.partition(",")[0], reason) for payload, reason in sorted(letters.items())] == [
        (str(4400 + n), f"broken line: field {fault}; quote as RFC 4180 says")
        for n, (_, fault) in enumerate(BROKEN_CSV)
    ]
    assert all(payload.endswith(end) for payload, (end, _) in zip(sorted(letters), BROKEN_CSV, strict=True))
    assert 4499 in taken.raw


def test_a_json_line_is_one_object_or_refused(taken):
    whole = [row for row in taken.letters if row["_arrival"].endswith("lines.jsonl")]
    broken = [row["_payload"] for row in whole if row["_reason"] == "broken line: not one JSON object"]
    starts = [next((n for n in range(3000, 3110) if str(n) in line), line) for line in broken]
    others = [str(3020 + len(EXACT) + n) for n, (_, reason) in enumerate(NOT_TAKEN) if reason == NO_OBJECT]
    assert sorted(map(str, starts)) == ["12", *others, "3100", "3102", "3103", "3104", "3105", "3106", "null"]
    assert [row["_reason"] for row in whole if row["_payload"] == "{}"] == ["id: no value; at: no value"]
    assert taken.raw[3108]["label"] == "a } b"


def test_half_of_a_character_is_no_text(taken):
    """A text that was cut names it; Java makes the same question mark of every one."""
    assert {taken.reason(number) for number in (3110, 3111, 3112)} == {"broken line: half of a character"}
    assert (taken.raw[3113]["label"], taken.raw[3114]["label"]) == ("\N{GRINNING FACE}", r"\ud83d")


def test_a_text_in_parquet_that_is_no_utf8_is_refused_as_it_is_in_other_files(taken):
    assert taken.reason(5600) == "label: not UTF-8"
    assert taken.raw[5601]["label"] == "caf\N{LATIN SMALL LETTER E WITH ACUTE}"
    assert taken.reason(5602).startswith("n: not int: 7\N{REPLACEMENT CHARACTER}")


def test_what_the_contract_does_not_declare_is_kept(taken):
    assert json.loads(taken.raw[3006]["_rescued"])["more"] == {"b": [1, 2]}
    assert json.loads(taken.raw[4000]["_rescued"])["odd `name."] == "more"
    assert json.loads(taken.raw[4010]["_rescued"]) == {"_column_13": "nameless", "_Column_12": "named"}
    assert json.loads(taken.raw[5400]["_rescued"]) == {"more": {"b": [1, 2]}}
    assert taken.raw[3000]["_rescued"] is None
    assert taken.raw[1000]["_rescued"] is None
    assert "odd `name." in taken.arrivals["extra.csv"].notes[0]


def test_a_column_that_may_be_absent_is_null_where_a_file_lacks_it_in_every_format(taken):
    assert [(arrival.landed, arrival.taken, arrival.refused) for arrival in taken.arrivals_of_sparse] == [(2, 1, 1)] * 5
    assert sorted(taken.sparse) == [10, 20, 30, 40, 50]
    for row in taken.sparse.values():
        assert (row["price"], row["label"], "more" in row["_rescued"]) == (Decimal("2.50"), "a", True)
        assert {row[name] for name in COLUMNS if name not in ("id", "at", "price", "label")} == {None}
    assert len({row["_row_hash"] for row in taken.sparse.values()}) == 5
    assert {reason: payload["label"] for reason, payload in taken.sparse_refused.items()} == {
        "price: not decimal(12,2): two": "a"
    }


def test_a_csv_line_with_other_fields_than_the_header_is_refused_as_it_came(taken):
    whole = [row for row in taken.letters if row["_arrival"].endswith("broken.csv")]
    open_quote = "broken line: field 1 opens a quote that is never closed; quote as RFC 4180 says"
    assert {row["_reason"] for row in whole} == {"broken line: not 11 fields", open_quote}
    assert sorted(row["_payload"].strip('"')[:4] for row in whole) == ["4100", "4101", "4102"]
    assert 4103 in taken.raw


@pytest.mark.parametrize("start", [4300, 4310], ids=["csv", "json"])
def test_a_character_zero_stays_where_it_is(taken, start):
    assert [taken.raw[start + n]["label"] for n in range(len(ZEROS))] == ZEROS


def test_an_empty_field_is_no_value(taken):
    assert {name for name, value in taken.raw[4200].items() if value is None} >= set(COLUMNS) - {"id", "at"}
    reasons = [row["_reason"] for row in taken.letters if row["_arrival"].endswith("empty.csv")]
    assert sorted(reasons) == ["at: no value", "id: no value"]


def test_floating_point_money_is_taken_where_it_means_whole_cents(taken):
    assert taken.raw[5000]["price"] == Decimal("2.50")
    assert taken.reason(5001) == "price: not decimal(12,2): 2.505"
    assert taken.reason(5002) == "n: not int: 2.5; price: not decimal(12,2): 0.30000000000000004", "all at once"
    assert taken.reason(5003) == "price: not decimal(12,2): NaN"


def test_other_number_types_are_taken_where_the_value_fits(taken):
    assert taken.raw[5100]["n"] == 5
    assert taken.reason(5200) == "n: not int: 2147483648"
    assert taken.raw[5201]["n"] == 2**31 - 1
    assert taken.raw[5300]["price"] == Decimal("2.50")
    assert taken.raw[5300]["at"] == at(2, 10)
    assert taken.raw[5400]["price"] == Decimal("2.50")
    assert taken.raw[5400]["at"] == at(2, 10)
    assert taken.raw[5400]["born"] == date(2017, 1, 2)
    assert taken.raw[5400]["label"] == "1"
    assert taken.reason(5401) == "price: not decimal(12,2): 2.501; born: not date: 2017-01-02 01:00:00"


def test_a_row_without_its_key_is_refused(taken):
    assert 5500 in taken.raw
    [letter] = [row for row in taken.letters if row["_arrival"].endswith("nulls.parquet")]
    assert letter["_reason"] == "id: no value"


def test_files_without_rows_are_taken(taken):
    for name in ("header.csv", "none.parquet"):
        assert (taken.arrivals[name].landed, taken.arrivals[name].taken) == (0, 0)


def test_a_void_needs_its_key_and_its_place_in_the_order_and_nothing_else(taken):
    assert {number: row["_kind"] for number, row in taken.voids.items()} == dict.fromkeys((10, 11, 20, 21, 30), "void")
    for number in (11, 21, 30):
        row = taken.voids[number]
        assert (row["n"], row["price"]) == (None, None)
        delivered = json.loads(row["_rescued"])
        assert str(delivered["n"]) == ("2.5" if number == 30 else "two")
        assert str(delivered["price"]) == ("2.505" if number == 30 else "1.999")
    for number in (10, 20):
        row = taken.voids[number]
        assert (row["n"], row["price"], row["_rescued"]) == (1, Decimal("2.50"), None)
    assert taken.voids_refused == {
        "n: not int: two; price: not decimal(12,2): 1.999; born: not date: long ago",
        "n: not int: 2.5; price: not decimal(12,2): 2.505",
        "gone: not boolean: maybe",
        "id: not long: x",
        "at: not timestamp: noon",
        "written: no value",
    }
    for arrival in taken.arrivals_of_voids:
        assert arrival.landed == arrival.taken + arrival.refused
