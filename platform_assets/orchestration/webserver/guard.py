"""Stands before Dagster's app: lets through what `access` allows, and answers the rest itself."""

from __future__ import annotations

import logging
import time

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from platform_assets.orchestration.webserver.access import Access, Asked, Refusal, refusal
from platform_assets.orchestration.webserver.tries import Tries
from platform_assets.visible import visible

_LOG = logging.getLogger("uvicorn.error")
"""Of the server that the app runs in: it reaches whoever started it."""
_TRIED = (
    "Many wrong passwords were tried, the last from %s: only one more is looked at every few seconds. Browsers with "
    "which somebody gave the right one are not concerned."
)


class Guard:
    """An ASGI app around another one.

    Starlette's `TrustedHostMiddleware` does a part of it, but without the port, and without saying what to set.

    Args:
        app: of Dagster.
        access: to it.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access
        self._tries = Tries()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have it answered."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        asked = _asked(scope)
        if refused := refusal(asked, self._access, self._tries):
            if refused.status == 429 and self._tries.is_news(asked.client):
                _LOG.warning(_TRIED, visible(asked.client))
            await _answer(refused)(scope, receive, send)
        else:
            is_new = self._access.password is not None and not asked.is_marked(self._access)
            await self._app(scope, receive, _with_headers(send, self._access.cookie if is_new else None))


def _asked(scope: Scope) -> Asked:
    connection = HTTPConnection(scope)
    return Asked(
        method="GET" if scope["type"] == "websocket" else scope["method"],
        headers=connection.headers.items(),
        queries=connection.query_params.getlist("query"),
        client=connection.client.host if connection.client else "",
        at_s=time.monotonic(),
    )


def _answer(refused: Refusal) -> PlainTextResponse:
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    if refused.status == 401:
        headers["WWW-Authenticate"] = 'Basic realm="platform-assets", charset="UTF-8"'
    if refused.wait_s is not None:
        headers["Retry-After"] = str(refused.wait_s)
    if refused.status == 405:
        headers["Allow"] = "POST"
    return PlainTextResponse(f"{refused.what}\nWhat to do: {refused.todo}\n", refused.status, headers)


def _with_headers(send: Send, cookie: str | None) -> Send:
    """With the mark of whoever gave the password, and for no page of others.

    Within one, somebody could be made to press a button that cannot be seen.
    """

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["X-Frame-Options"] = "SAMEORIGIN"
            if cookie:
                headers.append("Set-Cookie", f"{cookie}; Path=/; HttpOnly; SameSite=Strict")
        await send(message)

    return sending
