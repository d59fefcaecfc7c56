"""An object whose name no library takes keeps what was delivered beside it from being taken, and nothing else.

No library here writes such names, as other tools do: the store is one that only lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest

from platform_assets.contracts import LandingFiles
from platform_assets.lakehouse.layout import stored
from platform_assets.lakehouse.storage import object_store
from platform_assets.sources.area import BucketArea
from platform_assets.sources.landing import Listing
from platform_assets.sources.listing import Hashes, list_landing

GOOD = ("sales/2017-01-02/a.csv", "sales/2017-01-03/b.csv")
_OBJECT = (
    "<Contents><Key>{}</Key><LastModified>2017-01-02T00:00:00.000Z</LastModified><ETag>&quot;1&quot;</ETag>"
    "<Size>4</Size></Contents>"
)
_PREFIX = "<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>"
_ANSWER = "<ListBucketResult><Name>b</Name><IsTruncated>false</IsTruncated>{}</ListBucketResult>"


def listing(keys: list[str], prefix: str, delimiter: str) -> str:
    """As S3 lists: what goes on after the delimiter once, by its beginning."""
    found = {}
    for key in sorted(key for key in keys if key.startswith(prefix)):
        name, slash, _ = key.removeprefix(prefix).partition(delimiter) if delimiter else (key, "", "")
        found[f"{prefix}{name}{slash}" if slash else key] = _PREFIX if slash else _OBJECT
    return _ANSWER.format("".join(form.format(name) for name, form in found.items()))


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is in the bucket."""
    names = [*GOOD]

    class Lists(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = parse_qs(urlsplit(self.path).query)
            answer = listing(names, asked.get("prefix", [""])[0], asked.get("delimiter", [""])[0]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Lists)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "a-key",
        "AWS_SECRET_ACCESS_KEY": "a-secret",
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    object_store._client_of.cache_clear()
    yield names
    object_store._client_of.cache_clear()
    server.shutdown()
    server.server_close()


def look() -> Listing:
    return list_landing(
        BucketArea(stored("s3://deliveries")),
        LandingFiles("sales", None),
        {},
        until=date(2017, 1, 5),
        settle_s=0,
        hashes=Hashes(),
        among=None,
    )


@pytest.mark.parametrize("name", ["sales/2017-01-03//c.csv", "sales/2017-01-03/../c.csv", "sales/2017-01-03/./c.csv"])
def test_a_name_that_cannot_be_listed_is_told_and_only_its_date_waits(keys: list[str], name: str) -> None:
    assert [file.path for file in look().pending] == [*GOOD]
    keys.append(name)
    found = look()
    assert [file.path for file in found.pending] == [GOOD[0]]
    (problem,) = found.problems
    assert problem.path == "sales/2017-01-03"
    assert f"an object is called {name}" in problem.message
    assert "Rename it, or remove it" in problem.message


def test_a_name_that_keeps_the_whole_source_from_being_listed_is_told(keys: list[str]) -> None:
    keys.append("sales//c.csv")
    found = look()
    assert found.pending == ()
    assert ["an object is called sales//c.csv" in problem.message for problem in found.problems] == [True]
