"""Borrow a JVM that another process keeps ready, work with it in a session of one's own, and give it back.

Who keeps it listens at a socket that only this user can open, and leaves a link to it in the state folder. Who asks
says what the JVM has to be like, and gets the port and the secret of its gateway, or hears that it is not to be had.
The connection stays open as long as the JVM is worked with: where it ends without a word, the keeper knows that whoever
worked with it is dead.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaGateway
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from platform_assets.access import is_ours_alone
from platform_assets.settings import Settings
from platform_assets.spark.session.jvm import end_jvm, remember_classes

DONE = b"done\n"
"""What is said where the work has ended in order."""

_ANSWERS_WITHIN_S = 3.0
"""Who keeps a JVM and takes longer has stopped: a JVM of one's own is then the quicker way."""
_STARTS_WITHIN_S = 60.0
_LONGEST_ANSWER = 4096


@dataclass(frozen=True)
class Lease:
    """The right to work with a JVM of another process, which nobody else has meanwhile."""

    port: int
    secret: str = field(repr=False)
    connection: socket.socket

    def give_back(self) -> None:
        """Say that the work has ended in order."""
        with suppress(OSError):  # of a keeper that is gone, with its JVM
            self.connection.sendall(DONE)
        self.connection.close()


def link_to_keeper(settings: Settings) -> Path:
    """Return where an installation's keeper leaves the way to its socket; a socket's own path has to be short."""
    return settings.state / "warm.sock"


def borrow(settings: Settings, key: str) -> Lease | None:
    """Ask for the JVM that is kept ready.

    Args:
        key: what the JVM has to be like; one that was started with anything else is not given.

    Returns:
        None where there is none, somebody else works with it, it was started with other settings, or nobody answers.
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
    """Return a line of JSON that the other side says.

    Raises:
        ValueError: it says something else, or nothing more.
        OSError: it cannot be reached, or takes too long.
    """
    said = connection.makefile("rb", buffering=0).readline(_LONGEST_ANSWER)  # not buffered: the next line stays there
    if not said.endswith(b"\n"):
        raise ValueError("no whole line")
    found = json.loads(said)
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found


def _keeper(link: Path) -> str | None:
    """Return the keeper's socket; None where there is none, or others could have put it, or the link, in its place."""
    try:
        if link.lstat().st_uid != os.geteuid():
            return None
        place = link.readlink()
        return str(place) if is_ours_alone(place) and is_ours_alone(place.parent) else None
    except OSError:
        return None


_LEASES: WeakKeyDictionary[JavaGateway, Lease] = WeakKeyDictionary()


def attached(port: int, secret: str) -> SparkSession:
    """Return the session of this process in a JVM where Spark runs already, with settings and views of its own.

    Raises:
        Py4JError: it does not answer.
        OSError: nobody is there.
    """
    with _told_of(port, secret):
        gateway = launch_gateway()
    remember_classes(gateway)
    first = gateway.jvm.org.apache.spark.sql.classic.SparkSession.getDefaultSession().get()
    java = gateway.jvm.JavaSparkContext(first.sparkContext())
    conf = SparkConf(_jvm=gateway.jvm, _jconf=java.getConf())
    return SparkSession(SparkContext(gateway=gateway, jsc=java, conf=conf), first.newSession())


def attached_by(lease: Lease) -> SparkSession:
    """Return the session of this process in a JVM that was lent to it, until `detach`."""
    spark = attached(lease.port, lease.secret)
    _LEASES[cast("Any", spark.sparkContext)._gateway] = lease
    return spark


def lease_of_jvm() -> Lease | None:
    """Return by what right this process works with another one's JVM; None where it has its own, or none."""
    gateway = SparkContext._gateway
    return None if gateway is None else _LEASES.get(gateway)


def detach(spark: SparkSession, lease: Lease) -> None:
    """Leave a JVM that was lent, and give it back."""
    context = cast("Any", spark.sparkContext)
    context._jsc = None  # it would be stopped otherwise, for all that come after
    context.stop()
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
    end_jvm()
    lease.give_back()


@contextmanager
def _told_of(port: int, secret: str) -> Iterator[None]:
    """Set it as variables, as PySpark takes it; nothing else that this process starts is to have them."""
    told = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ.update(told)
    try:
        yield
    finally:
        for name in told:
            os.environ.pop(name, None)
