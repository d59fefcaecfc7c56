"""Serve Dagster's pages for `up`: Dagster's own command with all its options, whose app is behind a guard.

Dagster itself checks neither the user nor the page that a request comes from. A browser sends requests wherever its
pages want, including this machine, so any page could start runs, and one that gives its own name the address of this
machine could read the answers. A page cannot choose the headers by which browsers say where a request comes from and
goes to: these decide.
"""

from __future__ import annotations

import os
import re
import sys
from base64 import b64decode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from hmac import compare_digest
from typing import Any, NamedTuple

import uvicorn
from dagster_webserver import cli
from dagster_webserver.app import create_app_from_workspace_process_context
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from platform_assets.errors import PlatformError
from platform_assets.operations.metrics import MetricsPage
from platform_assets.places import hosts_of, origin_of
from platform_assets.settings import Settings, load_settings
from platform_assets.words import visible

_OWN_NAMES = ("127.0.0.1", "localhost", "[::1]")
_LOOKING = ("GET", "HEAD")
_OWN_SITE = {"same-origin", "none"}
"""`none`: a person typed the address, or chose a bookmark."""

_JSON = {"application/json", "application/graphql"}
"""Content that a page may send to another site only if that agrees, which Dagster does not. It takes others too."""

_MUTATION = re.compile(r"\bmutation\b", re.ASCII)
_SHOWN_CHARACTERS = 100


class Refusal(NamedTuple):
    """Why a request is refused: HTTP status, what is wrong, and what to do, each as a sentence."""

    status: int
    what: str
    todo: str


