"""A JVM that one process keeps ready and lends: borrow it, work in a session of one's own, give it back.

The keeper listens at a socket that only this user can open, and leaves a link to it in the state folder. A borrower
sends the settings it needs, and gets the port and the secret of the JVM's gateway, or a refusal. The connection stays
open while the JVM is used: if it ends without a message, the keeper knows that the borrower is dead. The JVM is reset
between borrowers.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaGateway, JavaMember
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from platform_assets.places import is_ours_alone
from platform_assets.settings import Settings
from platform_assets.spark.session.jvm import end_jvm, kill_jvm, remember_classes
from platform_assets.words import counted

DONE = b"done\n"
"""Sent at the regular end of the work."""

_ANSWERS_WITHIN_S = 3.0
"""Who keeps a JVM and takes longer has stopped: a JVM of one's own is then the quicker way."""
_STARTS_WITHIN_S = 60.0
_LONGEST_ANSWER = 4096


@dataclass(frozen=True)
class Lease:
    """The exclusive right to use a JVM of another process."""

    port: int
    secret: str = field(repr=False)
    connection: socket.socket

    def give_back(self) -> None:
        """Report that the work has ended in order."""
        with suppress(OSError):  # of a keeper that is gone, with its JVM
            self.connection.sendall(DONE)
        self.connection.close()


def link_to_keeper(settings: Settings) -> Path:
    """Return the path of the link to a keeper's socket; the socket's own path has to be short."""
    return settings.state / "warm.sock"


def borrow(settings: Settings, key: str) -> Lease | None:
    """Request the JVM that is kept ready, if it matches the key.

    Return None if there is none, another process uses it, it has other settings, or it does not answer.
    """
    place = _keeper(link_to_keeper(settings))
    if place is None:
        return None
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(_ANSWERS_WITHIN_S)
        connection.connect(place)
        connection.sendall(json.dumps({"key": key}).encode() + b"\n")
        answer = line_of(connection)
        if "starting" in answer:
            connection.settimeout(_STARTS_WITHIN_S)
            answer = line_of(connection)
        lease = Lease(int(answer["port"]), str(answer["secret"]), connection)
    except (OSError, ValueError, KeyError):
        connection.close()
        return None
    connection.settimeout(None)
    return lease


def line_of(connection: socket.socket) -> dict[str, Any]:
    """Return a line of JSON from the other side; ValueError for anything else, or nothing more."""
    said = connection.makefile("rb", buffering=0).readline(_LONGEST_ANSWER)  # not buffered: the next line stays there
    if not said.endswith(b"\n"):
        raise ValueError("no whole line")
    found = json.loads(said)
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found


def _keeper(link: Path) -> str | None:
    """Return the keeper's socket; None without one, or if another user could have created it or its link."""
    try:
        if link.lstat().st_uid != os.geteuid():
            return None
        place = link.readlink()
        return str(place) if is_ours_alone(place) and is_ours_alone(place.parent) else None
    except OSError:
        return None


_LEASES: WeakKeyDictionary[JavaGateway, Lease] = WeakKeyDictionary()


def attached_session(port: int, secret: str) -> SparkSession:
    """Return a session of this process in a running JVM with Spark, with its own settings and views."""
    with _gateway_variables(port, secret):
        gateway = launch_gateway()
    remember_classes(gateway)
    first = gateway.jvm.org.apache.spark.sql.classic.SparkSession.getDefaultSession().get()
    java = gateway.jvm.JavaSparkContext(first.sparkContext())
    conf = SparkConf(_jvm=gateway.jvm, _jconf=java.getConf())
    return SparkSession(SparkContext(gateway=gateway, jsc=java, conf=conf), first.newSession())


def leased_session(lease: Lease) -> SparkSession:
    """Return a session of this process in a JVM that was lent to it, until `detach`."""
    spark = attached_session(lease.port, lease.secret)
    _LEASES[cast("Any", spark.sparkContext)._gateway] = lease
    return spark


def lease_of_jvm() -> Lease | None:
    """Return the lease of a foreign JVM; None if this process has its own, or none."""
    gateway = SparkContext._gateway
    return None if gateway is None else _LEASES.get(gateway)


def detach(spark: SparkSession, lease: Lease) -> None:
    """Leave a borrowed JVM, and give it back."""
    context = cast("Any", spark.sparkContext)
    context._jsc = None  # it would be stopped otherwise, for all that come after
    context.stop()
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
    end_jvm()
    lease.give_back()


@contextmanager
def _gateway_variables(port: int, secret: str) -> Iterator[None]:
    """Set the gateway's variables for PySpark, and remove them before other processes start."""
    variables = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name, None)


_MIB = 1024 * 1024
_IS_LENT_WITHIN_S = 2.0
"""Who asks waits a little longer than that."""
_IS_TAKEN_BACK_WITHIN_S = 20.0
"""It collects garbage then."""
_RESTS_WITHIN_S, _LOOK_S = 1.0, 0.1
"""Spark hears a little later than Python that a job has ended."""
_COMMANDS = "py4j.commands."
"""In the stack of any work that the JVM does for a Python process."""

Answer = TypeVar("Answer")


class LentJvm:
    """A JVM with Spark in it, from its start to its end."""

    def __init__(self, settings: Settings, start: Callable[[Settings], SparkSession]) -> None:
        try:
            self.session = start(settings)
        except BaseException:  # also when the keeper is ended: else its folder would be left
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
        """Return whether its process is alive."""
        return self._process.poll() is None

    def new_session(self) -> SparkSession:
        """Return another session in it, with its own settings and views, and as many shuffle tasks."""
        fresh, tasks = self.session.newSession(), "spark.sql.shuffle.partitions"
        fresh.conf.set(tasks, self.session.conf.get(tasks) or "")  # what was set since it began is not taken over
        return fresh

    def lend(self) -> None:
        """Record its state before it is lent. Raises OSError if it does not answer in time."""
        try:
            self._answered(self._note, _IS_LENT_WITHIN_S)
        except Py4JError as error:
            raise OSError("it does not answer") from error

    def take_back(self) -> str:
        """Reset it after use. Return why it must not be lent again; empty if it is clean."""
        try:
            return self._answered(self._not_as_new, _IS_TAKEN_BACK_WITHIN_S)
        except (Py4JError, OSError):
            return "it does not answer"

    def _answered(self, ask: Callable[[], Answer], within_s: float) -> Answer:
        """Return its answer. Kill it if it does not answer, for example when it was stopped by a signal."""
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
        """Return the state that a session shares with all others."""
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
            return "the last borrower left state that all others would see"
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
        """Return work that still runs in it, as after an interrupted Python that has left: between two jobs, too."""
        if jobs := len(self._scala.statusTracker().getActiveJobIds()):
            return counted(jobs, "job")
        stacks = self._java.java.lang.Thread.getAllStackTraces()
        # Java's own `values`, for one answer: of Python's each would be asked for.
        values = JavaMember("values", stacks, stacks._target_id, stacks._gateway_client)()
        said = str(self._java.java.util.Arrays.deepToString(values.toArray()))
        calls = sum(_COMMANDS in stack for stack in said.split("], [")) - 1  # this question
        return "what it was asked for last" if calls else ""

    def end(self) -> None:
        """End its process at once, even if it is in use."""
        kill_jvm()
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
        end_jvm()
