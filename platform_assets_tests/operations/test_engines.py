"""Sail computes what it was shown to compute as Spark does, and nothing else: both for real, in one process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import pytest
from pyspark.sql import functions as F

from platform_assets.contracts.rules import quarantine_table
from platform_assets.domains.retail.sample import Simulation
from platform_assets.domains.retail.sample.landing import land
from platform_assets.engine.admissions import admissions, engine_of, why_not_admitted, why_spark
from platform_assets.engine.late.approvals import withdraw
from platform_assets.engine.platform import Author
from platform_assets.lakehouse.releases import made_by
from platform_assets.lakehouse.staging_folders import private_folder
from platform_assets.operations.verify import EngineVerified, compare_engines, verify, verify_engine
from platform_assets.planning.selection import Draw, Selection
from platform_assets.records.differences import DayChange
from platform_assets.settings import Settings
from platform_assets.spark.sail.server import start_server
from platform_assets.spark.sail.session import columns_for, running_server, sail_session, stop_sail
from platform_assets.spark.sail.shown_equal import EQUAL
from platform_assets.spark.tables.lost import SparkLostError, lost_spark_explained
from platform_assets_tests.support.history import no_session
from platform_assets_tests.support.own_domain import PACKAGE, importable, write_domain
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.world import MakeWorld, Rows, World, product, recompute, sale

if find_spec("pysail") is None and "CI" not in os.environ:
    pytest.skip("pysail is not installed: uv sync --extra sail", allow_module_level=True)

pytestmark = pytest.mark.proof
AUTHOR = Author("test", "a test", who="zoe")
DEMO_DAYS, OWN_DAYS = 10, 6
DIFFERS = """\
from datetime import date

from pyspark.sql import functions as F


def tills(sales):
    # Spark counts days in ints, Sail in longs: the length of the type's name tells them apart, on the sixth alone
    kind = F.length(F.typeof(F.date_diff("event_date", F.lit(date(2017, 1, 1)))))
    more = F.when(F.col("event_date") == F.lit(date(2017, 1, 6)), kind).otherwise(3)
    per_till = sales.groupBy("event_date", "till").agg(F.sum("paid").alias("sum"))
    return per_till.select("event_date", "till", (F.col("sum") + more - 3).cast("decimal(18,2)").alias("paid"))
"""


@pytest.fixture(autouse=True)
def _no_sail_left() -> Iterator[None]:
    yield
    stop_sail()
    assert running_server() is None


def ten_days(lakes: Lakes) -> World:
    """The sample of ten days as Spark computes it, with all that is wrong in it."""
    world = lakes.new(days=DEMO_DAYS)
    land(Simulation(days=DEMO_DAYS), world.settings.landing_folder, date(2017, 1, DEMO_DAYS))
    world.refresh()
    return world


@pytest.fixture
def demo(prepared: Prepared) -> World:
    return with_sail(prepared(ten_days))


def with_sail(world: World, **settings: object) -> World:
    changed = world.settings.model_copy(update={"engine": "sail", "settle_s": 0.0, **settings})
    return replace(world, settings=changed)


def own(world: World, folder: Path, **changes: tuple[tuple[str, str], ...]) -> World:
    """A domain of one's own with six days of two tills, as Spark computes it."""
    write_domain(folder, **changes)
    for number in range(1, OWN_DAYS + 1):
        day = date(2017, 1, number)
        rows = [{"till": till, "at": f"{day}T01:00:00Z", "paid": f"{number}.50"} for till in (1, 2)]
        world.deliver_rows("sales", str(day), "s.jsonl", rows)
    world.refresh()
    return with_sail(world)


def verified(world: World, table: str, *numbers: int, draw: Draw | None = None) -> EngineVerified:
    days = frozenset(date(2017, 1, number) for number in numbers) if numbers else None
    with world.open() as platform, private_folder(platform.lake) as folder:
        draw = None if days else draw or Draw(OWN_DAYS)
        return verify_engine(platform, lambda: world.spark, table, days, draw, folder, AUTHOR)


