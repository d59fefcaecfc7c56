"""Sources that are read, from the source to silver: each change once, whatever is lost or comes in between."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from platform_assets import contracts
from platform_assets.engine.pending import waiting
from platform_assets.engine.readings import verify_source
from platform_assets.orchestration.build import build_definitions
from platform_assets.settings import Settings, load_settings, project_root
from platform_assets.sources.source import SoFar, SourceError
from platform_assets_tests.support import shop as domain
from platform_assets_tests.support.cli.commands import Run
from platform_assets_tests.support.postgres import PostgresServer
from platform_assets_tests.support.shop import RAW, SILVER, URL, Shop, open_shop
from platform_assets_tests.support.world import World

TODAY = datetime.now(UTC).date()
YESTERDAY = TODAY - timedelta(days=1)
FIRST = TODAY - timedelta(days=5)


@pytest.fixture
def shop(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Shop:
    made = open_shop(postgres_server)
    monkeypatch.setenv(URL, made.reader)
    return made


@pytest.fixture
def installed(state: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The installation that commands see, by the clock."""
    monkeypatch.setenv("PLATFORM_DOMAINS", domain.__name__)
    monkeypatch.setenv("PLATFORM_CALENDAR_FIRST", str(FIRST))
    monkeypatch.setenv("PLATFORM_CALENDAR_LAST", str(TODAY))
    monkeypatch.delenv("PLATFORM_TODAY")
    assert load_settings().state == state
    return load_settings()


@pytest.fixture
def world(installed: Settings, spark: SparkSession) -> World:
    return World(installed, spark)


def at(day: date) -> str:
    return f"{day} 00:00Z"


def silver(world: World) -> dict[tuple[date, int], str]:
    return {(row["event_date"], row["order_id"]): str(row["amount"]) for row in world.rows("silver.orders")}


