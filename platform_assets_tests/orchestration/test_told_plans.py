"""What a plan asks to have told of it reaches the webhook once, and nothing else of it does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from platform_assets.operations.plan_record import BackfillRecord, write_record
from platform_assets.orchestration.automation.announcements import NEWS, plan_messages
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets_tests.support.orchestration.daemon import Daemon
from platform_assets_tests.support.webhook import Hook, listening
from platform_assets_tests.support.world import World


def record(*notify: str) -> BackfillRecord:
    said = {
        "name": "q1",
        "reason": "A rule was wrong.",
        "owner": "ada",
        "tables": ["gold.sensor_week"],
        "days": {"list": ["2017-01-01"]},
        "notify": list(notify),
    }
    return BackfillRecord(name="q1", hash="25ae4916c48caffb", file=PlanFile.model_validate(said), steps=())


def happened(plan: BackfillRecord) -> BackfillRecord:
    plan = plan.told("begun as 25ae4916c48caffb", "bob", "begun")
    plan = plan.told("at 10 % 1 gate of the plan failed", kind="stopped", state="stopped")
    plan = plan.told("10 % staged, gates passed", state="staging")
    return plan.told("published in release 7: 1 day", kind="published", state="published", release=7)


@pytest.fixture
def hook(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    with listening() as hook:
        monkeypatch.setenv("PLATFORM_WEBHOOK_URL", hook.url)
        daemon.reload()
        yield hook


def plans_told(hook: Hook) -> list[dict[str, Any]]:
    return [message for message in hook.taken if message["what"] == "plan"]


def test_what_a_plan_asks_for_is_told_once(readings: World, daemon: Daemon, hook: Hook) -> None:
    with readings.open() as platform:
        write_record(platform.lake, happened(record("stopped", "published")))
    for _ in range(3):
        daemon.tick("announcements")
        daemon.tick("outbox")
    stopped, published = sorted(plans_told(hook), key=lambda message: str(message["at"]))
    assert (stopped["event"], stopped["said"]) == ("stopped", "at 10 % 1 gate of the plan failed")
    assert (published["event"], published["release"], published["owner"]) == ("published", 7, "ada")
    assert published["text"].startswith("Plan q1 of ada, published") or "q1" in published["text"]
    with readings.open() as platform:
        again = happened(record("stopped", "published")).told("rolled back", kind="rolled back", state="rolled back")
        write_record(platform.lake, again.model_copy(update={"events": again.events[-1:]}))
    daemon.tick("announcements")
    daemon.tick("outbox")
    assert len(plans_told(hook)) == 2, "nobody asked for that"


def test_a_plan_that_asks_for_nothing_and_what_is_old_are_told_nobody() -> None:
    now = datetime.now(UTC)
    assert not list(plan_messages([happened(record())], now))
    begun = list(plan_messages([happened(record("begun"))], now))
    assert [message.title for message in begun] == ["Plan q1 of ada, begun: begun as 25ae4916c48caffb"]
    assert not list(plan_messages([happened(record("begun"))], now + NEWS + timedelta(hours=1)))
    plan = happened(record("begun"))
    assert [one.key for one in plan_messages([plan], now)] == [one.key for one in plan_messages([plan], now)]
