"""The Spark session: Delta on the class path, tuned for many small days, quiet, and gone when it is stopped.

A process has one session at a time. What its JVM was started with (heap, garbage collector, class path) stays as it
was until `stop_session`; asking for a session with other settings meanwhile returns the running one.
"""

from __future__ import annotations

import os
import re
import signal
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from threading import Thread, current_thread, main_thread
from typing import Any, cast

from py4j.protocol import Py4JError, Py4JJavaError
from pydantic import SecretStr
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from platform_assets.places import is_object_store
from platform_assets.progress import OnProgress, meanwhile, no_progress
from platform_assets.settings import Settings
from platform_assets.spark.session.class_archive import class_archive
from platform_assets.spark.session.cluster import computes_here, wait_for_executors
from platform_assets.spark.session.hidden import without_secrets
from platform_assets.spark.session.jars import spark_jars
from platform_assets.spark.session.java import find_java
from platform_assets.spark.session.jvm import SessionError, end_jvm, kill_jvm, scratch_of_jvm, start_jvm
from platform_assets.spark.session.logs import log_file
from platform_assets.spark.session.object_stores import of_s3
from platform_assets.sql_settings import REQUIRED

TUNING: Mapping[str, str] = {
    # The same results on every machine
    **REQUIRED,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Screens and ports nobody asked for
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # The log of a year is some hundred files: one task reads it faster than fifty
    "spark.databricks.delta.snapshotPartitions": "1",
    # Every stage is a log that is read a few times, then never; Delta would keep 10,000 of them, each with plans of
    # several megabytes
    "spark.databricks.delta.delta.log.cacheSize": "32",
    # Thousands of small landing files: listed by the driver instead of a job, and packed into few tasks
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.sql.files.openCostInBytes": "131072",
    "spark.sql.parquet.compression.codec": "zstd",
    # After how many rows a writer looks for the first time how long they are; by itself it holds a hundred
    "spark.hadoop.parquet.page.size.row.check.min": "4",
    # Reading Delta logs alone compiles some hundred classes. With room for 100, every batch compiled all of its code
    # anew, and the JIT after it: two thirds of a year's time.
    "spark.sql.codegen.cache.maxEntries": "1000",
}
"""Configuration of every session; `spark_conf` of the settings wins over it, where that is free to choose."""

_LOCAL: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Others on this machine reach these ports, too; Spark makes a secret of its own for every session
    "spark.authenticate": "true",
    # Driver and executor are one process. After two minutes in which the machine slept, Spark took it for dead, forgot
    # its blocks for good, and ended it ten minutes later.
    "spark.storage.blockManagerHeartbeatTimeoutMs": "3650d",
    # On one machine there is little to adapt to, and planning every stage anew took a twentieth of a year's time
    "spark.sql.adaptive.enabled": "false",
    # No .crc file beside each file we write: disks and Parquet have checksums of their own. Nor a process for each,
    # only to set its permissions: a seventh of ingest.
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.NakedLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}
"""What only holds when everything runs in one process on this machine."""

_LONG_ROWS_MIB = 256
"""Most MiB of a column that a task reads at once, should all rows be as long as a line may be."""

_OF_THE_JVM = (
    "spark.driver.memory",
    "spark.driver.extraClassPath",
    "spark.driver.extraJavaOptions",
)

_RETRIES, _LONGEST_PAUSE_MS = 8, 10_000
"""With these a server is waited for three quarters of a minute, as while a network is gone; a client by itself waits
ten minutes, also for one that never was there."""

_DETAILS = re.compile(r'(?m)^\s*details = "(.*)"$')
"""What gRPC says, among what it says around it."""

STOPS_WITHIN_S = 30.0
"""After it was asked to; no Spark that is alive takes so long."""


def create_session(
    settings: Settings,
    *,
    app_name: str = "platform-assets",
    record_classes: bool = True,
    brief: bool = False,
    progress: OnProgress = no_progress,
) -> SparkSession:
    """Start Spark as the settings say, or return the session that this process already has.

    Args:
        settings: master or Spark Connect server, memory, extra configuration.
        app_name: shown in logs and on a cluster's pages.
        record_classes: whether this session may record the class archive for later ones, if there is none.
        brief: whether it has so little to do that its JVM should compile quickly rather than well.
        progress: told that Spark starts, and when jars have to be brought first.

    Raises:
        JavaError: Java is missing or of the wrong version.
        JarsError: jars that it needs are neither there nor to be had.
        SessionError: Spark did not start; the message has its last words.
    """
    _keep_exceptions_quiet()
    if settings.spark_remote:
        with meanwhile(progress, "connecting to Spark"):
            return _connect(settings, settings.spark_remote, app_name)
    if SparkContext._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()
    with meanwhile(progress, "starting Spark"):
        return _start(settings, app_name, progress, record_classes=record_classes, brief=brief)


