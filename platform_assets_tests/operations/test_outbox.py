"""What is published reaches whoever lies downstream: at least once, whatever dies or answers oddly, with its key."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socket import create_server, socket
from threading import Thread
from typing import cast

import pytest
from pydantic import SecretStr
from pyspark.sql import SparkSession

from platform_assets.engine.platform import Author
from platform_assets.lakehouse.layout import Lake
from platform_assets.ledger.database import copy_ledger, salvage, set_aside
from platform_assets.ledger.ledger import Ledger
from platform_assets.ledger.outbox import Outbox
from platform_assets.ledger.sync import rebuild
from platform_assets.operations import webhook
from platform_assets.operations.opening import open_platform
from platform_assets.operations.outbox import Delivery, deliver
from platform_assets.operations.webhook import WebhookError, post
from platform_assets.planning.outbox import key_of
from platform_assets.settings import load_settings
from platform_assets_tests.support.installation import JARS
from platform_assets_tests.support.orchestration.readings import GOLD, SILVER, land, refresh_on_paper
from platform_assets_tests.support.shelf import in_process, killed
from platform_assets_tests.support.webhook import SECRET, Hook, listening
from platform_assets_tests.support.world import World

TOLD = "platform_assets_tests.support.domains.told"
WEEK, CACHE = "WEEK_REFRESH_URL", "CACHE_REFRESH_URL"
DAY = "2017-01-01"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Readings with two exposures, of one day; nothing is computed by Spark."""
    dates = {"calendar_first": "2017-01-01", "calendar_last": DAY, "today": DAY}
    settings = load_settings(state=tmp_path / "state", jars=JARS, domains=TOLD, **dates)
    return World(settings, cast("SparkSession", None))


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    """What both exposures' variables lead to."""
    with listening() as hook:
        monkeypatch.setenv(WEEK, hook.url)
        monkeypatch.setenv(CACHE, hook.url)
        yield hook


def publish(world: World, celsius: str = "20.00") -> None:
    """A reading lands, and all that reads it is computed: three publications, one for each table."""
    land(world, DAY, DAY, name=f"r{celsius}.jsonl", celsius=celsius)
    _refresh(world.settings.state)


def _refresh(state: Path) -> None:
    dates = {"calendar_first": "2017-01-01", "calendar_last": DAY, "today": DAY}
    with open_platform(load_settings(state=state, jars=JARS, domains=TOLD, **dates)) as platform:
        refresh_on_paper(platform, None, Author("a run", "a reading came"))


def send(world: World, for_s: float | None = None) -> Delivery:
    with world.open() as platform:
        return deliver(platform, for_s)


def _send(state: Path, url: str) -> None:
    os.environ |= {WEEK: url, CACHE: url}
    with open_platform(load_settings(state=state, jars=JARS, domains=TOLD)) as platform:
        deliver(platform)


def outbox(world: World, look: Callable[[Outbox], None]) -> None:
    with world.open() as platform:
        look(platform.ledger.outbox)


def states(world: World) -> list[str]:
    with world.open() as platform:
        return [message.state for message in platform.ledger.outbox.messages()]


def an_hour_passes(world: World) -> None:
    """For what waits: whatever took a message and died, or failed, is over by now."""
    with world.open() as platform:
        at = datetime.now(UTC) + timedelta(hours=1)
        for message in platform.ledger.outbox.messages(["waiting"]):
            platform.ledger.outbox.failed(message, message.problem, datetime.now(UTC), at)


def test_every_exposure_is_told_once_of_each_publication_that_changed_what_it_reads(world: World, hook: Hook) -> None:
    publish(world)
    done = send(world)
    assert (len(done.delivered), done.failed, done.no_address) == (3, [], {})
    assert {(said["exposure"], said["tables"][0]["table"]) for said in hook.taken} == {
        ("week dashboard", GOLD),
        ("reading cache", SILVER),
        ("reading cache", GOLD),
    }, "raw is read by none of them"
    with world.open() as platform:
        for said, (headers, _) in zip(hook.taken, hook.came, strict=True):
            assert headers["Idempotency-Key"] == said["key"] == key_of(said["publication"], said["exposure"])
            head = platform.ledger.head(said["publication"])
            assert head is not None
            assert (said["release"], said["why"], said["by"]) == (head.release, head.why, head.who)
            assert said["tables"][0]["days"] == [DAY]
    assert send(world) == Delivery(), "once"
    assert len(hook.came) == 3


