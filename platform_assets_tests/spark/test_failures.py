"""What Spark says is told by its reason, without secrets, and is the fault of a file or of the machine."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from platform_assets.cli.session import session_on_demand
from platform_assets.progress import no_progress
from platform_assets.settings import Settings, load_settings
from platform_assets.spark.session.reasons import reason_of, without_secrets
from platform_assets.spark.tables.failures import DiskFullError, complaint, full_disk_explained

READING = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file {}. SQLSTATE: KD001"


TASK = "Job aborted due to stage failure: Lost task 0.0 in stage 1.0 (TID 3) (driver): {}\n\tat org.x.Y.z(Y.java:1)"


class Java:
    """An error of Java's, as Python sees it."""

    cause: Java | None = None

    def __init__(self, said: str) -> None:
        self.said = said

    def toString(self) -> str:  # noqa: N802
        return self.said

    def getCause(self) -> Java | None:  # noqa: N802
        return self.cause


@pytest.mark.parametrize(
    "name",
    [
        "cancelled-orders.parquet",
        "Job%207%20cancelled.csv",
        "SparkContext/java.lang.OutOfMemoryError.jsonl",
        "No%20space%20left%20on%20device",
    ],
)
def test_a_file_is_to_blame_whatever_it_is_called(name: str) -> None:
    said = READING.format(f"file:///landing/orders/2017-01-01/{name}")
    error = PySparkException(said)
    assert "does not match its own metadata" in (complaint(error) or ""), "and says nothing of where it lies"
    with pytest.raises(PySparkException, match="FAILED_READ_FILE"), full_disk_explained("a stage"):
        raise error


def test_a_file_is_to_blame_for_a_name_that_is_no_address() -> None:
    said = TASK.format("java.net.URISyntaxException: Relative path in absolute URI")
    assert complaint(PySparkException(said))


def test_what_is_said_is_the_cause_without_the_place() -> None:
    class Caused(PySparkException):
        _origin = Java("org.apache.spark.SparkException: " + READING.format("file:///landing/a.parquet"))

    Caused._origin.cause = Java("java.lang.ArithmeticException: long overflow\n\tat java.lang.Math")
    assert complaint(Caused(READING.format("file:///landing/a.parquet"))) == "long overflow"


@pytest.mark.parametrize(
    "said",
    ['java.lang.NullPointerException: Cannot invoke "x.Y.z()" because "a" is null', "java.lang.NullPointerException"],
)
def test_what_is_about_a_program_is_not_said_of_a_file(said: str) -> None:
    class Caused(PySparkException):
        _origin = Java("org.apache.spark.SparkException: " + READING.format("file:///landing/a.parquet"))

    Caused._origin.cause = Java(said)
    reason = complaint(Caused(READING.format("file:///landing/a.parquet")))
    assert reason is not None
    assert reason.startswith("its content does not match its own metadata")


@pytest.mark.parametrize(
    "said",
    [
        TASK.format("java.lang.OutOfMemoryError: Java heap space"),
        TASK.format("org.apache.spark.memory.SparkOutOfMemoryError: [UNABLE_TO_ACQUIRE_MEMORY] none is left"),
        TASK.format("java.io.FileNotFoundException: /landing/a.csv (Too many open files)"),
        TASK.format("java.net.ConnectException: Connection refused"),
        "[SPARK_JOB_CANCELLED] Job 7 cancelled by the user. SQLSTATE: XXKDA",
        "Job 7 cancelled because SparkContext was shut down",
        "Job aborted due to stage failure: Stage 3 was cancelled",
        "Job aborted due to stage failure: Task 4.0 cancelled",
        "java.lang.IllegalStateException: SparkContext has been shutdown",
        "java.lang.InterruptedException",
        "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.",
        TASK.format("org.apache.hadoop.fs.s3a.AWSServiceThrottledException: getFileStatus on s3://lake/a: SlowDown"),
        TASK.format("software.amazon.awssdk.services.s3.model.S3Exception: Access Denied (Status Code: 403)"),
        TASK.format("java.net.SocketTimeoutException: Read timed out"),
    ],
)
def test_the_machine_is_to_blame(said: str) -> None:
    assert complaint(PySparkException(said)) is None


def test_a_full_disk_is_explained() -> None:
    with pytest.raises(DiskFullError, match="a stage could not be written"), full_disk_explained("a stage"):
        raise PySparkException(TASK.format("java.io.IOException: No space left on device"))


def test_what_java_said_of_an_error_that_nobody_expected_is_told_when_java_is_gone(
    spark: SparkSession, settings: Settings
) -> None:
    """A command ends its session before Python shows the error, which then asks Java what it was in vain."""
    secret = settings.model_copy(update={"spark_conf": {"spark.some.password": "open sesame"}})
    with pytest.raises((PySparkException, Py4JJavaError)) as raised, session_on_demand(secret, no_progress) as session:
        session().sparkContext._jvm.java.lang.Integer.parseInt("open sesame")  # type: ignore[union-attr]
    assert 'For input string: "***"' in "".join(raised.value.__notes__)


def test_secrets_of_the_configuration_and_of_a_remote_address_are_hidden_and_nothing_else(settings: Settings) -> None:
    given = load_settings(
        state=settings.state,
        spark_conf={"spark.hadoop.fs.s3a.secret.key": "k3y", "spark.ssl.keyPassword": "k3y-longer", "spark.x": "plain"},
        spark_remote="sc://ada:pw@host:15002/;use_ssl=true;token=t0ken;x-key=other",
    )
    text = "k3y k3y-longer plain sc://ada:pw@host:15002/;use_ssl=true;token=t0ken;x-key=other"
    assert without_secrets(text, given) == "*** *** plain sc://***@host:15002/;use_ssl=true;token=***;x-key=***"
    assert not [secret for secret in ("k3y", "t0ken", "other", "ada:pw") if secret in repr(given) + str(given)]


_OF_YARN = """
org.apache.spark.SparkException: Application application_1_0001 failed 2 times due to AM Container for \
appattempt_1_0001_000002 exited with  exitCode: -1000
Failing this attempt.Diagnostics: [2026-11-27 10:34:02.345]No space available in any of the local directories on vm
For more detailed output, check the application tracking page: http://localhost:8088/ Then click on links to logs.
. Failing the application.
"""


def test_the_first_line_is_the_reason_and_of_yarn_also_what_became_of_the_container() -> None:
    said = reason_of(OSError(_OF_YARN))
    assert said.startswith("org.apache.spark.SparkException: Application application_1_0001 failed 2 times")
    assert said.endswith("exitCode: -1000: No space available in any of the local directories on vm")
    assert reason_of(OSError("\n no\nmore")) == "no"
    assert reason_of(OSError("")) == "OSError"
