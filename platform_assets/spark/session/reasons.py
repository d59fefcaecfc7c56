"""What Spark, Java or gRPC said of an error, in a line, and whether the error itself may be shown."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError

from platform_assets.settings import Settings
from platform_assets.spark.session.hidden import without_secrets

_DETAILS = re.compile(r'(?m)^\s*details = "(.*)"$')
"""What gRPC says, among what it says around it."""


def reason_of(error: Exception) -> str:
    """What went wrong: Java's own message where the error came from there, asked for while its process is alive."""
    text = str(error.java_exception.toString() if isinstance(error, Py4JJavaError) else error)
    if of_grpc := _DETAILS.search(text):
        return of_grpc[1]
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)


def cause_of(error: Exception, settings: Settings) -> Exception | None:
    """The error itself, where whoever looks into it finds no secret."""
    text = str(error)
    return error if without_secrets(text, settings) == text else None
