"""The webserver of `up`, attacked over the network as other pages and people would."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from platform_assets_tests.support.orchestration.up import LIMIT, Webserver, basic, starting, wait_for

PASSWORD = "correct horse battery"
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
    first = plain.ask("GET", "/")
    assert (first.status_code, first.headers["Location"]) == (307, "/assets")
    for name in ("127.0.0.1", "localhost"):
        place = f"{name}:{plain.port}"
        own = {"Host": place, "Origin": f"http://{place}", "Sec-Fetch-Site": "same-origin"}
        assert plain.ask("POST", json={"query": LIMIT}, headers=own).json() == {"data": {"setConcurrencyLimit": True}}
        assert plain.limits() == ["attacked"]
        undo = 'mutation { deleteConcurrencyLimit(concurrencyKey: "attacked") }'
        assert plain.ask("POST", json={"query": undo}, headers=own).ok
    seen = plain.subscribe(NO_RUN, origin=Origin(plain.url))
    assert seen["payload"]["data"]["pipelineRunLogs"]["__typename"] == "PipelineRunLogsSubscriptionFailure"


def test_prometheus_reads_metrics_behind_the_same_guard(plain: Webserver, shared: Webserver) -> None:
    page = plain.ask("GET", "/metrics")
    assert (page.status_code, page.headers["Content-Type"].partition(";")[0]) == (200, "text/plain")
    names = {family.name for family in text_string_to_metric_families(page.text)}
    assert {"platform_assets_releases", "platform_assets_table_stale_partitions"} <= names
    assert plain.ask("GET", "/metrics", headers={"Host": "evil.example"}).status_code == 403
    assert plain.ask("GET", "/metrics", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert shared.ask("GET", "/shop/metrics").status_code == 401
    assert shared.ask("GET", "/shop/metrics", headers=basic("prometheus", PASSWORD)).status_code == 200


def test_a_program_without_a_browser_goes_on_working(plain: Webserver) -> None:
    assert plain.ask("GET", "/server_info").ok
    assert plain.ask("GET", params={"query": "{ version }"}).json()["data"]
    assert plain.ask("POST", json={"query": "{ version }"}).json()["data"]
    assert plain.subscribe(NO_RUN)["type"] == "data"


@pytest.mark.parametrize("path", ["/", "/server_info", "/graphql?query={version}", "/logs/a.out", "/favicon.png"])
def test_a_name_that_leads_here_is_no_name_of_it(path: str, servers: tuple[Webserver, Webserver]) -> None:
    """What a page sees of this machine that gave its own name the machine's address."""
    for server in servers:
        answer = server.ask("GET", path, headers={"Host": f"evil.example:{server.port}"}, auth=server.auth)
        assert (answer.status_code, answer.headers["Content-Type"]) == (403, "text/plain; charset=utf-8")
        assert answer.text.startswith(f"evil.example:{server.port} is no address of this Dagster.\n")
        assert "PLATFORM_UI_ORIGINS" in answer.text


def test_a_second_request_behind_the_first_is_looked_at_too(plain: Webserver) -> None:
    """Where it begins, nobody can be made to see otherwise."""
    own = b"Host: 127.0.0.1:%d\r\n" % plain.port
    evil = b"GET /server_info HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    lengths = b"Content-Type: application/json\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert plain.raw(b"POST /graphql HTTP/1.1\r\n" + own + lengths + evil) == [b"400"]
    assert plain.raw(b"GET /server_info HTTP/1.1\r\n" + own + b"\r\n" + evil) == [b"200", b"403"]


@pytest.mark.parametrize(
    "path", ["/logs/../../../home/dagster.yaml", "/logs/..%2f..%2f..%2f..%2fetc/passwd", "/logs/."]
)
def test_no_path_leads_out_of_what_it_serves(path: str, plain: Webserver) -> None:
    own = b"Host: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % plain.port
    assert plain.raw(f"GET {path} HTTP/1.1\r\n".encode() + own) == [b"500"], "refused by Dagster, which tells nothing"


def test_another_page_changes_nothing_and_no_page_by_a_link(plain: Webserver) -> None:
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
        headers = {"Origin": EVIL, "Sec-Fetch-Site": "cross-site"} | given.pop("headers", {})
        assert plain.ask("POST", path, headers=headers, **given).status_code == 403
    asking = {"Origin": EVIL, "Access-Control-Request-Method": "POST"}
    by_get = plain.ask("GET", params={"query": LIMIT}, headers={"Origin": plain.url})
    assert (by_get.status_code, by_get.headers["Allow"]) == (405, "POST")
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


def test_it_listens_on_this_machine_alone_whatever_the_shell_says(plain: Webserver) -> None:
    tables = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")]
    rows = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{plain.port:04X}")]
    assert listening == [f"0100007F:{plain.port:04X}"]


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
    reported = shared.ask("POST", "/shop/report_asset_materialization/a", json={}, auth=shared.auth)
    assert (reported.status_code, "Not authorized" in reported.text) == (401, True)
    headers = basic("up", PASSWORD)
    assert shared.subscribe(NO_RUN, "/shop/graphql", origin=Origin(shared.url), additional_headers=headers)["payload"]


def test_the_password_is_in_no_command_and_no_output(shared: Webserver) -> None:
    assert PASSWORD not in shared.output.read_text()
    assert PASSWORD not in "".join(file.read_text() for file in Path("/proc").glob("[0-9]*/cmdline") if readable(file))


def readable(file: Path) -> bool:
    try:
        return bool(file.read_bytes())
    except OSError:
        return False  # it ended meanwhile
