"""Which requests are for Dagster, on paper: a table of cases."""

from __future__ import annotations

from base64 import b64encode
from itertools import product
from typing import NamedTuple

import pytest
from starlette.datastructures import Headers

from platform_assets.orchestration.webserver import Guard
from platform_assets.places import hosts_of, origin_of

PASSWORD = "correct horse battery"


async def nothing(*_: object) -> None:
    """Stands for Dagster, which is not asked here."""


GUARD = Guard(nothing, 3000, ["https://dagster.example.com/shop", "http://tunnel.example:8080"])
LOCKED = Guard(nothing, 3000, [], PASSWORD)
PORT_80 = Guard(nothing, 80)
UMLAUTS = Guard(nothing, 3000, [], "Passwörter: viele")
OWN = [("host", "127.0.0.1:3000")]
JSON = ("content-type", "application/json")
MUTATION = "mutation { launchRun { __typename } }"
LINK = (("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document"))
BESIDE = (("x-forwarded-host", "127.0.0.1:3000"), ("forwarded", "host=127.0.0.1:3000"))


class Asked(NamedTuple):
    """A request."""

    method: str
    headers: list[tuple[str, str]]
    queries: list[str] = []


def get(*headers: tuple[str, str], query: str = "") -> Asked:
    return Asked("GET", [*headers], [query] if query else [])


def post(*headers: tuple[str, str], host: str = "127.0.0.1:3000") -> Asked:
    return Asked("POST", [("host", host), *headers])


def basic(text: str) -> tuple[str, str]:
    return "authorization", f"Basic {b64encode(text.encode()).decode()}"


class Cases(NamedTuple):
    """Requests that are let through, or refused by a status and with some words."""

    requests: list[Asked]
    status: int | None = None
    says: tuple[str, ...] = ()
    guard: Guard = GUARD