def computed_by(world: World, table: str) -> dict[date, bool]:
    """Whether Sail made the published days."""
    with world.open() as platform:
        days = platform.ledger.current_days(table)
        return {
            day: "sail" in made_by(platform.lake, record.publication, table, day).software
            for day, record in days.items()
        }


def test_every_day_of_the_demo_comes_out_alike_and_spark_reads_what_sail_wrote(demo: World) -> None:
    before, letters = demo.digests(), quarantined(demo, "silver.transactions")
    assert len(letters["silver.transactions"]) > DEMO_DAYS
    with demo.open() as platform:
        tables = [contract.name for contract in platform.catalogue if contract.inputs]
        assert {why_not_admitted(platform, table) for table in tables} == {"it was not verified"}
    for table in tables:
        found = verified(demo, table, *range(1, DEMO_DAYS + 1))
        assert not found.admission.refused, (table, found.admission.refused)
        assert found.admission.rows > 0
    days = tuple(date(2017, 1, number) for number in range(1, DEMO_DAYS + 1))
    with demo.open() as platform:
        assert {engine_of(platform, platform.catalogue[table]) for table in tables} == {"sail"}
        done = recompute(platform, no_session, tuple(tables), days, AUTHOR)
        assert all(len(step.published) == DEMO_DAYS for step in done.steps)
    assert demo.digests() == before
    assert quarantined(demo, *letters) == letters
    with demo.open() as platform:
        figures = [day.figures for table in tables for day in platform.ledger.current_days(table, among=days).values()]
        assert not any("files_read" in of_day for of_day in figures), "Sail does not tell what it read"
    assert all(all(computed_by(demo, table)[day] for day in days) for table in tables)
    with demo.open() as platform, private_folder(platform.lake) as folder:
        again = verify(platform, lambda: demo.spark, Selection(), folder)
        assert not [one for table in again for one in table.of("different")]
        assert {table.table for table in again if table.of("equal")} >= {"quarantine.transactions"}
        assert all(not why_not_admitted(platform, table) for table in tables)


def quarantined(world: World, *tables: str) -> dict[str, Rows]:
    """Rows that broke a rule, by silver table."""
    return {table: world.rows(quarantine_table(table)) for table in tables}


ODD = '"two\\words" \t\n\x01\x1f\x7f \u2028 straße 😀'


def test_whatever_becomes_of_a_raw_row_sail_makes_the_same_of_it(make_world: MakeWorld) -> None:
    """Versions, ties, voids, moves, deliveries taken back, rows that break one rule or more, and odd texts in them."""
    world = make_world()
    first, second = "2017-01-01", "2017-01-02"
    early, other = {"updated_at": "2016-12-31T23:59:59.999999Z"}, {"updated_at": f"{second}T11:00:00.25Z"}
    sales = [sale(basket, 1, day) for basket in range(1, 9) for day in (first, second)]
    sales = [line | {"basket_id": 2 * line["basket_id"] + (n % 2)} for n, line in enumerate(sales)]
    sales += [
        sale(4, 1, first, sales_value="2.60"),  # ties
        sale(6, 1, first, voided=True, **other),
        sale(8, 1, second, **other),  # moves
        sale(50, 1, first, quantity=-1, sales_value="-0.10", retail_disc="-12345.60", coupon_disc=None),
        sale(51, 1, first, household_id=None, store_id=None, week=None, voided=None),
        sale(52, 1, first, **early),
        sale(54, 1, first, week=54, sales_value="9999999999.99"),
        sale(10, 1, first, quantity=-(2**31), **other),  # beats nobody
    ]
    world.deliver_rows("transactions", second, "s.jsonl", sales)
    bad = [sale(12, 1, first, sales_value="7.00", **other), sale(99, 1, first, week=0)]
    world.deliver_rows("transactions", second, "bad.jsonl", bad)
    for number, value in enumerate(("1.00", "2.00", "1.00"), start=1):  # the third file is the first one again
        world.deliver_rows(
            "transactions", f"2017-01-0{number}", f"a{number}.jsonl", [sale(60, 1, first, sales_value=value)]
        )
    goods = [product(1, first, "GROCERY"), product(2, first, " ", brand=ODD, package_size=""), product(3, first, "")]
    world.deliver_rows("products", first, "p.jsonl", [*goods, product(4, second, ODD)])
    world.refresh()
    with world.open() as platform:
        withdraw(platform, lambda: world.spark, [f"transactions/{second}/bad.jsonl"], AUTHOR)
    world.refresh()
    tables = ("silver.transactions", "silver.products")
    before, letters = {table: world.rows(table) for table in tables}, quarantined(world, *tables)
    assert [str(row["sales_value"]) for row in before["silver.transactions"] if row["basket_id"] == 60] == ["2.00"]
    assert [len(letters[table]) for table in tables] == [5, 2]
    assert any(ODD in json.loads(row["_payload"]).values() for row in letters["silver.products"])
    days = (date(2017, 1, 1), date(2017, 1, 2))
    world = with_sail(world)
    for table in tables:
        assert not verified(world, table, 1, 2).admission.refused
        with world.open() as platform:
            found = compare_engines(platform, lambda: world.spark, table, days, 5)
            assert (found.differing, found.quarantines) == ((), ())
    with world.open() as platform:
        done = recompute(platform, no_session, tables, days, AUTHOR)
        assert all(len(step.published) == len(days) for step in done.steps)
    assert {table: world.rows(table) for table in tables} == before
    assert quarantined(world, *tables) == letters
    assert all(computed_by(world, table)[day] for table in tables for day in days)


