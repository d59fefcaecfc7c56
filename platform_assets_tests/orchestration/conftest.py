"""A small installation with Dagster's daemon beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from platform_assets.settings import load_settings
from platform_assets_tests.support.installation import JARS
from platform_assets_tests.support.orchestration.daemon import Daemon, enter_world, running_daemon
from platform_assets_tests.support.orchestration.readings import SENSORS, refresh_on_paper
from platform_assets_tests.support.world import World


@pytest.fixture
def readings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Ten days of sensor readings, computed on paper: three tables, of which the last looks a week back."""
    settings = load_settings(
        state=tmp_path / "state",
        jars=JARS,
        domains=SENSORS,
        calendar_first="2017-01-01",
        calendar_last="2017-01-10",
        today="2017-01-10",
    )
    world = World(settings, cast("SparkSession", None))
    enter_world(world, monkeypatch)
    monkeypatch.setattr("platform_assets.orchestration.jobs.refresh", refresh_on_paper)
    return world


@pytest.fixture
def daemon(readings: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    """Looks after the readings."""
    with running_daemon(tmp_path / "dagster", monkeypatch) as daemon:
        yield daemon
