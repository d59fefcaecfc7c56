"""The reverse proxy of docs/sharing.md, as it stands there, before a webserver with a password."""

from __future__ import annotations

import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from websockets.exceptions import InvalidStatus

from platform_assets.settings import project_root
from platform_assets_tests.support.orchestration.up import LIMIT, Webserver, basic, starting, subscribe, wait_for
from platform_assets_tests.support.processes import free_port

# Debian has nginx where only root looks.
PATH = f"{os.environ['PATH']}:/usr/sbin"
NGINX, HTPASSWD, OPENSSL = (shutil.which(name, path=PATH) for name in ("nginx", "htpasswd", "openssl"))
PASSWORD, ANNAS = "correct horse battery", "anna's own word"
NAME = "dagster.example.com"
ANNA = ("anna", ANNAS)
NO_RUN = 'subscription { pipelineRunLogs(runId: "none") { __typename } }'

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(
        not (NGINX and HTPASSWD and OPENSSL), reason="needs nginx: apt-get install nginx-light apache2-utils openssl"
    ),
]


@dataclass(frozen=True)
class Proxy:
    """A running nginx.

    Args:
        port: of this machine.
        certificate: which proves its name.
        server: behind it.
    """

    port: int
    certificate: Path
    server: Webserver

    def ask(self, method: str, path: str = "/graphql", host: str = NAME, **given: Any) -> requests.Response:
        """A request of somebody elsewhere, for whom the name leads here."""
        headers = {"Host": host} | given.pop("headers", {})
        with requests.Session() as session:
            session.trust_env = False
            url = f"https://127.0.0.1:{self.port}{path}"
            return session.request(method, url, headers=headers, verify=str(self.certificate), timeout=30, **given)

    def subscribe(self, **given: Any) -> dict[str, Any]:
        """What a websocket gets."""
        trusting = ssl.create_default_context(cafile=str(self.certificate))
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as raw:
            return subscribe(f"wss://{NAME}/graphql", NO_RUN, sock=raw, ssl=trusting, **given)


def run(*command: str | Path | None) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


@contextmanager
def nginx(folder: Path, server: Webserver) -> Iterator[Proxy]:
    """With the documented configuration, but for folders and ports."""
    folder.mkdir()
    port = free_port()
    text = (project_root() / "docs" / "sharing.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- example: nginx -->\n```nginx\n(.*?)```", text, re.DOTALL)
    assert found
    documented = found[1]
    for given, here in [
        ("/etc/nginx/dagster/", f"{folder}/"),
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("http://127.0.0.1:3000", server.url),
    ]:
        assert given in documented
        documented = documented.replace(given, here)
    names = f"subjectAltName=DNS:{NAME},IP:127.0.0.1"
    kept = ("-keyout", folder / "key.pem", "-out", folder / "certificate.pem")
    run(OPENSSL, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={NAME}", "-addext", names, *kept)
    run(HTPASSWD, "-B", "-b", "-c", folder / "people", *ANNA)
    written = re.search(r"^printf .*?password\.conf$", text, re.DOTALL | re.MULTILINE)
    assert written
    script = written[0].replace("/etc/nginx/dagster/", f"{folder}/")
    subprocess.run(["bash", "-euc", script], check=True, env={**os.environ, "PLATFORM_UI_PASSWORD": PASSWORD})
    own = [f"{kind}_temp_path {folder};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")]
    lines = [
        "daemon off;", f"pid {folder}/pid;", "user root;" if os.geteuid() == 0 else "", "events {}",
        "http {", *own, f"access_log {folder}/access.log;", documented, "}",
    ]  # fmt: skip
    (folder / "nginx.conf").write_text("\n".join(lines), encoding="utf-8")
    log = folder / "error.log"
    process = subprocess.Popen([str(NGINX), "-e", str(log), "-c", str(folder / "nginx.conf")])
    try:
        until = time.monotonic() + 30
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until
            time.sleep(0.1)
        yield Proxy(port, folder / "certificate.pem", server)
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("shared")
    at = f"https://{NAME}"
    with starting(folder / "dagster", PLATFORM_UI_PASSWORD=PASSWORD, PLATFORM_UI_URL=at) as server:
        wait_for(server)
        with nginx(folder / "nginx", server) as proxy:
            yield proxy
            assert PASSWORD not in (folder / "nginx" / "access.log").read_text()


def test_who_is_let_in_works_as_ever(proxy: Proxy) -> None:
    assert 'id="root"' in proxy.ask("GET", "/runs", auth=ANNA).text
    own = {"Origin": f"https://{NAME}", "Sec-Fetch-Site": "same-origin"}
    assert proxy.ask("POST", json={"query": LIMIT}, headers=own, auth=ANNA).json()["data"]
    assert proxy.server.limits() == ["attacked"]
    undo = 'mutation { deleteConcurrencyLimit(concurrencyKey: "attacked") }'
    assert proxy.ask("POST", json={"query": undo}, headers=own, auth=ANNA).ok
    seen = proxy.subscribe(origin=f"https://{NAME}", additional_headers=basic(*ANNA))
    assert seen["payload"]["data"]["pipelineRunLogs"]["__typename"] == "PipelineRunLogsSubscriptionFailure"


def test_who_is_not_sees_nothing(proxy: Proxy) -> None:
    for auth in (None, ("anna", "wrong"), ("nobody", ANNAS), ("nginx", PASSWORD)):
        for path in ("/", "/runs", "/server_info", "/graphql?query={version}"):
            assert proxy.ask("GET", path, auth=auth).status_code == 401
        assert proxy.ask("POST", json={"query": LIMIT}, auth=auth).status_code == 401
        with pytest.raises(InvalidStatus) as caught:
            proxy.subscribe(additional_headers=basic(*auth) if auth else {})
        assert caught.value.response.status_code == 401
    assert proxy.server.limits() == []


def test_nobody_gets_around_the_proxy(proxy: Proxy) -> None:
    """Whoever has an account on the machine reaches the port behind it."""
    for headers in ({}, {"Host": NAME}, {"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": NAME}):
        assert proxy.server.ask("POST", json={"query": LIMIT}, headers=headers).status_code == 401
        assert proxy.server.ask("POST", json={"query": LIMIT}, headers=headers, auth=ANNA).status_code == 401
    assert proxy.server.limits() == []


def test_other_pages_do_nothing_though_the_browser_sends_the_password(proxy: Proxy) -> None:
    origin = "https://evil.example"
    assert proxy.ask("POST", headers={"Origin": origin}, auth=ANNA, json={"query": LIMIT}).status_code == 403
    with pytest.raises(InvalidStatus) as caught:
        proxy.subscribe(origin=origin, additional_headers=basic(*ANNA))
    assert caught.value.response.status_code == 403
    assert proxy.ask("GET", params={"query": LIMIT}, auth=ANNA).status_code == 405
    assert proxy.server.limits() == []
