"""The Spark session: Delta on the class path, tuned for many small days, quiet, and gone when it is stopped.

A process has one session at a time. The start options of its JVM (heap, garbage collector, class path) stay until
`stop_session`; until then a request with other settings returns the running session.
"""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Thread, current_thread, main_thread
from typing import Any, cast

from py4j.protocol import Py4JError, Py4JNetworkError
from pydantic import SecretStr
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from platform_assets.progress import OnProgress, meanwhile, no_progress
from platform_assets.settings import Settings
from platform_assets.spark.session.configuration import configuration, engine_key
from platform_assets.spark.session.jars import class_archive, spark_jars
from platform_assets.spark.session.java import find_java, last_words, log_file, only_as_settings_say
from platform_assets.spark.session.jvm import SessionError, end_jvm, kill_jvm, start_jvm
from platform_assets.spark.session.on_demand import computes_here
from platform_assets.spark.session.reasons import (
    SET_HADOOP_FOLDER,
    cause_of,
    places_of,
    reason_of,
    what_is_asked,
    why_no_yarn,
    why_unreachable,
    without_secrets,
)
from platform_assets.spark.session.warm import borrow, detach, lease_of_jvm, leased_session
from platform_assets.sql_settings import CODECS, OF_HADOOP, REQUIRED

_NAME = "platform-assets"
"""Of a session, in logs and on a cluster's pages."""

STOPS_WITHIN_S = 30.0
"""After it was asked to; no Spark that is alive takes so long."""

_LOOK_S = 0.1
"""Between two looks for executors."""

_RETRIES, _LONGEST_PAUSE_MS = 8, 10_000
"""With these a server is waited for three quarters of a minute, as while a network is gone; a client by itself waits
ten minutes, also for one that never was there."""


def create_session(
    settings: Settings,
    *,
    record_classes: bool = True,
    brief: bool = False,
    own: bool = False,
    progress: OnProgress = no_progress,
) -> SparkSession:
    """Start Spark by the settings, or return the session that this process already has.

    If a JVM with the same settings is kept ready, the session uses it.

    Args:
        record_classes: whether this session may record the class archive for later ones, if there is none.
        brief: whether so little will be computed that its JVM should compile quickly rather than well.
        own: whether the JVM must be one of this process.

    Raises:
        SessionError: Spark did not start; the message has its last words.
    """
    _keep_exceptions_quiet()
    with only_as_settings_say(by_connect=settings.spark_remote is not None, is_here=computes_here(settings)):
        if settings.spark_remote:
            with meanwhile(progress, "connecting to Spark"):
                return connect(settings, settings.spark_remote)
        if SparkContext._active_spark_context is not None:
            return SparkSession.builder.getOrCreate()
        if settings.warm and not own and computes_here(settings):
            with meanwhile(progress, "connecting to Spark"):
                if warm := _lent(settings):
                    return warm
        with meanwhile(progress, "starting Spark"):
            return _start(settings, progress, record_classes=record_classes, brief=brief)


def _lent(settings: Settings) -> SparkSession | None:
    """Return a session in the JVM that is kept ready; None if it is not available."""
    lease = borrow(settings, engine_key(settings))
    if lease is None:
        return None
    Thread(target=_import_ahead, daemon=True).start()
    try:
        with _same_interrupt():
            spark = leased_session(lease)
    except (Py4JError, OSError):
        lease.connection.close()  # without a word: its keeper then ends it
        end_jvm()
        return None
    _fit_to_cores(spark, settings)
    return spark


def _fit_to_cores(spark: SparkSession, settings: Settings) -> None:
    """Limit parts to the number of cores: on one machine more gain nothing."""
    if "spark.sql.shuffle.partitions" not in settings.spark_conf:
        spark.conf.set("spark.sql.shuffle.partitions", str(max(2, spark.sparkContext.defaultParallelism)))