def test_who_dies_between_release_and_ledger_has_it_told_all_the_same(world: World, hook: Hook) -> None:
    land(world, DAY, DAY)
    point = "ledger.before_record"
    assert killed(in_process(_refresh, world.settings.state, failpoint=f"{point}:1"))
    assert states(world) == [], "raw alone was published, which nobody reads"
    for _ in range(2):  # of silver, and of gold
        assert killed(in_process(_refresh, world.settings.state, failpoint=f"{point}:1"))
    send(world)
    assert sorted(said["tables"][0]["table"] for said in hook.taken) == [GOLD, GOLD, SILVER]


@pytest.mark.parametrize(
    ("point", "times"), [("outbox.taken", 1), ("outbox.sent", 2), ("outbox.settled", 1)], ids=lambda value: f"{value}"
)
def test_who_dies_while_delivering_loses_nothing_and_sends_one_message_twice_at_most(
    world: World, hook: Hook, point: str, times: int
) -> None:
    publish(world)
    assert killed(in_process(_send, world.settings.state, hook.url, failpoint=point))
    send(world)
    an_hour_passes(world)
    send(world)
    assert states(world) == ["delivered"] * 3
    assert sorted({hook.keys.count(key) for key in hook.keys}) == sorted({1, times})
    assert len(set(hook.keys)) == 3
    first = hook.keys[0]
    assert len({body for headers, body in hook.came if headers["Idempotency-Key"] == first}) == 1, "word for word"


def test_one_who_refuses_keeps_nothing_from_others_and_is_asked_again_later(world: World, hook: Hook) -> None:
    publish(world)
    hook.refuses = ["week dashboard"]
    done = send(world)
    assert [message.target for message in done.delivered] == ["reading cache"] * 2
    [failed] = done.failed
    assert (failed.target, failed.problem, failed.state) == ("week dashboard", "answered 400", "waiting")
    assert timedelta(seconds=20) < failed.due_at - datetime.now(UTC) <= timedelta(seconds=36)
    assert send(world) == Delivery(), "not yet"
    hook.refuses = []
    an_hour_passes(world)
    assert [message.target for message in send(world).delivered] == ["week dashboard"]
    assert hook.keys.count(failed.key) == 2


