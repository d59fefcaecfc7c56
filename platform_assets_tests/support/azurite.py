"""Azure's blob storage for tests: its emulator, Azurite, on this machine; programs find it as they find Azure."""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from platform_assets_tests.support.cluster import free_port, wait
from platform_assets_tests.support.places import STORED

HOW_TO_GET_IT = (
    "no emulator of Azure to test with: `npm install azurite@3.35.0` in some folder, and its node_modules/.bin in PATH"
)
CONTAINER = "lakes"
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Of every Azurite, as its documentation says."""
_VERSION = "2021-12-02"


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
        signed = (may, "", ends, f"/blob/{_ACCOUNT}/{CONTAINER}", "", "", "", _VERSION, "c", *[""] * 7)
        said = {"sv": _VERSION, "sr": "c", "se": ends, "sp": may, "sig": _signed("\n".join(signed))}
        return "&".join(f"{name}={value.replace('+', '%2B').replace('/', '%2F')}" for name, value in said.items())


def _signed(text: str) -> str:
    return base64.b64encode(hmac.new(base64.b64decode(_KEY), text.encode(), hashlib.sha256).digest()).decode()


@contextmanager
def running_azurite(folder: Path) -> Iterator[Azurite]:
    """Start a server that keeps its objects below a folder, and stop it again."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip(HOW_TO_GET_IT)
    folder.mkdir(exist_ok=True)
    port = free_port()
    said = ("--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder))
    with (folder / "azurite.log").open("wb") as log:
        server = subprocess.Popen(
            [program, *said, "--silent", "--disableTelemetry"], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    azurite = Azurite(
        {
            "AZURE_STORAGE_ACCOUNT_KEY": _KEY,
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
    headers = f"x-ms-date:{now}\nx-ms-version:{_VERSION}"
    what = f"/{_ACCOUNT}/{_ACCOUNT}/{CONTAINER}\nrestype:container"
    request = Request(f"http://127.0.0.1:{port}/{_ACCOUNT}/{CONTAINER}?restype=container", b"", method="PUT")
    request.add_header("Content-Type", "text/plain")
    request.add_header("x-ms-date", now)
    request.add_header("x-ms-version", _VERSION)
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
