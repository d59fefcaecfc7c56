"""`outbox`: what waits, what was given up, and how a person has it sent or dropped."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from platform_assets.engine.platform import Author
from platform_assets.operations.opening import open_platform
from platform_assets.settings import load_settings
from platform_assets_tests.support.cli.commands import FIRST, Run
from platform_assets_tests.support.orchestration.readings import land, refresh_on_paper
from platform_assets_tests.support.webhook import SECRET, Hook, listening
from platform_assets_tests.support.world import World

WEEK, CACHE = "WEEK_REFRESH_URL", "CACHE_REFRESH_URL"


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    with listening() as hook:
        monkeypatch.setenv(WEEK, hook.url)
        monkeypatch.setenv(CACHE, hook.url)
        yield hook


@pytest.fixture(autouse=True)
def published(state: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """One day of readings, of which two exposures are to be told in three messages."""
    monkeypatch.setenv("PLATFORM_DOMAINS", "platform_assets_tests.support.domains.told")
    monkeypatch.setenv("PLATFORM_CALENDAR_LAST", f"{FIRST}")
    monkeypatch.setenv("PLATFORM_TODAY", f"{FIRST}")
    settings = load_settings()
    land(World(settings, None), f"{FIRST}", f"{FIRST}")  # type: ignore[arg-type]
    with open_platform(settings) as platform:
        refresh_on_paper(platform, None, Author("a run", "a reading [/came]", who="zoe"))


def give_up() -> None:
    """As if nobody had taken the messages of the dashboard over a weekend."""
    with open_platform(load_settings()) as platform:
        for message in platform.ledger.outbox.messages(["waiting"]):
            if message.target == "week dashboard":
                platform.ledger.outbox.failed(message, "answered 500", None, datetime.now(UTC))


def test_what_waits_is_listed_and_sent(run: Run, hook: Hook) -> None:
    listed = run("status", "messages")
    assert listed.code == 0
    assert listed.out.count("waiting") == 3
    assert f"Release 1 changed silver.readings: {FIRST}." in listed.out
    sent = run("admin", "outbox")
    assert sent.code == 0
    assert sent.out.count("delivered") == len(hook.taken) == 3
    assert "`a reading [/came]` (`zoe`)" in hook.texts[0]
    assert "Nothing is due." in run("admin", "outbox").out
    assert "Nothing waits in the outbox." in run("status", "messages").out
    assert run("status", "messages", "--all").out.count("delivered") == 3


def test_what_was_given_up_is_told_by_status_and_sent_again_or_dropped(run: Run, hook: Hook) -> None:
    quiet = run("status")
    assert "week dashboard: 1 message waits to be delivered" in quiet.out
    give_up()
    status = run("status")
    assert status.code == 1
    assert "given up 1 message to week dashboard, not delivered: platform-assets status messages" in status.out
    listed = run("status", "messages")
    assert listed.code == 1
    assert "answered 500" in listed.out
    [key] = [message["key"] for message in run("status", "messages", "--json").json if message["state"] == "given up"]
    assert run("admin", "outbox", "--retry", "--all", "--json").json == [key]
    assert f"{key[:12]} to week dashboard" in run("admin", "outbox").out

    give_up()
    assert run("admin", "outbox", "--retry", key[:6]).code == 0
    without = run("admin", "outbox", "--drop", key)
    assert (without.code, "--reason" in without.err) == (2, True)
    dropped = run("admin", "outbox", "--drop", key[:6], "--reason", "it was [/switched] off", "--by", "zoe")
    assert (dropped.code, "dropped" in dropped.out) == (0, True)
    again = run("admin", "outbox", "--retry", key)
    assert (again.code, "was dropped: it was [/switched] off" in again.err) == (3, True)
    decided = run("status", "decisions")
    assert f"{key} for week dashboard" in decided.out
    assert "it was [/switched] off" in decided.out
    audited = run("admin", "audit", "--json").json
    assert audited["seen"]["decisions"] == 1
    assert {fault["check"] for fault in audited["faults"]} <= {"rows", "files", "commits"}, (
        "days on paper have no files"
    )


def test_a_message_has_to_be_named(run: Run) -> None:
    assert run("admin", "outbox", "--retry").code == 2
    assert run("admin", "outbox", "--retry", "abcd", "--all").code == 2
    wrong = run("admin", "outbox", "--retry", "abcd1234")
    assert (wrong.code, "No message has a key that begins with 'abcd1234'" in wrong.err) == (3, True)
    assert "Nothing was given up." in run("admin", "outbox", "--retry", "--all").out


def test_doctor_and_send_say_which_variable_is_missing(run: Run, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    [found] = [one for one in run("admin", "doctor", "--json").json if one["name"] == "Exposures"]
    assert found["ok"]
    assert f"week dashboard by {WEEK}" in found["message"]
    monkeypatch.delenv(WEEK)
    monkeypatch.setenv(CACHE, f"http://hooks.example.com/{SECRET}")
    [found] = [one for one in run("admin", "doctor", "--json").json if one["name"] == "Exposures"]
    assert not found["ok"]
    assert f"week dashboard: {WEEK} is not set" in found["message"]
    assert f"{CACHE} is no https:// address" in found["message"]
    assert SECRET not in found["message"]
    sent = run("admin", "outbox")
    assert (sent.code, f"week dashboard: {WEEK} is not set" in sent.out) == (1, True)
    assert hook.came == []
