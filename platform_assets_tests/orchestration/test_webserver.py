"""The webserver of `up`: which requests are for Dagster, on paper, and attacked over the network."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from platform_assets.addresses import hosts_of, origin_of
from platform_assets.orchestration.webserver.guard import Access, Asked, Refusal, refusal
from platform_assets_tests.support.orchestration.webserver import LIMIT, Webserver, basic, starting, wait_for

PASSWORD = "correct horse battery"
ACCESS = Access.at(3000, ["https://dagster.example.com/shop", "http://tunnel.example:8080"])
LOCKED = Access.at(3000, [], PASSWORD)
OWN = [("host", "127.0.0.1:3000")]
JSON = ("content-type", "application/json")
MUTATION = "mutation { launchRun { __typename } }"


def get(*headers: tuple[str, str], query: str = "") -> Asked:
    return Asked("GET", headers, [query] if query else [])


def post(*headers: tuple[str, str], host: str = "127.0.0.1:3000") -> Asked:
    return Asked("POST", [("host", host), *headers])


def refused(asked: Asked, access: Access = ACCESS) -> Refusal:
    found = refusal(asked, access)
    assert found is not None
    return found


def header_of(text: str) -> tuple[str, str]:
    return "authorization", f"Basic {b64encode(text.encode()).decode()}"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:3000", "localhost:3000", "LOCALHOST:3000", "[::1]:3000",
        "dagster.example.com", "dagster.example.com:443", "tunnel.example:8080",
    ],
)  # fmt: skip
def test_it_answers_at_its_own_hosts(host: str) -> None:
    assert refusal(get(("host", host)), ACCESS) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:3000", "127.0.0.1", "127.0.0.1:3001", "localhost", "localhost.:3000", "",
        "0.0.0.0:3000", "127.0.0.2:3000", "127.0.0.1:3000.evil.example", "evil.dagster.example.com", "tunnel.example",
        "dagster.example.com:80", "127.0.0.1:3000@evil.example", "evil.example\r\nx",
    ],
)  # fmt: skip
def test_it_answers_at_no_other_host_and_says_what_to_set(host: str) -> None:
    found = refused(get(("host", host)))
    assert found.status == 403
    assert "is no address of this Dagster" in found.what
    assert "\n" not in found.what
    assert "PLATFORM_UI_ORIGINS" in found.todo


def test_one_host_is_told_from_none_and_from_two() -> None:
    assert refused(get()).status == 403
    assert refused(get(*OWN, ("host", "evil.example"))).status == 403


def test_at_the_usual_port_browsers_leave_it_out() -> None:
    access = Access.at(80)
    assert refusal(get(("host", "localhost"), ("origin", "http://localhost")), access) is None
    assert refusal(get(("host", "localhost:80")), access) is None


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
    assert refusal(post(*own, host=host), ACCESS) is None


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
    assert refusal(get(*OWN, *link), ACCESS) is None
    assert refused(post(*link, JSON)).status == 403
    assert refused(get(*OWN, *link, query=MUTATION)).status == 405


def test_who_types_the_address_comes_from_no_page() -> None:
    assert refusal(get(*OWN, ("sec-fetch-site", "none")), ACCESS) is None


def test_a_program_that_is_no_browser_reads_and_sends_json() -> None:
    assert refusal(get(*OWN, query="{ version }"), ACCESS) is None
    assert refusal(post(("content-type", "application/json; charset=utf-8")), ACCESS) is None
    assert refusal(post(("content-type", "application/graphql")), ACCESS) is None


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
        assert refusal(get(*OWN, header_of(f"{name}:{PASSWORD}")), LOCKED) is None
    umlauts = Access.at(3000, [], "Passwörter: viele")
    assert refusal(get(*OWN, header_of("up:Passwörter: viele")), umlauts) is None


@pytest.mark.parametrize(
    "given",
    [
        ("x", "y"), ("authorization", ""), ("authorization", "Basic"), ("authorization", "Basic ?!"),
        ("authorization", "Basic ü"), ("authorization", f"Bearer {PASSWORD}"), ("authorization", PASSWORD),
        header_of(""), header_of(PASSWORD), header_of("up:"),
        header_of(f"up:{PASSWORD}x"), header_of(f"up:{PASSWORD[:-1]}"), header_of(f"up:{PASSWORD.upper()}"),
    ],
)  # fmt: skip
def test_nothing_else_opens(given: tuple[str, str]) -> None:
    found = refused(get(*OWN, given), LOCKED)
    assert found.status == 401
    assert PASSWORD not in found.what + found.todo
    assert "PLATFORM_UI_PASSWORD" in found.todo


def test_the_password_makes_no_page_of_others_its_own() -> None:
    """A browser sends it along once somebody has given it."""
    assert refused(get(*OWN, header_of(f"up:{PASSWORD}"), ("origin", "http://evil.example")), LOCKED).status == 403
    assert refused(get(("host", "evil.example:3000"), header_of(f"up:{PASSWORD}")), LOCKED).status == 403
    assert PASSWORD not in repr(LOCKED)


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


EVIL = "http://evil.example"
SHARED = "https://dagster.example.com"
NO_RUN = 'subscription { pipelineRunLogs(runId: "none") { __typename } }'


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Webserver, Webserver]]:
    """One as `up` starts it by itself, and one with all that can be set; both at once, since each takes its seconds."""
    with ExitStack() as stack:
        plain = stack.enter_context(
            starting(tmp_path_factory.mktemp("plain"), DAGSTER_WEBSERVER_HOST="0.0.0.0", WEB_CONCURRENCY="4")
        )
        shared = stack.enter_context(
            starting(
                tmp_path_factory.mktemp("shared"),
                read_only=True,
                PLATFORM_UI_PASSWORD=PASSWORD,
                PLATFORM_UI_ORIGINS=f"http://tunnel.example:8080, {SHARED}",
                DAGSTER_WEBSERVER_PATH_PREFIX="/shop",
            )
        )
        wait_for(plain)
        wait_for(shared)
        yield plain, shared


@pytest.fixture
def plain(servers: tuple[Webserver, Webserver]) -> Iterator[Webserver]:
    """Afterwards nothing of it is changed."""
    assert servers[0].limits() == []
    yield servers[0]
    assert servers[0].limits() == []


@pytest.fixture
def shared(servers: tuple[Webserver, Webserver]) -> Webserver:
    return servers[1]


def test_the_ui_goes_on_working(plain: Webserver) -> None:
    """Page, queries, mutations and subscriptions; starts two servers."""
    page = plain.ask("GET", "/runs", headers={"Sec-Fetch-Site": "none", "Accept": "text/html"})
    assert "Dagster</title>" in page.text
    assert page.headers["X-Frame-Options"] == "SAMEORIGIN"
    for name in ("127.0.0.1", "localhost"):
        place = f"{name}:{plain.port}"
        own = {"Host": place, "Origin": f"http://{place}", "Sec-Fetch-Site": "same-origin"}
        assert plain.ask("POST", json={"query": LIMIT}, headers=own).json() == {"data": {"setConcurrencyLimit": True}}
        assert plain.limits() == ["attacked"]
        undo = 'mutation { deleteConcurrencyLimit(concurrencyKey: "attacked") }'
        assert plain.ask("POST", json={"query": undo}, headers=own).ok
    seen = plain.subscribe(NO_RUN, origin=Origin(plain.url))
    assert seen["payload"]["data"]["pipelineRunLogs"]["__typename"] == "PipelineRunLogsSubscriptionFailure"


@pytest.mark.parametrize("origin", [EVIL, "null", "http://127.0.0.1:1"])
def test_another_page_changes_nothing(origin: str, plain: Webserver) -> None:
    form = {"query": LIMIT}
    sent: list[tuple[str, dict[str, Any]]] = [
        ("/graphql", {"json": form}),
        ("/graphql", {"data": form}),
        ("/graphql", {"params": form}),
        ("/graphql", {"data": json.dumps(form), "headers": {"Content-Type": "text/plain"}}),
        ("/graphql", {"data": json.dumps(form), "headers": {"Content-Type": "text/plain; application/json"}}),
        ("/report_asset_materialization/a", {}),
    ]
    for path, given in sent:
        headers = {"Origin": origin, "Sec-Fetch-Site": "cross-site"} | given.pop("headers", {})
        assert plain.ask("POST", path, headers=headers, **given).status_code == 403
    asking = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    allowed = plain.ask("OPTIONS", headers=asking)
    assert (allowed.status_code, "Access-Control-Allow-Origin" in allowed.headers) == (403, False)


def test_a_websocket_of_another_page_is_not_opened(plain: Webserver) -> None:
    for given in ({"origin": EVIL}, {"origin": "null"}, {"additional_headers": {"Sec-Fetch-Site": "cross-site"}}):
        with pytest.raises(InvalidStatus) as caught:
            plain.subscribe(NO_RUN, **given)
        assert caught.value.response.status_code == 403
        assert b"may not use this Dagster" in caught.value.response.body


def test_a_websocket_executes_no_mutation(plain: Webserver) -> None:
    assert plain.subscribe(LIMIT)["type"] == "error"


def test_without_the_password_nothing_is_shown(shared: Webserver) -> None:
    for path in ("/", "/shop", "/shop/runs", "/shop/server_info", "/shop/graphql?query={version}", "/shop/favicon.png"):
        for given in (None, ("up", ""), ("up", PASSWORD + "x"), (PASSWORD, "")):
            answer = shared.ask("GET", path, auth=given)
            assert answer.status_code == 401
            assert answer.headers["WWW-Authenticate"].startswith("Basic ")
            assert "PLATFORM_UI_PASSWORD" in answer.text
    assert shared.ask("POST", "/shop/graphql", json={"query": "{ version }"}).status_code == 401
    with pytest.raises(InvalidStatus) as caught:
        shared.subscribe(NO_RUN, "/shop/graphql", origin=Origin(shared.url))
    assert caught.value.response.status_code == 401


def test_with_the_password_everything_is_as_ever(shared: Webserver) -> None:
    assert shared.ask("GET", "/", auth=shared.auth).headers["Location"] == "/shop"
    assert shared.ask("GET", "/shop/server_info", auth=("anna", PASSWORD)).ok
    asked = shared.ask("POST", "/shop/graphql", json={"query": LIMIT}, auth=shared.auth)
    assert "Unauthorized" in asked.text, "it is read-only all the same"
    headers = basic("up", PASSWORD)
    assert shared.subscribe(NO_RUN, "/shop/graphql", origin=Origin(shared.url), additional_headers=headers)["payload"]


@pytest.mark.parametrize("kind", ["materialization", "check", "observation"])
def test_who_only_looks_reports_nothing(kind: str, shared: Webserver) -> None:
    path = f"/shop/report_asset_{kind}/a?check_name=x&passed=true"
    asked = shared.ask("POST", path, json={"check_name": "x", "passed": True}, auth=shared.auth)
    assert (asked.status_code, "Not authorized" in asked.text) == (401, True)
