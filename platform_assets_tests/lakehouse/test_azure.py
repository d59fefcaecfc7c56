"""A lake in a container of Azure's: what is said of one that is not there, of wrong credentials, of an emulator's ways.

The server is Azurite. What is alike for all kinds of storage is shown where it is shown of a disk.
"""

from __future__ import annotations

import base64
import traceback
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from uuid import uuid4

import pytest

from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import Lake, located
from platform_assets.lakehouse.storage import object_store
from platform_assets.settings import load_settings
from platform_assets.sources.listing import landing_area
from platform_assets_tests.support.http import Quiet, serving
from platform_assets_tests.support.object_store import Azurite

pytestmark = pytest.mark.proof


@pytest.fixture(autouse=True)
def _anew() -> None:
    """Clients are made once for a container, with the credentials of that moment."""
    object_store._client_of.cache_clear()


@pytest.fixture
def root(azurite: Azurite) -> object_store.Stored:
    return object_store.Stored.of(f"{azurite.url}/{uuid4().hex}/lake")


@pytest.fixture
def lake(root: object_store.Stored, tmp_path: Path) -> Lake:
    return Lake(root, lock_folder=located(tmp_path / "locks"))


def refused(lake: Lake) -> LakeError:
    """What is said when it is tried."""
    with pytest.raises(LakeError) as caught:
        object_store.try_store(object_store.Stored.of(str(lake.root)))
    return caught.value


def test_it_is_tried_and_nothing_is_left(root: object_store.Stored) -> None:
    object_store.try_store(root)
    assert root.files() == {}


def test_a_container_that_is_not_there_is_named(azurite: Azurite, lake: Lake, tmp_path: Path) -> None:
    elsewhere = azurite.url.replace("lakes@", "no-such@")
    error = refused(Lake.at(f"{elsewhere}/lake"))
    assert f"There is no bucket {elsewhere} in this object store" in error.what
    with pytest.raises(LakeError, match="There is no bucket"):
        (located(f"{elsewhere}/lake") / "file").receive([b"1"])
    problem = landing_area(load_settings(state=tmp_path / "state", landing=f"{elsewhere}/deliveries")).problem()
    assert problem is not None
    assert f"There is no bucket {elsewhere}" in problem.what


@pytest.mark.parametrize("key", [base64.b64encode(b"planted-s3cr3t").decode(), "planted s3cr3t"])
def test_a_key_that_is_wrong_is_refused_before_any_work_and_not_shown(
    lake: Lake, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", key)
    error = refused(lake)
    assert "may not be read or written" in error.what
    assert "AZURE_STORAGE_ACCOUNT_KEY" in error.todo
    assert key not in "".join(traceback.format_exception(error))
    with pytest.raises(LakeError, match="may not be read or written"):
        lake.root.files()


def test_what_a_signature_does_not_allow_is_told_without_it(
    azurite: Azurite, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Azurite takes signatures only of those who do not know it for an emulator."""
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_KEY")
    monkeypatch.delenv("AZURE_STORAGE_USE_EMULATOR")
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", f"http://127.0.0.1:{azurite.port}/devstoreaccount1")
    monkeypatch.setenv("AZURE_ALLOW_HTTP", "true")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", azurite.token("rl"))
    assert lake.root.names() == []
    error = refused(lake)
    assert "may not be read or written" in error.what
    assert "not authorized to perform this operation" in error.what
    assert "sig=" not in "".join(traceback.format_exception(error))
    object_store._client_of.cache_clear()
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", azurite.token("rcwdl"))
    (lake.root / "file").replace(b"1")
    assert lake.root.names() == ["file"]


@pytest.fixture
def without_conditions(azurite: Azurite) -> Iterator[int]:
    """The port of a store like Azure's that has no conditional writes: Azurite, which never hears of a condition."""

    class Unconditional(Quiet):
        protocol_version = "HTTP/1.1"

        def respond(self) -> None:
            content = self.content()
            asked = {name: value for name, value in self.headers.items() if name.lower() != "if-none-match"}
            there = HTTPConnection("127.0.0.1", azurite.port, timeout=30)
            there.request(self.command, self.path, content, asked)
            answer = there.getresponse()
            body = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "content-length", "keep-alive"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            there.close()

    with serving(Unconditional) as port:
        yield port


def test_a_store_without_conditional_writes_is_refused(
    azurite: Azurite, lake: Lake, without_conditions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Conditions are part of what a key signs, and not of what a signature allows."""
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_KEY")
    monkeypatch.delenv("AZURE_STORAGE_USE_EMULATOR")
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", f"http://127.0.0.1:{without_conditions}/devstoreaccount1")
    monkeypatch.setenv("AZURE_ALLOW_HTTP", "true")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", azurite.token("rcwdl"))
    error = refused(lake)
    assert "has no conditional writes: of two that wrote the same new file, both succeeded" in error.what
    assert "Azure" in error.todo
    assert lake.root.files() == {}, "nothing is left of the trial"


def test_what_hadoop_leaves_for_a_folder_is_no_file(root: object_store.Stored) -> None:
    """An empty object with the folder's name, beside what lies in it."""
    for path in ("gold", "gold/day=1", "gold/day=1/part", "gold/day=1-part", "empty"):
        (root / path).replace(b"1" if path.endswith("part") else b"")
    assert set(root.files()) == {"gold/day=1/part", "gold/day=1-part", "empty"}
    assert root.names() == ["empty", "gold"]
    assert [folder.name for folder in root.folders()] == ["gold"]
    (root / "gold").remove()
    assert root.names() == ["empty"]


def test_a_version_that_was_listed_is_the_one_that_is_read(root: object_store.Stored) -> None:
    """Azure lists versions without the quotes that it asks for them in."""
    (root / "file").replace(b"1")
    seen = root.files()["file"]
    assert seen.e_tag.startswith('"')
    assert b"".join(root.pieces("file", seen.e_tag)) == b"1"
    (root / "file").replace(b"2")
    with pytest.raises(object_store.OtherObjectError):
        list(root.pieces("file", seen.e_tag))
