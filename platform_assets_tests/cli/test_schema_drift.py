"""Columns that come otherwise than declared: what each policy does with them, and who hears of it."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from platform_assets.contracts import Column, Contract, ContractError, Domain, Input, LandingFiles, same_day
from platform_assets.orchestration.automation.incidents import recent_events
from platform_assets.settings import Settings, load_settings
from platform_assets_tests.support import shop as module
from platform_assets_tests.support.cli.commands import Run
from platform_assets_tests.support.kafka import Kafka
from platform_assets_tests.support.postgres import PostgresServer
from platform_assets_tests.support.shop import RAW, SILVER, URL, open_shop
from platform_assets_tests.support.world import World

DAY = "2017-01-02"
AT = f"{DAY}T08:00:00Z"
COLUMNS = (
    Column("id", "int", "Number.", nullable=False),
    Column("at", "timestamp", "When.", nullable=False),
    Column("amount", "decimal(12,2)", "Dollars."),
)
MORE = Column("more", "string", "What the contract does not declare, as JSON.", may_be_absent=True)


def raw(name: str, *more: Column, **options: Any) -> Contract:
    return Contract(
        f"raw.{name}", "As delivered.", "me", (*COLUMNS, *more), ("id",), source=LandingFiles(name, **options),
        event_time="at",
    )  # fmt: skip


RESCUE, IGNORE, FAIL = raw("rescue"), raw("ignore", schema_drift="ignore"), raw("fail", schema_drift="fail")
KEPT = raw("orders", MORE, rescued_in="more")
CLEAN = Contract("silver.orders", "Clean.", "me", KEPT.columns, ("id",), inputs=(Input("raw.orders", same_day()),))


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def declared(*tables: Contract) -> None:
        name = "platform_assets_tests.support.domains.transforms"
        monkeypatch.setattr(module, "DOMAIN", Domain("shop", tables, name))

    return declared


@pytest.fixture
def installed(state: Any, declare: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("PLATFORM_DOMAINS", module.__name__)
    monkeypatch.setenv("PLATFORM_CALENDAR_FIRST", DAY)
    monkeypatch.setenv("PLATFORM_CALENDAR_LAST", DAY)
    declare(RESCUE, IGNORE, FAIL)
    return load_settings()


@pytest.fixture
def world(installed: Settings, spark: SparkSession) -> World:
    return World(installed, spark)


def deliver(world: World, path: str, content: str | bytes | dict[str, pa.Array]) -> None:
    table, name = path.split("/")
    if isinstance(content, dict):
        written = io.BytesIO()
        pq.write_table(pa.table(content), written)
        content = written.getvalue()
    world.deliver(table, DAY, name, content)


def csv(*rows: str, header: str = "id,at,amount,channel") -> str:
    return "".join(f"{row}\n" for row in (header, *rows))


def objects(*rows: dict[str, Any]) -> str:
    return "".join(f"{json.dumps({'at': AT, 'amount': '1.00'} | row)}\n" for row in rows)


def parquet(number: pa.Array) -> dict[str, pa.Array]:
    moment = datetime.fromisoformat(AT).astimezone(UTC)
    return {"id": number, "at": pa.array([moment], pa.timestamp("us", "UTC")), "amount": pa.array(["1.00"])}


def drift(run: Run, *more: str) -> list[tuple[str, str, str, str, int]]:
    found = run("status", "schema", "--json", *more).json["drift"]
    names = ("table", "first", "files")
    return sorted(
        (one["table"], one["drift"]["column"], one["drift"]["what"], *[one[n] for n in names[1:]]) for one in found
    )


@pytest.mark.timeout(900)
def test_each_policy_does_with_new_columns_what_it_says_and_the_first_file_is_known(
    world: World, run: Run, declare: Callable[..., None]
) -> None:
    """Two refreshes and a reload."""
    declare(RESCUE, IGNORE, FAIL, KEPT, CLEAN)
    for table in ("rescue", "ignore", "fail", "orders"):
        deliver(world, f"{table}/a.csv", csv(f"1,{AT},1.00,web"))
        deliver(world, f"{table}/b.jsonl", objects({"id": 2}, {"id": 3, "channel": "web", "shop": {"no": 1.10}}))
        deliver(world, f"{table}/c.parquet", parquet(pa.array([4], pa.int64())))
    deliver(world, "orders/d.csv", csv(f"5,{AT},1.00,x", header="id,at,amount,more"))
    deliver(world, "rescue/e.csv", csv(f"6,{AT},1.00", header="id,at,amounts"))
    world.refresh()
    rescued = {row["id"]: row["_rescued"] for row in world.rows("raw.rescue")}
    assert rescued.keys() == {1, 2, 3, 4}
    assert (rescued[1], rescued[2], json.loads(rescued[3] or "")["shop"]) == ('{"channel":"web"}', None, {"no": 1.1})
    assert {row["id"]: row["_rescued"] for row in world.rows("raw.ignore")} == dict.fromkeys([1, 2, 3, 4])
    assert {row["id"] for row in world.rows("raw.fail")} == {2}
    assert [row["_reason"] for row in world.rows("refused.fail")] == ["extra column: not declared: channel, shop"]
    silver = {row["id"]: row["more"] for row in world.rows("silver.orders")}
    assert (silver[1], silver[2], json.loads(silver[3])["channel"]) == ('{"channel":"web"}', None, "web")
    refused = run("status", "files")
    assert (
        "has the column channel, which the contract does not declare, and its source has schema_drift" in refused.words
    )
    assert "is wider than its contract: column id came as long, wider than int" in refused.words
    assert "has the column more, in which raw.orders keeps those that it does not declare" in refused.words
    wider = "came as long, wider than int: values that do not fit are refused"
    in_each = [
        (f"raw.{table}", name, what, f"{table}/{DAY}/{file}", files)
        for table, kept in (
            ("fail", "refused"),
            ("ignore", "left out"),
            ("orders", "kept in more"),
            ("rescue", "kept in _rescued"),
        )
        for name, what, file, files in (
            ("channel", kept, "a.csv", 2),
            ("id", wider, "c.parquet", 1),
            ("shop", kept, "b.jsonl", 1),
        )
    ]
    others = [
        ("raw.orders", "more", "kept in more", f"orders/{DAY}/d.csv", 1),
        ("raw.rescue", "amount", "is missing, and amounts may be its new name", f"rescue/{DAY}/e.csv", 1),
        ("raw.rescue", "amounts", "kept in _rescued", f"rescue/{DAY}/e.csv", 1),
    ]
    assert drift(run) == sorted([*in_each, *others])
    assert (
        "raw.rescue amount is missing, and amounts may be its new name" in run("status", "schema", "raw.rescue").words
    )

    with world.open() as platform:
        now = datetime.now(UTC)
        events = recent_events(platform, now)
        assert {(event.kind, event.owner) for event in events} == {("schema", "me")}
        told = [event.message.title for event in events if event.message.title.startswith("raw.rescue")]
        assert f"first in rescue/{DAY}/a.csv: channel kept in _rescued" in told[0]
        assert [event.message.key for event in recent_events(platform, now)] == [one.message.key for one in events]
        assert not recent_events(platform, now + timedelta(days=8))

    amount = replace(COLUMNS[2], source_name="amounts")
    channel = Column("channel", "string", "Where.", may_be_absent=True)
    right = replace(RESCUE, columns=(replace(COLUMNS[0], type="long"), COLUMNS[1], amount, channel))
    declare(right, IGNORE, FAIL, KEPT, CLEAN)
    assert {row[1] for row in drift(run, "raw.rescue")} == {"shop"}
    assert "4 others are declared by now: --all" in run("status", "schema", "raw.rescue").words
    assert run("admin", "reload", "raw.rescue", "--reason", "columns were added").code in (0, 1)
    world.refresh()
    assert {row["id"]: row["channel"] for row in world.rows("raw.rescue")} == {
        1: "web",
        2: None,
        3: "web",
        4: None,
        6: None,
    }
    assert {row[1] for row in drift(run, "raw.rescue", "--all")} == {"shop"}


@pytest.mark.timeout(900)
def test_columns_added_in_postgresql_are_recorded(
    postgres_server: PostgresServer,
    world: World,
    run: Run,
    declare: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One refresh, and a comparison of the contract with the table."""
    shop = open_shop(postgres_server)
    monkeypatch.setenv(URL, shop.reader)
    declare(RAW, SILVER)
    shop.order(1, at=AT)
    shop.run('ALTER TABLE orders ADD COLUMN channel text, ADD COLUMN "Shop No" numeric(9,2)')
    shop.run("UPDATE orders SET channel = 'web'")
    world.refresh()
    assert [found[1:3] for found in drift(run)] == [("Shop No", "left out"), ("channel", "left out")]
    checked = run("check", "--sources", "raw.orders")
    assert (checked.code, 'to declare: Column("channel", "string"' in checked.out) == (1, True)


