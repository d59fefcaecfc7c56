"""Who may ask Dagster's webserver for what, decided from a request's headers.

Dagster itself asks neither who somebody is nor which page a request comes from. A browser sends requests wherever the
pages it shows tell it to, this machine included, so any page could start runs, and one that gives its own name the
address of this machine could read the answers. What a page cannot choose are the headers by which browsers say where
its requests come from and go to: these decide.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import compare_digest

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from platform_assets.addresses import hosts_of, origin_of

_OWN_NAMES = ("127.0.0.1", "localhost", "[::1]")
_LOOKING = ("GET", "HEAD")
_OWN_SITE = {"same-origin", "none"}
"""`none`: a person typed the address, or chose a bookmark."""

_ASKED_FOR_FIRST = {"application/json", "application/graphql"}
"""Content that a page may send to another site only if that agrees, which Dagster does not. It takes others too."""

_MUTATION = re.compile(r"\bmutation\b", re.ASCII)
_SHOWN_CHARACTERS = 100


@dataclass(frozen=True)
class Access:
    """Where the pages may be opened, and what for.

    Args:
        address: that a person is told to open.
        own: what a request on this machine may have for `Host`.
        named: scheme, host and port of the pages at other addresses, as browsers write them.
        password: that is asked for; None asks for none.
    """

    address: str
    own: frozenset[str]
    named: frozenset[str]
    password: str | None = field(default=None, repr=False)

    @classmethod
    def at(cls, port: int, named: Iterable[str] = (), password: str | None = None) -> Access:
        """This machine at a port, and the addresses that settings name.

        Args:
            named: URLs; of each its scheme, host and port count.
        """
        addresses = [f"http://{name}:{port}" for name in _OWN_NAMES]
        return cls(addresses[0], _hosts(_origins(addresses)), _origins(named), password)

    def has(self, host: str) -> bool:
        """Whether a request to this `Host` is for this Dagster."""
        return host in self.own or host in _hosts(self.named)

    def is_page(self, origin: str, host: str) -> bool:
        """Whether a page is Dagster's own.

        One of this machine has the very host that it asks: what answers at [::1] when somebody opens `localhost` may be
        another program's. Before one at another address is a proxy, which may tell another host.
        """
        return origin in self.named or (host in self.own and origin == origin_of(f"http://{host}"))


def _origins(urls: Iterable[str]) -> frozenset[str]:
    return frozenset(origin for url in urls if (origin := origin_of(url)))


def _hosts(origins: Iterable[str]) -> frozenset[str]:
    return frozenset(host for origin in origins for host in hosts_of(origin))


@dataclass(frozen=True)
class Asked:
    """A request, before its body is read.

    Args:
        method: in capitals; a websocket is opened by a GET.
        headers: names in small letters and values; a name can come more than once.
        queries: what is in the address for GraphQL to execute.
    """

    method: str
    headers: Sequence[tuple[str, str]]
    queries: Sequence[str] = ()

    def all(self, name: str) -> list[str]:
        """The values of a header."""
        return [value.strip() for found, value in self.headers if found == name]

    @property
    def is_link(self) -> bool:
        """Whether a person follows a link: it fills a window, and the page that has it cannot read what comes."""
        opens = self.all("sec-fetch-mode") == ["navigate"] and self.all("sec-fetch-dest") == ["document"]
        return opens and self.method in _LOOKING


@dataclass(frozen=True)
class Refusal:
    """Why a request is not for Dagster.

    Args:
        status: of HTTP.
        what: what is wrong with it, as a sentence.
        todo: what to do, as a sentence.
    """

    status: int
    what: str
    todo: str


def refusal(asked: Asked, access: Access) -> Refusal | None:
    """Why a request is refused; None lets it through to Dagster.

    A program that is no browser says nothing of pages, and needs only the right host, and the password if there is one.

    Args:
        access: where the pages may be opened, and what for.
    """
    hosts = [host.lower() for host in asked.all("host")]
    # A page of another name, too, may lead to this machine: its name is then the host.
    if len(hosts) != 1 or not access.has(hosts[0]):
        named = _shown(hosts[0]) if len(hosts) == 1 else "A request without exactly one host"
        return Refusal(403, f"{named} is no address of this Dagster.", _how_to_allow(access))
    return _of_page(asked, access, hosts[0]) or _of_person(asked, access) or _of_content(asked)


def _of_page(asked: Asked, access: Access, host: str) -> Refusal | None:
    """Also another port of this machine is another site's: whoever works here may have put it there."""
    for origin in asked.all("origin"):
        if not access.is_page(origin.lower(), host):
            return Refusal(403, f"The page at {_shown(origin)} may not use this Dagster.", _how_to_allow(access))
    if set(asked.all("sec-fetch-site")) <= _OWN_SITE or asked.is_link:
        return None
    return Refusal(403, "A page of another address may not use this Dagster.", _how_to_allow(access))


