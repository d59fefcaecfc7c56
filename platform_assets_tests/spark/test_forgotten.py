"""Java forgets what Python has in bulk: a little is kept, much is not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from platform_assets.spark.session.forgotten import keep_forgotten


@pytest.fixture
def gateway(spark: SparkSession) -> Iterator[Any]:
    found = cast("Any", spark.sparkContext)._gateway
    while found._gateway_client.finalizer_deque:  # what others before have forgotten
        time.sleep(0.1)
    keep_forgotten(found)
    yield found
    del found._gateway_client.garbage_collect_object


def test_a_few_objects_are_kept_and_many_are_forgotten(gateway: Any) -> None:
    kept = gateway.java_gateway_server.getGateway().getBindings()
    few = [gateway.jvm.java.util.ArrayList() for _ in range(50)]
    among = int(kept.size())
    few.clear()
    time.sleep(1.5)  # whoever tells looks every second
    assert int(kept.size()) >= among
    many = [gateway.jvm.java.util.ArrayList() for _ in range(1500)]
    among = int(kept.size())
    many.clear()
    until = time.monotonic() + 30
    while int(kept.size()) > among - 1000 and time.monotonic() < until:
        time.sleep(0.1)
    assert int(kept.size()) <= among - 1000
