"""What every test can have: settings that touch nothing of the developer's, and one Spark session for the whole run."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Hashable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from pyspark.sql import SparkSession

from platform_assets.compute.session import TUNING, create_session, stop_session
from platform_assets.settings import Settings, load_settings
from platform_assets_tests.support.installation import JARS, SMALL_DATA
from platform_assets_tests.support.prepared import Lakes, Made, Prepared
from platform_assets_tests.support.world import MakeWorld, World, empty_world

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("platform", deadline=None)
hypothesis.settings.load_profile("platform")


LOGS = "spark.databricks.delta.delta.log.cacheSize"


@pytest.fixture(scope="session", autouse=True)
def _no_settings_of_the_developer() -> Iterator[None]:
    """Variables of the shell the tests are started from do not reach them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("PLATFORM_")]:
            patch.delenv(name)
        yield


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of an installation of its own, empty but for the jars."""
    return load_settings(state=tmp_path / "state", jars=JARS)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one session of the run; tests keep their tables apart by folder."""
    state = tmp_path_factory.mktemp("spark")
    settings = load_settings(state=state, jars=JARS, spark_driver_memory="2g", spark_conf=SMALL_DATA)
    session = create_session(settings, app_name="platform-assets-tests", record_classes=False)
    yield session
    cached = _cached_logs(session)
    stop_session(session)
    assert cached <= int(TUNING[LOGS]), (
        f"Delta keeps {cached} logs: with their plans they fill the heap, and everything gets slow"
    )


def _cached_logs(session: SparkSession) -> int:
    deltas = getattr(session._jvm, "org.apache.spark.sql.delta.DeltaLog$")
    return int(getattr(deltas, "MODULE$").cacheSize())


def pytest_configure(config: pytest.Config) -> None:
    """Where everything is there by agreement, a skipped test is a broken one."""
    if os.environ.get("CI") == "true":
        config.pluginmanager.register(NoSkips(), "no-skips")


class NoSkips:
    """Turns skips into failures; tests left out by their marker are not collected at all and stay out."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """A skipped test."""
        report = yield
        if report.skipped and not hasattr(report, "wasxfail"):
            report.outcome = "failed"
            report.longrepr = f"skipped although CI=true: {_reason(report.longrepr)}"
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """A module that skips itself."""
        report = yield
        if report.skipped:
            report.outcome = "failed"
            report.longrepr = f"skipped although CI=true: {_reason(report.longrepr)}"
        return report


def _reason(skip: object) -> object:
    """A skip is reported as (file, line, reason)."""
    return skip[2] if isinstance(skip, tuple) else skip


@pytest.fixture
def make_world(tmp_path: Path, spark: SparkSession) -> MakeWorld:
    """Makes installations of their own; the first `days` of 2017 are their calendar, and today is its last day."""
    made: list[World] = []

    def make(days: int = 31, **settings: Any) -> World:
        made.append(empty_world(tmp_path / f"world{len(made)}", spark, days, **settings))
        return made[-1]

    return make


@pytest.fixture(scope="session")
def lakes(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Lakes:
    """What was prepared in this run."""
    return Lakes(tmp_path_factory.mktemp("lakes"), spark)


@pytest.fixture
def prepared(lakes: Lakes, tmp_path: Path) -> Prepared:
    """Gives copies of what recipes make."""
    states = (tmp_path / f"copy{number}" for number in count())

    def copy(recipe: Callable[..., Made], *args: Hashable) -> Made:
        return lakes.copy(next(states), recipe, *args)

    return copy
