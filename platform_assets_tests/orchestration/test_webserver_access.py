"""Which requests are for Dagster, on paper."""

from __future__ import annotations

from base64 import b64encode
from typing import NamedTuple

import pytest
from starlette.datastructures import Headers

from platform_assets.orchestration.webserver import Guard, Refusal
from platform_assets.places import hosts_of, origin_of

PASSWORD = "correct horse battery"


async def nothing(*_: object) -> None:
    """Stands for Dagster, which is not asked here."""


GUARD = Guard(nothing, 3000, ["https://dagster.example.com/shop", "http://tunnel.example:8080"])
LOCKED = Guard(nothing, 3000, [], PASSWORD)
OWN = [("host", "127.0.0.1:3000")]
JSON = ("content-type", "application/json")
MUTATION = "mutation { launchRun { __typename } }"


class Asked(NamedTuple):
    """A request."""

    method: str
    headers: list[tuple[str, str]]
    queries: list[str] = []


def get(*headers: tuple[str, str], query: str = "") -> Asked:
    return Asked("GET", [*headers], [query] if query else [])


def post(*headers: tuple[str, str], host: str = "127.0.0.1:3000") -> Asked:
    return Asked("POST", [("host", host), *headers])


def refusal(asked: Asked, guard: Guard = GUARD) -> Refusal | None:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in asked.headers]
    return guard.refusal(asked.method, Headers(raw=raw), asked.queries)


def refused(asked: Asked, guard: Guard = GUARD) -> Refusal:
    found = refusal(asked, guard)
    assert found is not None
    return found


def basic(text: str) -> tuple[str, str]:
    return "authorization", f"Basic {b64encode(text.encode()).decode()}"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:3000", "localhost:3000", "LOCALHOST:3000", "[::1]:3000",
        "dagster.example.com", "dagster.example.com:443", "tunnel.example:8080",
    ],
)  # fmt: skip
def test_it_answers_at_its_own_hosts(host: str) -> None:
    assert refusal(get(("host", host))) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:3000", "127.0.0.1", "127.0.0.1:3001", "localhost", "localhost.:3000", "",
        "0.0.0.0:3000", "127.0.0.2:3000", "127.0.0.1:3000.evil.example", "evil.dagster.example.com", "tunnel.example",
        "dagster.example.com:80", "127.0.0.1:3000@evil.example", "evil.example\r\nx", "127.1:3000", "0x7f000001:3000",
        "[::ffff:127.0.0.1]:3000", "127.0.0.1:03000", "evil@127.0.0.1:3000", "127.0.0.1:3000#evil",
        "127.0.0.1:3000,evil", "localhost%00:3000",
    ],
)  # fmt: skip
def test_it_answers_at_no_other_host_and_says_what_to_set(host: str) -> None:
    found = refused(get(("host", host)))
    assert found.status == 403
    assert "is no address of this Dagster" in found.what
    assert "\n" not in found.what
    assert "PLATFORM_UI_ORIGINS" in found.todo


def test_what_a_proxy_says_of_the_host_is_no_host() -> None:
    said = (("x-forwarded-host", "127.0.0.1:3000"), ("forwarded", "host=127.0.0.1:3000"))
    assert refused(get(("host", "evil.example"), *said)).status == 403


def test_one_host_is_told_from_none_and_from_two() -> None:
    assert refused(get()).status == 403
    assert refused(get(*OWN, ("host", "evil.example"))).status == 403


def test_at_the_usual_port_browsers_leave_it_out() -> None:
    guard = Guard(nothing, 80)
    assert refusal(get(("host", "localhost"), ("origin", "http://localhost")), guard) is None
    assert refusal(get(("host", "localhost:80")), guard) is None


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://127.0.0.1:3000", "127.0.0.1:3000"),
        ("http://localhost:3000", "localhost:3000"),
        ("http://[::1]:3000", "[::1]:3000"),
        ("https://dagster.example.com", "dagster.example.com"),
        ("https://dagster.example.com", "127.0.0.1:3000"),
        ("http://tunnel.example:8080", "tunnel.example:8080"),
    ],
)
def test_its_own_pages_may_change_things(origin: str, host: str) -> None:
    own = (("origin", origin), ("sec-fetch-site", "same-origin"), JSON)
    assert refusal(post(*own, host=host)) is None


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://[::1]:3000"])
def test_what_answers_at_another_name_of_this_machine_may_be_another_program(origin: str) -> None:
    assert refused(post(("origin", origin), JSON)).status == 403


@pytest.mark.parametrize(
    "origin",
    [
        "null", "", "http://evil.example", "https://127.0.0.1:3000", "http://127.0.0.1:3001", "http://127.0.0.1",
        "http://dagster.example.com", "https://dagster.example.com.evil.example", "https://evil.example/dagster.example.com",
        "file://",
    ],
)  # fmt: skip
def test_pages_of_others_may_neither_change_nor_read(origin: str) -> None:
    for asked in (post(("origin", origin), JSON), get(*OWN, ("origin", origin))):
        found = refused(asked)
        assert found.status == 403
        assert "may not use this Dagster" in found.what
        assert "PLATFORM_UI_ORIGINS" in found.todo


