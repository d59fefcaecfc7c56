"""Stands before Dagster's app: lets through what `access` allows, and answers the rest itself."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from platform_assets.orchestration.webserver.access import Access, Asked, Refusal, refusal


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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have it answered."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif refused := refusal(_asked(scope), self._access):
            await _answer(refused)(scope, receive, send)
        else:
            await self._app(scope, receive, _never_framed(send))


def _asked(scope: Scope) -> Asked:
    connection = HTTPConnection(scope)
    return Asked(
        method="GET" if scope["type"] == "websocket" else scope["method"],
        headers=connection.headers.items(),
        queries=connection.query_params.getlist("query"),
    )


def _answer(refused: Refusal) -> PlainTextResponse:
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    if refused.status == 401:
        headers["WWW-Authenticate"] = 'Basic realm="platform-assets", charset="UTF-8"'
    if refused.status == 405:
        headers["Allow"] = "POST"
    return PlainTextResponse(f"{refused.what}\nWhat to do: {refused.todo}\n", refused.status, headers)


def _never_framed(send: Send) -> Send:
    """Within a page of others, somebody could be made to press a button that cannot be seen."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)["X-Frame-Options"] = "SAMEORIGIN"
        await send(message)

    return sending
