"""A folder that others filled to do harm: the sensor's run takes what is good in it, and `status` names the rest."""

from __future__ import annotations

import time

import pytest

from platform_assets_tests.support.cli.commands import run
from platform_assets_tests.support.hostile import BOUNDS, REFUSED, SPARKS, good
from platform_assets_tests.support.orchestration.daemon import Daemon, idle, run_one
from platform_assets_tests.support.orchestration.readings import DAYS
from platform_assets_tests.support.world import World

BAD = dict(list((SPARKS | REFUSED).items())[:60])
GOOD = dict(map(good, range(60)))
MOST_SECONDS = 240.0


@pytest.mark.proof
def test_sixty_good_files_among_sixty_bad_ones_arrive_at_once(
    readings: World, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run, started by the sensor."""
    for name in type(BOUNDS).__dataclass_fields__:
        monkeypatch.setenv(f"PLATFORM_{name.upper()}", str(getattr(BOUNDS, name)))
    daemon.reload()
    for name, (make, _) in BAD.items():
        readings.deliver("readings", DAYS[0], f"bad_{name}", make())
    for name, content in GOOD.items():
        readings.deliver("readings", DAYS[0], name, content)
    started = time.monotonic()
    run_one(daemon)
    assert time.monotonic() - started < MOST_SECONDS
    assert idle(daemon), "a refused file is not tried again"
    arrived = {row["sensor"] for row in readings.rows("silver.readings")}
    assert arrived == {f"good{number}" for number in range(60)}
    told = run("status")
    assert told.code == 1
    refused = [line for line in told.out.splitlines() if line.startswith("refused")]
    named = {path.rpartition("/")[2] for path in (found["path"] for found in run("status", "--json").json["refused_files"])}
    assert named == {f"bad_{name}" for name in BAD}
    assert len(refused) <= 60
    assert max(map(len, refused)) < 500
    for line in refused:
        assert line.split()[1].startswith(f"readings/{DAYS[0]}/bad_")
