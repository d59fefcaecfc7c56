"""What other pages in the same browser can do to `up`, and what they can do to Dagster without it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page, expect

from platform_assets_tests.support.http import Quiet, serving
from platform_assets_tests.support.orchestration.readings import SENSORS
from platform_assets_tests.support.orchestration.up import NEEDS_CHROMIUM, starting, up, wait_for

pytestmark = [NEEDS_CHROMIUM, pytest.mark.timeout(900), pytest.mark.proof]

PASSWORD = "correct horse battery"
LIMITS = "{ instance { concurrencyLimits { concurrencyKey } } }"

ATTACK = """<!DOCTYPE html><title>attacking</title><body><script>
const target = decodeURIComponent(location.search.slice(1));
const endpoint = `${target}/graphql`;
const query = way => `mutation { setConcurrencyLimit(concurrencyKey: "by ${way}", limit: 7) }`;
const address = way => `${endpoint}?query=${encodeURIComponent(query(way))}`;
const body = way => JSON.stringify({query: query(way)});

const loaded = (tag, source) => new Promise(done => {
  const element = Object.assign(document.createElement(tag), source);
  element.onload = element.onerror = done;
  document.body.append(element);
});
const submitted = (way, enctype) => new Promise(done => {
  const frame = Object.assign(document.createElement("iframe"), {name: way});
  document.body.append(frame);
  frame.onload = done;
  const sent = {method: "post", action: address(way), target: way, enctype};
  const form = Object.assign(document.createElement("form"), sent);
  form.append(Object.assign(document.createElement("input"), {name: body(way), value: ""}));
  document.body.append(form);
  form.submit();
});
const posted = (way, mode, type) => fetch(endpoint, {
  method: "POST", mode, credentials: "include", headers: {"Content-Type": type}, body: body(way),
}).catch(() => null);
const socket = new Promise(done => {
  const opening = new WebSocket(endpoint.replace("http", "ws"), "graphql-ws");
  opening.onopen = () => done("opened");
  opening.onerror = () => done("refused");
});

(async () => {
  await loaded("img", {src: address("image")});
  await loaded("script", {src: address("script")});
  await loaded("iframe", {name: "framed", src: target});
  await submitted("form", "application/x-www-form-urlencoded");
  await submitted("text form", "text/plain");
  await posted("fetch", "no-cors", "text/plain; application/json");
  await posted("json", "cors", "application/json");
  const read = await fetch(`${endpoint}?query={version}`).then(answer => answer.text()).catch(() => "");
  window.found = {socket: await socket, read};
  document.title = "attacked";
})();
</script>"""


class OtherPage(Quiet):
    """Serves the attack."""

    def respond(self) -> None:
        content = ATTACK.encode() if self.path.startswith("/?") else b""
        self.answer(200, content, Content_Type="text/html; charset=utf-8")


@pytest.fixture
def port() -> Iterator[int]:
    """Where the other page is."""
    with serving(OtherPage) as number:
        yield number


@contextmanager
def window(browser: Browser, **chosen: Any) -> Iterator[Page]:
    context = browser.new_context(**chosen)
    yield context.new_page()
    context.close()


def attack(page: Page, origin: str, url: str) -> dict[str, str]:
    """Whether a websocket was opened, what could be read, what is shown within the page; the rest is what changed."""
    page.goto(f"{origin}/?{url}")
    expect(page).to_have_title("attacked", timeout=60_000)
    found: dict[str, str] = page.evaluate("found")
    framed = page.frame("framed")
    assert framed is not None
    return found | {"framed": "Dagster" if 'id="root"' in framed.content() else "nothing"}


def ask(page: Page, query: str) -> dict[str, Any]:
    """GraphQL as the page sends it that is open."""
    answer: dict[str, Any] = page.evaluate(
        """query => fetch("/graphql", {
            method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({query})
        }).then(answer => answer.json())""",
        query,
    )
    return answer


def ways(page: Page, url: str) -> set[str]:
    """In which ways limits were set, as Dagster's own page sees it."""
    page.goto(url)
    limits = ask(page, LIMITS)["data"]["instance"]["concurrencyLimits"]
    return {key.removeprefix("by ") for limit in limits if (key := limit["concurrencyKey"]).startswith("by ")}


def test_other_pages_do_nothing_to_up_that_they_do_to_dagster_without_it(
    tmp_path: Path, browser: Browser, port: int
) -> None:
    """From another name, from another port of this machine, and by the name that was given this machine's address."""
    origins = [f"http://{name}:{port}" for name in ("evil.example", "localhost", "127.0.0.1")]
    with starting(tmp_path / "plain", guarded=False) as plain, window(browser) as page:
        wait_for(plain)
        assert attack(page, origins[0], plain.url) == {"socket": "opened", "read": "", "framed": "Dagster"}
        assert ways(page, plain.url) == {"image", "script", "form", "text form", "fetch"}
        page.goto(f"http://evil.example:{plain.port}/server_info")
        assert "dagster_version" in page.content()

    with up(tmp_path, domains=SENSORS) as server, window(browser) as page:
        for origin in origins:
            assert attack(page, origin, server.url) == {"socket": "refused", "read": "", "framed": "nothing"}
            assert ways(page, server.url) == set()
        page.goto(server.url.replace("127.0.0.1", "evil.example") + "/server_info")
        assert "is no address of this Dagster" in page.content()
        assert "dagster_version" not in page.content()

        page.goto(f"{origins[0]}/")
        page.evaluate("url => { location.href = url }", f"{server.url}/assets")
        expect(page.get_by_text("Coldest and warmest").first).to_be_visible(timeout=60_000)
        ask(page, 'mutation { setConcurrencyLimit(concurrencyKey: "by itself", limit: 7) }')
        assert ways(page, server.url) == {"itself"}


def test_behind_a_password_pages_and_their_websockets_work(tmp_path: Path, browser: Browser, port: int) -> None:
    """A browser that has the password sends it with each request, and with those of other pages."""
    given = {"username": "up", "password": PASSWORD}
    with starting(tmp_path / "locked", PLATFORM_UI_PASSWORD=PASSWORD) as server:
        wait_for(server)
        with window(browser) as page, pytest.raises(Error, match="ERR_INVALID_AUTH_CREDENTIALS"):
            page.goto(f"{server.url}/runs")
        with window(browser, http_credentials=given) as page:
            came: list[str | bytes] = []
            page.on("websocket", lambda opened: opened.on("framereceived", lambda frame: came.append(frame)))
            page.goto(f"{server.url}/runs")
            expect(page.get_by_text("Runs").first).to_be_visible(timeout=60_000)
            until = time.monotonic() + 60
            while not came and time.monotonic() < until:
                page.wait_for_timeout(100)
            assert came, "no message over the websocket"
            assert attack(page, f"http://localhost:{port}", server.url)["socket"] == "refused"
            assert ways(page, server.url) == set()
