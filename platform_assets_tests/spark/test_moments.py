"""Moments and amounts are taken as what their source meant, or their row is refused with the reason.

One refresh takes files of every kind; each of their rows has one value beside the key and the day.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from platform_assets.contracts import Column, Contract, ContractError, Domain, LandingFiles
from platform_assets.settings import load_settings
from platform_assets_tests.support.installation import JARS
from platform_assets_tests.support.world import World

ARRIVAL = "2017-01-02"
ZONE = "America/New_York"
OTHER_ZONE = "neither Z, UTC, GMT nor an offset after the time"
TWICE_OR_NEVER = f"twice or never in {ZONE}"


def no_number(unit: str) -> str:
    return f"no whole microseconds as a number of {unit} since 1970"


DOMAIN = Domain(
    name="moments",
    tables=(
        Contract(
            name="raw.moments",
            description="Moments and amounts as sources write them.",
            owner="tests@example.com",
            columns=(
                Column("id", "long", "Number.", nullable=False),
                Column("day", "date", "Day.", nullable=False),
                Column("here", "timestamp", "In UTC.", may_be_absent=True),
                Column("there", "timestamp", "By other clocks.", may_be_absent=True, zone=ZONE),
                Column("s", "timestamp", "As a number.", may_be_absent=True, epoch="s"),
                Column("ms", "timestamp", "As a number.", may_be_absent=True, epoch="ms"),
                Column("us", "timestamp", "As a number.", may_be_absent=True, epoch="us"),
                Column("ns", "timestamp", "As a number.", may_be_absent=True, epoch="ns"),
                Column("born", "date", "A day.", may_be_absent=True),
                Column("note", "string", "A text.", may_be_absent=True),
                Column("paid", "decimal(12,2)", "Dollars.", may_be_absent=True),
                Column("mass", "decimal(38,2)", "Grams.", may_be_absent=True),
                Column("tags", "string", "Not delivered.", may_be_absent=True),
            ),
            key=("id",),
            source=LandingFiles("moments"),
            event_time="day",
        ),
    ),
    transforms="platform_assets_tests.support.domains.transforms",
)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


TEXTS: list[tuple[str, str, Any]] = [
    *(("here", f"2024-07-10 00:30:00{zone}", at("2024-07-10 00:30")) for zone in ("", "Z", " UTC", " GMT", "+00:00")),
    *(
        ("here", f"2024-07-10T00:30:00{off}", at("2024-07-09 19:00"))
        for off in ("+05:30", " +0530", "+5:30", "+05:30:00")
    ),
    ("here", "2024-07-10T00:30:00+05", at("2024-07-09 19:30")),
    ("here", "2024-07-10T00:30:00.5-04:00", at("2024-07-10 04:30:00.500")),
    *(
        ("here", f"2024-07-10 00:30:00{zone}", OTHER_ZONE)
        for zone in (
            " BST",
            " IST",
            " CST",
            " PST",
            " CET",
            " EST",
            " UT",
            "Z[UTC]",
            " GMT+5",
            " Europe/London",
            " PM",
            "z",
        )
    ),
    ("here", "2024-07-10 00:30:00+19:00", "not timestamp"),
    ("here", "2024-07-10 00:30:00.1234567Z", "not timestamp"),
    ("there", "2024-07-10 00:30:00", at("2024-07-10 04:30")),
    ("there", "2024-01-10", at("2024-01-10 05:00")),
    ("there", "2024-07-10T00:30:00Z", at("2024-07-10 00:30")),
    ("there", "2024-07-10T00:30:00 -0500", at("2024-07-10 05:30")),
    ("there", "2024-07-10 00:30:00 EDT", OTHER_ZONE),
    ("there", f"2024-07-10 00:30:00 {ZONE}", OTHER_ZONE),
    ("there", "2024-11-03 00:59:59.999999", at("2024-11-03 04:59:59.999999")),
    ("there", "2024-11-03 01:00", TWICE_OR_NEVER),
    ("there", "2024-11-03 01:59:59.999999", TWICE_OR_NEVER),
    ("there", "2024-11-03 01:30:00-05:00", at("2024-11-03 06:30")),
    ("there", "2024-11-03 02:00", at("2024-11-03 07:00")),
    ("there", "2024-03-10 01:59:59", at("2024-03-10 06:59:59")),
    ("there", "2024-03-10 02:00", TWICE_OR_NEVER),
    ("there", "2024-03-10 02:59:59", TWICE_OR_NEVER),
    ("there", "2024-03-10 03:00", at("2024-03-10 07:00")),
    ("there", "noon", "not timestamp"),
    ("there", "2024-07-10 00:30:00.1234567", "not timestamp"),
    ("s", "1720571400", at("2024-07-10 00:30")),
    ("s", "1720571400.123456", at("2024-07-10 00:30:00.123456")),
    ("s", "1720571400.1234560", at("2024-07-10 00:30:00.123456")),
    ("s", "1.7205714E9", at("2024-07-10 00:30")),
    ("s", "-0.000001", at("1969-12-31 23:59:59.999999")),
    ("s", "1720571400.1234567", no_number("s")),
    ("s", "1e-7", no_number("s")),
    ("s", "99999999999999999", no_number("s")),
    ("ms", "1720571400123", at("2024-07-10 00:30:00.123")),
    ("ms", "1720571400123.456", at("2024-07-10 00:30:00.123456")),
    ("ms", "1720571400123.4565", no_number("ms")),
    ("us", "1720571400123456", at("2024-07-10 00:30:00.123456")),
    ("us", "1720571400123456.5", no_number("us")),
    ("ns", "1720571400123456000", at("2024-07-10 00:30:00.123456")),
    ("ns", "1720571400123456789", no_number("ns")),
]
"""(column, text, what becomes of it, or why it is refused)."""
WORDS = [("s", "2024-07-10", no_number("s")), ("ms", "noon", no_number("ms"))]


def floats(*values: float) -> pa.Array:
    return pa.array(values, pa.float32())


def nanoseconds(zone: str | None, *values: int) -> pa.Array:
    return pa.array(values, pa.int64()).cast(pa.timestamp("ns", zone))


def local(*texts: str) -> pa.Array:
    return pa.array([datetime.fromisoformat(text) for text in texts], pa.timestamp("us"))


HALF_PAST = 1720571400_000_000_000
"""2024-07-10 00:30."""
ARRAYS: list[tuple[str, pa.Array, list[Any]]] = [
    (
        "paid",
        floats(10.03, 0.07, 123456.78, -2.5, 20_000_000.0, 2.505, 7.1197819e9),
        [*map(Decimal, ("10.03", "0.07", "123456.78", "-2.50", "20000000.00")), *["not decimal(12,2)"] * 2],
    ),
    (
        "paid",
        pa.array([10.03, 1e-12, 0.1 + 0.2, 9999999999.99, float("nan")]),
        [Decimal("10.03"), *["not decimal(12,2)"] * 2, Decimal("9999999999.99"), "not decimal(12,2)"],
    ),
    ("mass", pa.array([1e20, 2.0**60, 0.005]), [Decimal("100000000000000000000.00"), *["not decimal(38,2)"] * 2]),
    ("s", pa.array([1720571400.5, float("nan")]), [at("2024-07-10 00:30:00.500"), no_number("s")]),
    ("ns", pa.array([HALF_PAST, HALF_PAST + 1]), [at("2024-07-10 00:30"), no_number("ns")]),
    ("us", pa.array([at("2024-07-10 00:30")], pa.timestamp("us", "UTC")), [at("2024-07-10 00:30")]),
    (
        "here",
        nanoseconds("UTC", HALF_PAST + 123456000, HALF_PAST + 123456789, -1000, -1),
        [at("2024-07-10 00:30:00.123456"), "not timestamp", at("1969-12-31 23:59:59.999999"), "not timestamp"],
    ),
    ("here", nanoseconds(None, HALF_PAST), [at("2024-07-10 00:30")]),
    ("there", nanoseconds(None, HALF_PAST), [at("2024-07-10 04:30")]),
    ("there", nanoseconds("UTC", HALF_PAST), [at("2024-07-10 00:30")]),
    ("there", local("2024-07-10 00:30", "2024-11-03 01:30"), [at("2024-07-10 04:30"), TWICE_OR_NEVER]),
    ("there", local("2024-07-10 00:30").cast(pa.timestamp("us", "UTC")), [at("2024-07-10 00:30")]),
    ("there", pa.array([date(2024, 7, 10)]), [at("2024-07-10 04:00")]),
    ("born", nanoseconds(None, HALF_PAST - 1800_000_000_000, HALF_PAST), [date(2024, 7, 10), "not date"]),
    ("note", nanoseconds(None, HALF_PAST, HALF_PAST + 1), ["2024-07-10 00:30:00", "2024-07-10 00:30:00.000000001"]),
]
"""(column, a Parquet column, what becomes of each value, or why it is refused)."""


def typed_columns() -> Iterator[pa.Table]:
    """Tables with the arrays, as few as can be: each column is in one of them once, and null where another one is."""
    left = [(n, column, array) for n, (column, array, _) in enumerate(ARRAYS)]
    while left:
        one_each = {column: (n, array) for n, column, array in reversed(left)}
        left = [each for each in left if each[0] not in {n for n, _ in one_each.values()}]
        parts = []
        for column, (n, array) in one_each.items():
            ids = pa.array(range(2000 + 10 * n, 2000 + 10 * n + len(array)))
            parts.append(pa.table({"id": ids, "day": [ARRIVAL] * len(array), column: array}))
        yield pa.concat_tables(parts, promote_options="default")


def with_a_repeated_column(spark: SparkSession, file: str) -> None:
    """Write three rows as Spark's own library does it, one column of which is repeated without being called a list."""
    assert spark._jvm is not None
    parquet: JavaObject = spark._jvm.org.apache.parquet
    schema = parquet.schema.MessageTypeParser.parseMessageType(
        "message m { required int32 id; required binary day (UTF8); repeated int32 some; repeated group more {"
        " required int32 a; } }"
    )
    path = spark._jvm.org.apache.hadoop.fs.Path(file)
    writer = parquet.hadoop.example.ExampleParquetWriter.builder(path).withType(schema).build()
    for number in range(3):
        group = parquet.example.data.simple.SimpleGroup(schema)
        group.append("id", 9000 + number)
        group.append("day", ARRIVAL)
        for value in range(number):
            group.append("some", value)
            group.addGroup("more").append("a", value)
        writer.write(group)
    writer.close()


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> dict[int, Any]:
    """Each row by its number: its values, or why it was refused."""
    state = tmp_path_factory.mktemp("moments")
    dates = {"calendar_first": date(2017, 1, 1), "calendar_last": date(2017, 1, 3), "today": date(2017, 1, 3)}
    world = World(load_settings(state=state, jars=JARS, domains=__name__, **dates), spark)
    kinds = list(dict.fromkeys(column for column, _, _ in TEXTS))
    rows, objects = [], []
    for n, (column, text, _) in enumerate([*TEXTS, *WORDS]):
        rows.append(f"{n},{ARRIVAL}," + ",".join(f'"{text}"' if kind == column else "" for kind in kinds))
        # As a number in the JSON, digit for digit, where it can be one
        value = json.dumps(text) if column in ("here", "there") or n >= len(TEXTS) else text
        objects.append(f'{{"id": {1000 + n}, "day": "{ARRIVAL}", "{column}": {value}}}')
    for name, lines in (("texts.csv", [f"id,day,{','.join(kinds)}", *rows]), ("texts.jsonl", objects)):
        world.deliver("moments", ARRIVAL, name, "\n".join(lines) + "\n")
    for number, columns in enumerate(typed_columns()):
        buffer = io.BytesIO()
        pq.write_table(columns, buffer)
        world.deliver("moments", ARRIVAL, f"{number}.parquet", buffer.getvalue())
    file = world.deliver("moments", ARRIVAL, "repeated.parquet", "")
    file.unlink()
    with_a_repeated_column(spark, str(file))
    content = file.read_bytes()
    world.deliver("moments", ARRIVAL, "repeated.parquet", content)
    result = world.refresh()
    assert [arrival.reason for arrival in result.ingests[0].arrivals if arrival.reason] == []
    refused = {json.loads(row["_payload"])["id"]: row["_reason"] for row in world.rows("refused.moments")}
    return {int(number): reason for number, reason in refused.items()} | {
        row["id"]: row for row in world.rows("raw.moments")
    }


