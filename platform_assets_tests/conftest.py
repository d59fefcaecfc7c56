"""What every test can have: settings that touch nothing of the developer's, and one JVM with Spark for the whole run.

A run of everything takes two processes; the one that hands out the tests starts the JVM, the others work with it.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterator
from contextlib import ExitStack
from decimal import localcontext
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
import pytest
from pyspark.sql import SparkSession

from platform_assets.errors import PlatformError
from platform_assets.settings import Settings, load_settings
from platform_assets_tests.support.installation import JARS, Jvm, small_spark
from platform_assets_tests.support.kafka import kafka
from platform_assets_tests.support.object_store import azurite, azurite_server, object_store, store_server
from platform_assets_tests.support.other_user import NEEDS_ROOT
from platform_assets_tests.support.postgres import postgres_server
from platform_assets_tests.support.prepared import Lakes, Made, Prepared
from platform_assets_tests.support.world import MakeWorld, World, empty_world

# Servers are here, and nowhere else: each module that imports such a fixture would have one of its own.
__all__ = ["azurite", "azurite_server", "kafka", "object_store", "postgres_server", "store_server"]

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("platform", deadline=None)
hypothesis.settings.load_profile("platform")

# What the shell says of whoever runs the tests does not reach them: settings, and a screen, which readline tells the
# processes that are started. Before a module looks at it, and in every process.
_OF_THE_SHELL = ("COLUMNS", "LINES", "PYTHONDONTWRITEBYTECODE")
for _name in [name for name in os.environ if name.startswith("PLATFORM_") or name in _OF_THE_SHELL]:
    del os.environ[_name]
# Or each of the processes that tests start would compile Dagster and Spark anew, for several seconds.
sys.dont_write_bytecode = False

PROCESSES = 2
"""As many as a small machine has cores; one more where no test is long, since each waits now and then."""


@pytest.fixture(autouse=True)
def _as_begun() -> Iterator[None]:
    """Who may look into what a test writes, and with how many digits it computes, is not left to a test before it."""
    before = os.umask(0o022)
    with localcontext():
        yield
    os.umask(before)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of an installation of its own, empty but for the jars."""
    return load_settings(state=tmp_path / "state", jars=JARS)


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one session of this process; tests keep their tables apart by folder."""
    if jvm := getattr(request.config, "workerinput", {}).get("jvm"):
        yield Jvm(*jvm).session()
        return
    with small_spark(tmp_path_factory.mktemp("spark"), brief=_is_brief(request.config)) as session:
        yield session


def _is_brief(config: pytest.Config) -> bool:
    """Whether the proofs are left out."""
    return bool(config.getoption("markexpr") == "not proof")


def pytest_configure(config: pytest.Config) -> None:
    """Where everything is there by agreement, a skipped test is a broken one; who runs it is no part of that."""
    if os.environ.get("CI") == "true":
        config.pluginmanager.register(NoSkips(), "no-skips")
    if config.getoption("numprocesses"):
        config.pluginmanager.register(OneJvm(brief=_is_brief(config)), "one-jvm")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest modules first, as far as it is known how long they take, so that several processes end together.

    Of proofs each is known by itself, of a module without any how long its tests take together.
    """
    known = json.loads((config.rootpath / "platform_assets_tests" / "durations.json").read_text(encoding="utf-8"))
    takes: Counter[str] = Counter()
    for item in items:
        takes[_module(item)] += known.get(item.nodeid, 0.0)
    items.sort(key=lambda item: -max(takes[_module(item)], known.get(_module(item), 0.0)))


def _module(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Several processes for everything; tests that are named run in this one, where a debugger reaches them."""
    everything = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    return min(PROCESSES, os.cpu_count() or 1) + _is_brief(config) if everything else 0


class OneJvm:
    """Starts the JVM of a run in several processes, and tells them where it is."""

    def __init__(self, *, brief: bool) -> None:
        self._brief = brief
        self._open = ExitStack()
        self._jvm: tuple[int, str] | None = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Before a process starts."""
        if self._jvm is None:
            state = Path(self._open.enter_context(TemporaryDirectory(ignore_cleanup_errors=True)))
            try:
                found = Jvm.of(self._open.enter_context(small_spark(state, brief=self._brief)))
            except PlatformError as error:
                pytest.exit(f"There are no tests without Spark. {error}", returncode=pytest.ExitCode.USAGE_ERROR)
            self._jvm = found.port, found.secret
        node.workerinput["jvm"] = self._jvm

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """After the last process ended."""
        self._open.close()


class NoSkips:
    """Turns skips into failures; tests left out by their marker are not collected at all and stay out."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """A skipped test."""
        report = yield
        if report.skipped and not hasattr(report, "wasxfail") and NEEDS_ROOT not in f"{_reason(report.longrepr)}":
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
