"""Say in a line what Spark, Java or gRPC said of an error, without the secrets that it was given."""

from __future__ import annotations

import re
from collections.abc import Iterator

from py4j.protocol import Py4JJavaError

from platform_assets.settings import Settings

_DETAILS = re.compile(r'(?m)^\s*details = "(.*)"$')
"""What gRPC says, among what it says around it."""

_OF_YARN = re.compile(r"(?m)Diagnostics: *(?:\[[^\]]*\])?(.*\S)")
"""What YARN says of a container that failed, below a line of which ended how often."""

_SECRET = re.compile(r"secret|password|passwd|token|credential|(access|account|encryption|api)[._-]?key", re.IGNORECASE)
"""Names of settings whose values are secret, as Spark's own logs have it, and a few more."""
_OPEN_PARAMETERS = ("use_ssl", "user_agent", "session_id")
"""Of a Spark Connect URL; all others are hidden."""
_HIDDEN = "***"


def reason_of(error: Exception) -> str:
    """Return what went wrong: Java's own message where it came from there, asked for while its process is alive."""
    text = str(error.java_exception.toString() if isinstance(error, Py4JJavaError) else error)
    if of_grpc := _DETAILS.search(text):
        return of_grpc[1]
    first = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    of_yarn = _OF_YARN.search(text)
    return f"{first}: {of_yarn[1]}" if of_yarn and of_yarn[1] not in first else first


def cause_of(error: Exception, settings: Settings) -> Exception | None:
    """Return the error itself, where whoever looks into it finds no secret."""
    text = str(error)
    return error if without_secrets(text, settings) == text else None


def without_secrets(text: str, settings: Settings) -> str:
    """Return a text in which no secret of the settings is left."""
    for secret in sorted(filter(None, _secrets(settings)), key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text


def _secrets(settings: Settings) -> Iterator[str]:
    yield from (value for name, value in settings.spark_conf.items() if _SECRET.search(name))
    if settings.spark_remote:
        address, *parameters = settings.spark_remote.get_secret_value().split(";")
        yield address.rpartition("@")[0].rpartition("/")[2]  # where no user belongs, somebody may have put one
        for name, _, value in (parameter.partition("=") for parameter in parameters):
            if name not in _OPEN_PARAMETERS:
                yield value