def _keep_exceptions_quiet() -> None:
    """Keep PySpark from printing exceptions, 80 lines of Java each, before they can be caught."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def not_started(settings: Settings, reason: str) -> SessionError:
    """Return the error for a session that did not start: Spark itself reports only later errors."""
    what, setting = what_is_asked(settings)
    if why := why_unreachable(places_of(settings)):
        return SessionError(
            f"Spark does not start: {what} does not answer at {why} (log: {log_file(settings)}).",
            f"Start it, or correct {setting}; `platform-assets admin doctor` tries it at once.",
        )
    if not computes_here(settings) and "stopped SparkContext" in reason:
        return SessionError(
            f"Spark does not start: {settings.spark_master} answers, but does not take it (log: {log_file(settings)}).",
            "Look at the log here and at the master's: its version of Spark may be another, or its secret "
            "(spark.authenticate.secret in PLATFORM_SPARK_CONF).",
        )
    folder = "" if computes_here(settings) else ", Hadoop's settings in the folder of HADOOP_CONF_DIR"
    return SessionError(
        f"Spark does not start on {settings.spark_master}: {reason} (log: {log_file(settings)}).",
        f"Check PLATFORM_SPARK_MASTER, PLATFORM_SPARK_CONF{folder}, and that PLATFORM_SPARK_DRIVER_MEMORY is free.",
    )


def _start(settings: Settings, progress: OnProgress, *, record_classes: bool, brief: bool) -> SparkSession:
    java = find_java()
    jars = spark_jars(settings, java, progress)
    if settings.spark_master == "yarn" and (why := why_no_yarn(os.environ, settings.spark_conf)):
        raise SessionError(f"YARN is not found: {why}.", SET_HADOOP_FOLDER)
    if SparkContext._gateway is None:
        start_jvm(settings, jars, class_archive(settings, java, record=record_classes), brief=brief)
    Thread(target=_import_ahead, daemon=True).start()
    conf = SparkConf(loadDefaults=False).setMaster(settings.spark_master).setAppName(_NAME)
    conf.setAll(list(configuration(settings, jars).items()))
    log = log_file(settings)
    said_before = log.stat().st_size if log.is_file() else 0
    try:
        with _same_interrupt():
            context = SparkContext(conf=conf, gateway=SparkContext._gateway)
        spark = SparkSession.builder.getOrCreate()
    except (Py4JError, PySparkException, ValueError, OSError) as error:
        # The JVM is asked for it, so before it ends; one that has ended by itself left its reason in the log
        words = last_words(log, said_before) if isinstance(error, Py4JNetworkError) and log.is_file() else ""
        reason = without_secrets(words or reason_of(error), settings)
        cause = cause_of(error, settings)
        end_jvm()
        raise not_started(settings, reason) from cause
    if not computes_here(settings):
        try:
            _wait_for_executors(context, settings, progress)
        except BaseException:
            stop_session(spark)
            raise
    else:
        _fit_to_cores(spark, settings)
    return spark


def _wait_for_executors(context: SparkContext, settings: Settings, progress: OnProgress) -> None:
    """Wait until a cluster has given the session its first executor: without one, every job would wait for ever.

    If the cluster allocates them with the work (`spark.dynamicAllocation.enabled`), there is nothing to wait for.
    """
    if context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
        return
    known = cast("Any", context)._jsc.sc().getExecutorMemoryStatus
    until = time.monotonic() + settings.spark_wait_s
    with meanwhile(progress, f"waiting for {settings.spark_master} to give executors"):
        while known().size() < 2:  # the driver is counted, too
            if time.monotonic() > until:
                asked = context.getConf().get("spark.executor.memory", "1g")
                raise SessionError(
                    f"{settings.spark_master} gave no executor within {settings.spark_wait_s:g} seconds: no worker is "
                    f"there, has {asked} and a core free, or can reach this machine.",
                    "Look at the cluster's own page. Ask for less with spark.executor.memory and spark.executor.cores "
                    "in PLATFORM_SPARK_CONF, name an address of this machine that workers reach with "
                    "spark.driver.host, or wait longer with PLATFORM_SPARK_WAIT_S.",
                )
            time.sleep(_LOOK_S)


def _import_ahead() -> None:
    """Import pandas while Java starts, because PySpark imports it at the first literal."""
    with suppress(ImportError):
        import_module("pyspark.testing.utils")


@contextmanager
def _same_interrupt() -> Iterator[None]:
    """Keep Python's handling of Ctrl-C.

    PySpark would cancel all jobs first, in the middle of a running call: the two answers get mixed up, and the clean-up
    after the interruption fails. Ending the session cancels jobs, too.
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
    """Stop the session and end its JVM; the first session of an installation then writes the class archive.

    A session of a Spark Connect server is only closed, and a lent JVM is given back. An interrupted call leaves its
    answer in the connection of its thread, so the session is stopped from another thread. If Java does not answer, its
    process is ended, and killed if it does not react, for example when it was stopped by a signal.
    """
    if not hasattr(spark, "_jsparkSession"):
        close(spark)
        return
    if lease := lease_of_jvm():
        detach(spark, lease)
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


def connect(settings: Settings, remote: SecretStr) -> SparkSession:
    """Return a session of the server at an address, `sc://host:port` with options.

    Raises:
        SessionError: packages are missing, the server does not answer, or it has another language.
    """
    configs = {"spark.app.name": _NAME, **REQUIRED, **OF_HADOOP, **CODECS, **settings.spark_conf}
    try:
        from pyspark.sql.connect.client.retries import DefaultPolicy

        session = SparkSession.builder.remote(remote.get_secret_value()).getOrCreate()
    except ImportError as error:
        raise SessionError(
            f"Spark Connect needs packages that are not installed: {reason_of(error)}.",
            "Install them: uv sync --inexact --extra connect.",
        ) from error
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")  # it is reported by its cause
    try:
        patience = DefaultPolicy(max_retries=_RETRIES, max_backoff=_LONGEST_PAUSE_MS)
        cast("Any", session).client.set_retry_policies([patience])
        # What only the server's owner can set is left as it is; what changes results is looked at before work.
        cast("Any", session.conf)._set_all(configs=configs, silent=True)
        _refuse_other_language(session)
        return session
    except PySparkException as error:
        close(session)
        reason = without_secrets(reason_of(error), settings)
        raise SessionError(
            f"The Spark Connect server of PLATFORM_SPARK_REMOTE does not answer: {reason}.",
            "Check that it runs and that the address and port are right.",
        ) from cause_of(error, settings)


def close(session: SparkSession) -> None:
    """Close a session while the server continues; a server that is gone is not waited for."""
    cast("Any", session).client.set_retry_policies([])
    session.stop()


def _refuse_other_language(session: SparkSession) -> None:
    """Refuse a server or executors in a language that changes texts, such as Turkish capitals."""
    of_an_executor = session.range(1).selectExpr("upper(concat('ié', id)) AS text").collect()
    if of_an_executor[0].text != "IÉ0":
        close(session)
        raise SessionError(
            "The Spark Connect server of PLATFORM_SPARK_REMOTE has a language in which `upper('ié')` is not 'IÉ'.",
            "Start it, and its executors, with `-Duser.language=en` among the options of Java.",
        )
