"""Files as others make them become the rows that their contract declares, or are refused where they lie.

The contracts and files of docs/file-formats.md, and files that are odd in other ways, in one refresh.
"""

from __future__ import annotations

import bz2
import io
import json
import re
import zipfile
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from platform_assets import contracts
from platform_assets.contracts import Catalogue, Column, Contract, Csv, Domain, Input, LandingFiles, same_day
from platform_assets.engine.ingest.aside import aside
from platform_assets.engine.ingest.batch import other_records
from platform_assets.operations.quarantine import lines
from platform_assets.operations.table_tests.files import Row
from platform_assets.operations.table_tests.run import as_delivered, days_given
from platform_assets.planning.configuration import configuration, contract_changes
from platform_assets.planning.rows_aside import AsideSelection
from platform_assets.sources.inspect import Inspection
from platform_assets_tests.support.world import World, empty_world

PAGE = Path(__file__).parents[2] / "docs" / "file-formats.md"
DAY = "2017-01-02"
NAMES = {"sales": "a.txt", "weather": "a.dat", "web_orders": "a.json"}
BLOCKS = re.findall(r"```(text|json|python)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
DECLARED: list[Contract] = [eval(text, vars(contracts)) for kind, text in BLOCKS if kind == "python"]
FILES = [text for kind, text in BLOCKS if kind != "python"]

ODD = Contract(
    name="raw.odd",
    description="Fields that are read by no standard.",
    owner="tests@example.com",
    columns=(
        Column("id", "long", "Number.", nullable=False, source_name="Nr."),
        Column("at", "timestamp", "When.", nullable=False, pattern="%d%b%Y %I:%M:%S.%f %p", zone="Europe/Berlin"),
        Column("n", "int", "A number."),
        Column("ratio", "double", "A number."),
        Column("note", "string", "Words.", nulls=("\\N", "")),
        Column("seen", "timestamp", "When.", pattern="%Y-%m-%dT%H%M%z"),
    ),
    key=("id",),
    source=LandingFiles("odd", csv=Csv(delimiter="\t", quote="'", escape="\\", thousands=" ", nulls=("-",))),
    event_time="at",
)
PLAIN = Contract(
    name="raw.plain",
    description="Files of every format by one contract.",
    owner="tests@example.com",
    columns=(
        Column("id", "long", "Number.", nullable=False, source_name="Order No"),
        Column("day", "date", "When.", nullable=False, source_name="Day", pattern="%y%m%d"),
        Column("note", "string", "Words.", nulls=("NA",)),
    ),
    key=("id",),
    source=LandingFiles("plain"),
    event_time="day",
)
SHOP = Contract(
    name="raw.shop",
    description="Sales by the date of the shop.",
    owner="tests@example.com",
    columns=(Column("at", "timestamp", "When.", nullable=False),),
    key=("at",),
    source=LandingFiles("shop"),
    event_time="at",
    day_zone="Europe/Berlin",
    restatement_window_days=1,
)
DOMAIN = Domain("files", (*DECLARED, ODD, PLAIN, SHOP), "platform_assets_tests.support.domains.transforms")

ODD_ROWS = [
    (
        "1\t2jan2017 12:30:00.5 am\t1 234\t1 000.5e1\t\\N\t-",
        (datetime(2017, 1, 1, 23, 30, 0, 500000, UTC), 1234, 10005.0),
    ),
    ("2\t02Jan2017 11:59:59.999999 PM\t-\t-\t'it\\'s\ttab'\t2017-01-02T0905+0100", "it's\ttab"),
    ("3\t02Jan2017 01:00:00.0 PM\t7\t7\t'two\nlines'\t-", "two\nlines"),
    ("4\t02Jan2017 13:00:00.0 PM\t7\t7\tx\t-", "at: not timestamp by %d%b%Y %I:%M:%S.%f %p: 02Jan2017 13:00:00.0 PM"),
    ("5\t02Jan2017 01:00:00.0 PM\t12 34\t7\tx\t-", "n: not int: 12 34"),
    ("6\t30Feb2017 01:00:00.0 PM\t7\t7\tx\t-", "at: not timestamp by %d%b%Y %I:%M:%S.%f %p: 30Feb2017 01:00:00.0 PM"),
    ("7\t02Jan2017 01:00:00.0 PM\t7\tx\t-", "broken line: not 6 fields"),
    ("8\t02Jan2017 01:00:00.0 PM\t7\t7\t'x'y\t-", "broken line: field 5 has text after its closing quote"),
    ("9\t02Jan2017 01:00:00.0000001 PM\t7\t7\tx\t-", "at: not timestamp by"),
    (
        '10\t02Jan2017 01:00:00.0 PM\t7\t7\t"a, b"\t2017-01-02T0905',
        "seen: not timestamp by %Y-%m-%dT%H%M%z: 2017-01-02T0905",
    ),
]
"""A record, and what becomes of it: some of its values, or why it is refused."""


def zipped(name: str, content: str) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as stream:
        stream.writestr(name, content)
    return archive.getvalue()


def parquet_bytes() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"Order No": [4], "Day": [date(2017, 1, 2)], "note": ["NA"]}), sink)
    return sink.getvalue()


