"""Commands whose Spark is a cluster that shares nothing with them but a bucket."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from glob import glob
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import pytest

from platform_assets.settings import load_settings
from platform_assets.spark.session.jars import spark_jars
from platform_assets.spark.session.java import find_java
from platform_assets_tests.support.cluster import Cluster, running_cluster
from platform_assets_tests.support.installation import JARS
from platform_assets_tests.support.object_store import ObjectStore


class Start(Protocol):
    """Starts a command with what it sees besides the variables of this process."""

    def __call__(self, *args: str, environment: Mapping[str, str]) -> subprocess.Popen[str]: ...


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One for the tests of this module; each leaves it with two workers."""
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture
def elsewhere(cluster: Cluster, object_store: ObjectStore) -> Mapping[str, str]:
    """Settings by which an installation computes on the cluster."""
    return {
        "PLATFORM_SPARK_MASTER": cluster.master,
        "PLATFORM_LAKE": f"{object_store.url}/{uuid4().hex}/lake",
        "PLATFORM_SPARK_CONF": json.dumps(cluster.conf()),
        "HADOOP_CONF_DIR": str(cluster.hadoop),
    }


@pytest.fixture
def behind_connect(cluster: Cluster, object_store: ObjectStore) -> Iterator[Mapping[str, str]]:
    """Settings by which an installation computes in a Spark Connect server of somebody else's."""
    bucket = f"{object_store.url}/{uuid4().hex}/lake"
    jars = spark_jars(load_settings(jars=JARS, lake=bucket), find_java())
    remote = cluster.start_connect("connect", jars, object_store)
    yield {"PLATFORM_SPARK_REMOTE": remote, "PLATFORM_LAKE": bucket, "PLATFORM_SPARK_CONF": "{}"}
    cluster.kill("connect")


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a command as a process of its own, which is not waited for, and ends with the test."""
    started: list[subprocess.Popen[str]] = []

    def command(*args: str, environment: Mapping[str, str]) -> subprocess.Popen[str]:
        own = {"PLATFORM_SPARK_DRIVER_MEMORY": "1g", "COLUMNS": "200", **environment}
        started.append(subprocess.Popen(
            [sys.executable, "-c", "from platform_assets.cli import main; main()", *args],
            env=os.environ | own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        ))  # fmt: skip
        return started[-1]

    yield command
    for process in started:
        with process:
            process.kill()


def wait_for(what: Path, pattern: str, process: subprocess.Popen[str]) -> None:
    """Until something lies in the bucket."""
    until = time.monotonic() + 240
    # Unlike pathlib's, it passes over a folder that is being removed.
    while not glob(f"**/{pattern}", root_dir=what, recursive=True):  # noqa: PTH207
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < until, f"no {pattern} in {what}"
        time.sleep(0.05)


def folder_of(store: ObjectStore, settings: Mapping[str, str]) -> Path:
    """Where the lake of an installation lies as files."""
    return store.folder / settings["PLATFORM_LAKE"].removeprefix(f"{store.url}/")
