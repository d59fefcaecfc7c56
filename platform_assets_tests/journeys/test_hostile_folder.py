"""A folder that others filled to do harm: the sensor's run takes what is good in it, and `status` names the rest."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from platform_assets_tests.support.cli.commands import Run, run, state
from platform_assets_tests.support.hostile import BOUNDS, REFUSED, SPARKS, good
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
