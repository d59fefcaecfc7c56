"""Explain why Spark does not start or work, without the secrets in its errors."""

from __future__ import annotations

import re
import socket
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from platform_assets.settings import Settings
from platform_assets.spark.session.java import HADOOP_FOLDERS

_DETAILS = re.compile(r'(?m)^\s*details = "(.*)"$')
"""What gRPC says, among what it says around it."""

_OF_YARN = re.compile(r"(?m)Diagnostics: *(?:\[[^\]]*\])?(.*\S)")
"""YARN's diagnostics of a failed container."""

_SECRET = re.compile(r"secret|password|passwd|token|credential|(access|account|encryption|api)[._-]?key", re.IGNORECASE)
"""Names of settings whose values are secret, as Spark's own logs have it, and a few more."""
_OPEN_PARAMETERS = ("use_ssl", "user_agent", "session_id")
"""Of a Spark Connect URL; all others are hidden."""
_HIDDEN = "***"


def reason_of(error: Exception) -> str:
    """Return the reason of a failure: Java's own message if there is one, read while its process is alive."""
    in_java = getattr(error, "java_exception", None)  # of py4j, which `admin doctor` does not import
    text = str(error if in_java is None else in_java.toString())
    if of_grpc := _DETAILS.search(text):
        return of_grpc[1]
    first = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    of_yarn = _OF_YARN.search(text)
    return f"{first}: {of_yarn[1]}" if of_yarn and of_yarn[1] not in first else first


def cause_of(error: Exception, settings: Settings) -> Exception | None:
    """Return the error itself if it contains no secret."""
    text = str(error)
    return error if without_secrets(text, settings) == text else None


def without_secrets(text: str, settings: Settings) -> str:
    """Return a text without any secret of the settings."""
    for secret in sorted(filter(None, _secrets(settings)), key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text


def _secrets(settings: Settings) -> Iterator[str]:
    yield from (value for name, value in settings.spark_conf.items() if _SECRET.search(name))
    if settings.spark_remote:
        address, *parameters = settings.spark_remote.get_secret_value().split(";")
        yield address.rpartition("@")[0].rpartition("/")[2]  # a user name does not belong here, but may be there
        for name, _, value in (parameter.partition("=") for parameter in parameters):
            if name not in _OPEN_PARAMETERS:
                yield value


_WITHIN_S = 5.0
_PORT_OF_CONNECT = 15002
_HOW = {"spark": 7077, "k8s": 443}
"""Of masters that are reached at an address, and the port where it has none."""

SET_HADOOP_FOLDER = "Set HADOOP_CONF_DIR to the folder with the cluster's yarn-site.xml."
"""What to do where it is not found."""


def places_of(settings: Settings) -> tuple[tuple[str, int], ...]:
    """Return host and port of the Connect server, or of each master; none if Spark runs here or by another scheme."""
    if settings.spark_remote:
        address = settings.spark_remote.get_secret_value().partition(";")[0]
        return _place(address.removeprefix("sc://"), _PORT_OF_CONNECT)
    kind, _, addresses = settings.spark_master.partition("://")
    if kind not in _HOW:
        return ()
    each = (address.rpartition("://")[2] for address in addresses.split(","))
    return tuple(place for address in each for place in _place(address, _HOW[kind]))


def what_is_asked(settings: Settings) -> tuple[str, str]:
    """Return the servers at the places of the settings, and the setting that names them."""
    if settings.spark_remote:
        return "Spark Connect", "PLATFORM_SPARK_REMOTE"
    return "Spark's master", "PLATFORM_SPARK_MASTER"


def why_unreachable(places: tuple[tuple[str, int], ...]) -> str:
    """Return the error of each address, if none of them can be reached; else empty."""
    said: list[str] = []
    for host, port in places:
        try:
            socket.create_connection((host, port), _WITHIN_S).close()
        except OSError as error:
            said.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return ""
    return "; ".join(said)


def _place(address: str, otherwise: int) -> tuple[tuple[str, int], ...]:
    try:
        parts = urlsplit(f"//{address}")
        return ((parts.hostname, parts.port or otherwise),) if parts.hostname else ()
    except ValueError:  # an invalid port, which Spark reports
        return ()


def why_no_yarn(environ: Mapping[str, str], spark_conf: Collection[str]) -> str:
    """Return why Spark cannot find YARN by files or properties; empty if it can."""
    folders = [Path(environ[name]) for name in HADOOP_FOLDERS if environ.get(name)]
    if not folders:
        return f"{' or '.join(HADOOP_FOLDERS)} is to name the folder of yarn-site.xml, and is not set"
    is_named = any(name.startswith("spark.hadoop.yarn.resourcemanager.") for name in spark_conf)
    if is_named or any((folder / "yarn-site.xml").is_file() for folder in folders):
        return ""
    return f"there is no yarn-site.xml in {' or '.join(map(str, folders))}"