def test_a_table_of_postgresql_becomes_silver_and_drift_is_mended(
    shop: Shop, world: World, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five refreshes: a refused row, a move, the ledger lost, deletes, a database that is away."""
    for number in (1, 2, 3):
        shop.order(number, f"{number}.00", at=at(YESTERDAY))
    shop.order(4, "4.00", at="infinity")
    assert run("status", "sources", "--json").json["sources"][0]["rows"] == 4
    with world.open() as platform:
        assert waiting(platform, 100).unread == {"raw.orders": ""}
    [taken] = world.refresh().ingests
    assert sum(one.refused for one in taken.arrivals) == 1
    assert set(taken.published) == {FIRST + timedelta(days=n) for n in range(6)}  # quiet ones are empty
    assert silver(world) == {(YESTERDAY, number): f"{number}.00" for number in (1, 2, 3)}
    assert world.rows("refused.orders")[0]["_reason"].startswith("ordered_at: not timestamp: infinity")
    assert run("admin", "pull", "raw.orders").words == "nothing new for raw.orders."  # though within the overlap

    shop.run("UPDATE orders SET amount = 9 WHERE order_id = 1")  # and not its updated_at: the overlap finds it
    shop.order(2, "2.50", at=at(TODAY))  # which moves it to another day
    shop.run("DELETE FROM orders WHERE order_id = 3")
    for file in world.settings.state.glob("ledger*"):
        file.unlink()
    [taken] = world.refresh().ingests
    assert sum(one.taken for one in taken.arrivals) == 2
    assert silver(world) == {(YESTERDAY, 1): "9.00", (YESTERDAY, 3): "3.00", (TODAY, 2): "2.50"}
    looked = run("admin", "pull", "--verify", "raw.orders", "--dry-run")
    assert (looked.code, f"{YESTERDAY} order_id=3: deleted" in looked.out) == (1, True)
    assert "1 row of the source have no day" in looked.words
    done = build_definitions(world.settings).resolve_job_def("compare").execute_in_process()
    [check] = done.get_asset_check_evaluations()
    assert (check.check_name, check.passed, check.description) == (
        "drift",
        False,
        "1 deleted; read again, for the next refresh.",
    )
    assert "wait, so raw is behind" in run("admin", "pull", "--verify", "raw.orders").error
    world.refresh()
    assert run("admin", "pull", "--verify", "raw.orders", "--json").json["drifted"] == {}
    assert silver(world) == {(YESTERDAY, 1): "9.00", (TODAY, 2): "2.50"}

    monkeypatch.setenv(URL, "postgresql://me:secret@127.0.0.1:1/shop")
    with world.open() as platform:
        assert "was not read" in waiting(platform, 100).problems[0].message
    listed = run("status", "sources")
    assert (listed.code, "was not read" in listed.out, "secret" in listed.out) == (1, True, False)
    refreshed = run("refresh")
    assert (refreshed.code, "was not read" in refreshed.out, "secret" in refreshed.out) == (1, True, False)


def test_a_reading_removes_what_a_killed_process_left(shop: Shop, installed: Settings, run: Run) -> None:
    shop.order(1, at=at(TODAY))
    folder = installed.landing_folder / "orders" / str(YESTERDAY)
    folder.mkdir(parents=True)
    left, other = folder / ".00000001.19970101T0-19970101T0.1of2.parquet", folder / ".note"
    for file in (left, other):
        file.touch()
    assert run("admin", "pull", "raw.orders").words.endswith("of raw.orders wait for `platform-assets refresh`.")
    assert (left.exists(), other.exists()) == (False, True)


def blocks(page: str, language: str) -> str:
    text = (project_root() / "docs" / page).read_text(encoding="utf-8")
    return "\n".join(re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))


def test_a_source_of_ones_own_as_its_page_shows_it(
    world: World, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five refreshes: one reading is refused whole, and one for each of its rows."""
    own: dict[str, Any] = {"__name__": __name__}
    exec(compile(blocks("own-source.md", "python"), "docs/own-source.md", "exec"), own)
    source = own["SqliteTable"]("till", file=str(tmp_path / "till.db"), table="lines")
    columns = tuple(column for column in RAW.columns if column.name in ("order_id", "amount", "ordered_at"))
    changes: dict[str, Any] = {"columns": columns, "updated_at": None, "voided": None}
    raw = replace(RAW, source=source, **changes)
    tables = (raw, replace(SILVER, columns=columns))
    monkeypatch.setattr(domain, "DOMAIN", replace(domain.DOMAIN, tables=tables))

    def sell(number: int, amount: str) -> None:
        with sqlite3.connect(tmp_path / "till.db") as till:
            till.execute("CREATE TABLE IF NOT EXISTS lines (order_id, amount, ordered_at)")
            till.execute("INSERT INTO lines VALUES (?, ?, ?)", [number, amount, f"{TODAY}T00:00:00Z"])

    sell(1, "1.00")
    sell(2, "2.00")
    assert run("status", "sources", "--json").json["sources"] == [
        {"table": "raw.orders", "rows": 2, "what": "read up to row 0", "problem": ""}
    ]
    world.refresh()
    sell(3, "3.00")
    sell(4, "much")
    replace(world, settings=world.settings.model_copy(update={"file_rows": 1})).refresh()  # too many for it
    assert "was refused, and what comes after it would be taken without it" in run("admin", "pull", "raw.orders").error
    [refused] = (world.settings.landing_folder / "till").glob("*/00000002.4.1of1.jsonl")
    refused.unlink()
    world.refresh()
    sell(5, "more")  # every row of a file being refused keeps no later one from being read
    world.refresh()
    sell(6, "6.00")
    world.refresh()
    assert silver(world) == {(TODAY, number): f"{number}.00" for number in (1, 2, 3, 6)}
    with world.open() as platform, pytest.raises(SourceError, match="cannot be compared with it"):
        verify_source(platform, platform.catalogue["raw.orders"], None, 1)


def test_the_examples_of_the_page_about_postgresql_read_a_table(
    postgres_server: PostgresServer, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres_server.new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE SCHEMA shop; CREATE TABLE shop.orders (order_id bigint PRIMARY KEY, amount numeric, "
            "ordered_at timestamptz, updated_at timestamptz); INSERT INTO shop.orders VALUES (1, 2, now(), now())"
        )
        connection.execute(blocks("read-postgresql.md", "sql").encode())
        try:
            own: dict[str, Any] = {**vars(contracts)}
            exec(compile(blocks("read-postgresql.md", "python"), "docs/read-postgresql.md", "exec"), own)
            head, _, rest = url.partition("://")
            monkeypatch.setenv(URL, f"{head}://platform_reader:change-me@{rest.partition('@')[2]}")
            with world.open() as platform:
                so_far = SoFar("", frozenset(), TODAY, platform.lake, platform.current_release())
                found = own["ORDERS"].source.read(own["ORDERS"], so_far, tmp_path)
            assert list(found.files) == [TODAY]
        finally:
            connection.execute("DROP OWNED BY platform_reader; DROP ROLE platform_reader")