def _keep_exceptions_quiet() -> None:
    """PySpark writes exceptions on the screen as they arise, 80 lines of Java's each, whoever catches them."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _start(
    settings: Settings, app_name: str, progress: OnProgress, *, record_classes: bool, brief: bool
) -> SparkSession:
    java = find_java()
    jars = spark_jars(settings, java, progress)
    if SparkContext._gateway is None:
        start_jvm(settings, jars, class_archive(settings, java, record=record_classes), brief=brief)
    Thread(target=_import_ahead, daemon=True).start()
    conf = SparkConf(loadDefaults=False).setMaster(settings.spark_master).setAppName(app_name)
    conf.setAll(list(configuration(settings, jars).items()))
    try:
        with _same_interrupt():
            context = SparkContext(conf=conf, gateway=SparkContext._gateway)
        spark = SparkSession.builder.getOrCreate()
    except (Py4JError, PySparkException, ValueError, OSError) as error:
        reason = without_secrets(_reason(error), settings)  # the JVM is asked for it, so before it ends
        cause = _cause(error, settings)
        end_jvm()
        raise SessionError(
            f"Spark does not start on {settings.spark_master}: {reason} (log: {log_file(settings)}).",
            "Check PLATFORM_SPARK_MASTER, PLATFORM_SPARK_CONF, and that PLATFORM_SPARK_DRIVER_MEMORY is free.",
        ) from cause
    if not computes_here(settings):
        try:
            wait_for_executors(context, settings, progress)
        except BaseException:
            stop_session(spark)
            raise
    elif "spark.sql.shuffle.partitions" not in settings.spark_conf:
        spark.conf.set("spark.sql.shuffle.partitions", str(max(2, context.defaultParallelism)))
    return spark


def _import_ahead() -> None:
    """PySpark looks for NumPy at the first literal in a way that imports pandas; Java needs as long to start."""
    with suppress(ImportError):
        import_module("pyspark.testing.utils")


@contextmanager
def _same_interrupt() -> Iterator[None]:
    """Ctrl-C stays what it was.

    PySpark would cancel all jobs first, in the middle of whatever call is under way: the answers of the two get mixed
    up, and what tidies up after the interruption fails. Ending the session cancels them, too.
    """
    if current_thread() is not main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def stop_session(spark: SparkSession) -> None:
    """Stop the session and end its JVM; the first session of an installation then leaves the class archive.

    A session of a Spark Connect server is only closed. An interrupted call leaves its answer behind in the connection
    of its thread, so that the session is stopped from another one; where Java does not answer, its process is ended,
    and killed where it does not even hear that, as one that somebody has stopped with a signal.
    """
    if not hasattr(spark, "_jsparkSession"):
        cast("Any", spark).client.set_retry_policies([])  # a server that is gone is not waited for to say good-bye
        spark.stop()
        return
    with ThreadPoolExecutor(1) as apart:
        stopping = apart.submit(spark.stop)
        try:
            failed = stopping.exception(STOPS_WITHIN_S)
        except TimeoutError:
            kill_jvm()
            failed = stopping.exception()
    if failed is not None:
        if not isinstance(failed, Py4JError | OSError):
            raise failed
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
    if SparkContext._active_spark_context is None:
        end_jvm()


def configuration(settings: Settings, jars: tuple[Path, ...]) -> dict[str, str]:
    """The session's whole configuration, without what the JVM was started with."""
    conf = dict(TUNING) | {
        "spark.sql.warehouse.dir": str(settings.state / "spark-warehouse"),
        "spark.log.level": settings.log_level,
        # Spark holds so many rows of Parquet at once, 4,096 by itself, of which each may be a line at its longest
        "spark.sql.parquet.columnarReaderBatchSize": str(_LONG_ROWS_MIB // settings.line_mib),
        # Hadoop sets modes by itself, whatever the process's own umask is
        "spark.hadoop.fs.permissions.umask-mode": f"{settings.access.umask:03o}",
    }
    if computes_here(settings):
        conf |= _LOCAL
        if scratch := scratch_of_jvm():
            conf["spark.local.dir"] = str(scratch)
    else:
        conf["spark.jars"] = ",".join(map(str, jars))
    if is_object_store(settings.lake):
        conf |= of_s3(os.environ)
    conf |= settings.spark_conf
    return {name: value for name, value in conf.items() if name not in _OF_THE_JVM}


def _connect(settings: Settings, remote: SecretStr, app_name: str) -> SparkSession:
    configs = {"spark.app.name": app_name, **REQUIRED, **settings.spark_conf}
    try:
        from pyspark.sql.connect.client.retries import DefaultPolicy

        session = SparkSession.builder.remote(remote.get_secret_value()).getOrCreate()
    except ImportError as error:
        raise SessionError(
            f"Spark Connect needs packages that are not installed: {_reason(error)}.",
            "Install them: uv sync --extra connect.",
        ) from error
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")  # it is told as what it means
    try:
        patience = DefaultPolicy(max_retries=_RETRIES, max_backoff=_LONGEST_PAUSE_MS)
        cast("Any", session).client.set_retry_policies([patience])
        # What only the server's owner can set is left as it is; what changes results is looked at before work.
        cast("Any", session.conf)._set_all(configs=configs, silent=True)
        return session
    except PySparkException as error:
        stop_session(session)
        reason = without_secrets(_reason(error), settings)
        raise SessionError(
            f"The Spark Connect server of PLATFORM_SPARK_REMOTE does not answer: {reason}.",
            "Check that it runs and that the address and port are right.",
        ) from _cause(error, settings)


def _cause(error: Exception, settings: Settings) -> Exception | None:
    """The error itself, where whoever looks into it finds no secret."""
    text = str(error)
    return error if without_secrets(text, settings) == text else None


def _reason(error: Exception) -> str:
    """What went wrong, in a line: Java's own message where the error came from there."""
    text = str(error.java_exception.toString() if isinstance(error, Py4JJavaError) else error)
    if of_grpc := _DETAILS.search(text):
        return of_grpc[1]
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