@pytest.mark.parametrize("first", [0, 1000], ids=["csv", "json"])
def test_a_text_becomes_what_its_source_meant_or_its_row_is_refused(taken: dict[int, Any], first: int) -> None:
    got = {n: taken[first + n] for n in range(len(TEXTS) + len(WORDS))}
    for n, (column, text, meant) in enumerate([*TEXTS, *WORDS]):
        if isinstance(meant, str):
            # What JSON has as a number is shown as Spark writes it.
            shown = text[:40] if first == 0 or column in ("here", "there") else ""
            assert got[n].startswith(f"{column}: {meant}: {shown}")
        else:
            assert not isinstance(got[n], str), (column, text, got[n])
            assert got[n][column] == meant, text


def test_a_typed_value_becomes_what_its_source_meant_or_its_row_is_refused(taken: dict[int, Any]) -> None:
    for n, (column, array, meant) in enumerate(ARRAYS):
        for place, one in enumerate(meant):
            got = taken[2000 + 10 * n + place]
            if isinstance(one, str) and column != "note":
                assert isinstance(got, str), (column, array[place], got)
                assert got.startswith(f"{column}: {one}: ")
            else:
                assert not isinstance(got, str), (column, array[place], got)
                assert got[column] == one


def test_a_repeated_column_that_is_not_called_a_list_is_kept(taken: dict[int, Any]) -> None:
    assert [json.loads(taken[9000 + n]["_rescued"]) for n in range(3)] == [
        {"some": [*range(n)], "more": [{"a": a} for a in range(n)]} for n in range(3)
    ]


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ({"zone": "EST"}, "has the zone 'EST'"),
        ({"zone": "Europe/Atlantis"}, "has the zone 'Europe/Atlantis'"),
        ({"zone": ZONE, "epoch": "s"}, f"the zone '{ZONE}' and the epoch 's'"),
        ({"type": "date", "zone": ZONE}, "of type 'date' has the zone"),
        ({"epoch": "m"}, "epoch"),
    ],
)
def test_a_zone_or_a_unit_that_nobody_can_follow_is_refused_by_its_name(declared: dict[str, Any], says: str) -> None:
    with pytest.raises(ContractError, match=says):
        Column(**{"name": "at", "type": "timestamp", "description": "When."} | declared)