def test_one_who_cannot_be_reached_is_left_alone_until_the_next_time(
    world: World, hook: Hook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv(CACHE, f"http://127.0.0.1:9/{SECRET}?key={SECRET}")
    publish(world)
    done = send(world)
    assert [message.target for message in done.delivered] == ["week dashboard"]
    [failed] = done.failed
    assert (failed.target, failed.tries) == ("reading cache", 1)
    assert "cannot be reached" in failed.problem
    with world.open() as platform:
        assert sorted(m.tries for m in platform.ledger.outbox.messages(["waiting"])) == [0, 1], "once for all of them"
    assert "connection broken" in caplog.text
    assert SECRET not in caplog.text + str(done)


def test_a_round_ends_with_its_time_and_leaves_the_rest_for_the_next(world: World, hook: Hook) -> None:
    publish(world)
    hook.waits_s = 0.3
    assert len(send(world, for_s=0.1).delivered) == 1
    assert len(send(world).delivered) == 2


@pytest.mark.parametrize(
    ("value", "says"),
    [("", "WEEK_REFRESH_URL is not set"), (f"http://hooks.example.com/{SECRET}", "is no https:// address")],
)
def test_without_an_address_a_message_waits_and_uses_up_no_try(
    world: World, hook: Hook, monkeypatch: pytest.MonkeyPatch, value: str, says: str
) -> None:
    publish(world)
    monkeypatch.setenv(WEEK, value)
    done = send(world)
    assert says in done.no_address["week dashboard"]
    assert SECRET not in str(done)
    with world.open() as platform:
        [message] = platform.ledger.outbox.messages(["waiting"])
        assert (message.target, message.tries) == ("week dashboard", 0)


def test_an_exposure_that_is_declared_no_more_is_named(world: World, hook: Hook) -> None:
    publish(world)
    without = world.settings.model_copy(update={"domains": ("platform_assets_tests.support.domains.sensors",)})
    done = send(World(without, world.spark))
    assert done.no_address == dict.fromkeys(("reading cache", "week dashboard"), "no domain declares this exposure")
    assert hook.came == []


def test_an_older_ledger_that_is_put_back_tells_again_what_was_published_since(world: World, hook: Hook) -> None:
    """Whether it was delivered, that ledger does not know; receivers do, by the key."""
    publish(world)
    send(world)
    url, copy = world.settings.ledger_url.get_secret_value(), world.settings.state / "copy.db"
    copy_ledger(url, copy)
    publish(world, "30.00")
    send(world)
    since = hook.keys[3:]
    for file in world.settings.state.glob("ledger.db*"):
        file.unlink()
    copy.rename(world.settings.state / "ledger.db")
    send(world)
    assert sorted(hook.keys[3 + len(since) :]) == sorted(since)
    assert len(since) == 3


def test_a_damaged_ledger_keeps_what_can_be_read_of_its_outbox(world: World, hook: Hook) -> None:
    publish(world)
    send(world)
    url = world.settings.ledger_url.get_secret_value()
    aside = set_aside(url)
    with Ledger.open(url) as ledger:
        assert salvage(aside, url)["ledger_outbox"] == 3
        rebuild(Lake.at(world.settings.lake), ledger)
        assert [message.state for message in ledger.outbox.messages()] == ["delivered"] * 3


Answer = Callable[[socket], None]


@contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """The address of one who answers by bytes; each request by itself."""
    with create_server(("127.0.0.1", 0)) as server:

        def one(asked: socket) -> None:
            with asked, suppress(OSError):  # whoever asked hung up
                asked.recv(65_536)
                answer(asked)

        def every() -> None:
            with suppress(OSError):
                while True:
                    Thread(target=one, args=[server.accept()[0]], daemon=True).start()

        Thread(target=every, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def says(head: bytes, then: bytes = b"", pause_s: float = 0.0) -> Answer:
    """One who sends a head, and then the same for ever."""

    def answer(asked: socket) -> None:
        asked.sendall(head)
        while then:
            asked.sendall(then)
            time.sleep(pause_s)

    return answer


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (says(b"HTTP/1.1 503 No\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n"), "answered 503"),
        (says(b"HTTP/1.1 503 No\r\nContent-Length: 1000000000\r\n\r\n", b"x", 0.01), "answered 503"),
        (says(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n"), "answered 302"),
        (says(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.01), "cannot be reached"),
        (says(b"", b"H", 0.01), "cannot be reached"),
        (says(b"\0\xff no HTTP\r\n\r\n"), "cannot be reached"),
    ],
    ids=["come_again_in_an_hour", "endless_refusal", "elsewhere", "endless_patience", "byte_by_byte", "no_http"],
)
def test_nobody_keeps_a_sender(answer: Answer, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "_ANSWER_S", 0.5)
    started = time.monotonic()
    with answering(answer) as url, pytest.raises(WebhookError, match=reason):
        post(SecretStr(url), "{}", "key")
    assert time.monotonic() - started < 4


def test_one_who_goes_on_after_saying_yes_has_taken_it() -> None:
    with answering(says(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n", b"x")) as url:
        post(SecretStr(url), "{}", "key")


@pytest.mark.parametrize(
    "path",
    [
        "/t0ken",
        "/hooks/t0ken%7ex",
        "/a/../t0ken",
        "/hook \u00e4 t0ken",
        "/hook?t0ken=%7ea",
        "?t0ken",
        "/t0ken%zz",
        "/t0ken#a",
    ],
)
def test_no_log_has_the_path_however_it_is_spelt(
    path: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(webhook, "_RETRIES", webhook._RETRIES.new(backoff_factor=0))
    with answering(says(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")) as url, pytest.raises(WebhookError):
        post(SecretStr(url + path), "{}", "key")
    assert "POST" in caplog.text
    with pytest.raises(WebhookError):
        post(SecretStr("http://127.0.0.1:1" + path), "{}", "key")
    assert "Retrying" in caplog.text
    assert "t0ken" not in caplog.text
