"""A Delta table of another tool becomes raw, silver or gold: every row once, on its day, and each day proved."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from platform_assets.engine.late.approvals import withdraw
from platform_assets.engine.late.queue import named_arrivals
from platform_assets.engine.platform import Author
from platform_assets.engine.state.planner import plan_steps
from platform_assets.errors import PlatformError
from platform_assets.operations.adoption import Adoption, Wish, adopt, planned_adoption
from platform_assets.operations.opening import open_platform
from platform_assets.operations.rollback import rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.planning.selection import BY_PERSON
from platform_assets.settings import Settings, project_root
from platform_assets.sources.inference import propose
from platform_assets.spark.tables.originals import AdoptionError
from platform_assets_tests.support.cli.commands import Run, run, state
from platform_assets_tests.support.installation import Jvm
from platform_assets_tests.support.own_domain import PACKAGE, importable, write_domain
from platform_assets_tests.support.shelf import in_process, killed
from platform_assets_tests.support.world import MakeWorld, World

__all__ = ["run", "state"]
"""Fixtures of the command line."""

RAW, SILVER, GOLD, WEEK = "raw.sales", "silver.sales", "gold.tills", "gold.week"
WITH_ID = "id BIGINT GENERATED ALWAYS AS IDENTITY, till INT, at TIMESTAMP, paid DECIMAL(12,2), old STRING"
SALES = "till BIGINT, at TIMESTAMP, paid DECIMAL(12,2)"
"""Columns of the raw table, as Delta has them."""
NAMES = "till, at, paid"
DAYS = tuple(date(2017, 1, n) for n in (1, 2, 4))
ROWS = [(till, f"2017-01-0{day} 0{till}:30:00", f"{day}.{till}0") for day in (1, 2, 4) for till in (1, 2, 3)]


@pytest.fixture
def world(make_world: MakeWorld, tmp_path: Path) -> Iterator[World]:
    with importable(write_domain(tmp_path / "package")):
        yield make_world(days=4, domains=PACKAGE)


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "original")


def write(
    spark: SparkSession, place: str, columns: str = SALES, rows: list[Any] = ROWS, more: str = "", names: str = NAMES
) -> str:
    """A Delta table of another tool, in two commits."""
    spark.sql(f"CREATE TABLE delta.`{place}` ({columns}) USING delta {more}")
    for some in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
        values = ", ".join(f"({', '.join('NULL' if v is None else repr(v) for v in row)})" for row in some)
        spark.sql(f"INSERT INTO delta.`{place}` ({names}) VALUES {values}")
    return place


def adopted(world: World, table: str, place: str, **wish: Any) -> Adoption:
    with world.open() as platform:
        return adopt(platform, lambda: world.spark, Wish(table, place, **wish), Author(f"adopt-{table}", "we moved"))


def refused(world: World, table: str, place: str, **wish: Any) -> str:
    """What it is refused with, of a preview too; nothing is changed."""
    before, landed = world.digests(), {*world.settings.landing_folder.glob("**/*")}
    with world.open() as platform:
        spark = lambda: world.spark  # noqa: E731
        with pytest.raises(AdoptionError) as preview:
            planned_adoption(platform, spark, Wish(table, place, **wish))
        with pytest.raises(AdoptionError) as error:
            adopt(platform, spark, Wish(table, place, **wish), Author(f"adopt-{table}", "we moved"))
    assert (error.value.what, world.digests()) == (preview.value.what, before)
    assert {*world.settings.landing_folder.glob("**/*")} == landed
    return error.value.what


def stale(world: World) -> dict[str, tuple[date, ...]]:
    with world.open() as platform:
        return dict(plan_steps(platform, BY_PERSON).stale)


def paid(world: World, table: str) -> set[tuple[date, int, str]]:
    return {(row["event_date"], row["till"], str(row["paid"])) for row in world.rows(table)}


EXPECTED = {(date(2017, 1, day), till, f"{day}.{till}0") for day in (1, 2, 4) for till in (1, 2, 3)}

MAPPED = "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = true"
EVERYTHING = (
    "CLUSTER BY (till) TBLPROPERTIES ('delta.enableDeletionVectors' = true, 'delta.enableRowTracking' = true, "
    "'delta.enableChangeDataFeed' = true, 'delta.columnMapping.mode' = 'name', 'delta.checkpointPolicy' = 'v2', "
    "'delta.enableTypeWidening' = true, 'delta.checkpointInterval' = 2)"
)
MONTH = "month DATE GENERATED ALWAYS AS (CAST(date_trunc('MONTH', at) AS DATE))"
TABLES = {
    "every feature": (WITH_ID, EVERYTHING),
    "by month": (f"{SALES}, {MONTH}", f"PARTITIONED BY (month) TBLPROPERTIES ({MAPPED})"),
    "by moment": (SALES, "PARTITIONED BY (at)"),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_with_any_feature_becomes_raw(world: World, place: str, kind: str) -> None:
    """Spark makes each table in several commits: 10 s."""
    columns, more = TABLES[kind]
    spark = world.spark
    write(spark, place, columns, [*ROWS, (9, "2017-01-02 10:00:00", "9.99")], more)
    spark.sql(f"DELETE FROM delta.`{place}` WHERE till = 9")
    if kind == "every feature":
        spark.sql(f"ALTER TABLE delta.`{place}` RENAME COLUMN old TO older")
        spark.sql(f"ALTER TABLE delta.`{place}` ALTER COLUMN till TYPE BIGINT")
    others = tuple({"id", "month", "older"} & set(spark.read.format("delta").load(place).columns))
    done = adopted(world, RAW, place, leave_out=others)
    assert (tuple(done.there), done.differing) == (DAYS, ())
    assert done.without_rows == (date(2017, 1, 3),)
    assert paid(world, RAW) == EXPECTED
    if kind == "by month":  # nor does `init --from` take its columns for empty ones
        found = {column.name: column.type for column in propose([Path(place)], "sales").columns}
        assert found == {"till": "long", "at": "timestamp", "paid": "decimal(12,2)", "month": "date"}
    if kind == "every feature":
        features = {"deletionVectors", "rowTracking", "columnMapping", "clustering", "v2Checkpoint", "identityColumns"}
        assert features < {*done.source.features}


def test_an_adopted_raw_table_is_computed_from_corrected_and_taken_back(world: World, place: str) -> None:
    """Four refreshes: the adopted days, a correction of one, the adoption undone, and done again."""
    write(world.spark, place)
    done = adopted(world, RAW, place)
    assert adopted(world, RAW, place).here == done.here, "nothing is copied again"
    world.refresh()
    assert (paid(world, SILVER), stale(world)) == (EXPECTED, {})
    before = world.digests()[SILVER]
    world.deliver_rows("sales", "2017-01-03", "fix.jsonl", [{"till": 1, "at": "2017-01-02T01:30:00Z", "paid": "7.00"}])
    world.refresh()
    now = world.digests()[SILVER]
    assert {day for day in before if now[day] != before[day]} == {date(2017, 1, 2)}
    assert paid(world, SILVER) == EXPECTED - {(date(2017, 1, 2), 1, "2.10")} | {(date(2017, 1, 2), 1, "7.00")}

    with world.open() as platform:
        named = named_arrivals(platform, [done.undo])
        withdraw(platform, lambda: world.spark, named, Author("adopts", "not yet"))
    world.refresh()
    assert paid(world, SILVER) == {(date(2017, 1, 2), 1, "7.00")}
    world.spark.sql(f"DELETE FROM delta.`{place}` WHERE till = 3")
    assert "raw.sales has rows of 2017-01-02 already." in refused(world, RAW, place)
    days = frozenset({date(2017, 1, 1), date(2017, 1, 4)})
    again = adopted(world, RAW, place, days=days)
    assert {*again.there} == days
    assert again.differing == ()
    world.refresh()
    assert len(paid(world, SILVER)) == 5


def totals(spark: SparkSession, place: str, columns: str = "till BIGINT, sold_on DATE, paid DECIMAL(18,2)") -> str:
    rows = [(till, f"2017-01-0{day}", f"{day}.{till}0") for day in (1, 2, 4) for till in (1, 2, 3)]
    return write(spark, place, columns, rows, "PARTITIONED BY (sold_on)", "till, sold_on, paid")


@pytest.fixture
def loaded(world: World, tmp_path: Path) -> World:
    """Raw and silver have the rows; gold was never computed."""
    adopted(world, RAW, write(world.spark, str(tmp_path / "sales")))
    with world.open() as platform:
        days = platform.calendar.days()
    world.recompute([SILVER], days)
    return world


def test_adopted_gold_is_up_to_date_until_an_input_changes_and_one_command_takes_it_back(
    loaded: World, place: str
) -> None:
    """Gold adopted, a correction of one of its days, and the adoption rolled back."""
    world = loaded
    done = adopted(world, GOLD, totals(world.spark, place), day="sold_on")
    assert (done.differing, done.without_rows, paid(world, GOLD)) == ((), (date(2017, 1, 3),), EXPECTED)
    assert GOLD not in stale(world)
    with world.open() as platform:
        [record] = [platform.ledger.current_days(GOLD)[date(2017, 1, 2)]]
        head = platform.ledger.head(record.publication)
        assert head is not None
        assert (head.kind, head.decides) == ("recompute", "adoption")
        assert head.why.startswith("we moved (adopted from ")
    assert "gold.tills has rows of 2017-01-01..2017-01-02, 2017-01-04 already" in refused(
        world, GOLD, place, day="sold_on"
    )
    world.deliver_rows("sales", "2017-01-03", "fix.jsonl", [{"till": 1, "at": "2017-01-02T01:30:00Z", "paid": "7.00"}])
    before = world.digests()[GOLD]
    world.refresh()
    now = world.digests()[GOLD]
    assert {day for day in before if now[day] != before[day]} == {date(2017, 1, 2)}
    assert (stale(world), (date(2017, 1, 2), 1, "7.00") in paid(world, GOLD)) == ({}, True)

    with world.open() as platform:
        its, person = chosen_publications(platform, run=done.undo), Author("undoes", "not yet")
        with pytest.raises(PlatformError, match="2017-01-02 was published again since"):
            rollback(platform, its, person)
        rollback(platform, its, person, days={date(2017, 1, 1), date(2017, 1, 4)})
    assert paid(world, GOLD) == {(date(2017, 1, 2), 1, "7.00")} | {
        (date(2017, 1, 2), till, f"2.{till}0") for till in (2, 3)
    }, "later work of others stays"
    world.refresh()
    assert {row[0] for row in paid(world, GOLD)} == {date(2017, 1, 2)}, "nor does a refresh bring other days back"
    days = frozenset({date(2017, 1, 1), date(2017, 1, 4)})
    assert adopted(world, GOLD, place, day="sold_on", days=days).differing == ()


def test_days_that_fail_their_gates_are_not_adopted(loaded: World, tmp_path: Path) -> None:
    spark, on = loaded.spark, {"day": "sold_on"}
    place = totals(spark, str(tmp_path / "gold"))
    spark.sql(f"INSERT INTO delta.`{place}` VALUES (1, DATE'2017-01-02', 0.00)")
    error = not_adopted(loaded, GOLD, place, **on)
    assert "1 day of " in error
    assert "2017-01-02: held: gold.tills on 2017-01-02: 1 key (till) with more than one row; first till 1" in error
    spark.sql(f"DELETE FROM delta.`{place}` WHERE paid = 0")
    spark.sql(f"UPDATE delta.`{place}` SET paid = 9 WHERE till = 1 AND sold_on = '2017-01-04'")
    assert "2017-01-04: held: " in not_adopted(loaded, GOLD, place, **on), "it is reconciled with its input"
    place = write(spark, str(tmp_path / "silver"), rows=[*ROWS[:-1], (7, "2017-01-04 07:30:00", "4.30")])
    error = not_adopted(loaded, SILVER, place, day="at", replaces=True)
    assert "2017-01-04: held: " in error
    assert "3 rows staged, but 3 keys that stay; first lost: till 3" in error
    spark.sql(f"UPDATE delta.`{place}` SET till = 3, at = TIMESTAMP'2017-01-04 03:30:00' WHERE till = 7")
    done = adopted(loaded, SILVER, place, day="at", replaces=True)
    assert (done.differing, paid(loaded, SILVER)) == ((), EXPECTED)


def not_adopted(world: World, table: str, place: str, **wish: Any) -> str:
    """What gates say; nothing is published, and nothing stays of the copy."""
    before = world.digests()
    with pytest.raises(AdoptionError) as error:
        adopted(world, table, place, **wish)
    folder = Path(str(world.settings.lake)) / table.replace(".", "/")
    with world.open() as platform:
        known = platform.ledger.indexed()
        assert platform.ledger.holds() == ()
    assert {each.name for each in folder.glob("2*")} <= {*known}
    assert (world.digests(), error.value.todo[-22:]) == (before, "Nothing was published.")
    return error.value.what


OTHERS = {
    "paid is missing; cash is not declared": pa.table(
        {"till": [1], "at": [datetime(2017, 1, 1, tzinfo=UTC)], "cash": [1]}
    ),
    "at is timestamp_ntz, declared timestamp": pa.table(
        {"till": [1], "at": [datetime(2017, 1, 1, tzinfo=UTC).replace(tzinfo=None)], "paid": [Decimal("1.00")]}
    ),
    "paid is double, declared decimal(12,2)": pa.table(
        {"till": [1], "at": [datetime(2017, 1, 1, tzinfo=UTC)], "paid": [1.0]}
    ),
    "1 row without at": pa.table(
        {"till": [1, 2], "at": [datetime(2017, 1, 1, tzinfo=UTC), None], "paid": [Decimal("1.00")] * 2},
        schema=pa.schema({"till": pa.int64(), "at": pa.timestamp("us", "UTC"), "paid": pa.decimal128(12, 2)}),
    ),
    "has rows of 2017-01-09, and the calendar goes from 2017-01-01 to 2017-01-04": pa.table(
        {"till": [1], "at": [datetime(2017, 1, 9, tzinfo=UTC)], "paid": [Decimal("1.00")]},
        schema=pa.schema({"till": pa.int64(), "at": pa.timestamp("us", "UTC"), "paid": pa.decimal128(12, 2)}),
    ),
}


def test_what_cannot_be_taken_is_named_before_anything_is_written(world: World, tmp_path: Path) -> None:
    for number, (says, rows) in enumerate(OTHERS.items()):
        write_deltalake(place := str(tmp_path / str(number)), rows)
        assert says in refused(world, RAW, place)
    assert "has no column 'event_date'" in refused(world, GOLD, totals(world.spark, place := str(tmp_path / "gold")))
    assert "and silver.sales has none of the days that these read" in refused(world, GOLD, place, day="sold_on")
    assert "is long, and the day of a row is a date" in refused(world, WEEK, place, day="till", leave_out=("sold_on",))
    assert "There is no Delta table at" in refused(world, RAW, str(tmp_path / "nowhere"))
    assert "is part of this lake" in refused(world, RAW, str(world.settings.lake))
    assert "has its day from at" in refused(world, RAW, place, day="sold_on")


def test_a_full_refresh_table_becomes_incremental_as_the_page_shows(
    make_world: MakeWorld, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command of the guide, with an old job that has a wrong sum on one day: 40 s."""
    page = (project_root() / "docs/adopting.md").read_text(encoding="utf-8").replace("/data/", f"{tmp_path}/data/")
    package = tmp_path / "package"
    for name, block in re.findall(r"^```python\n# (\S+)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        file = package / name.replace("shop/", "adopted_shop/")
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parent / "__init__.py").touch()
        file.write_text(block.replace('"shop.transforms"', '"adopted_shop.transforms"'))
    monkeypatch.syspath_prepend(package)
    days = {"CALENDAR_FIRST": "2026-01-01", "CALENDAR_LAST": "2026-01-03", "TODAY": "2026-01-03"}
    for name, value in {**days, "DOMAINS": "adopted_shop"}.items():
        monkeypatch.setenv(f"PLATFORM_{name}", value)
    spark = make_world().spark
    orders = [(n, f"store {n % 2}", f"{n}.00", f"2026-01-0{1 + n // 4} 10:00:00") for n in range(12)]
    columns = "order_id BIGINT, store STRING, amount DECIMAL(12,2), ordered_at TIMESTAMP"
    place = write(spark, f"{tmp_path}/data/orders", columns, orders, names="order_id, store, amount, ordered_at")
    spark.sql(
        f"CREATE TABLE delta.`{tmp_path}/data/revenue` USING delta AS SELECT to_date(ordered_at) AS event_date, store, "
        "CAST(sum(amount) + if(store = 'store 1' AND day(ordered_at) = 1, 0.5, 0) AS DECIMAL(18,2)) AS amount "
        f"FROM delta.`{place}` GROUP BY ordered_at, store"
    )
    guide = page.partition("## From full refresh to incremental")[2]
    commands = [
        shlex.split(line.strip(), comments=True)[1:]
        for block in re.findall(r"^ +```sh\n(.*?)^ +```$", guide, re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
    ]
    said = [run(*command) for command in commands]
    assert [(command[0], one.code) for command, one in zip(commands, said, strict=True)] == [
        ("admin", 0), ("refresh", 0), ("diff", 1), ("admin", 0), ("diff", 0), ("admin", 0)
    ], [one.error for one in said]  # fmt: skip
    assert "3 days have the original's count and checksum" in said[0].words
    assert "2026-01-01: store store 1" in said[2].words
    assert "+0.50" in said[2].words or "-0.50" in said[2].words
    undone = run("undo", re.findall(r"undo '(\S+)'", said[3].out)[0], "--reason", "no")
    assert undone.code == 0, undone.error
    assert run("diff", "gold.revenue", f"{tmp_path}/data/revenue").code == 1


def adopted_by_another(settings: Settings, package: Path, jvm: Jvm, wish: Wish) -> None:
    with importable(package), open_platform(settings) as platform:
        adopt(platform, jvm.session, wish, Author("another", "we moved"))


@pytest.mark.proof
@pytest.mark.parametrize("point", ["adoption.landing:2", "adoption.landed", "adoption.staged", "publish.after_table"])
def test_killed_anywhere_the_same_command_ends_it(world: World, place: str, point: str, tmp_path: Path) -> None:
    """Each adoption is a process of its own, which dies as if by `kill -9`."""
    write(world.spark, place)
    wish = Wish(RAW, place)
    if point[:13] != "adoption.land":
        adopted(world, RAW, place)
        world.recompute([SILVER], [date(2017, 1, n) for n in range(1, 5)])
        wish = Wish(GOLD, totals(world.spark, str(tmp_path / "gold")), "sold_on")
    its = (world.settings, tmp_path / "package", Jvm.of(world.spark), wish)
    assert killed(in_process(adopted_by_another, *its, failpoint=point))
    if point == "publish.after_table":  # which opening the platform finishes
        with world.open() as platform, pytest.raises(AdoptionError, match="2017-01-04 already"):
            adopt(platform, lambda: world.spark, wish, Author("again", "we moved"))
    else:
        with world.open() as platform:
            assert adopt(platform, lambda: world.spark, wish, Author("again", "we moved")).differing == ()
    assert paid(world, wish.table) == EXPECTED
