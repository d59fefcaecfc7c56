"""Records that span lines, and compressed files, give the rows that Python's csv module reads, in their order."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from platform_assets.contracts import Column, Contract, Domain, LandingFiles
from platform_assets.contracts.landing import Format
from platform_assets.lakehouse.storage.location import Location
from platform_assets.planning.arrivals import file_order as python_order
from platform_assets.records.raw_rows import MARK
from platform_assets.settings import load_settings
from platform_assets.spark.raw.parsing import Layout, parse
from platform_assets.spark.raw.versions import file_order
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
    transforms="platform_assets_tests.support.domains.transforms",
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
    open_quote = "broken line: field 2 opens a quote that is never closed; quote as RFC 4180 says"
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


ROWS = 1500


RAW = Contract(
    name="raw.lines",
    description="Numbered lines.",
    owner="tests@example.com",
    columns=(
        Column("n", "long", "Which line.", nullable=False),
        Column("at", "date", "When.", nullable=False),
        Column("text", "string", "As long as the number says."),
    ),
    key=("n",),
    source=LandingFiles("lines"),
    event_time="at",
)


NAMES = RAW.column_names


@pytest.fixture
def cut_small(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    chosen = {"spark.sql.files.maxPartitionBytes": "2000b", "spark.sql.files.openCostInBytes": "100b", **request.param}
    before = {name: spark.conf.get(name, None) for name in chosen}
    for name, value in chosen.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def numbered_lines(folder: Path) -> dict[Format, list[str]]:
    """Files of every format, of sizes that leave parts of their ends to share a task."""
    folder = folder / "lines" / "2024-03-01"
    folder.mkdir(parents=True)
    rows = [(n, "2024-03-01", "x" * (n % 40)) for n in range(ROWS)]
    csv = ["n,at,text", *(",".join(map(str, row)) for row in rows)]
    json = [f'{{"n": {n}, "at": "{at}", "text": "{text}"}}' + "\n " * (n % 3) for n, at, text in rows]
    for name, lines in (("a.csv", csv), ("b.csv", csv[:200]), ("c.csv", csv[:333]), ("d.jsonl", json)):
        (folder / name).write_text("\n".join(lines))
        (folder / f"{name}.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    table = pa.table({name: list(values) for name, values in zip(NAMES, zip(*rows, strict=True), strict=True)})
    pq.write_table(table, folder / "e.parquet", row_group_size=100)
    kinds: dict[Format, str] = {"csv": "*.csv*", "json": "*.jsonl*", "parquet": "*.parquet"}
    return {kind: sorted(map(str, folder.glob(pattern))) for kind, pattern in kinds.items()}


@pytest.mark.parametrize("cut_small", [{}, {"spark.sql.files.maxPartitionNum": "3"}], indirect=True, ids=str)
def test_rows_are_numbered_in_the_order_of_their_file(spark: SparkSession, tmp_path: Path, cut_small: None) -> None:
    layouts = [Layout(kind, NAMES, tuple(files)) for kind, files in numbered_lines(tmp_path).items()]
    found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in parse(spark, layouts, RAW).select("_arrival", "_place", "n").collect():
        found[row["_arrival"].rpartition("/")[2]].append((row["_place"], row["n"]))
    assert len(found) == 9
    for file, places in found.items():
        assert len({place for place, _ in places}) == len(places), file
        assert [n for _, n in sorted(places)] == list(range(len(places))), file


@pytest.mark.parametrize(
    "names",
    [
        ["part-2.csv", "part-10.csv", "0.csv", "000.csv", "a", "v1.02.csv", f"{'0' * 3}{'7' * 25}.csv", "9" * 20],
        ["ä-1_2017-01-02.csv", "b-2_2017-01-03.jsonl", "b-0_0000-00-00.parquet"],
        ["9" * 21, "8" * 21],
        ["7", "9"],
        ["a.csv", "b.csv"],
    ],
)
def test_files_are_ordered_by_name_in_spark_as_without_it(spark: SparkSession, names: list[str]) -> None:
    paths = [f"f/2024-03-01/{name}" for name in names]
    rows = spark.createDataFrame([(path,) for path in paths], "_arrival string").select("_arrival", file_order(names))
    assert {row[0]: row[1] for row in rows.collect()} == {path: python_order(path) for path in paths}
