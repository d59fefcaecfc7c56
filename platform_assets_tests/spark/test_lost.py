"""A Spark that dies in the middle of work is told as such, and blamed on nothing else."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from platform_assets.settings import load_settings
from platform_assets.spark.tables.lost import SparkLostError, lost_spark_explained
from platform_assets_tests.support.installation import JARS

SETTINGS = load_settings(spark_driver_memory="2g")
KILLED = """
import os, signal, sys
from platform_assets.engine.ingest.file_rows import untakeable
from platform_assets.settings import load_settings
from platform_assets.spark.session.session import create_session, stop_session
from platform_assets.spark.tables.lost import lost_spark_explained

settings = load_settings(state=sys.argv[1], jars=sys.argv[2], spark_driver_memory="1g")
spark = create_session(settings, record_classes=False)
os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
for ask in (
    lambda: spark.range(10).count(),
    lambda: spark.range(10).count(),
    lambda: untakeable(lambda files: spark.range(10), lambda file: spark.range(10), ["a file", "another"]),
):
    try:
        with lost_spark_explained(settings):
            ask()
    except Exception as error:
        print(type(error).__name__, str(error).replace("\\n", " "))
stop_session(spark)
"""

SUSPENDED = """
import os, signal, sys, time
from threading import Thread
from platform_assets.settings import load_settings
from platform_assets.spark.session import session as sessions

heartbeats = {
    "spark.network.timeout": "3s",
    "spark.network.timeoutInterval": "100ms",
    "spark.executor.heartbeatInterval": "2900ms",
    # The sign of life that is due on waking then comes after the look for it
    "spark.executor.processTreeMetrics.enabled": "true",
}
settings = load_settings(state=sys.argv[1], jars=sys.argv[2], spark_driver_memory="1g", spark_conf=heartbeats)
spark = sessions.create_session(settings, record_classes=False)
jvm = spark.sparkContext._gateway.proc.pid

def suspend():
    for _ in range(4):
        time.sleep(1)
        os.kill(jvm, signal.SIGSTOP)
        time.sleep(4)
        os.kill(jvm, signal.SIGCONT)

suspending = Thread(target=suspend)
suspending.start()
while suspending.is_alive():
    print(spark.range(1000, numPartitions=20).repartition(20).count())
print(spark.range(10).count(), flush=True)
os.kill(jvm, signal.SIGSTOP)
sessions.STOPS_WITHIN_S = 1.0
sessions.stop_session(spark)
os.kill(jvm, 0)
"""


@pytest.mark.proof
def test_a_jvm_that_slept_goes_on_and_one_that_never_wakes_is_killed(tmp_path: Path) -> None:
    """Starts a JVM of its own and stops it with signals, for longer than Spark waits for a sign of life."""
    done = subprocess.run(
        [sys.executable, "-c", SUSPENDED, str(tmp_path), str(JARS)], capture_output=True, text=True, timeout=120
    )
    assert "ProcessLookupError" in done.stderr, done.stderr
    assert set(done.stdout.split()) == {"1000", "10"}
    log = (tmp_path / "logs" / "spark.log").read_text()
    assert "no recent heartbeats" not in log


@pytest.mark.proof
def test_a_killed_jvm_is_told_as_such_with_what_to_set(tmp_path: Path) -> None:
    """Starts a JVM of its own to kill it; no file that was being read is blamed."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), str(JARS)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3, done.stdout
    for line in lines:
        assert line.startswith("SparkLostError Spark's JVM was ended by SIGKILL in the middle of work")
        assert "PLATFORM_SPARK_DRIVER_MEMORY (1g now)" in line
        assert "refused" not in line


def test_memory_that_is_not_enough_is_told_with_what_to_set() -> None:
    said = "Job aborted due to stage failure: Lost task 0.0 (driver): java.lang.OutOfMemoryError: Java heap space"
    with pytest.raises(SparkLostError, match=r"2g now.*PLATFORM_BATCH_DAYS"), lost_spark_explained(SETTINGS):
        raise PySparkException(said)


@pytest.mark.parametrize(
    "said",
    [
        "Job 7 cancelled because SparkContext was shut down",
        "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.",
        'Cannot invoke "x.y()" because the return value of "org.apache.spark.SparkContext.dagScheduler()" is null',
    ],
)
def test_a_session_that_ended_by_itself_is_told(said: str) -> None:
    with pytest.raises(SparkLostError, match="suspended"), lost_spark_explained(SETTINGS):
        raise PySparkException(said)


@pytest.mark.parametrize(
    "error",
    [
        PySparkException("[FAILED_READ_FILE] file:///landing/java.lang.OutOfMemoryError.csv"),
        ConnectionRefusedError(111, "Connection refused"),
        ValueError("something else"),
    ],
)
def test_what_has_another_reason_passes(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    with pytest.raises(type(error)), lost_spark_explained(SETTINGS):
        raise error


def test_what_an_interruption_leaves_behind_is_no_lost_spark() -> None:
    def interrupted() -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise Py4JError("Answer from Java side is empty")  # noqa: B904 - as a clean-up does that fails

    with pytest.raises(Py4JError), lost_spark_explained(SETTINGS):
        interrupted()


def test_a_jvm_that_takes_no_connection_any_more_is_told_though_its_process_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As one that dies for want of memory: what was asked then fails as any connection does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    setattr(gateway, "proc", process)  # noqa: B010 - as PySpark does, of which its types know nothing
    monkeypatch.setattr(SparkContext, "_gateway", gateway)
    try:
        with pytest.raises(SparkLostError, match="JVM does not answer any more"), lost_spark_explained(SETTINGS):
            socket.create_connection(("127.0.0.1", port))
    finally:
        process.kill()
        process.wait()