def test_contracts_are_compared_with_the_newest_file_of_a_source(
    installed: Settings, run: Run, declare: Callable[..., None]
) -> None:
    declare(RESCUE, IGNORE, FAIL)
    for table, header in (("rescue", "id,at,amounts,channel,opened"), ("ignore", "id,at,amount")):
        folder = installed.landing_folder / table / DAY
        folder.mkdir(parents=True)
        (folder / "old.csv").write_text("id\n1\n")
        values = f"1,{AT},1.00,web,2017-01-02".split(",")[: header.count(",") + 1]
        (folder / "new.csv").write_text(f"{header}\n{','.join(values)}\n")
        for age, name in enumerate(("new.csv", "old.csv"), 1):
            os.utime(folder / name, (time.time() - 100 * age,) * 2)
    done = run("check", "--sources")
    assert done.code == 1
    for line in (
        f"drift raw.rescue: column amount is missing, and amounts may be its new name, in rescue/{DAY}/new.csv",
        f"drift raw.rescue: extra column channel kept in _rescued, in rescue/{DAY}/new.csv",
        f"wrong raw.rescue: rescue/{DAY}/new.csv lacks the column amount; it has amounts",
        'to declare: Column("opened", "date", "opened in the files.", may_be_absent=True)',
        f"as declared raw.ignore: ignore/{DAY}/new.csv",
        "nothing there to compare raw.fail with",
    ):
        assert line in done.words, done.words
    assert run("check", "--sources", "raw.ignore").code == 0