@pytest.mark.parametrize("site", ["cross-site", "same-site", "CROSS-SITE", "something new"])
def test_a_picture_or_script_on_another_page_is_refused_also_where_it_has_no_origin(site: str) -> None:
    for mode, kind in [("no-cors", "image"), ("no-cors", "script"), ("navigate", "iframe"), ("navigate", "embed")]:
        asked = get(*OWN, ("sec-fetch-site", site), ("sec-fetch-mode", mode), ("sec-fetch-dest", kind))
        assert refused(asked).status == 403


def test_a_link_on_another_page_may_be_followed_but_not_by_post_and_to_no_mutation() -> None:
    link = (("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document"))
    assert refusal(get(*OWN, *link)) is None
    assert refused(post(*link, JSON)).status == 403
    assert refused(get(*OWN, *link, query=MUTATION)).status == 405


def test_who_types_the_address_comes_from_no_page() -> None:
    assert refusal(get(*OWN, ("sec-fetch-site", "none"))) is None


def test_a_program_that_is_no_browser_reads_and_sends_json() -> None:
    assert refusal(get(*OWN, query="{ version }")) is None
    assert refusal(post(("content-type", "application/json; charset=utf-8"))) is None
    assert refusal(post(("content-type", "application/graphql"))) is None


@pytest.mark.parametrize(
    "query",
    [
        MUTATION,
        "mutation{a}",
        "query A { b } mutation B { c }",
        "\ufeffmutation M { a }",
        ",,mutation{a}",
        "#\nmutation{a}",
    ],
)
def test_a_mutation_by_get_is_refused(query: str) -> None:
    found = refused(get(*OWN, query=query))
    assert found.status == 405
    assert "POST" in found.todo
    assert refused(Asked("GET", OWN, ["{ version }", query])).status == 405
    assert refused(Asked("HEAD", OWN, [query])).status == 405


def test_a_word_that_only_contains_it_is_none() -> None:
    assert refusal(get(*OWN, query="{ permutations mutations }")) is None


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "",
        "text/plain; application/json", "text/plain;charset=application/json", "application/json-seq",
    ],
)  # fmt: skip
def test_what_a_form_can_send_is_refused_also_without_an_origin(kind: str) -> None:
    found = refused(post(("content-type", kind)))
    assert found.status == 415
    assert "application/json" in found.todo
    assert refused(post(JSON, ("content-type", kind))).status == 415


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "get"])
def test_whatever_does_not_only_look_sends_json(method: str) -> None:
    assert refused(Asked(method, OWN)).status == 415


def test_the_password_opens_under_any_name() -> None:
    for name in ("up", "", "anna"):
        assert refusal(get(*OWN, basic(f"{name}:{PASSWORD}")), LOCKED) is None
    umlauts = Guard(nothing, 3000, [], "Passwörter: viele")
    assert refusal(get(*OWN, basic("up:Passwörter: viele")), umlauts) is None


@pytest.mark.parametrize(
    "given",
    [
        ("x", "y"), ("authorization", ""), ("authorization", "Basic"), ("authorization", "Basic ?!"),
        ("authorization", "Basic ü"),
        ("authorization", f"Bearer {PASSWORD}"), ("authorization", PASSWORD), basic(""), basic(PASSWORD), basic("up:"),
        basic(f"up:{PASSWORD}x"), basic(f"up:{PASSWORD[:-1]}"), basic(f"up:{PASSWORD.upper()}"),
        basic(f"up:{PASSWORD}\0"), basic(f"up:x:{PASSWORD}"), ("authorization", f"Negotiate x, {basic(PASSWORD)[1]}"),
        ("authorization", "Basic ="), ("authorization", "Basic \xff\xfe"),
    ],
)  # fmt: skip
def test_nothing_else_opens(given: tuple[str, str]) -> None:
    found = refused(get(*OWN, given), LOCKED)
    assert found.status == 401
    assert PASSWORD not in found.what + found.todo
    assert "PLATFORM_UI_PASSWORD" in found.todo


def test_the_password_makes_no_page_of_others_its_own() -> None:
    """A browser sends it along once somebody has given it."""
    assert refused(get(*OWN, basic(f"up:{PASSWORD}"), ("origin", "http://evil.example")), LOCKED).status == 403
    assert refused(get(("host", "evil.example:3000"), basic(f"up:{PASSWORD}")), LOCKED).status == 403
    assert PASSWORD not in str(vars(LOCKED))


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://dagster.example.com", "https://dagster.example.com"),
        ("https://Dagster.example.com:443/a/b", "https://dagster.example.com"),
        ("http://10.0.0.5:80", "http://10.0.0.5"),
        ("http://10.0.0.5:8080/", "http://10.0.0.5:8080"),
        ("http://[::1]:3000", "http://[::1]:3000"),
        ("http://[::80]", "http://[::80]"),
        ("http://*", None),
        ("https://*.example.com", None),
        ("https://user:word@example.com", None),
        ("https://example.com?x", None),
        ("https://example.com:port", None),
        ("dagster.example.com", None),
        ("null", None),
    ],
)
def test_an_address_has_an_origin_as_browsers_write_it(url: str, origin: str | None) -> None:
    assert origin_of(url) == origin


def test_an_origin_has_hosts() -> None:
    assert hosts_of("https://a.example") == {"a.example", "a.example:443"}
    assert hosts_of("http://[::1]") == {"[::1]", "[::1]:80"}
    assert hosts_of("http://[::1]:3000") == {"[::1]:3000"}