@pytest.fixture(scope="module")
def world(spark, tmp_path_factory) -> World:
    made = empty_world(tmp_path_factory.mktemp("formats"), spark, days=310, domains=__name__)
    for contract, text in zip(DECLARED, FILES, strict=True):
        encoding = contract.source.csv.encoding if contract.source and contract.source.csv else "utf-8"
        made.deliver(contract.table, DAY, NAMES[contract.table], text.encode(encoding))
    header = "\t".join(("Nr.", *ODD.column_names[1:]))
    made.deliver("odd", DAY, "a.csv.bz2", bz2.compress("\r\n".join([header, *(row for row, _ in ODD_ROWS)]).encode()))
    text = "Order No,Day,note\n1,170102,NA\nx,170102,é\n"
    with pa.CompressedOutputStream(str(made.deliver("plain", DAY, "a.csv.zst", b"")), "zstd") as stream:
        stream.write(text.encode())
    made.deliver("plain", DAY, "a.csv.zst", (made.settings.landing_folder / "plain" / DAY / "a.csv.zst").read_bytes())
    made.deliver("plain", DAY, "b.csv.zip", zipped("b.csv", text.replace("1,", "2,", 1)))
    twice = '{"Order No": 3, "Order No": 5, "Day": "170102"}'
    array = f'[{{"Order No": 3, "Day": "170102", "note": "a\\nb"}}, {twice}\n,\n{{"x"}}, 7]'
    made.deliver("plain", DAY, "c.json", array)
    made.deliver("plain", DAY, "d.parquet", parquet_bytes())
    for arrival in ("2017-03-27", "2017-10-30"):
        last = datetime.fromisoformat(f"{arrival}T00:00:00+00:00")
        hours = (last + timedelta(hours=n) for n in range(-72, 24))
        made.deliver_rows("shop", arrival, "a.jsonl", [{"at": each.isoformat()} for each in hours])
    made.deliver_rows("shop", "2017-10-30", "b.jsonl", [{"at": "9999-12-31T23:30:00Z"}])
    made.refresh()
    return made


def rows(world: World, table: str) -> dict[Any, dict[str, Any]]:
    key = DOMAIN.tables[[each.name for each in DOMAIN.tables].index(table)].key
    return {row[key[0]]: row for row in world.rows(table)}


def refused(world: World, table: str) -> dict[tuple[str, int | None], tuple[str, str]]:
    """Why rows were refused, and what came, by file and line."""
    with world.open() as platform:
        found = aside(platform, AsideSelection(table), payloads=True)
        numbers = lines(platform, found)
    return {(row.arrival.rpartition("/")[2], numbers.get(row)): (row.reason, row.payload) for row in found}


def test_the_files_of_the_docs_become_what_the_page_says(world):
    sales = rows(world, "raw.sales")
    assert {n: (row["sold_on"], row["amount"], row["customer"]) for n, row in sales.items()} == {
        1: (date(2017, 1, 2), Decimal("1234.50"), "Müller; Söhne"),
        2: (date(2017, 1, 2), Decimal("-0.99"), None),
    }
    [(place, (reason, payload))] = refused(world, "raw.sales").items()
    assert place == ("a.txt", 6)
    assert reason == "sold_on: not date by %d.%m.%Y: 2017-01-02; amount: not decimal(12,2): 12.50"
    assert '"amount":"12.50"' in payload
    weather = world.rows("raw.weather")
    assert [(row["station"], row["day"].day, row["tenths"]) for row in weather] == [
        ("GHCN01", 2, -12),
        ("GHCN01", 3, None),
    ]
    assert refused(world, "raw.weather") == {
        ("a.dat", 3): ("broken line: 14 characters instead of 20", "GHCN02 2017010")
    }
    orders = rows(world, "raw.web_orders")
    at = datetime(2017, 1, 2, 10, 0, 0, 123000, UTC)
    assert {n: (row["ordered_at"], row["email"], row["total"]) for n, row in orders.items()} == {
        7: (at, "ann@example.com", Decimal("10.10")),
        8: (at, None, Decimal(100)),
    }
    assert '"note": "kept in _rescued"' in orders[8]["_rescued"]
    [(place, (reason, payload))] = refused(world, "raw.web_orders").items()
    assert (place, reason) == (
        ("a.json", 7),
        "ordered_at: no whole microseconds as a number of ms since 1970: yesterday",
    )
    assert payload == '{"id": 9, "at": "yesterday",\n     "total": {"value": 5}}'


def test_odd_text_is_read_exactly_or_refused_with_its_line_and_what_came(world):
    taken = rows(world, "raw.odd")
    assert sorted(taken) == [1, 2, 3]
    assert (taken[1]["at"], taken[1]["n"], taken[1]["ratio"]) == ODD_ROWS[0][1]
    assert (taken[1]["note"], taken[1]["seen"]) == (None, None)
    assert (taken[2]["note"], taken[3]["note"]) == (ODD_ROWS[1][1], ODD_ROWS[2][1])
    assert taken[2]["seen"] == datetime(2017, 1, 2, 8, 5, tzinfo=UTC)
    found = refused(world, "raw.odd")
    assert [line for _, line in sorted(found)] == [6, 7, 8, 9, 10, 11, 12]  # row 3 takes two lines
    for n, (text, expected) in enumerate(ODD_ROWS[3:]):
        reason, payload = found["a.csv.bz2", 6 + n]
        assert reason.startswith(str(expected))
        assert payload == text if reason.startswith("broken") else text.split("\t")[1] in payload


