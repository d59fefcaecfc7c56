"""Of what Spark says when it fails, people get the line that tells why."""

from __future__ import annotations

from platform_assets.spark.session.reasons import reason_of

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
