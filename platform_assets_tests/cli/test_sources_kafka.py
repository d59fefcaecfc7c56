"""A topic of Kafka from its broker to silver: each record once, whatever is lost, refused or read again."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from platform_assets import contracts
from platform_assets.contracts import Contract
from platform_assets.engine.pending import waiting
from platform_assets.settings import Settings, load_settings, project_root
from platform_assets.sources.kafka import KafkaTopic
from platform_assets.spark.session.java import find_java
from platform_assets_tests.support import clicks as domain
from platform_assets_tests.support.cli.commands import Run
from platform_assets_tests.support.clicks import RAW, SILVER, URL, order
from platform_assets_tests.support.kafka import Kafka, Topic, brought
from platform_assets_tests.support.world import World

TODAY = datetime.now(UTC).date()
YESTERDAY = TODAY - timedelta(days=1)


@pytest.fixture
def topic(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> Topic:
    """The topic of the domain's raw table."""
    made = kafka.topic(2)
    raw = replace(RAW, source=replace(cast(KafkaTopic, RAW.source), topic=made.name))
    monkeypatch.setattr(domain, "DOMAIN", replace(domain.DOMAIN, tables=(raw, SILVER)))
    monkeypatch.setenv(URL, kafka.url)
    return made


@pytest.fixture
def world(state: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> World:
    """The installation that commands see, by the clock."""
    monkeypatch.setenv("PLATFORM_DOMAINS", domain.__name__)
    monkeypatch.setenv("PLATFORM_CALENDAR_FIRST", str(TODAY - timedelta(days=3)))
    monkeypatch.setenv("PLATFORM_CALENDAR_LAST", str(TODAY))
    monkeypatch.delenv("PLATFORM_TODAY")
    settings: Settings = load_settings()
    assert settings.state == state
    return World(settings, spark)


def at(day: date) -> str:
    return f"{day}T10:00:00Z"


def silver(world: World) -> dict[tuple[date, int], str]:
    return {(row["event_date"], row["order_id"]): str(row["amount"]) for row in world.rows("silver.orders")}


def raw_rows(world: World) -> list[tuple[int, int]]:
    rows = [row for row in world.rows("raw.orders") if row["_kind"] in ("record", "void")]
    return sorted((row["kafka_partition"], row["kafka_offset"]) for row in rows)


def test_a_topic_becomes_silver_and_is_read_again(
    topic: Topic, world: World, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three refreshes: refused rows, the ledger lost, a tombstone and a move, a replay; then the brokers are away."""
    topic.write(*(order(n, f"{n}.00", at(YESTERDAY)) for n in (1, 2, 3)), partition=0)
    topic.write("not json", order(4, "much", at(TODAY)), partition=1)
    assert run("status", "sources", "--json").json["sources"][0]["rows"] == 5
    with world.open() as platform:
        assert waiting(platform, 100).unread == {"raw.orders": ""}
    world.refresh()
    assert silver(world) == {(YESTERDAY, n): f"{n}.00" for n in (1, 2, 3)}
    assert sorted(row["_reason"] for row in world.rows("refused.orders")) == [
        "amount: not decimal(12,2): much",
        "broken line: partition 1, offset 0: cannot be decoded: Expecting value: line 1 column 1 (char 0)",
    ]
    shown = run("status", "quarantine", "--rows", "raw.orders", "--json").json
    assert {"kafka_partition": "1", "kafka_offset": "0"}.items() <= shown[0]["values"].items()
    assert run("admin", "pull", "raw.orders").words == "nothing new for raw.orders."

    topic.write(order(1, "9.00", at(YESTERDAY)), order(2, "2.50", at(TODAY)), partition=0)  # which moves it
    topic.write(None, key="3", partition=0)
    for file in world.settings.state.glob("ledger*"):
        file.unlink()
    world.refresh()
    assert silver(world) == {(YESTERDAY, 1): "9.00", (TODAY, 2): "2.50"}
    assert raw_rows(world) == [(0, n) for n in (0, 1, 2, 3, 4, 5)]
    before = world.digests()["silver.orders"]

    missing = run("admin", "pull", "raw.orders", "--from", "0:1")
    assert "A decision needs --reason" in missing.error
    assert "Either --from or --accept-loss" in run("admin", "pull", "raw.orders", "--to", "0:1").error
    pulled = run("admin", "pull", "raw.orders", "--from", "0:1", "--to", "0:4", "--reason", "wrong price")
    assert "of raw.orders wait for `platform-assets refresh`" in pulled.words
    again = run("admin", "pull", "raw.orders", "--from", "0:1", "--reason", "wrong price")
    assert "wait, so raw is behind what was read" in again.error
    world.refresh()
    assert raw_rows(world) == sorted([*((0, n) for n in range(6)), (0, 1), (0, 2), (0, 3)])
    assert world.digests()["silver.orders"] == before
    with world.open() as platform:
        assert any("-wrong-price." in arrival.path for arrival in platform.ledger.arrivals("raw.orders"))

    monkeypatch.setattr("platform_assets.sources.kafka_broker._ANSWERS_S", 2)
    monkeypatch.setenv(URL, "kafka://me:secret@127.0.0.1:1")
    listed = run("status", "sources")
    assert (listed.code, "was not read" in listed.out, "secret" in listed.out) == (1, True, False)


def test_the_example_of_the_page_about_kafka_reads_a_topic(
    kafka: Kafka, world: World, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    own: dict[str, Any] = {**vars(contracts)}
    page = (project_root() / "docs/read-kafka.md").read_text(encoding="utf-8")
    [block] = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    exec(compile(block, "docs/read-kafka.md", "exec"), own)
    raw: Contract = own["ORDERS"]
    raw = replace(raw, source=replace(cast(KafkaTopic, raw.source), topic=topic.name))
    silver = replace(SILVER, columns=raw.columns)
    monkeypatch.setattr(domain, "DOMAIN", replace(domain.DOMAIN, tables=(raw, silver)))
    topic.write(order(1, "1.50", at(YESTERDAY)), key="a")
    world.refresh()
    [row] = world.rows("silver.orders")
    assert (row["order_id"], str(row["amount"]), row["kafka_key"], row["kafka_offset"]) == (1, "1.50", "a", 0)


def test_a_stream_and_the_daily_batch_that_corrects_it_as_their_page_shows_them(
    kafka: Kafka, world: World, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provisional day; its batch arrives, differences are shown, and gold is corrected on that day alone."""
    topic = kafka.topic()
    page = (
        (project_root() / "docs/stream-and-batch.md")
        .read_text(encoding="utf-8")
        .replace('"orders", url', f'"{topic.name}", url')
    )
    for name, block in re.findall(r"^```python\n# (\S+)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        file = tmp_path / "package" / name.replace("orders/", f"{PACKAGE}/")
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parent / "__init__.py").touch()
        file.write_text(block.replace('"orders.transforms"', f'"{PACKAGE}.transforms"'))
    monkeypatch.syspath_prepend(tmp_path / "package")
    monkeypatch.setenv("PLATFORM_DOMAINS", PACKAGE)
    monkeypatch.setenv(URL, kafka.url)
    world = replace(world, settings=load_settings())

    def orders() -> dict[tuple[date, int], tuple[str, str, bool]]:
        return {
            (row["event_date"], row["order_id"]): (str(row["amount"]), row["said_by"], row["is_final"])
            for row in world.rows("gold.orders")
        }

    for day in (YESTERDAY, TODAY):
        topic.write(*(order(n, f"{n}.00", at(day), store="a" if n < 3 else "b") for n in (1, 2, 3)))
    world.refresh()
    assert orders() == {(day, n): (f"{n}.00", "stream", False) for day in (YESTERDAY, TODAY) for n in (1, 2, 3)}
    assert world.rows("gold.missed") == []
    before = world.digests()["gold.orders"]
    batch = [order(1, "1.00", at(YESTERDAY), store="a"), order(2, "2.50", at(YESTERDAY), store="a")]
    world.deliver_rows("batch", str(TODAY), "day.jsonl", [*batch, order(4, "4.00", at(YESTERDAY), store="b")])
    world.refresh()
    assert {n: orders()[YESTERDAY, n] for n in (1, 2, 3, 4)} == {
        1: ("1.00", "batch", True),
        2: ("2.50", "batch", True),
        3: ("3.00", "stream", True),
        4: ("4.00", "batch", True),
    }
    now = world.digests()["gold.orders"]
    assert {day for day in now if now[day] != before[day]} == {YESTERDAY}
    assert {
        row["store"]: (row["only_stream"], row["only_batch"], row["different"], str(row["amount"]))
        for row in world.rows("gold.missed")
    } == {"a": (0, 0, 1, "0.50"), "b": (1, 1, 0, "1.00")}
    told = run("diff", "silver.stream", "silver.batch", "--days", str(YESTERDAY), "--drill")
    assert told.code == 1
    assert "2.00" in told.out
    assert "2.50" in told.out


PACKAGE = "orders_of_the_page"
_BESIDE = """
import json, sys
from pyspark.sql import SparkSession
brokers, topic, jars, target = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[1]").config("spark.jars", jars).config("spark.ui.enabled", "false")
    .config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "1").getOrCreate()
)
rows = (
    spark.read.format("kafka").option("kafka.bootstrap.servers", brokers).option("subscribe", topic)
    .option("kafka.isolation.level", "read_committed").option("startingOffsets", "earliest").load()
    .selectExpr("partition", "offset", "unix_millis(timestamp) AS at", "CAST(key AS string) AS key",
                "CAST(value AS string) AS value")
)
with open(target, "w") as file:
    json.dump([row.asDict() for row in rows.collect()], file)
"""


@pytest.mark.proof
def test_raw_has_what_sparks_own_source_reads(topic: Topic, world: World, kafka: Kafka, tmp_path: Path) -> None:
    """Two partitions, several readings, aborted records and marks of transactions."""
    jars = ",".join(map(str, brought(tmp_path, "spark")))
    for n in range(40):
        topic.write(order(n, f"{n}.25", at(TODAY)), key=str(n))
    with topic.transaction() as producer:
        topic.produce(producer, *(order(n, "1.00", at(TODAY)) for n in range(40, 60)))
    world.refresh()
    with topic.transaction(aborts=True) as producer:
        topic.produce(producer, order(98, "1.00", at(TODAY)))
    topic.write(order(99, "9.90", at(TODAY)))
    world.refresh()
    target = tmp_path / "beside.json"
    subprocess.run(
        [sys.executable, "-c", _BESIDE, kafka.brokers, topic.name, jars, str(target)],
        env={**os.environ, "JAVA_HOME": str(find_java().executable.parent.parent)},
        cwd=tmp_path,
        check=True,
        timeout=300,
    )
    beside = [
        (row["partition"], row["offset"], row["at"], row["key"], value["order_id"], value["amount"])
        for row in json.loads(target.read_text())
        for value in [json.loads(row["value"])]
    ]
    ours = [
        (
            row["kafka_partition"],
            row["kafka_offset"],
            round(row["kafka_timestamp"].timestamp() * 1000),
            row["kafka_key"],
            row["order_id"],
            str(row["amount"]),
        )
        for row in world.rows("raw.orders")
    ]
    assert len(ours) == 61
    assert sorted(ours, key=str) == sorted(beside, key=str)
