"""Working with a JVM that another process started and keeps: in a session of one's own, and leaving it running."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaGateway
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from platform_assets.spark.session.jvm import end_jvm, remember_classes
from platform_assets.spark.session.lease import Lease

_LEASES: WeakKeyDictionary[JavaGateway, Lease] = WeakKeyDictionary()


def attached(port: int, secret: str) -> SparkSession:
    """The session of this process in a JVM where Spark runs already, with settings and views of its own.

    Args:
        port: of the JVM's gateway, on loopback.
        secret: that the gateway asks for.

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
    """The session of this process in a JVM that was lent to it, until `detach`."""
    spark = attached(lease.port, lease.secret)
    _LEASES[cast("Any", spark.sparkContext)._gateway] = lease
    return spark


def lease_of_jvm() -> Lease | None:
    """By what right this process works with another one's JVM; None where it has its own, or none."""
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
    """As PySpark takes it: by variables, which nothing else that this process starts is to have."""
    told = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ.update(told)
    try:
        yield
    finally:
        for name in told:
            os.environ.pop(name, None)