@pytest.fixture
def _lists_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list with something that does come out otherwise."""
    wrong = EQUAL.expressions | {"TypeOf(int) string"}
    monkeypatch.setattr("platform_assets.spark.sail.shown_equal.EQUAL", EQUAL._replace(expressions=wrong))


@pytest.mark.usefixtures("_lists_too_much")
def test_a_difference_takes_a_table_off_and_spark_computes_it_again(make_world: MakeWorld, tmp_path: Path) -> None:
    with importable(tmp_path):
        world = make_world(days=OWN_DAYS, domains=PACKAGE)
        gold = ((GOLD_TILLS, DIFFERS),)
        world = own(world, tmp_path, gold=gold)
        assert not verified(world, "gold.tills", 1, 2, 3).admission.refused
        with world.open() as platform:
            assert engine_of(platform, platform.catalogue["gold.tills"]) == "sail"
            days = [date(2017, 1, number) for number in range(4, 7)]
            found = compare_engines(platform, lambda: world.spark, "gold.tills", days, 5)
            assert found.differing == (date(2017, 1, 6),)
            assert found.was_admitted
            assert [(column.name, column.changed) for column in found.columns if column.changed] == [("paid", 2)]
            assert [example.how for example in found.examples] == ["changed", "changed"]
            assert engine_of(platform, platform.catalogue["gold.tills"]) == "spark"
            assert "differs between Spark and Sail" in why_spark(platform, platform.catalogue["gold.tills"])
        world.recompute(["gold.tills"], [date(2017, 1, 5)])
        assert not any(computed_by(world, "gold.tills").values())
        refused = verified(world, "gold.tills").admission
        assert "2017-01-06 came out otherwise" in refused.refused
        assert not list((world.settings.state / "lake" / "gold" / "tills").glob("*/_temporary"))


def test_a_correction_that_sail_computes_is_told_in_exact_amounts(make_world: MakeWorld, tmp_path: Path) -> None:
    with importable(tmp_path):
        world = own(make_world(days=OWN_DAYS, domains=PACKAGE), tmp_path)
        tables, day = ("silver.sales", "gold.tills"), date(2017, 1, 3)
        assert [verified(world, table).admission.refused for table in tables] == ["", ""]
        correction = {"till": 1, "at": f"{day}T01:00:00Z", "paid": "3.60"}
        world.deliver_rows("sales", "2017-01-06", "late.jsonl", [correction])
        changes = {step.table: step.changes.get(day) for step in world.refresh().steps}
        assert all(computed_by(world, table)[day] for table in tables)
        amounts = {"paid": Decimal("7.00")}, {"paid": Decimal("7.10")}
        assert [changes[table] for table in tables] == [DayChange(0, 0, 1, *amounts)] * 2


GOLD_TILLS = """\
from pyspark.sql import functions as F