class Guard:
    """Pass on requests that go to the address of an app, come from its own pages, and have its password.

    Starlette's `TrustedHostMiddleware` does a part of it, but does not accept `[::1]`, and does not say which setting
    to change.

    Args:
        app: Dagster's app.
        port: port of this machine that serves it.
        named: URLs of its other addresses; of each its scheme, host and port count.
        password: required password; None for none.
        prefix: path prefix of its pages.
    """

    def __init__(
        self, app: ASGIApp, port: int, named: Iterable[str] = (), password: str | None = None, prefix: str = ""
    ) -> None:
        own = [f"http://{name}:{port}" for name in _OWN_NAMES]
        self._app = app
        self._prefix = prefix
        self._own = _hosts(map(origin_of, own))
        self._named = frozenset(filter(None, map(origin_of, named)))
        self._hosts = self._own | _hosts(self._named)
        self._password = None if password is None else sha256(password.encode()).digest()
        self._how_to_allow = (
            f"Open {own[0]} on the machine it runs on. If people are to reach it at another address, through a "
            "reverse proxy or a tunnel, name that in the setting `ui_origins` (PLATFORM_UI_ORIGINS=https://…) and "
            "start `platform-assets up` again."
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        asked = HTTPConnection(scope)
        method = "GET" if scope["type"] == "websocket" else scope["method"]
        if refused := self.refusal(method, asked.headers, asked.query_params.getlist("query")):
            await _answer(refused)(scope, receive, send)
        elif scope["type"] == "http" and scope["path"] == f"{self._prefix}/":
            # Dagster's own first page, of runs by the hour, is empty where there are none.
            await RedirectResponse(f"{self._prefix}/assets")(scope, receive, _unframed(send))
        else:
            await self._app(scope, receive, _unframed(send))

    def refusal(self, method: str, headers: Headers, queries: Sequence[str] = ()) -> Refusal | None:
        """Return why a request is refused; None lets it through to Dagster.

        A program that is not a browser sends no headers about pages, and needs only the right host, and the password.
        """
        hosts = [host.lower() for host in _values(headers, "host")]
        # A page of another name may lead to this machine, too: its name is then the host.
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            named = _shown(hosts[0]) if len(hosts) == 1 else "A request without exactly one host"
            return Refusal(403, f"{named} is no address of this Dagster.", self._how_to_allow)
        return (
            self._of_page(method, headers, hosts[0])
            or self._of_person(headers)
            or _of_content(method, headers, queries)
        )

    def _of_page(self, method: str, headers: Headers, host: str) -> Refusal | None:
        """Refuse pages of other sites. Another port of this machine is one: any user may serve there.

        A page of this machine has exactly the requested host: another program may answer at [::1] for `localhost`. A
        page at another address comes through a proxy, which may send another host.
        """
        own = {*self._named, origin_of(f"http://{host}")} if host in self._own else self._named
        for origin in _values(headers, "origin"):
            if origin.lower() not in own:
                return Refusal(403, f"The page at {_shown(origin)} may not use this Dagster.", self._how_to_allow)
        # Who follows a link fills a window, and the page that has the link cannot read what comes.
        opens = _values(headers, "sec-fetch-mode") == ["navigate"] and _values(headers, "sec-fetch-dest") == [
            "document"
        ]
        if set(_values(headers, "sec-fetch-site")) <= _OWN_SITE or (opens and method in _LOOKING):
            return None
        return Refusal(403, "A page of another address may not use this Dagster.", self._how_to_allow)

    def _of_person(self, headers: Headers) -> Refusal | None:
        if self._password is None or any(map(self._opens, _values(headers, "authorization"))):
            return None
        return Refusal(
            401,
            "This Dagster asks for a password.",
            "Enter the PLATFORM_UI_PASSWORD that `platform-assets up` was started with, and any user name.",
        )

    def _opens(self, authorization: str) -> bool:
        """Compare hashes, so that the time reveals neither the password nor its length."""
        scheme, _, encoded = authorization.partition(" ")
        try:
            decoded = b64decode(encoded.strip(), validate=True) if scheme.lower() == "basic" else b""
        except ValueError:
            return False
        return compare_digest(sha256(decoded.partition(b":")[2]).digest(), self._password or b"")


def _of_content(method: str, headers: Headers, queries: Sequence[str]) -> Refusal | None:
    if method in _LOOKING:
        if not any(map(_MUTATION.search, queries)):
            return None
        return Refusal(
            405,
            "A mutation may not come by GET: following a link, or loading a picture, would do.",
            "Send it by POST, as JSON.",
        )
    kinds = {value.partition(";")[0].strip().lower() for value in _values(headers, "content-type")}
    if kinds and kinds <= _JSON:
        return None
    return Refusal(
        415,
        f"A {method} that is not JSON may not change anything: a form on any page could send it.",
        "Send it as JSON, with the header `Content-Type: application/json`.",
    )


def _hosts(origins: Iterable[str | None]) -> frozenset[str]:
    return frozenset(host for origin in origins if origin for host in hosts_of(origin))


def _values(headers: Headers, name: str) -> list[str]:
    return [value.strip() for value in headers.getlist(name)]


def _shown(value: str) -> str:
    """Make a header's value printable."""
    return "".join(sign if sign.isprintable() else "?" for sign in value[:_SHOWN_CHARACTERS]) or "nothing"


def _answer(refused: Refusal) -> PlainTextResponse:
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    if refused.status == 401:
        headers["WWW-Authenticate"] = 'Basic realm="platform-assets", charset="UTF-8"'
    if refused.status == 405:
        headers["Allow"] = "POST"
    return PlainTextResponse(f"{refused.what}\nWhat to do: {refused.todo}\n", refused.status, headers)


def _unframed(send: Send) -> Send:
    """Add headers that forbid other pages to frame the answer: in a frame, a person could press an invisible button."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)["X-Frame-Options"] = "SAMEORIGIN"
        await send(message)

    return sending


class WithMetrics:
    """Answer `/metrics` for Prometheus; pass everything else on to Dagster."""

    def __init__(self, app: ASGIApp, settings: Settings, path: str = "/metrics") -> None:
        self._app, self._path, self._page = app, path, MetricsPage(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http" or scope["path"] != self._path or scope["method"] not in _LOOKING:
            await self._app(scope, receive, send)
            return
        try:
            answer = Response(await run_in_threadpool(self._page.text), media_type=CONTENT_TYPE_PLAIN_0_0_4)
        except PlatformError as error:
            answer = _answer(Refusal(503, visible(error.what), error.todo))
        await answer(scope, receive, send)


def main() -> None:
    """Serve Dagster's pages until a signal ends it."""
    try:
        settings = load_settings()
    except PlatformError as error:
        sys.exit(str(error))
    # What this process starts, a user's code among it, has no use for it.
    os.environ.pop("PLATFORM_UI_PASSWORD", None)
    _put_guard_before_dagster(settings)
    cli.main()  # type: ignore[no-untyped-call]


def _put_guard_before_dagster(settings: Settings) -> None:
    """Replace the function that serves after all options are read: Dagster's command has no place for a middleware."""

    def serve(
        context: Any, host: str, port: int, path_prefix: str, log_level: str, live_data_poll_rate: int | None = None
    ) -> None:
        secret = settings.ui_password
        app = create_app_from_workspace_process_context(context, path_prefix, live_data_poll_rate)
        named = (settings.ui_url, *settings.ui_origins)
        with_metrics = WithMetrics(app, settings, f"{path_prefix}/metrics")
        guarded = Guard(with_metrics, port, named, secret.get_secret_value() if secret else None, path_prefix)
        # One process, also where WEB_CONCURRENCY says something else for other servers: it could not begin.
        uvicorn.run(guarded, host=host, port=port, log_level=log_level, workers=1, proxy_headers=False)

    cli.host_dagster_ui_with_workspace_process_context = serve  # type: ignore[assignment]
    # A Dagster that no longer called it would serve without a guard. It can serve nothing.
    del cli.uvicorn  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
