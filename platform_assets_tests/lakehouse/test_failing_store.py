"""What a publisher and a reader make of an object store that fails: after it has done what it was asked, or before.

The store is s3proxy, with something between that answers errors, refuses, or cuts the connection at one request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import pytest
from obstore.fsspec import FsspecStore

from platform_assets.lakehouse.errors import InterruptedPublicationError, LakeError
from platform_assets.lakehouse.layout import Lake, located
from platform_assets.lakehouse.publish import publish, recover
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.lakehouse.releases import current_release, published
from platform_assets.lakehouse.storage import object_store
from platform_assets.lakehouse.storage.answers import failure
from platform_assets.lakehouse.storage.parquet import damage, opened, row_batches
from platform_assets_tests.support.http import Quiet, serving
from platform_assets_tests.support.object_store import ObjectStore
from platform_assets_tests.support.shelf import SALES, STORES, day, everything, staged_manifest

Fault = Literal["denied", "no such key", "error", "error after", "cut", "cut after"]
"""What becomes of a request: answered with 403, 404 or 500 without having been done, answered with 500 although it was
done, or not answered."""

_ANSWERS = {
    "denied": (403, "AccessDenied", "Access Denied"),
    "no such key": (404, "NoSuchKey", "The specified key does not exist"),
    "error": (500, "InternalError", "We encountered an internal error"),
    "error after": (500, "InternalError", "We encountered an internal error"),
}
_OF_THE_CONNECTION = ("connection", "transfer-encoding", "keep-alive")


@dataclass
class Faults:
    """What is to fail, and what was asked.

    Args:
        url: where programs find the store.
        rule: says of a method and a path, with its query, what becomes of the request; nothing if it is to go through.
        asked: method and path of every request.
    """

    url: str
    rule: Callable[[str, str], Fault | None] = lambda method, path: None
    asked: list[tuple[str, str]] = field(default_factory=list)

    def at(self, fault: Fault, method: str, part: str, times: int = 1) -> None:
        """Have the first requests fail whose path has a part."""
        left = [times]

        def rule(asked: str, path: str) -> Fault | None:
            if asked != method or part not in path or not left[0]:
                return None
            left[0] -= 1
            return fault

        self.rule = rule


@contextmanager
def running_proxy(store_url: str) -> Iterator[Faults]:
    """Stand between programs and a store for as long as the block runs."""
    store = urlsplit(store_url)

    class Between(Quiet):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # an answer is one packet, or it would be waited for the other side's say

        def respond(self) -> None:
            content = self._content()
            path = unquote(self.path)
            here.asked.append((self.command, path))
            fault = here.rule(self.command, path)
            answer = None if fault not in (None, "error after", "cut after") else self._ask(content)
            if fault in ("cut", "cut after"):
                self.close_connection = True
                return
            if fault is not None:
                status, code, message = _ANSWERS[fault]
                said = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
                answer = status, [("Content-Type", "application/xml")], said
            assert answer is not None
            self._answer(*answer)

        def _content(self) -> bytes:
            if self.headers.get("Transfer-Encoding") == "chunked":
                pieces = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    pieces.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(pieces)
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))

        def _ask(self, content: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
            connection = HTTPConnection(store.netloc, timeout=60)
            headers = {k: v for k, v in self.headers.items() if k.lower() not in _OF_THE_CONNECTION}
            headers["Content-Length"] = str(len(content))
            connection.request(self.command, self.path, content, headers)
            reply = connection.getresponse()
            said = reply.read()
            connection.close()
            return reply.status, reply.getheaders(), said

        def _answer(self, status: int, headers: list[tuple[str, str]], said: bytes) -> None:
            self.send_response_only(status)
            lengths = [value for name, value in headers if name.lower() == "content-length"]
            for name, value in headers:
                if name.lower() not in (*_OF_THE_CONNECTION, "content-length"):
                    self.send_header(name, value)
            is_head = self.command == "HEAD"
            self.send_header("Content-Length", lengths[0] if is_head and lengths else str(len(said)))
            self.end_headers()
            if not is_head:
                self.wfile.write(said)
            self.wfile.flush()

    with serving(Between) as port:
        yield (here := Faults(f"http://127.0.0.1:{port}"))


@pytest.fixture
def faults(object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """Between this process and the object store of tests."""
    with running_proxy(object_store.environ["AWS_ENDPOINT_URL"]) as between:
        monkeypatch.setenv("AWS_ENDPOINT_URL", between.url)
        _forget_clients()
        yield between
    _forget_clients()


def _forget_clients() -> None:
    """Made once in a process, with what the environment says then."""
    object_store._client_of.cache_clear()
    FsspecStore.clear_instance_cache()


__all__ = ["faults"]

pytestmark = pytest.mark.proof

OLD, NEW = ({table: {day(0): [("a", n)]} for table in (SALES, STORES)} for n in (0, 1))


@pytest.fixture
def lake(faults: Faults, tmp_path: Path) -> Lake:
    """With a release."""
    lake = Lake.at(f"s3://lakes/{uuid4().hex}/lake", lock_folder=located(tmp_path / "locks"))
    publish(lake, staged_manifest(lake, OLD))
    return lake


@pytest.mark.parametrize("fault", ["error after", "cut after", "cut", "error"])
@pytest.mark.parametrize(
    "at", ["/manifest.json", "/sales/_delta_log/", "/stores/_delta_log/", "/_releases/_delta_log/"]
)
def test_a_write_of_which_the_store_did_not_get_to_say_that_it_was_done_was_done(
    lake: Lake, faults: Faults, at: str, fault: Fault
) -> None:
    """It is asked again then, and denies it: there is one already."""
    what = staged_manifest(lake, NEW)
    faults.at(fault, "PUT", at)
    assert publish(lake, what) == 1
    assert everything(lake) == NEW
    assert len([method for method, path in faults.asked if method == "PUT" and what.publication in path]) >= 1
    assert dict(published(lake))[1] == what.publication
    assert recover(lake) == []


@pytest.mark.parametrize("fault", ["cut after", "error after"])
def test_a_commit_that_is_there_though_the_store_never_says_so_counts(lake: Lake, faults: Faults, fault: Fault) -> None:
    what = staged_manifest(lake, NEW)
    faults.at(fault, "PUT", "/_delta_log/", times=1000)
    assert publish(lake, what) == 1
    assert everything(lake) == NEW


@pytest.mark.parametrize(
    ("fault", "said", "todo"),
    [
        ("denied", "may not be read or written: the store says AccessDenied", "AWS_ACCESS_KEY_ID"),
        ("error", "does not answer for", "AWS_ENDPOINT_URL"),
        ("cut", "does not answer for", "AWS_ENDPOINT_URL"),
    ],
)
def test_a_commit_that_the_store_refuses_is_told_as_that_and_nothing_is_published(
    lake: Lake, faults: Faults, fault: Fault, said: str, todo: str
) -> None:
    what = staged_manifest(lake, NEW)
    faults.at(fault, "PUT", "/sales/_delta_log/", times=1000)
    with pytest.raises(LakeError, match=said) as caught:
        publish(lake, what)
    assert todo in caught.value.todo
    assert "\x1b" not in caught.value.what
    assert "\N{DOWNWARDS ARROW WITH TIP RIGHTWARDS}" not in caught.value.what
    assert current_release(lake).number == 0
    faults.rule = lambda method, path: None
    assert publish(lake, what) == 1


def test_a_release_that_the_store_refuses_is_finished_by_the_next(lake: Lake, faults: Faults) -> None:
    what = staged_manifest(lake, NEW)
    faults.at("denied", "PUT", "/_releases/_delta_log/", times=1000)
    with pytest.raises(InterruptedPublicationError, match=r"the store says AccessDenied") as caught:
        publish(lake, what)
    assert "What to do" not in caught.value.what, "one remedy is enough"
    assert everything(lake) == OLD
    faults.rule = lambda method, path: None
    assert recover(lake) == [f"Finished publication {what.publication} as release 1."]
    assert everything(lake) == NEW


@pytest.mark.parametrize("fault", ["denied", "error"])
def test_a_file_of_which_the_store_does_not_say_whether_it_is_there_is_not_called_missing(
    lake: Lake, faults: Faults, fault: Fault
) -> None:
    """Or a search for a person's rows would pass over it."""
    (file,) = (path for path in lake.root.files() if "/stores/" in path and path.endswith(".parquet"))
    faults.rule = lambda method, path: fault if method == "HEAD" and "/part-" in path else None
    with pytest.raises(LakeError, match=r"may not be read or written|does not answer"):
        opened(lake.root / file)
    faults.rule = lambda method, path: None
    opened(lake.root / file).close()
    with pytest.raises(FileNotFoundError):
        opened(lake.root / f"{file}-other")


