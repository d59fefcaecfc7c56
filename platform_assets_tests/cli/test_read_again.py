"""Asking a source for days once more: a command, PostgreSQL; what comes is an arrival, and what differs is counted."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from platform_assets.contracts import Column, Contract, Domain, Input, LandingFiles, same_day
from platform_assets.operations import read_again
from platform_assets.settings import Settings, load_settings
from platform_assets_tests.support import shop as module
from platform_assets_tests.support.cli.commands import Run
from platform_assets_tests.support.postgres import PostgresServer
from platform_assets_tests.support.shop import URL, open_shop
from platform_assets_tests.support.world import World

TODAY = datetime.now(UTC).date()
DAY, OTHER = TODAY - timedelta(days=3), TODAY - timedelta(days=2)
COLUMNS = (
    Column("order_id", "long", "Number.", nullable=False),
    Column("ordered_at", "timestamp", "When.", nullable=False),
    Column("amount", "decimal(12,2)", "Dollars."),
)
AGAIN = ("admin", "pull", "raw.orders", "--days", f"{DAY}..{OTHER}", "--reason", "the till's clock/was wrong")
SCRIPT = """
import pathlib, shutil, sys, time
first, last, folder, answer = sys.argv[1:]
source = pathlib.Path(answer)
(source.parent / "asked").write_text(f"{first} {last}")
if source.name == "fails":
    sys.exit("the till does not answer")
if source.name == "sleeps":
    time.sleep(600)
for file in sorted(source.iterdir()):
    shutil.copyfile(file, pathlib.Path(folder) / file.name)