TO_SET = ("PLATFORM_UI_ORIGINS",)
CASES = {
    "its own hosts": Cases(
        [
            get(("host", host))
            for host in (
                "127.0.0.1:3000", "localhost:3000", "LOCALHOST:3000", "[::1]:3000", "dagster.example.com",
                "dagster.example.com:443", "tunnel.example:8080",
            )
        ]
    ),
    "no other host, whatever a proxy says of it, none and two": Cases(
        [
            get(("host", host))
            for host in (
                "evil.example", "evil.example:3000", "127.0.0.1", "127.0.0.1:3001", "localhost", "localhost.:3000", "",
                "0.0.0.0:3000", "127.0.0.2:3000", "127.0.0.1:3000.evil.example", "evil.dagster.example.com",
                "tunnel.example", "dagster.example.com:80", "127.0.0.1:3000@evil.example", "evil.example\r\nx",
                "127.1:3000", "0x7f000001:3000", "[::ffff:127.0.0.1]:3000", "127.0.0.1:03000", "evil@127.0.0.1:3000",
                "127.0.0.1:3000#evil", "127.0.0.1:3000,evil", "localhost%00:3000",
            )
        ]
        + [get(("host", "evil.example"), *BESIDE), get(), get(*OWN, ("host", "evil.example"))],
        403,
        ("is no address of this Dagster", *TO_SET),
    ),
    "the usual port, which browsers leave out": Cases(
        [get(("host", "localhost"), ("origin", "http://localhost")), get(("host", "localhost:80"))], guard=PORT_80
    ),
    "its own pages": Cases(
        [
            post(("origin", origin), ("sec-fetch-site", "same-origin"), JSON, host=host)
            for origin, host in (
                ("http://127.0.0.1:3000", "127.0.0.1:3000"),
                ("http://localhost:3000", "localhost:3000"),
                ("http://[::1]:3000", "[::1]:3000"),
                ("https://dagster.example.com", "dagster.example.com"),
                ("https://dagster.example.com", "127.0.0.1:3000"),
                ("http://tunnel.example:8080", "tunnel.example:8080"),
            )
        ]
    ),
    "pages of others, and of what answers at another name of this machine": Cases(
        [
            asked
            for origin in (
                "null", "", "http://evil.example", "https://127.0.0.1:3000", "http://127.0.0.1:3001",
                "http://127.0.0.1", "http://dagster.example.com", "https://dagster.example.com.evil.example",
                "https://evil.example/dagster.example.com", "file://", "http://localhost:3000", "http://[::1]:3000",
            )
            for asked in (post(("origin", origin), JSON), get(*OWN, ("origin", origin)))
        ],
        403,
        ("may not use this Dagster", *TO_SET),
    ),
    "a picture or script on another page, also without an origin": Cases(
        [
            get(*OWN, ("sec-fetch-site", site), ("sec-fetch-mode", mode), ("sec-fetch-dest", kind))
            for site, (mode, kind) in product(
                ("cross-site", "same-site", "CROSS-SITE", "something new"),
                [("no-cors", "image"), ("no-cors", "script"), ("navigate", "iframe"), ("navigate", "embed")],
            )
        ]
        + [post(*LINK, JSON)],
        403,
    ),
    "a link that is followed, an address that is typed, a program that is no browser": Cases(
        [
            get(*OWN, *LINK),
            get(*OWN, ("sec-fetch-site", "none")),
            get(*OWN, query="{ version }"),
            get(*OWN, query="{ permutations mutations }"),
            post(("content-type", "application/json; charset=utf-8")),
            post(("content-type", "application/graphql")),
        ]
    ),
    "a mutation by GET": Cases(
        [
            asked
            for query in (
                MUTATION, "mutation{a}", "query A { b } mutation B { c }", "\ufeffmutation M { a }", ",,mutation{a}",
                "#\nmutation{a}",
            )
            for asked in (
                get(*OWN, query=query), get(*OWN, *LINK, query=query),
                Asked("GET", OWN, ["{ version }", query]), Asked("HEAD", OWN, [query]),
            )
        ],
        405,
        ("POST",),
    ),
    "what a form can send": Cases(
        [
            asked
            for kind in (
                "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "",
                "text/plain; application/json", "text/plain;charset=application/json", "application/json-seq",
            )
            for asked in (post(("content-type", kind)), post(JSON, ("content-type", kind)))
        ]
        + [Asked(method, OWN) for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "get")],
        415,
        ("application/json",),
    ),
    "the password, under any name": Cases(
        [get(*OWN, basic(f"{name}:{PASSWORD}")) for name in ("up", "", "anna")], guard=LOCKED
    ),
    "a password of any letters": Cases([get(*OWN, basic("up:Passwörter: viele"))], guard=UMLAUTS),
    "anything else than the password": Cases(
        [
            get(*OWN, given)
            for given in (
                ("x", "y"), ("authorization", ""), ("authorization", "Basic"), ("authorization", "Basic ?!"),
                ("authorization", "Basic ü"), ("authorization", f"Bearer {PASSWORD}"), ("authorization", PASSWORD),
                basic(""), basic(PASSWORD), basic("up:"), basic(f"up:{PASSWORD}x"), basic(f"up:{PASSWORD[:-1]}"),
                basic(f"up:{PASSWORD.upper()}"), basic(f"up:{PASSWORD}\0"), basic(f"up:x:{PASSWORD}"),
                ("authorization", f"Negotiate x, {basic(PASSWORD)[1]}"), ("authorization", "Basic ="),
                ("authorization", "Basic \xff\xfe"),
            )
        ],
        401,
        ("PLATFORM_UI_PASSWORD",),
        LOCKED,
    ),
    "pages of others, though a browser sends the password along": Cases(
        [
            get(*OWN, basic(f"up:{PASSWORD}"), ("origin", "http://evil.example")),
            get(("host", "evil.example:3000"), basic(f"up:{PASSWORD}")),
        ],
        403,
        guard=LOCKED,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_let_through_and_what_is_refused_by_status_and_with_what_to_do(name: str) -> None:
    requests, status, says, guard = CASES[name]
    for asked in requests:
        raw = [(name.encode(), value.encode("latin-1")) for name, value in asked.headers]
        found = guard.refusal(asked.method, Headers(raw=raw), asked.queries)
        assert (found and found.status) == status, asked
        shown = f"{found.what} {found.todo}" if found else ""
        assert all(words in shown for words in says), shown
        assert "\n" not in shown
        assert PASSWORD not in shown
    assert PASSWORD not in str(vars(guard))


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://dagster.example.com", "https://dagster.example.com"),
        ("https://Dagster.example.com:443/a/b", "https://dagster.example.com"),
        ("http://10.0.0.5:80", "http://10.0.0.5"),
        ("http://10.0.0.5:8080/", "http://10.0.0.5:8080"),
        ("http://[::1]:3000", "http://[::1]:3000"),
        ("http://[::80]", "http://[::80]"),
        *((url, None) for url in ("http://*", "https://*.example.com", "https://user:word@example.com")),
        *((url, None) for url in ("https://example.com?x", "https://example.com:port", "dagster.example.com", "null")),
    ],
)
def test_an_address_has_an_origin_as_browsers_write_it(url: str, origin: str | None) -> None:
    assert origin_of(url) == origin


def test_an_origin_has_hosts() -> None:
    assert hosts_of("https://a.example") == {"a.example", "a.example:443"}
    assert hosts_of("http://[::1]") == {"[::1]", "[::1]:80"}
    assert hosts_of("http://[::1]:3000") == {"[::1]:3000"}
