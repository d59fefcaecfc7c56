"""The JVM of this process, lent to others one after the other: none is to find what the one before left in it."""

from __future__ import annotations

import subprocess
from typing import Any, cast

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from platform_assets.settings import Settings
from platform_assets.spark.session.jvm import end_jvm, kill_jvm
from platform_assets.spark.session.session import create_session
from platform_assets.words import counted

_MIB = 1024 * 1024


class LentJvm:
    """A JVM with Spark in it, from its start to its end.

    Args:
        settings: to start it with.

    Raises:
        PlatformError: Spark does not start.
    """

    def __init__(self, settings: Settings) -> None:
        self.session: SparkSession = create_session(settings, record_classes=False, own=True)
        self._most_mib = settings.warm_mib
        self._java = cast("Any", SparkContext._jvm)
        gateway = cast("Any", SparkContext._gateway)
        self.port, self.secret = int(gateway.java_parameters.port), str(gateway.java_parameters.auth_token)
        self._process: subprocess.Popen[bytes] = gateway.proc
        self._objects = gateway.java_gateway_server.getGateway().getBindings().keySet()
        self._scala = cast("Any", self.session.sparkContext)._jsc.sc()
        self._processes = self._java.java.lang.ProcessHandle.current()
        self._runtime = self._java.java.lang.Runtime.getRuntime()
        self._of_keeper: Any = None
        self._children = 0

    @property
    def is_alive(self) -> bool:
        """Whether its process is there."""
        return self._process.poll() is None

    def new_session(self) -> SparkSession:
        """Another session in it, with settings and views of its own."""
        return self.session.newSession()

    def lend(self) -> None:
        """Note what is in it, before somebody else works with it."""
        self._of_keeper = self._java.java.util.HashSet(self._objects)
        self._children = int(self._processes.children().count())  # of the script that started it, for one

    def take_back(self) -> str:
        """Forget what somebody did with it.

        Returns:
            Why nobody else should work with it; empty where it is as good as new.
        """
        try:
            return self._not_as_new()
        except (Py4JError, OSError):
            return "it does not answer"

    def _not_as_new(self) -> str:
        if jobs := len(self._scala.statusTracker().getActiveJobIds()):
            return f"it is still at {counted(jobs, 'job')}"
        if self._processes.children().count() > self._children:
            return "it has processes of Python, which keep the code that they were sent"
        # The JVM keeps each object for as long as Python may ask for it, also for a Python that has ended.
        self._objects.retainAll(self._of_keeper)
        sessions = self._java.org.apache.spark.sql.classic.SparkSession
        mine = cast("Any", self.session)._jsparkSession
        sessions.setDefaultSession(mine)
        sessions.clearActiveSession()
        mine.sharedState().cacheManager().clearCache()
        self._runtime.gc()
        # What cannot be freed: of its heap a JVM gives little back, and keeps it for the next.
        held_mib = (int(self._runtime.totalMemory()) - int(self._runtime.freeMemory())) // _MIB
        return f"it holds {held_mib:,} MiB" if held_mib > self._most_mib else ""

    def end(self) -> None:
        """End its process at once, whoever works with it; nothing of it is needed any more."""
        kill_jvm()
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
        end_jvm()
