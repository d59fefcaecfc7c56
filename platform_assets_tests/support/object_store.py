"""A real object store for tests: s3proxy on this machine, brought like Spark's jars; what it keeps lies in a folder."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from platform_assets.settings import load_settings
from platform_assets.spark.session.jars import Jar, JarsError, bring
from platform_assets.spark.session.java import JavaError, find_java
from platform_assets_tests.support.installation import JARS
from platform_assets_tests.support.places import STORED

SERVER = Jar(
    "org.gaul",
    "s3proxy",
    "4.1.0",
    "a4d025969aaf796616ed4b1e2491d87d455ce84bb28cb9db086b2e6aaa68b48d",
    classifier="jar-with-dependencies",
)
HOW_TO_GET_IT = "no object store to test with: connect to the network once, s3proxy comes from Maven's registry"
BUCKET = "lakes"
_ANSWERS_WITHIN_S = 60
_PROPERTIES = """\
s3proxy.endpoint=http://127.0.0.1:{port}
s3proxy.authorization=aws-v2-or-v4
s3proxy.identity={key}
s3proxy.credential={secret}
jclouds.provider=filesystem-nio2
jclouds.filesystem.basedir={folder}
"""
_KEY, _SECRET = "a-key-of-tests", "a-secret-of-tests"


@dataclass(frozen=True)
class ObjectStore:
    """A running server with one bucket.

    Args:
        environ: how programs find it, as variables.
        folder: where what is stored lies as files, for tests that look there or damage something.
    """

    environ: dict[str, str]
    folder: Path

    @property
    def url(self) -> str:
        """Of the bucket."""
        return f"s3://{BUCKET}"


@contextmanager
def running_store(folder: Path) -> Iterator[ObjectStore]:
    """Start a server that keeps its objects below a folder, and stop it again."""
    (folder / "data" / BUCKET).mkdir(parents=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    properties = folder / "s3proxy.properties"
    properties.write_text(_PROPERTIES.format(port=port, key=_KEY, secret=_SECRET, folder=folder / "data"))
    try:
        java = find_java()
        (jar,) = bring(load_settings(state=folder / "state", jars=JARS), java, (SERVER,))
    except (JarsError, JavaError):
        pytest.skip(HOW_TO_GET_IT)
    options = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-Djava.util.logging.config.file=/dev/null")
    with (folder / "s3proxy.log").open("wb") as log:
        server = subprocess.Popen(
            [java.executable, *options, "-jar", jar, "--properties", properties],
            env={**os.environ, "LOG_LEVEL": "error"}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        _wait(f"http://127.0.0.1:{port}/")
        environ = {
            "AWS_ACCESS_KEY_ID": _KEY,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ALLOW_HTTP": "true",
        }
        STORED[f"s3://{BUCKET}"] = folder / "data" / BUCKET
        yield ObjectStore(environ, folder / "data" / BUCKET)
    finally:
        server.terminate()
        server.wait()


def _wait(url: str) -> None:
    deadline = time.monotonic() + _ANSWERS_WITHIN_S
    while time.monotonic() < deadline:
        with suppress(OSError):  # it refuses, or takes long to answer for the first time
            try:
                urlopen(url, timeout=5)
            except HTTPError:
                return  # it answers that nobody may look
            return
        time.sleep(0.1)
    raise TimeoutError(f"s3proxy does not answer at {url}")


@pytest.fixture(scope="session")
def store_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """One server for the tests of a process."""
    with running_store(tmp_path_factory.mktemp("object-store")) as store:
        yield store


@pytest.fixture
def object_store(store_server: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """The server, found by this process and those that it starts."""
    for name, value in store_server.environ.items():
        monkeypatch.setenv(name, value)
    return store_server