def _how_to_allow(access: Access) -> str:
    return (
        f"Open {access.address} on the machine it runs on. If people are to reach it at another address, through a "
        "reverse proxy or a tunnel, name that in the setting `ui_origins` (PLATFORM_UI_ORIGINS=https://…) and start "
        "`platform-assets up` again."
    )


def _of_person(asked: Asked, access: Access) -> Refusal | None:
    password = access.password
    if password is None or any(_opens(value, password) for value in asked.all("authorization")):
        return None
    return Refusal(
        401,
        "This Dagster asks for a password.",
        "Give the one in PLATFORM_UI_PASSWORD of whoever started `platform-assets up`, under any name.",
    )


def _opens(authorization: str, password: str) -> bool:
    """Compared as hashes: how long it takes tells neither the password nor its length."""
    scheme, _, encoded = authorization.partition(" ")
    try:
        decoded = b64decode(encoded.strip(), validate=True) if scheme.lower() == "basic" else b""
    except ValueError:
        return False
    given = decoded.partition(b":")[2]
    return compare_digest(sha256(given).digest(), sha256(password.encode()).digest())


def _of_content(asked: Asked) -> Refusal | None:
    if asked.method in _LOOKING:
        if not any(map(_MUTATION.search, asked.queries)):
            return None
        return Refusal(
            405,
            "A mutation may not come by GET: following a link, or loading a picture, would do.",
            "Send it by POST, as JSON.",
        )
    kinds = [value.partition(";")[0].strip().lower() for value in asked.all("content-type")]
    if kinds and set(kinds) <= _ASKED_FOR_FIRST:
        return None
    return Refusal(
        415,
        f"A {asked.method} that is not JSON may not change anything: a form on any page could send it.",
        "Send it as JSON, with the header `Content-Type: application/json`.",
    )


def _shown(value: str) -> str:
    """What somebody sent, to be named in a text."""
    return "".join(sign if sign.isprintable() else "?" for sign in value[:_SHOWN_CHARACTERS]) or "nothing"


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
            return
        connection = HTTPConnection(scope)
        method = "GET" if scope["type"] == "websocket" else scope["method"]
        asked = Asked(method, connection.headers.items(), connection.query_params.getlist("query"))
        if refused := refusal(asked, self._access):
            await _answer(refused)(scope, receive, send)
        else:
            await self._app(scope, receive, _unframed(send))


def _answer(refused: Refusal) -> PlainTextResponse:
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    if refused.status == 401:
        headers["WWW-Authenticate"] = 'Basic realm="platform-assets", charset="UTF-8"'
    if refused.status == 405:
        headers["Allow"] = "POST"
    return PlainTextResponse(f"{refused.what}\nWhat to do: {refused.todo}\n", refused.status, headers)


def _unframed(send: Send) -> Send:
    """Answer for no page of others: within one, a person could be made to press a button that cannot be seen."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)["X-Frame-Options"] = "SAMEORIGIN"
        await send(message)

    return sending