@pytest.mark.parametrize("fault", ["denied", "error"])
def test_a_file_that_the_store_does_not_give_is_not_called_damaged(lake: Lake, faults: Faults, fault: Fault) -> None:
    what = staged_manifest(lake, NEW)
    publish(lake, what)
    (file,) = what.tables[0].days[day(0)].files
    place = lake.table_path(what.tables[0].table) / file.path
    assert damage(place, file.size) == ""
    faults.rule = lambda method, path: fault if method == "GET" and "/part-" in path else None
    for read in (
        lambda: damage(place, file.size),
        lambda: list(row_batches(place, 10)),
        lambda: read_arrow(lake, what.tables[0].table),
    ):
        with pytest.raises(LakeError, match=r"may not be read or written|does not answer") as caught:
            read()
        assert "damage" not in str(caught.value)


def test_what_is_listed_and_then_denied_is_not_removed_for_ever(lake: Lake, faults: Faults) -> None:
    folder = lake.root / "_stages/one"
    (folder / "file").replace(b"1")
    faults.rule = lambda method, path: "no such key" if method == "POST" else None
    began = time.monotonic()
    with pytest.raises(LakeError, match=r"lists .*/_stages/one/file below .* and says that it is not there"):
        folder.remove()
    assert time.monotonic() - began < 20
    faults.at("no such key", "POST", "?delete", times=2)
    folder.remove()
    assert not folder.exists()


