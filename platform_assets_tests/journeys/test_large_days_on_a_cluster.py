"""A large day on a cluster: several tasks and files, though a key is heavy and executors are killed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from platform_assets_tests.support.cli.commands import run_apart, state
from platform_assets_tests.support.cluster import (
    Cluster,
    Start,
    behind_connect,
    cluster,
    elsewhere,
    folder_of,
    start,
    wait_for,
)
from platform_assets_tests.support.object_store import ObjectStore
from platform_assets_tests.support.places import Digests, digests_of

__all__ = ["behind_connect", "cluster", "elsewhere", "start", "state"]
pytestmark = [pytest.mark.proof, pytest.mark.timeout(900)]

LARGE, SMALL = "2017-01-01", "2017-01-02"
MANY, FEW = 12_000, 3
PARTS = {"PLATFORM_DOMAINS": "platform_assets_tests.support.domains.sensors", "PLATFORM_PART_MIB": "0.01"}
_TASK = re.compile(r"part-(\d+)-")


@pytest.fixture
def heavy() -> bool:
    """Whether every second row of the large day is a version of one reading."""
    return False


@pytest.fixture
def landing(tmp_path: Path, heavy: bool, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a large day in four files, and a small one."""
    landing = tmp_path / "landing"
    monkeypatch.setenv("PLATFORM_LANDING", str(landing))
    monkeypatch.setenv("PLATFORM_SETTLE_S", "0")
    for part in range(4):
        numbers = range(part * MANY // 4, (part + 1) * MANY // 4)
        deliver(landing, LARGE, f"part{part}", (("heavy" if heavy and n % 2 else f"s{n:05}", n / 100) for n in numbers))
    deliver(landing, SMALL, "few", ((f"s{n:05}", 9.0) for n in range(FEW)))
    return landing


def deliver(landing: Path, day: str, name: str, rows: Iterable[tuple[str, float]]) -> None:
    file = landing / "readings" / day / f"{name}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = ({"sensor": sensor, "measured_at": f"{day}T06:00:00Z", "celsius": f"{c:.2f}"} for sensor, c in rows)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def alone(tmp_path: Path, landing: Path, state: Path) -> Digests:
    """What one machine makes of the same deliveries, a day in one piece."""
    place = tmp_path / "alone"
    whole = PARTS | {"PLATFORM_PART_MIB": "16"}
    ended = run_apart("refresh", PLATFORM_STATE=str(place), PLATFORM_LAKE=str(place / "lake"), **whole)
    assert ended.code == 0, ended.err
    return digests_of(str(place / "lake"))


def files_of(lake: Path, table: str, day: str) -> list[Path]:
    return [*(lake / table).glob(f"**/event_date={day}/*.parquet")]


def tasks_of(files: Iterable[Path]) -> set[str]:
    """Tasks that wrote files, by their numbers."""
    return {found[1] for file in files if (found := _TASK.match(file.name))}


@pytest.mark.parametrize("heavy", [False, True])
def test_a_large_day_has_several_tasks_and_files_and_the_content_that_it_has_in_one(
    elsewhere: Mapping[str, str], alone: Digests, object_store: ObjectStore
) -> None:
    said = run_apart("refresh", **elsewhere, **PARTS)
    assert said.code == 0, said.err
    assert digests_of(elsewhere["PLATFORM_LAKE"]) == alone
    lake = folder_of(object_store, elsewhere)
    found = {table: files_of(lake, table, LARGE) for table in ("raw/readings", "silver/readings", "gold/sensor_week")}
    assert all(len(tasks_of(files)) > 1 for files in found.values()), found


@pytest.mark.parametrize("heavy", [True])
def test_executors_killed_in_the_middle_of_a_large_day_change_nothing(
    start: Start, cluster: Cluster, elsewhere: Mapping[str, str], alone: Digests, object_store: ObjectStore
) -> None:
    lake = folder_of(object_store, elsewhere)
    process = start("refresh", environment={**elsewhere, **PARTS})
    for pattern in ("raw/readings/_delta_log/*.json", "silver/readings/**/*.parquet"):
        wait_for(lake, pattern, process)
        assert cluster.kill_executors(), "there was none to end"
    said, _ = process.communicate(timeout=400)
    assert process.returncode == 0, said
    assert digests_of(elsewhere["PLATFORM_LAKE"]) == alone
    assert len(tasks_of(files_of(lake, "silver/readings", LARGE))) > 1


def test_a_spark_connect_server_makes_parts_of_a_large_day_too(
    behind_connect: Mapping[str, str], alone: Digests, object_store: ObjectStore
) -> None:
    said = run_apart("refresh", **behind_connect, **PARTS)
    assert said.code == 0, said.err
    assert digests_of(behind_connect["PLATFORM_LAKE"]) == alone
    assert len(tasks_of(files_of(folder_of(object_store, behind_connect), "silver/readings", LARGE))) > 1
