"""What a Dagster run works with: a Spark session that lives as long as the run, and the opened platform."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
from dagster_pyspark import PySparkResource
from filelock import FileLock
from pydantic import PrivateAttr
from pyspark import SparkContext
from pyspark.sql import SparkSession

from platform_assets.engine.platform import Platform
from platform_assets.operations.opening import open_platform
from platform_assets.orchestration.instance.launcher import give_back, lock_folder, take
from platform_assets.orchestration.told_errors import expected_errors_told
from platform_assets.progress import OnProgress, no_progress
from platform_assets.settings import Settings
from platform_assets.spark.sail.session import stop_sail
from platform_assets.spark.session.on_demand import running_jobs
from platform_assets.spark.session.session import create_session, stop_session
from platform_assets.spark.tables.lost import lost_spark_explained


class SparkResource(PySparkResource):
    """Dagster's PySpark resource with Delta and this platform's settings.

    The session starts with the first use, so that a run with nothing to compute starts no JVM, and is stopped with the
    run unless it was there before.
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
        """The session, started on first use."""
        return self.session()

    def session(self, progress: OnProgress = no_progress) -> SparkSession:
        """The session, started on first use; who waits for it is told so."""
        if self._spark_session is None:
            self._started = SparkContext._active_spark_context is None
            self._spark_session = create_session(self.settings, progress=progress)
        session: SparkSession = self._spark_session
        return session

    def tasks(self) -> str:
        """How far Spark is with what it is at, in words; empty where it is idle, remote or not started."""
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
    """Opens lake and ledger for a step, and holds the run's lock as long as the run lives.

    Every run of ours works with it, so it is where a run's process shows that it lives. Ticks of schedules and sensors
    use it too, without a lock.
    """

    settings: dg.ResourceDependency[Settings]
    _lock: FileLock | None = PrivateAttr(default=None)

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Take the run's lock."""
        if context.run is not None:
            self._lock = take(lock_folder(self.settings), context.run.run_id)

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        """Give the run's lock back."""
        if self._lock is not None:
            give_back(self._lock)
            self._lock = None

    @contextmanager
    def open(self) -> Iterator[Platform]:
        """The platform, closed at the end; a Spark that died in between is told as such.

        Raises:
            ToldError: something expected went wrong.
        """
        with (
            expected_errors_told(),
            lost_spark_explained(self.settings),
            open_platform(self.settings) as platform,
        ):
            yield platform