def test_a_file_that_is_replaced_under_a_lock_was_replaced_though_the_store_did_not_get_to_say_so(
    lake: Lake, faults: Faults
) -> None:
    for content in (b"first", b"second"):
        faults.at("error after", "PUT", "/_horizon.json")
        assert lake.horizon_file.replace_if_held(content, lambda: None, lake.deletions_path / "x.draft")
        assert lake.horizon_file.read() == content


def test_a_store_that_stumbles_once_is_not_called_one_without_conditional_writes(lake: Lake, faults: Faults) -> None:
    faults.at("error after", "PUT", "/_trial/")
    object_store.try_store(object_store.Stored.of(str(lake.root)))


def test_a_bucket_that_is_not_there_is_no_lake_in_which_nothing_was_published(faults: Faults) -> None:
    with pytest.raises(LakeError, match="There is no bucket s3://no-such in this object store"):
        current_release(Lake.at("s3://no-such/lake"))


@pytest.mark.parametrize(
    ("code", "todo"),
    [
        ("ExpiredToken", "Set the credentials"),
        ("InvalidToken", "Set the credentials"),
        ("RequestTimeTooSkewed", "Set the clock"),
        ("SlowDown", "run the same again"),
    ],
)
def test_what_the_store_says_of_credentials_and_clocks_is_told_with_what_to_do(code: str, todo: str) -> None:
    error = failure(OSError(f"Error performing PUT http://a/b - 400 Bad Request: <Code>{code}</Code>"), "s3://a/b")
    assert code in error.what
    assert todo in error.todo
