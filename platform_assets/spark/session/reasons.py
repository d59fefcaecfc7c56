"""What Spark, Java or gRPC said of an error, in a line, and whether the error itself may be shown."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError

from platform_assets.settings import Settings
from platform_assets.spark.session.hidden import without_secrets

_DETAILS = re.compile(r'(?m)^\s*details = "(.*)"$')
"""What gRPC says, among what it says around it."""

_OF_YARN = re.compile(r"(?m)Diagnostics: *(?:\[[^\]]*\])?(.*\S)")
"""What YARN says of a container that failed, below a line of which ended how often."""


def reason_of(error: Exception) -> str:
    """What went wrong: Java's own message where the error came from there, asked for while its process is alive."""
    text = str(error.java_exception.toString() if isinstance(error, Py4JJavaError) else error)
    if of_grpc := _DETAILS.search(text):
        return of_grpc[1]
    first = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    of_yarn = _OF_YARN.search(text)
    return f"{first}: {of_yarn[1]}" if of_yarn and of_yarn[1] not in first else first


def cause_of(error: Exception, settings: Settings) -> Exception | None:
    """The error itself, where whoever looks into it finds no secret."""
    text = str(error)
    return error if without_secrets(text, settings) == text else None
