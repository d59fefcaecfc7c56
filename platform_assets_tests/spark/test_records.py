"""Records that span lines, and compressed files, give the rows that Python's csv module reads in them.

It lands files of every dialect in one refresh, and each test looks at some of its rows.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections.abc import Sequence
from datetime import date

import pytest

from platform_assets.contracts import Column, Contract, Domain, LandingFiles
from platform_assets.lakehouse.storage.location import Location
from platform_assets.records.line_copies import MARK
from platform_assets.settings import load_settings
from platform_assets_tests.support.installation import JARS
from platform_assets_tests.support.world import World

ARRIVAL = "2017-01-02"
COLUMNS = ("id", "at", "note", "more")
DOMAIN = Domain(
    name="notes",
    tables=(
        Contract(
            name="raw.notes",
            description="Words of people.",
            owner="tests@example.com",
            columns=(
                Column("id", "long", "Number.", nullable=False),
                Column("at", "timestamp", "When.", nullable=False),
                Column("note", "string", "Words."),
                Column("more", "string", "More words."),
            ),
            key=("id",),
            source=LandingFiles("notes"),
            event_time="at",
        ),
    ),
    transforms="platform_assets_tests.support.domains.sensors.transforms",
)
ALPHABET = [*'ab,"\r\n \t\\', "\r\n", '""', '","', "é", "☃", "\u2028", "\x0b", "\x85", MARK, f"{MARK}n", "\ufeff"]
DIALECTS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}


def texts(seed: int) -> list[str]:
    random.seed(seed)
    some = ["", " ", "\n", "\r", "\r\n", '"', "two\nlines", 'say "hi"\r\n\r\nand go', "\n\n", f"{MARK}n", "a\rb", "nul"]
    return some + ["".join(random.choices(ALPHABET, k=random.randint(1, 12))) for _ in range(60)]


def rows_of(first: int) -> list[tuple[str, str, str, str]]:
    notes, more = texts(first), texts(first + 1)[::-1]
    return [(str(first + n), "2017-01-02T10:00:00Z", a, b) for n, (a, b) in enumerate(zip(notes, more, strict=True))]


def csv_of(rows: Sequence[tuple[str, ...]], ends: str) -> str:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator=ends, quoting=csv.QUOTE_ALL)
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    return stream.getvalue()


FILES: dict[str, bytes] = {}
for _n, (_name, _ends) in enumerate(DIALECTS.items(), 1):
    _text = csv_of(rows_of(1000 * _n), _ends)
    FILES[f"{_name}.csv"] = _text.encode()
    FILES[f"{_name}-open.csv"] = b"\xef\xbb\xbf" + csv_of(rows_of(10_000 * _n), _ends).removesuffix(_ends).encode()
    FILES[f"{_name}.csv.gz"] = gzip.compress(csv_of(rows_of(100_000 * _n), _ends).encode())
FILES["plain.csv.gz"] = gzip.compress(b"id,at,note,more\n1,2017-01-02T10:00:00Z,a,\n") + gzip.compress(
    b"2,2017-01-02T10:00:00Z,b,\n"
)
FILES["plain.CSV.GZ"] = gzip.compress(b"id,at,note,more\n3,2017-01-02T10:00:00Z,c,\n")
for _number, _name in ((4, "lines.jsonl.gz"), (5, "lines.JSON.GZ")):
    _row = {"id": _number, "at": "2017-01-02T10:00:00Z", "note": f"two\n{MARK}n", "more": None}
    FILES[_name] = gzip.compress((json.dumps(_row, ensure_ascii=False) + "\n").encode())
FILES["broken.csv"] = (
    b'id,at,note,more\n10,2017-01-02T10:00:00Z,"two\nlines"\n11,2017-01-02T10:00:00Z,"two\r\nlines",x,y\n'
    b'12,"open\n13,2017-01-02T10:00:00Z,whole,"and\nright"\n14,2017-01-02T10:00:00Z,"",""\n'
)
FILES["extra.csv"] = b'"mo\nre",id,at,note,more\n"a\nb",20,2017-01-02T10:00:00Z,x,\n'


@pytest.fixture(scope="module")
def landed(tmp_path_factory, spark):
    state = tmp_path_factory.mktemp("notes")
    dates = {"calendar_first": date(2017, 1, 1), "calendar_last": date(2017, 1, 3), "today": date(2017, 1, 3)}
    found = World(load_settings(state=state, jars=JARS, domains=__name__, **dates), spark)
    for name, content in FILES.items():
        found.deliver("notes", ARRIVAL, name, content)
    [taken] = found.refresh().ingests
    return found, taken


@pytest.fixture(scope="module")
def world(landed):
    return landed[0]


@pytest.fixture(scope="module")
def raw(world):
    return {row["id"]: row for row in world.rows("raw.notes")}


def test_every_file_is_taken_and_every_record_of_it_is_a_row_or_refused(landed):
    """The first of the module: it waits for the fifteen files that all its tests look at."""
    arrivals = {arrival.path.rpartition("/")[2]: arrival for arrival in landed[1].arrivals}
    assert arrivals.keys() == FILES.keys()
    for name, arrival in arrivals.items():
        assert arrival.reason is None, name
        refused = 3 if name == "broken.csv" else 0
        assert (arrival.landed, arrival.refused) == (arrival.taken + refused, refused), arrival
        assert arrival.size == len(FILES[name])


@pytest.mark.parametrize("first", [n * size for n in (1, 2, 3) for size in (1000, 10_000, 100_000)])
def test_a_record_is_what_pythons_csv_module_reads(raw, first):
    for number, _, note, more in rows_of(first):
        row = raw[int(number)]
        assert (row["note"], row["more"]) == (note or None, more or None), number
        assert row["_arrival"].startswith(f"notes/{ARRIVAL}/")
        assert row["_arrival"].rpartition("/")[2] in FILES


def test_a_compressed_file_is_what_is_in_it(raw):
    assert [raw[n]["note"] for n in (1, 2, 3)] == ["a", "b", "c"]
    assert [raw[n]["note"] for n in (4, 5)] == [f"two\n{MARK}n"] * 2
    assert raw[5]["_arrival"] == f"notes/{ARRIVAL}/lines.JSON.GZ"


def test_a_broken_record_is_refused_as_it_came_and_no_other_with_it(world, raw):
    letters = {row["_payload"][:2]: row for row in world.rows("refused.notes")}
    open_quote = "broken line: field 2 opens a quote that nothing closes; quote as RFC 4180 says"
    assert {row["_reason"] for row in letters.values()} == {"broken line: not 4 fields", open_quote}
    assert letters["10"]["_payload"] == '10,2017-01-02T10:00:00Z,"two\nlines"'
    assert letters["11"]["_payload"] == '11,2017-01-02T10:00:00Z,"two\r\nlines",x,y'
    assert letters["12"]["_payload"] == '12,"open'
    assert (raw[13]["more"], raw[14]["note"], raw[14]["more"]) == ("and\nright", None, None)


def test_what_the_contract_does_not_declare_keeps_its_lines_too(raw):
    assert json.loads(raw[20]["_rescued"]) == {"mo\nre": "a\nb"}


def test_no_copy_of_a_file_is_left(world):
    with world.open() as platform:
        root: Location = platform.lake.table_path("raw.notes").parent.parent
        assert not [name for name in root.files() if name.endswith(".lines")]
