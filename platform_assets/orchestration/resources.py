"""Resources of a Dagster run: Spark for the run's duration, the opened platform, and marks on the run's page.

A refresh is one step for all tables, so its bar on the page alone would say nothing. Each mark is the work on one
table, from when to when; its name shows under the mouse. The run's log has matching lines.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Any

import dagster as dg
from dagster_pyspark import PySparkResource
from pydantic import PrivateAttr
from pyspark import SparkContext
from pyspark.sql import SparkSession

from platform_assets.engine.platform import Platform
from platform_assets.engine.results import IngestResult
from platform_assets.operations.opening import open_platform
from platform_assets.orchestration.instance.events import StepContext, errors_without_trace, mark_step
from platform_assets.orchestration.instance.launcher import lock_folder, take
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets.settings import Settings
from platform_assets.spark.sail.session import stop_sail
from platform_assets.spark.session.on_demand import running_jobs
from platform_assets.spark.session.session import create_session, stop_session
from platform_assets.spark.tables.lost import lost_spark_explained
from platform_assets.words import alike, counted, visible

_MOST_KINDS = 8
"""Reasons for files not taken that a run logs; `platform-assets status files` has all."""

_SILENCE_S = 30.0
"""Seconds after which the log says that work still goes on."""


@contextmanager
def progress_in_run(context: StepContext, at: Callable[[], str], progress: OnProgress) -> Iterator[OnProgress]:
    """Show the reports of `progress` on the run's page too.

    Args:
        at: returns the progress, for times without news; empty if unknown.
    """
    log = _RunLog(context, at)
    over = Event()
    reminder = Thread(target=log.remind, args=(over,), name="run-log", daemon=True)
    reminder.start()

    def tell(now: Progress) -> None:
        progress(now)
        log.tell(now)

    try:
        yield tell
    finally:
        over.set()
        reminder.join()
        log.close()


def warn_of_files(log: dg.DagsterLogManager, taken: IngestResult) -> None:
    """Log a line for all files with the same kind of problem, in the words of `refresh` and `status`."""
    refused = [(arrival.path, arrival.reason) for arrival in taken.arrivals if arrival.reason is not None]
    problems = [(problem.path, problem.message) for problem in taken.problems]
    growing = [(problem.path, problem.message) for problem in taken.growing]
    for head, files in (("refused", refused), ("not taken", problems), ("not taken yet", growing)):
        for line in alike(files, _MOST_KINDS):
            log.warning(visible(f"{head} {line}"))


class _RunLog:
    """Remember running work, so that its end can be logged."""

    def __init__(self, context: StepContext, at: Callable[[], str]) -> None:
        self._context, self._at = context, at
        self._lock = Lock()
        self._doing: dict[str, float] = {}
        self._last: Progress | None = None
        self._spoke = time.monotonic()

    def tell(self, now: Progress) -> None:
        """Log the beginning, progress or end of work."""
        with self._lock:
            name = _name(now)
            if now.finished:
                self._end(name, _result(now))
            elif name not in self._doing:
                if now.table:  # one table after the other; work beside it has no table
                    self._end_all()
                self._begin(name, now)
            elif now.done and now.done != (self._last and self._last.done):
                self._context.log.info(f"{now.table}: {_count(now)}")
            if now.table:
                self._last = None if now.finished else now
            self._spoke = time.monotonic()

    def remind(self, over: Event) -> None:
        """Log now and then that something still runs, until it is over."""
        while not over.wait(1.0):
            with self._lock:
                if self._doing and time.monotonic() - self._spoke >= _SILENCE_S:
                    self._spoke = time.monotonic()
                    name, since = list(self._doing.items())[-1]
                    count = f": {_count(self._last)}" if self._last and self._last.total else ""
                    seconds = f", {self._spoke - since:,.0f} s"
                    at = self._at()
                    self._context.log.info(f"{name}{count}{seconds}{f'; {at}' if at else ''}")

    def close(self) -> None:
        """End all marks."""
        with self._lock:
            self._end_all()

    def _begin(self, name: str, now: Progress) -> None:
        self._doing[name] = time.monotonic()
        mark_step(self._context, f"{name}: {counted(now.total, now.unit)}" if now.total else name, start=name)

    def _end(self, name: str, result: str) -> None:
        since = self._doing.pop(name, None)
        if since is None:
            mark_step(self._context, f"{name}: {result}" if result else name)  # news came at its end only
            return
        took = f"{time.monotonic() - since:,.1f} s"
        mark_step(self._context, f"{name}: {result}, {took}" if result else f"{name}: {took}", end=name)

    def _end_all(self) -> None:
        for name in list(self._doing):
            self._end(name, "")


def _name(now: Progress) -> str:
    return f"{now.phase} {now.table}" if now.table else now.phase


def _count(now: Progress) -> str:
    return f"{now.done:,} of {counted(now.total, now.unit)}"


def _result(now: Progress) -> str:
    rows = "" if now.rows is None else f", {counted(now.rows, 'row')}"
    return f"{counted(now.done, now.unit)}{rows}" if now.total else ""


class SparkResource(PySparkResource):
    """Dagster's PySpark resource with Delta and this platform's settings.

    The session starts with the first use, so that a run with nothing to compute starts no JVM, and is stopped with the
    run unless it existed before.
    """

    settings: dg.ResourceDependency[Settings]
    spark_config: dict[str, Any] = {}
    _started: bool = PrivateAttr(default=False)

    @classmethod
    def _is_dagster_maintained(cls) -> bool:
        return False

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Start nothing yet."""

    @property
    def spark_session(self) -> SparkSession:
        """Return the session, started on first use."""
        return self.session()

    def session(self, progress: OnProgress = no_progress) -> SparkSession:
        """Return the session, started on first use; `progress` is notified of the start."""
        if self._spark_session is None:
            self._started = SparkContext._active_spark_context is None
            self._spark_session = create_session(self.settings, progress=progress)
        session: SparkSession = self._spark_session
        return session

    def tasks(self) -> str:
        """Return Spark's progress, in words; empty if it is idle, remote or not started."""
        jobs = running_jobs().values()
        done, tasks = sum(done for done, _ in jobs), sum(tasks for _, tasks in jobs)
        return f"Spark is at {done:,} of {tasks:,} tasks" if tasks else ""

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        """Stop the session if this run started it, and the run's Sail."""
        stop_sail()
        if self._started and self._spark_session is not None:
            stop_session(self._spark_session)
        self._spark_session, self._started = None, False


class PlatformResource(dg.ConfigurableResource[None]):
    """Open lake and ledger for a step, and take the run's lock.

    Every run of ours uses it, so it is where a run's process shows that it lives. Ticks of schedules and sensors use it
    too, without a lock.
    """

    settings: dg.ResourceDependency[Settings]

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Take the run's lock."""
        if context.run is not None:
            take(lock_folder(self.settings), context.run.run_id)

    @contextmanager
    def open(self) -> Iterator[Platform]:
        """Open the platform, and close it at the end; name a Spark that died meanwhile."""
        with (
            errors_without_trace(),
            lost_spark_explained(self.settings),
            open_platform(self.settings) as platform,
        ):
            yield platform
