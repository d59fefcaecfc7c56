"""Something between programs and an object store that fails as networks and stores do, at requests that a test names.

Requests go through as they are signed. What becomes of one is said by rules: it is refused, answered with an error
before or after the store has done it, or its connection is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Literal
from urllib.parse import unquote, urlsplit

import pytest
from obstore.fsspec import FsspecStore

from platform_assets.lakehouse.storage import object_store
from platform_assets_tests.support.object_store import ObjectStore

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

    class Between(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # an answer is one packet, or it would be waited for the other side's say

        def _go(self) -> None:
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

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: `asked` has it."""

    for method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
        setattr(Between, f"do_{method}", Between._go)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Between)
    here = Faults(f"http://127.0.0.1:{server.server_port}")
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield here
    finally:
        server.shutdown()
        server.server_close()


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
