"""A folder that others filled to do harm: the sensor's run takes what is good in it, and `status` names the rest."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest

from platform_assets_tests.support.cli.commands import Run, run, run_apart, state
from platform_assets_tests.support.hostile import BOUNDS, REFUSED, SPARKS, good, parquet
from platform_assets_tests.support.orchestration.daemon import enter_world, idle, run_one, running_daemon
from platform_assets_tests.support.orchestration.readings import DAYS, SENSORS
from platform_assets_tests.support.world import MakeWorld

__all__ = ["run", "state"]
"""Fixtures of the command line."""

BAD = dict(list((SPARKS | REFUSED).items())[:60])
GOOD = dict(map(good, range(60)))
MOST_SECONDS = 240.0


@pytest.mark.proof
def test_sixty_good_files_among_sixty_bad_ones_arrive_at_once(
    make_world: MakeWorld, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run, started by the sensor, on Spark."""
    bounds = {name: getattr(BOUNDS, name) for name in type(BOUNDS).__dataclass_fields__}
    world = make_world(days=1, domains=SENSORS, **bounds)
    enter_world(world, monkeypatch, **bounds)
    for name, (make, _) in BAD.items():
        world.deliver("readings", DAYS[0], f"bad_{name}", make())
    for name, content in GOOD.items():
        world.deliver("readings", DAYS[0], name, content)
    started = time.monotonic()
    with running_daemon(tmp_path / "dagster", monkeypatch) as daemon:
        run_one(daemon)
        assert time.monotonic() - started < MOST_SECONDS
        assert idle(daemon), "a refused file is not tried again"
    arrived = {row["sensor"] for row in world.rows("silver.readings")}
    assert arrived == {f"good{number}" for number in range(60)}
    told = run("status")
    assert told.code == 1
    lines = [line for line in told.out.splitlines() if line.startswith("refused")]
    assert max(map(len, lines)) < 500
    files = run("status", "--json").json["refused_files"]
    assert {found["path"].rpartition("/")[2] for found in files} == {f"bad_{name}" for name in BAD}
    assert "`platform-assets status --files` lists" in " ".join(told.out.split()), "where there are too many to name"
    listed = run("status", "--files").out
    for found in files:
        assert found["path"] in listed, "each is named there"


@pytest.mark.proof
@pytest.mark.timeout(300)
def test_many_rows_as_long_as_a_line_may_be_end_no_jvm(state: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty of 15 MB, meant by 4 KB, on a heap of 2 GiB: taken, read again, compared and added up by one command."""
    monkeypatch.setenv("PLATFORM_DOMAINS", SENSORS)
    folder = state / "landing" / "readings" / DAYS[0]
    folder.mkdir(parents=True)
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 60, pa.int32()), pa.array(["x" * (15 << 20)]))
    (folder / "long.parquet").write_bytes(parquet({"compression": "zstd"}, 60, sensor=long))
    name, content = good(0)
    (folder / name).write_bytes(content)
    done = run_apart("refresh", PLATFORM_SPARK_DRIVER_MEMORY="2g", PLATFORM_SPARK_CONF="{}", PLATFORM_SETTLE_S="0")
    assert done.code == 0, done.err
    [raw] = [table for table in run("status", "--json").json["tables"] if table["table"] == "raw.readings"]
    assert raw["rows"] == 61
