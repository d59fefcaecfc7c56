"""A receiver of messages on this machine: real HTTP, as obliging or as odd as a test wants it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from typing import Any

from platform_assets_tests.support.http import Quiet, serving

SECRET = "t0ken"
"""Part of every address, so that tests can look for it where it must not be."""


class Hook:
    """Keeps what it is sent.

    Args:
        refuses: words; a message with one of them is answered with `status`.
        status: of refusals.
        waits_s: before it answers.
        dies: whether it takes a message and ends the connection without an answer.
    """

    def __init__(self) -> None:
        self.refuses: list[str] = []
        self.status = 400
        self.waits_s = 0.0
        self.dies = False
        self.taken: list[dict[str, Any]] = []
        self.came: list[tuple[Message, bytes]] = []
        hook = self

        class Handler(Quiet):
            def respond(self) -> None:
                body = self.content()
                text = body.decode()
                hook.came.append((self.headers, body))
                time.sleep(hook.waits_s)
                if hook.dies:
                    self.close_connection = True
                    return
                refused = any(word in text for word in hook.refuses)
                if not refused:
                    hook.taken.append(json.loads(text))
                self.send_response(hook.status if refused else 204)
                self.end_headers()

        self.handler = Handler
        self.url = ""

    @property
    def texts(self) -> list[str]:
        """Of what it took."""
        return [message["text"] for message in self.taken]

    @property
    def keys(self) -> list[str]:
        """Of all that came, by which it would know what came before."""
        return [headers["Idempotency-Key"] for headers, _ in self.came]


@contextmanager
def listening() -> Iterator[Hook]:
    """A receiver that answers within."""
    hook = Hook()
    with serving(hook.handler) as port:
        hook.url = f"http://127.0.0.1:{port}/{SECRET}"
        yield hook
