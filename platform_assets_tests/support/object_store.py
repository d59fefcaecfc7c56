"""Real stores for tests on this machine: s3proxy, and Azurite, the emulator of Azure's blobs."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from platform_assets.settings import load_settings
from platform_assets.spark.session.jars import Jar, JarsError, bring
from platform_assets.spark.session.java import JavaError, find_java
from platform_assets_tests.support.installation import JARS
from platform_assets_tests.support.places import STORED
from platform_assets_tests.support.processes import free_port, wait

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
    port = free_port()
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


HOW_TO_GET_AZURITE = (
    "no emulator of Azure to test with: `npm install azurite@3.35.0` in some folder, and its node_modules/.bin in PATH"
)
CONTAINER = "lakes"
_ACCOUNT = "devstoreaccount1"
_ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Of every Azurite, as its documentation says."""
_API_VERSION = "2021-12-02"


@dataclass(frozen=True)
class Azurite:
    """A running server with one container.

    Args:
        environ: how programs find it, as variables.
        port: where it listens.
    """

    environ: dict[str, str]
    port: int

    @property
    def url(self) -> str:
        """Of the container."""
        return f"abfss://{CONTAINER}@{_ACCOUNT}.dfs.core.windows.net"

    def token(self, may: str) -> str:
        """A shared access signature for the container.

        Args:
            may: what it allows, by Azure's letters: `r`ead, `c`reate, `w`rite, `d`elete, `l`ist.
        """
        ends = "2099-01-01T00:00:00Z"
        signed = (may, "", ends, f"/blob/{_ACCOUNT}/{CONTAINER}", "", "", "", _API_VERSION, "c", *[""] * 7)
        said = {"sv": _API_VERSION, "sr": "c", "se": ends, "sp": may, "sig": _signed("\n".join(signed))}
        return "&".join(f"{name}={value.replace('+', '%2B').replace('/', '%2F')}" for name, value in said.items())


def _signed(text: str) -> str:
    return base64.b64encode(hmac.new(base64.b64decode(_ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()).decode()


@contextmanager
def running_azurite(folder: Path) -> Iterator[Azurite]:
    """Start a server that keeps its objects below a folder, and stop it again."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip(HOW_TO_GET_AZURITE)
    folder.mkdir(exist_ok=True)
    port = free_port()
    said = ("--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder))
    with (folder / "azurite.log").open("wb") as log:
        server = subprocess.Popen(
            [program, *said, "--silent", "--disableTelemetry"], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    azurite = Azurite(
        {
            "AZURE_STORAGE_ACCOUNT_KEY": _ACCOUNT_KEY,
            # Without it libraries ask for the end of a listing only, which it cannot do: it sends all
            "AZURE_STORAGE_USE_EMULATOR": "true",
            "AZURITE_BLOB_STORAGE_URL": f"http://127.0.0.1:{port}",
        },
        port,
    )
    try:
        wait(port)
        _make_container(port)
        STORED[azurite.url] = None
        yield azurite
    finally:
        server.terminate()
        server.wait()


def _make_container(port: int) -> None:
    """What no library here does: they take containers as they are."""
    now = formatdate(usegmt=True)
    headers = f"x-ms-date:{now}\nx-ms-version:{_API_VERSION}"
    what = f"/{_ACCOUNT}/{_ACCOUNT}/{CONTAINER}\nrestype:container"
    request = Request(f"http://127.0.0.1:{port}/{_ACCOUNT}/{CONTAINER}?restype=container", b"", method="PUT")
    request.add_header("Content-Type", "text/plain")
    request.add_header("x-ms-date", now)
    request.add_header("x-ms-version", _API_VERSION)
    signature = _signed("\n".join(["PUT", *[""] * 4, "text/plain", *[""] * 6, headers, what]))
    request.add_header("Authorization", f"SharedKey {_ACCOUNT}:{signature}")
    urlopen(request, timeout=30).close()


@pytest.fixture(scope="session")
def azurite_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """One server for the tests of a process."""
    with running_azurite(tmp_path_factory.mktemp("azurite")) as azurite:
        yield azurite


@pytest.fixture
def azurite(azurite_server: Azurite, monkeypatch: pytest.MonkeyPatch) -> Azurite:
    """The server, found by this process and those that it starts."""
    for name, value in azurite_server.environ.items():
        monkeypatch.setenv(name, value)
    return azurite_server