def test_one_contract_takes_every_format_compressed_or_not(world):
    taken = rows(world, "raw.plain")
    assert {n: row["note"] for n, row in taken.items()} == {1: None, 2: None, 3: "a\nb", 4: None}
    assert {row["day"] for row in taken.values()} == {date(2017, 1, 2)}
    found = refused(world, "raw.plain")
    assert found["a.csv.zst", 3][0] == found["b.csv.zip", 3][0] == "id: not long: x"
    assert {place: reason for place, (reason, _) in found.items() if place[0] == "c.json"} == {
        ("c.json", 1): "broken line: names a field twice",
        ("c.json", 3): "broken line: not one JSON object",
    }
    assert found["c.json", 1][1] == '{"Order No": 3, "Order No": 5, "Day": "170102"}'


def test_days_of_a_shop_are_those_of_its_clocks_and_so_is_how_late_a_row_is(world):
    """The day before each arrival has 23 and 25 hours; rows of the day before that are two days late."""
    hours = Counter(row["event_date"] for row in world.rows("raw.shop"))
    assert {str(day): n for day, n in hours.items()} == {
        "2017-03-26": 23,
        "2017-03-27": 24,
        "2017-03-28": 2,
        "2017-10-29": 25,
        "2017-10-30": 24,
        "2017-10-31": 1,
    }
    with world.open() as platform:
        late = {a.path.split("/")[1]: a.late for a in platform.ledger.arrivals("raw.shop") if a.late}
    assert late == {"2017-03-27": 47, "2017-10-30": 46}
    [(reason, _)] = refused(world, "raw.shop").values()
    assert reason == "at: 9999-12-31 is not in the years 1 to 9999"


def test_a_changed_declaration_makes_days_of_readers_stale_and_one_of_endings_does_not():
    silver = Contract(
        "silver.odd", "The same.", "tests@example.com", ODD.columns, ("id",), (Input("raw.odd", same_day()),)
    )

    def parts(csv: Csv | None, **changes: Any) -> dict[str, Any]:
        raw = replace(ODD, source=LandingFiles("odd", csv=csv), **changes)
        made = Catalogue.of([Domain("odd", (raw, silver), "nowhere")])
        return configuration(made, silver).parts

    [moved] = contract_changes(parts(None), parts(None, day_zone="Europe/Berlin"))
    assert (moved.needs, "day_zone" in moved.what) == ("another table", True)
    [change] = contract_changes(parts(Csv(delimiter=";")), parts(Csv(delimiter="|")))
    assert (change.needs, "'delimiter': ';'" in change.what) == ("nothing", True)
    assert contract_changes(parts(Csv(delimiter=";")), parts(Csv(delimiter=";", endings=(".txt",)))) == ()


def test_a_column_may_have_the_name_of_a_format():
    raw = replace(PLAIN, columns=(*PLAIN.columns, Column("csv", "string", "A name.")))
    raw = replace(raw, source=LandingFiles("plain", csv=Csv(delimiter=";")))
    silver = Contract(
        "silver.plain", "The same.", "tests@example.com", raw.columns, ("id",), (Input("raw.plain", same_day()),)
    )
    parts = configuration(Catalogue.of([Domain("plain", (raw, silver), "nowhere")]), silver).parts
    assert parts["order"]["raw.plain"]["files"]["CSV"] == {"delimiter": ";"}


def test_refused_rows_of_a_file_that_is_split_otherwise_today_cannot_be_identified():
    seen = {"a.csv": Inspection((), "", 3), "b.csv": Inspection((), "", 2)}
    [(path, what)] = other_records({"a.csv": 3, "b.csv": 3}, seen).items()
    assert path == "b.csv"
    assert what.startswith("had 3 rows and has 2 by today's contract")


def test_rows_of_a_test_are_delivered_where_files_of_their_source_have_them():
    [orders] = (contract for contract in DECLARED if contract.table == "web_orders")
    given = Row({"id": "7", "email": "ann@example.com", "total": None}, "here")
    assert json.loads(as_delivered(orders, (given,))) == {
        "data": {"orders": [{"id": "7", "customer": {"emails": ["ann@example.com"]}, "total": {"value": None}}]}
    }
    assert as_delivered(PLAIN, (Row({"id": "7"}, "here"),)) == '{"id": "7"}\n'


def test_the_days_of_a_test_are_those_of_the_shop():
    given = {"raw.shop": {date(2017, 1, 1): (Row({"at": "2017-01-01T23:30:00Z"}, "here"),)}}
    assert days_given(given, Catalogue.of([DOMAIN])) == {date(2017, 1, 1), date(2017, 1, 2)}