def test_a_table_and_a_topic_become_a_first_contract(
    postgres_server: PostgresServer,
    kafka: Kafka,
    installed: Settings,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    shop, topic = open_shop(postgres_server), kafka.topic()
    monkeypatch.setenv(URL, shop.reader)
    monkeypatch.setenv("SHOP_KAFKA_URL", kafka.url)
    for number in (1, 2, 3):
        shop.order(number, note=f"{number}", tags=["a"])
        topic.write({"order_id": number, "ordered_at": AT, "total": {"value": 1.5}, "channel": "web"}, key=str(number))
    topic.write("not json", None, key="3")
    table = run("init", "till", "--from", f"{URL}:public.orders", "--dry-run")
    for line in (
        f'source=PostgresTable("till", table="public.orders", url_env="{URL}")',
        'Column("note", "string"',
        'Column("tags", "string"',
        "*READING,",
        'updated_at="read_at"',
        'key=("order_id",)',
    ):
        assert line in table.words
    declared = run("init", "till", "--from", f"SHOP_KAFKA_URL:{topic.name}", "--into", str(tmp_path / "new"))
    assert declared.code == 0, declared.err
    text = (tmp_path / "new" / "till" / "till" / "contracts.py").read_text()
    made: dict[str, Any] = {}
    exec(compile(text, "contracts.py", "exec"), made)
    raw = made["DELIVERED"]
    assert (raw.source.topic, raw.updated_at, raw.voided) == (topic.name, "kafka_offset", "is_tombstone")
    assert (raw.key, raw.column("total_value").path) == (("order_id",), ("total", "value"))
    topic.write({"order_id": 4, "ordered_at": AT, "total": {"value": 1.5, "tax": 1}, "channel": "web"})
    monkeypatch.setattr(module, "DOMAIN", Domain("till", (raw, made["CLEANED"]), "till.transforms"))
    assert "drift raw.till: extra column total.tax kept in _rescued, in till" in run("check", "--sources").words
    assert "has no URL of PostgreSQL or Kafka" in run("init", "x", "--from", "NO_URL:public.orders").error
    for option in ("colour", "format"):
        refused = run("init", "x", "--from", f"{URL}:public.orders?{option}=avro").error
        assert f"A PostgresTable has no {option} here" in refused


@pytest.mark.parametrize(
    ("options", "what", "todo"),
    [
        ({"schema_drift": "add"}, "a table has the columns of its contract", 'Give "rescue"'),
        ({"schema_drift": "widen"}, "a table has the columns of its contract", "declare the wider type"),
        ({"schema_drift": "guess"}, "the unknown schema_drift='guess'", "rescue, ignore, fail"),
        ({"schema_drift": "fail", "rescued_in": "more"}, "does not keep", "Leave out"),
        ({"rescued_in": "others"}, "which is no column for them", "may_be_absent=True"),
        ({"rescued_in": "amount"}, "which is no column for them", "may_be_absent=True"),
        ({"ask_again": ("fetch", "{first}")}, "cannot be asked again by the command 'fetch {first}'", "{folder}"),
    ],
)
def test_a_policy_that_cannot_be_kept_is_refused_by_name(options: dict[str, Any], what: str, todo: str) -> None:
    with pytest.raises(ContractError) as refused:
        raw("sales", MORE, **options)
    assert what in refused.value.what
    assert todo in refused.value.todo
