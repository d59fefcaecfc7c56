"""Whoever answers oddly, or never ends answering, keeps a sender for a few seconds at most, and shows no address."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from socket import create_server, socket
from threading import Thread

import pytest
from pydantic import SecretStr

from platform_assets.operations import outbox
from platform_assets.operations.outbox import WebhookError, post

Answer = Callable[[socket], None]


@contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """The address of one who answers by bytes; each request by itself."""
    with create_server(("127.0.0.1", 0)) as server:

        def one(asked: socket) -> None:
            with asked, suppress(OSError):  # whoever asked hung up
                asked.recv(65_536)
                answer(asked)

        def every() -> None:
            with suppress(OSError):
                while True:
                    Thread(target=one, args=[server.accept()[0]], daemon=True).start()

        Thread(target=every, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def says(head: bytes, then: bytes = b"", pause_s: float = 0.0) -> Answer:
    """One who sends a head, and then the same for ever."""

    def answer(asked: socket) -> None:
        asked.sendall(head)
        while then:
            asked.sendall(then)
            time.sleep(pause_s)

    return answer


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (says(b"HTTP/1.1 503 No\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n"), "answered 503"),
        (says(b"HTTP/1.1 503 No\r\nContent-Length: 1000000000\r\n\r\n", b"x", 0.01), "answered 503"),
        (says(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n"), "answered 302"),
        (says(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.01), "cannot be reached"),
        (says(b"", b"H", 0.01), "cannot be reached"),
        (says(b"\0\xff no HTTP\r\n\r\n"), "cannot be reached"),
    ],
    ids=["come_again_in_an_hour", "endless_refusal", "elsewhere", "endless_patience", "byte_by_byte", "no_http"],
)
def test_nobody_keeps_a_sender(answer: Answer, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "_ANSWER_S", 0.5)
    started = time.monotonic()
    with answering(answer) as url, pytest.raises(WebhookError, match=reason):
        post(SecretStr(url), "{}", "key")
    assert time.monotonic() - started < 4


def test_one_who_goes_on_after_saying_yes_has_taken_it() -> None:
    with answering(says(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n", b"x")) as url:
        post(SecretStr(url), "{}", "key")


@pytest.mark.parametrize("host", ["a..example", "a" * 70 + ".example", "\u2603.example", "a b.example", "a:port"])
def test_an_address_that_is_none_is_one_that_cannot_be_reached(host: str) -> None:
    with pytest.raises(WebhookError, match="cannot be reached"):
        post(SecretStr(f"https://{host}/hook"), "{}", "key")


@pytest.mark.parametrize(
    "path",
    [
        "/t0ken",
        "/hooks/t0ken%7ex",
        "/a/../t0ken",
        "/hook \u00e4 t0ken",
        "/hook?t0ken=%7ea",
        "?t0ken",
        "/t0ken%zz",
        "/t0ken#a",
    ],
)
def test_no_log_has_the_path_however_it_is_spelt(
    path: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(outbox, "_RETRIES", outbox._RETRIES.new(backoff_factor=0))
    with answering(says(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")) as url, pytest.raises(WebhookError):
        post(SecretStr(url + path), "{}", "key")
    assert "POST" in caplog.text
    with pytest.raises(WebhookError):
        post(SecretStr("http://127.0.0.1:1" + path), "{}", "key")
    assert "Retrying" in caplog.text
    assert "t0ken" not in caplog.text
