"""What a Dagster run works with: a Spark session that lives as long as the run, and the opened platform."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
from dagster_pyspark import PySparkResource
from pydantic import PrivateAttr
from pyspark import SparkContext
from pyspark.sql import SparkSession

from platform_assets.engine.platform import Platform
from platform_assets.operations.opening import open_platform
from platform_assets.orchestration.instance.launcher import lock_folder, take
from platform_assets.orchestration.shown_text import errors_without_trace
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
        """Return the session, started on first use."""
        return self.session()

    def session(self, progress: OnProgress = no_progress) -> SparkSession:
        """Return the session, started on first use; `progress` hears that it starts."""
        if self._spark_session is None:
            self._started = SparkContext._active_spark_context is None
            self._spark_session = create_session(self.settings, progress=progress)
        session: SparkSession = self._spark_session
        return session

    def tasks(self) -> str:
        """Return how far Spark is, in words; empty where it is idle, remote or not started."""
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
    """Opens lake and ledger for a step, and takes the run's lock.

    Every run of ours works with it, so it is where a run's process shows that it lives. Ticks of schedules and sensors
    use it too, without a lock.
    """

    settings: dg.ResourceDependency[Settings]

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Take the run's lock."""
        if context.run is not None:
            take(lock_folder(self.settings), context.run.run_id)

    @contextmanager
    def open(self) -> Iterator[Platform]:
        """Open the platform, and close it at the end; name a Spark that died in between."""
        with (
            errors_without_trace(),
            lost_spark_explained(self.settings),
            open_platform(self.settings) as platform,
        ):
            yield platform