"""

Answer = Callable[..., None]


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """What the command answers: files by name, or a folder of a name that the command knows."""
    (tmp_path / "ask.py").write_text(SCRIPT)

    def answers(name: str = "answer", **options: Any) -> None:
        folder, files = tmp_path / name, options.pop("files", {})
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for file, text in files.items():
            (folder / file).write_text(text)
        command = (sys.executable, str(tmp_path / "ask.py"), "{first}", "{last}", "{folder}", str(folder))
        source = LandingFiles("orders", **{"ask_again": command, **options})
        raw = Contract(
            "raw.orders", "As delivered.", "me", COLUMNS, ("order_id",), source=source, event_time="ordered_at"
        )
        silver = Contract(
            "silver.orders", "Clean.", "me", COLUMNS, ("order_id",), inputs=(Input("raw.orders", same_day()),)
        )
        transforms = "platform_assets_tests.support.domains.transforms"
        monkeypatch.setattr(module, "DOMAIN", Domain("shop", (raw, silver), transforms))

    return answers


@pytest.fixture
def installed(state: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("PLATFORM_DOMAINS", module.__name__)
    monkeypatch.setenv("PLATFORM_CALENDAR_FIRST", str(DAY))
    monkeypatch.setenv("PLATFORM_CALENDAR_LAST", str(TODAY))
    monkeypatch.delenv("PLATFORM_TODAY")
    return load_settings()


@pytest.fixture
def world(installed: Settings, spark: SparkSession) -> World:
    return World(installed, spark)


def rows(*rows: tuple[int, date, str]) -> str:
    objects = ({"order_id": number, "ordered_at": f"{day}T08:00:00Z", "amount": amount} for number, day, amount in rows)
    return "".join(f"{json.dumps(each)}\n" for each in objects)


def silver(world: World) -> dict[int, str]:
    return {row["order_id"]: str(row["amount"]) for row in world.rows("silver.orders")}


def landed(world: World) -> set[str]:
    return {file.name for file in world.settings.landing_folder.glob("orders/*/*")}


@pytest.mark.parametrize("replaces", [None, "days"])
def test_a_command_answers_for_days_and_what_differs_is_counted_by_day(
    world: World, run: Run, answer: Answer, tmp_path: Path, replaces: str | None
) -> None:
    """Two refreshes and a reading: without `replaces` an order that is gone stays."""
    answer(replaces=replaces)
    world.deliver("orders", str(DAY), "a.jsonl", rows((1, DAY, "1.00"), (2, DAY, "2.00"), (3, DAY, "3.00")))
    world.deliver("orders", str(OTHER), "a.jsonl", rows((4, OTHER, "4.00")))
    world.refresh()
    again = rows((1, DAY, "1.00"), (2, DAY, "2.50"), (5, DAY, "5.00"), (4, OTHER, "4.00"), (9, DAY, "much"))
    answer(replaces=replaces, files={"till.jsonl": again})
    done = run(*AGAIN, "--json")
    assert (done.code, (tmp_path / "asked").read_text()) == (1, f"{DAY} {OTHER}")
    gone = {"gone": 1, "same": 1} if replaces else {"same": 2}
    assert done.json["days"] == {str(DAY): {"changed": 1, "new": 1} | gone, str(OTHER): {"same": 1}}
    assert (done.json["files"], done.json["refused_rows"], done.json["refused_files"]) == (1, 1, [])
    [name] = [name for name in landed(world) if name.startswith("again-")]
    assert name.startswith(f"again-{DAY}-{OTHER}-the-till-s-clock-was-wrong-")
    assert "the till's clock/was wrong" in run("status", "releases").words
    world.refresh()
    assert silver(world) == {1: "1.00", 2: "2.50", 4: "4.00", 5: "5.00"} | ({} if replaces else {3: "3.00"})


def test_a_command_that_fails_leaves_nothing(
    world: World, run: Run, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_again, "_MINUTE_S", 0.02)
    two = {"a.jsonl": rows((1, DAY, "1.00")), "b.jsonl": rows((2, DAY, "1.00"))}
    cases: dict[str, dict[str, Any]] = {
        "ended with 1: the till does not answer": {"name": "fails"},
        "took more than 60 minutes": {"name": "sleeps"},
        "wrote no file": {},
        "wrote a.pdf, which is no file of a landing format": {"files": {"a.pdf": "x"}},
        "wrote 2 files, and a source that replaces whole days has them in one": {"files": two, "replaces": "days"},
        "cannot be run: No such file or directory": {"ask_again": ("/no/such", "{folder}")},
        "raw.orders has no source that can be asked again": {"ask_again": ()},
    }
    for what, how in cases.items():
        answer(**how)
        done = run(*AGAIN)
        assert (done.code, what in done.error) == (3, True), done.error
        assert landed(world) == set()
    world.deliver("orders", str(DAY), "a.jsonl", rows((1, DAY, "1.00")))
    answer(files=two)
    assert "1 files of raw.orders wait" in run(*AGAIN).error
    assert run("admin", "pull", "raw.orders", "--days", str(DAY)).code == 2  # without a reason


def test_days_of_postgresql_are_read_again(
    postgres_server: PostgresServer, world: World, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One refresh, and two readings of days of which only the first finds something."""
    shop = open_shop(postgres_server)
    monkeypatch.setenv(URL, shop.reader)
    for number in (1, 2, 3):
        shop.order(number, f"{number}.00", at=f"{DAY} 08:00Z")
    world.refresh()
    shop.run("UPDATE orders SET amount = 9, updated_at = updated_at - interval '3 hours' WHERE order_id = 1")
    shop.run("DELETE FROM orders WHERE order_id = 2")
    assert run(*AGAIN, "--json").json["days"] == {str(DAY): {"changed": 1, "gone": 1, "same": 1}}
    assert [name for name in landed(world) if "-the-till-s-clock-was." in name]
    assert run(*AGAIN).words == "nothing different raw.orders has what its source has on these days."
    assert run("admin", "pull", "raw.orders").words == "nothing new for raw.orders."
    world.refresh()
    assert silver(world) == {1: "9.00", 3: "3.00"}
    assert "read again by days" in run("admin", "pull", "raw.orders", "--from", "2017-01-01", "--reason", "x").error
