"""The JVM of this process, lent to others one after the other: none is to find what the one before left in it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

from py4j.java_gateway import JavaMember
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from platform_assets.settings import Settings
from platform_assets.spark.session.jvm import end_jvm, kill_jvm
from platform_assets.spark.session.session import create_session
from platform_assets.words import counted

_MIB = 1024 * 1024
_IS_LENT_WITHIN_S = 2.0
"""Who asks waits a little longer than that."""
_IS_TAKEN_BACK_WITHIN_S = 20.0
"""It collects its garbage meanwhile."""
_RESTS_WITHIN_S, _LOOK_S = 1.0, 0.1
"""Spark hears a little later than Python that a job has ended."""
_COMMANDS = "py4j.commands."
"""In the stack of whatever the JVM does for a Python."""

Answer = TypeVar("Answer")


class LentJvm:
    """A JVM with Spark in it, from its start to its end."""

    def __init__(self, settings: Settings) -> None:
        try:
            self.session: SparkSession = create_session(settings, record_classes=False, own=True)
        except BaseException:  # also where the keeper is to end meanwhile: its folder would be left
            self.end()
            raise
        self._most_mib = settings.warm_mib
        self._java = cast("Any", SparkContext._jvm)
        gateway = cast("Any", SparkContext._gateway)
        self.port, self.secret = int(gateway.java_parameters.port), str(gateway.java_parameters.auth_token)
        self._process: subprocess.Popen[bytes] = gateway.proc
        self._objects = gateway.java_gateway_server.getGateway().getBindings().keySet()
        self._scala = cast("Any", self.session.sparkContext)._jsc.sc()
        self._processes = self._java.java.lang.ProcessHandle.current()
        self._runtime = self._java.java.lang.Runtime.getRuntime()
        self._logs = self._java.org.apache.logging.log4j.LogManager
        self._note()  # which for the first time takes as long as loading what it asks for

    @property
    def is_alive(self) -> bool:
        """Return whether its process is there."""
        return self._process.poll() is None

    def new_session(self) -> SparkSession:
        """Another session in it, with settings and views of its own."""
        return self.session.newSession()

    def lend(self) -> None:
        """Note what is in it, before somebody else works with it.

        Raises:
            OSError: it does not answer, or not in time.
        """
        try:
            self._answered(self._note, _IS_LENT_WITHIN_S)
        except Py4JError as error:
            raise OSError("it does not answer") from error

    def take_back(self) -> str:
        """Forget what somebody did with it.

        Returns:
            Why nobody else should work with it; empty where it is as good as new.
        """
        try:
            return self._answered(self._not_as_new, _IS_TAKEN_BACK_WITHIN_S)
        except (Py4JError, OSError):
            return "it does not answer"

    def _answered(self, ask: Callable[[], Answer], within_s: float) -> Answer:
        """Return what it answers; one that does not, as where somebody has stopped it with a signal, is killed."""
        with ThreadPoolExecutor(1) as apart:
            try:
                return apart.submit(ask).result(within_s)
            except BaseException:  # also where the keeper is to end: else the thread would be waited for
                kill_jvm()
                raise

    def _note(self) -> None:
        self._of_keeper: Any = self._java.java.util.HashSet(self._objects)
        self._children = int(self._processes.children().count())  # of the script that started it, for one
        self._shared = self._seen_by_all()

    def _seen_by_all(self) -> tuple[str, ...]:
        """Return what a session changes for all others, too."""
        context, shared = self._scala, cast("Any", self.session)._jsparkSession.sharedState()
        catalog = shared.externalCatalog()
        every = (
            shared.globalTempViewManager().listViewNames("*"),
            catalog.listDatabases(),
            catalog.listTables("default"),
            catalog.listFunctions("default", "*"),
            shared.activeStreamingQueries().isEmpty(),
            context.hadoopConfiguration().getPropsWithPrefix("").hashCode(),  # of what may be secret
            context.listFiles(),
            context.listJars(),
            context.listArchives(),
            context.getCheckpointDir(),
            self._logs.getRootLogger().getLevel(),
        )
        return tuple(str(each.toString() if hasattr(each, "toString") else each) for each in every)

    def _not_as_new(self) -> str:
        if self._scala.isStopped():
            return "Spark in it was stopped"
        until = time.monotonic() + _RESTS_WITHIN_S
        while (work := self._work()) and time.monotonic() < until:
            time.sleep(_LOOK_S)
        if work:
            return f"it is still at {work}"
        if self._processes.children().count() > self._children:
            return "it has processes of Python, which keep the code that they were sent"
        if self._seen_by_all() != self._shared:
            return "whoever worked with it left what all others would see"
        # The JVM keeps each object for as long as Python may ask for it, also for a Python that has ended.
        self._objects.retainAll(self._of_keeper)
        sessions = self._java.org.apache.spark.sql.classic.SparkSession
        mine = cast("Any", self.session)._jsparkSession
        sessions.setDefaultSession(mine)
        sessions.clearActiveSession()
        mine.sharedState().cacheManager().clearCache()
        # A log that it remembers may have another in its place by then: of a lake that was built anew.
        self._java.org.apache.spark.sql.delta.DeltaLog.clearCache()
        self._runtime.gc()
        # What cannot be freed: of its heap a JVM gives little back, and keeps it for the next.
        held_mib = (int(self._runtime.totalMemory()) - int(self._runtime.freeMemory())) // _MIB
        return f"it holds {held_mib:,} MiB" if held_mib > self._most_mib else ""

    def _work(self) -> str:
        """Return what it goes on with, as after a Python that was interrupted and has left: between two jobs, too."""
        if jobs := len(self._scala.statusTracker().getActiveJobIds()):
            return counted(jobs, "job")
        stacks = self._java.java.lang.Thread.getAllStackTraces()
        # Java's own `values`, for one answer: of Python's each would be asked for.
        values = JavaMember("values", stacks, stacks._target_id, stacks._gateway_client)()
        said = str(self._java.java.util.Arrays.deepToString(values.toArray()))
        calls = sum(_COMMANDS in stack for stack in said.split("], [")) - 1  # this question
        return "what it was asked for last" if calls else ""

    def end(self) -> None:
        """End its process at once, whoever works with it; nothing of it is needed any more."""
        kill_jvm()
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
        end_jvm()