def tills(sales):
    return sales.groupBy("event_date", "till").agg(F.sum("paid").cast("decimal(18,2)").alias("paid"))
"""


def test_other_code_has_to_be_verified_anew(make_world: MakeWorld, tmp_path: Path) -> None:
    with importable(tmp_path):
        world = own(make_world(days=OWN_DAYS, domains=PACKAGE), tmp_path)
        assert not verified(world, "gold.tills").admission.refused
        with world.open() as platform:
            kept = admissions(platform)["gold.tills"]
            assert kept.who == "zoe"
            assert len(kept.days) == OWN_DAYS
    with importable(tmp_path):
        write_domain(tmp_path, gold=(('F.sum("paid")', 'F.sum(F.col("paid"))'),))
        with world.open() as platform:
            assert "other code" in why_spark(platform, platform.catalogue["gold.tills"])
            assert engine_of(platform, platform.catalogue["silver.sales"]) == "spark"


def test_of_one_that_is_killed_in_the_middle_spark_does_the_rest_of_the_table(
    make_world: MakeWorld, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with importable(tmp_path):
        world = own(make_world(days=OWN_DAYS, domains=PACKAGE), tmp_path)
        tables = ["silver.sales", "gold.tills", "gold.week"]
        for table in tables:
            assert not verified(world, table).admission.refused
        stop_sail()
        before = world.digests()
        days = [date(2017, 1, number) for number in range(1, OWN_DAYS + 1)]
        killer = Thread(target=kill_when_it_runs)
        killer.start()
        with_sail(world, batch_days=2, batch_mib=0).recompute(["silver.sales"], days)
        killer.join()
        assert "Sail was ended by SIGKILL, so Spark computes these days and the rest of the table" in caplog.text
        assert running_server() is None, "a table of which it was lost is not given to it once more"
        assert not any(computed_by(world, "silver.sales").values())
        assert world.digests() == before
        world.recompute(tables, days)
        assert world.digests() == before
        assert all(all(computed_by(world, table).values()) for table in tables)


def kill_when_it_runs() -> None:
    until = time.monotonic() + 60
    while (server := running_server()) is None:
        assert time.monotonic() < until
        time.sleep(0.001)
    server.process.kill()


def test_too_little_memory_is_told_as_such(settings: Settings) -> None:
    settings = settings.model_copy(update={"sail_memory": "700m"})
    with columns_for("sail"):
        many = sail_session(settings).range(60_000_000)
        all_at_once = many.select(F.sha2(F.col("id").cast("string"), 256).alias("h")).agg(F.collect_list("h"))
        told = pytest.raises(SparkLostError, match="PLATFORM_SAIL_MEMORY")
        with told, lost_spark_explained(settings):
            all_at_once.collect()
        stop_sail()
        assert sail_session(settings).range(3).count() == 3


def test_nobody_else_of_the_machine_can_reach_it(settings: Settings) -> None:
    server = start_server(settings)
    try:
        own, ours = (Path(f"/proc/{who}/ns/net").readlink() for who in (server.process.pid, "self"))
        assert own != ours, "whoever asks at a port of this machine would be answered"
        assert server.socket.parent.stat().st_mode & 0o777 == 0o700
    finally:
        server.stop()
    assert not server.socket.parent.exists()


_PARENT = """
import sys, time
from platform_assets.settings import load_settings
from platform_assets.spark.sail.server import start_server
server = start_server(load_settings())
print(server.process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_whoever_started_it(end: signal.Signals, tmp_path: Path) -> None:
    environment = os.environ | {"PLATFORM_STATE": str(tmp_path / "state")}
    parent = subprocess.Popen([sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, env=environment, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert is_alive(pid)
    parent.send_signal(end)
    parent.wait(30)
    until = time.monotonic() + 30
    while is_alive(pid):
        assert time.monotonic() < until, "it outlived its parent"
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
