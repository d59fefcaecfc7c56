"""Held days, failed runs and what plans ask to have told are announced once, whatever becomes of the webhook."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.scheduler.instigation import InstigatorTick, TickStatus
from dagster._core.test_utils import create_run_for_test
from dagster._grpc.impl import core_execute_run
from pydantic import SecretStr

from platform_assets.contracts import ContractError
from platform_assets.engine.platform import Author
from platform_assets.operations.lineage.held_days import HeldDay
from platform_assets.operations.opening import open_platform
from platform_assets.operations.plan_record import BackfillRecord, write_record
from platform_assets.operations.webhook import post
from platform_assets.orchestration.automation.announcements import (
    NEWS,
    FailedRun,
    Present,
    announced_day,
    announcements,
    plan_messages,
    runs_announced_by_days,
)
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.records.chain import Heads
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import ArrivalRecord, Hold
from platform_assets.records.outbox import Announced, AnnouncedHeads
from platform_assets.settings import load_settings, project_root
from platform_assets_tests.support.orchestration.daemon import Daemon
from platform_assets_tests.support.orchestration.readings import DAYS, SILVER, land, refresh_on_paper
from platform_assets_tests.support.webhook import SECRET, Hook, listening
from platform_assets_tests.support.world import World

UI = "http://127.0.0.1:3000"
NOW = datetime(2017, 1, 3, tzinfo=UTC)


def hold(day: int, refused: str = "f1", run: str = "a run", table: str = "silver.readings") -> Hold:
    return Hold(table, date(2017, 1, day), Attempt(refused), "conservation", f"3 rows of day {day} are lost", run, NOW)


@pytest.fixture
def hook(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    """A webhook that the settings name."""
    with listening() as hook:
        monkeypatch.setenv("PLATFORM_WEBHOOK_URL", hook.url)
        daemon.reload()
        yield hook


def hold_days(world: World, *holds: Hold) -> None:
    with world.open() as platform:
        platform.ledger.hold(holds)


def lift(world: World, *holds: Hold) -> None:
    with world.open() as platform:
        platform.ledger.drop(holds)


def make_due(world: World) -> None:
    """Have all that waits tried at once, as by `admin outbox --retry`."""
    with world.open() as platform:
        platform.ledger.outbox.retry(platform.ledger.outbox.messages(["waiting"]), datetime.now(UTC))


def tick(daemon: Daemon) -> InstigatorTick:
    """What the sensor said; what it has put into the outbox is sent by then, in whichever order sensors look."""
    said = daemon.tick("announcements")
    daemon.tick("announcements")
    return said


def fail_a_run(daemon: Daemon, error: Exception) -> str:
    @dg.op
    def compute() -> None:
        raise error

    @dg.job
    def some_job() -> None:
        compute()

    result = some_job.execute_in_process(instance=daemon.instance, raise_on_error=False)
    return result.run_id


def test_a_held_day_is_announced_once_with_its_reason_and_a_link(
    readings: World, daemon: Daemon, hook: Hook, capfd: pytest.CaptureFixture[str]
) -> None:
    hold_days(readings, hold(1))
    first = tick(daemon)
    assert "silver.readings: 2017-01-01 held" in str(first.skip_reason)
    assert hook.taken == [
        {
            "text": "silver.readings: 2017-01-01 held.\n"
            "`2017-01-01: 3 rows of day 1 are lost; readers see nothing of it`\n"
            f"{UI}/assets/silver.readings?view=partitions",
            "what": "held",
            "table": "silver.readings",
            "days": [
                {
                    "day": "2017-01-01",
                    "gate": "conservation",
                    "reason": "3 rows of day 1 are lost",
                    "readers_see": "nothing of it",
                    "new_arrivals": [],
                }
            ],
            "days_in_all": 1,
            "withdraw": [],
            "run": "a run",
            "link": f"{UI}/assets/silver.readings?view=partitions",
        }
    ]
    assert capfd.readouterr().err.count("3 rows of day 1 are lost") == 1

    hold_days(readings, hold(1), hold(2))  # the same content refused again, and another day
    assert tick(daemon).status == TickStatus.SKIPPED
    assert len(hook.taken) == 2
    assert "2017-01-01" not in hook.texts[1]
    assert tick(daemon).skip_reason == "nothing to announce"

    hold_days(readings, hold(1, refused="f2"))
    tick(daemon)
    assert len(hook.taken) == 3


@pytest.mark.proof
def test_a_failed_run_is_announced_once_with_what_its_step_said(daemon: Daemon, hook: Hook) -> None:
    run_id = fail_a_run(daemon, ZeroDivisionError("no rows to divide by"))
    tick(daemon)
    [message] = hook.taken
    assert (message["what"], message["run"], message["link"]) == ("failed", run_id, f"{UI}/runs/{run_id}")
    assert "no rows to divide by" in message["reason"]
    assert "Traceback" not in message["text"]
    assert tick(daemon).skip_reason == "nothing to announce"


@pytest.mark.proof
def test_a_run_that_could_not_load_the_definitions_says_what_is_wrong_with_them(
    daemon: Daemon, hook: Hook, tmp_path: Path
) -> None:
    """Its process looks at contracts and functions anew, and one of them was changed since the last reload."""
    definitions = tmp_path / "definitions.py"
    definitions.write_text(
        "from platform_assets.contracts import ContractError\n"
        "raise ContractError('gold.week needs a function week(sales).', 'Write it.')\n"
    )
    repository = ReconstructableRepository.for_file(str(definitions), "defs", str(tmp_path))
    run = create_run_for_test(daemon.instance, job_name="refresh", status=dg.DagsterRunStatus.STARTING)
    with pytest.raises(ContractError):
        list(
            core_execute_run(repository.get_reconstructable_job("refresh"), run, daemon.instance, inject_env_vars=False)
        )
    tick(daemon)
    [message] = hook.taken
    assert message["run"] == run.run_id
    assert message["reason"] == "gold.week needs a function week(sales).\n  What to do: Write it."


@pytest.mark.proof
def test_without_a_webhook_it_is_logged_and_a_webhook_set_later_hears_of_it(
    readings: World, daemon: Daemon, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLATFORM_WEBHOOK_URL", "")
    daemon.reload()
    hold_days(readings, hold(1))
    assert tick(daemon).skip_reason == ("announced: silver.readings: 2017-01-01 held.")
    assert tick(daemon).skip_reason == "nothing to announce"
    monkeypatch.setenv("PLATFORM_WEBHOOK_URL", hook.url)
    daemon.reload()
    tick(daemon)
    assert len(hook.taken) == 1


def test_days_held_by_one_run_are_one_message_and_a_long_list_is_cut() -> None:
    many = [hold(1 + n % 28, refused=f"f{n}", run="r") for n in range(200)]
    [message] = announcements(Present(many, known_runs=["r"], ui_url=UI), Announced())
    assert len(message.about.held) == 200
    assert len(message.payload["days"]) == 50
    assert len(message.text) < 2200
    assert message.text.endswith(f"{UI}/runs/r")


def test_a_run_that_held_days_and_broke_besides_is_told_by_itself() -> None:
    broke = FailedRun("r", "refresh", "disk full", by_gates=False, is_tried_again=True)
    messages = announcements(Present([hold(1, run="r")], [broke]), Announced())
    assert [message.payload["what"] for message in messages] == ["held", "failed"]
    assert "It is tried once more." in messages[1].text


@pytest.mark.parametrize(
    ("good", "held", "silent"),
    [([1], [], False), ([1, 2], [], True), ([2], [1], True)],
    ids=["one is neither good nor held", "all are good", "good or held"],
)
def test_a_run_that_left_days_is_told_by_these_alone(good: list[int], held: list[int], silent: bool) -> None:
    days = {day: (SILVER, date(2017, 1, day)) for day in (1, 2)}
    run = FailedRun("r", "refresh", "2 days not published", True, False, frozenset(days.values()))
    holds = [hold(day, run="another run") for day in held]
    now = Present(holds, [run], [days[day] for day in good])
    assert runs_announced_by_days(now) == ({"r"} if silent else set())
    messages = announcements(now, Announced(held=frozenset(map(announced_day, holds))))
    assert [message.payload["what"] for message in messages] == ([] if silent else ["failed"])


def test_who_may_be_to_blame_is_named_however_long_the_reasons_are() -> None:
    arrival = ArrivalRecord(
        path="readings/2017-01-03/r 1.csv", table="raw.readings", arrival_date=NOW.date(), size=1, sha256="0",
        modified_ns=0, publication="p",
    )  # fmt: skip
    held = [replace(hold(day, refused=f"f{day}"), reason=f"odd {'x' * 300}") for day in range(1, 29)]
    details = {(SILVER, each.day): HeldDay(each, NOW, None, None, (arrival,)) for each in held}
    [message] = announcements(Present(held, details=details, ui_url=UI), Announced())
    [command] = message.payload["withdraw"]
    assert command.startswith("platform-assets undo 'readings/2017-01-03/r 1.csv' --reason ")
    assert message.text.count(command) == 1
    assert len(message.text) <= 2002
    assert message.payload["days"][0]["new_arrivals"] == ["readings/2017-01-03/r 1.csv"]


@pytest.mark.proof
def test_a_day_that_healed_is_announced_once_on_every_channel_that_heard_of_it(
    readings: World, daemon: Daemon, hook: Hook, capfd: pytest.CaptureFixture[str]
) -> None:
    hold_days(readings, hold(1), hold(1, refused="f2"), hold(2), hold(3))
    tick(daemon)
    hook.taken.clear()
    lift(readings, hold(1))
    assert tick(daemon).skip_reason == "nothing to announce", "another refusal of the day stands"
    lift(readings, hold(1, refused="f2"), hold(2))
    hook.refuses = ["healed"]
    tick(daemon)
    hook.refuses = []
    make_due(readings)
    tick(daemon)
    link = f"{UI}/assets/silver.readings?view=partitions"
    assert hook.taken == [
        {
            "text": "silver.readings: 2 days healed, held no more; readers see the newest content.\n"
            f"2017-01-01..2017-01-02\n{link}",
            "what": "healed",
            "table": "silver.readings",
            "days": ["2017-01-01", "2017-01-02"],
            "days_in_all": 2,
            "link": link,
        }
    ]
    said = capfd.readouterr()
    assert (said.out + said.err).count("2 days healed") == 1, "logged once, however often it was sent"
    assert tick(daemon).skip_reason == "nothing to announce"

    hold_days(readings, hold(1))
    tick(daemon)
    assert [message["what"] for message in hook.taken] == ["healed", "held"], "the same refused again is news again"


@pytest.mark.proof
def test_where_both_chains_stand_is_sent_to_the_webhook_alone_at_most_once_a_day(
    readings: World, daemon: Daemon, hook: Hook, capfd: pytest.CaptureFixture[str]
) -> None:
    assert tick(daemon).skip_reason == "nothing to announce", "nothing was published yet"
    land(readings, "2017-01-01", "2017-01-01")
    with readings.open() as platform:
        refresh_on_paper(platform, None, Author("a run", "a test"))
    tick(daemon)
    [message] = hook.taken
    assert message["what"] == "head"
    assert Heads.parse(message["head"]).releases.number >= 0
    assert message["head"] in message["text"]
    assert message["head"] not in "".join(capfd.readouterr())
    land(readings, "2017-01-02", "2017-01-02")
    with readings.open() as platform:
        refresh_on_paper(platform, None, Author("another run", "a test"))
    assert tick(daemon).skip_reason == "nothing to announce", "not a day later"


def test_heads_are_told_again_where_they_moved_and_a_day_has_passed() -> None:
    told, later = Announced(heads=AnnouncedHeads("a", NOW)), NOW + timedelta(days=1)
    for heads, is_told in (
        (AnnouncedHeads("b", later), True),
        (AnnouncedHeads("a", later), False),
        (AnnouncedHeads("b", later - timedelta(seconds=1)), False),
        (None, False),
    ):
        messages = announcements(Present((), heads=heads), told)
        assert [message.about.heads for message in messages] == ([heads] if is_told else [])


def documented_check() -> Any:
    """The function that docs/automation.md gives to whoever receives announcements."""
    page = (project_root() / "docs" / "automation.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- example: is_ours -->\n```python\n(.*?)```", page, re.DOTALL)
    assert found
    names: dict[str, Any] = {}
    exec(compile(found[1], "automation.md", "exec"), names)
    return names["is_ours"]


def test_a_signed_message_is_known_by_the_documented_check_and_no_other_is(hook: Hook) -> None:
    is_ours = documented_check()
    post(SecretStr(hook.url), '{"text": "Zoë"}', "a key", SecretStr("s3cret"))
    [(headers, body)] = hook.came
    assert json.loads(body) == {"text": "Zoë"}
    assert is_ours(headers, body, "s3cret")
    assert not is_ours(headers, body, "another")
    assert not is_ours(headers, body + b" ", "s3cret")
    assert not is_ours({**headers, "Idempotency-Key": "another key"}, body, "s3cret"), "or it could come as a new one"
    assert not is_ours({name: text for name, text in headers.items() if name != "Idempotency-Key"}, body, "s3cret")
    for sent_at in (time.time() - 3600, time.time() + 3600, "soon"):
        moved = {**headers, "X-Platform-Sent-At": f"{sent_at}".partition(".")[0]}
        assert not is_ours(moved, body, "s3cret")
    post(SecretStr(hook.url), '{"text": "unsigned"}', "a key")
    assert not is_ours(*hook.came[1], "s3cret")


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
    plan = plan.with_event("begun as 25ae4916c48caffb", "bob", "begun")
    plan = plan.with_event("at 10 % 1 gate of the plan failed", kind="stopped", state="stopped")
    plan = plan.with_event("10 % staged, gates passed", state="staging")
    return plan.with_event("published in release 7: 1 day", kind="published", state="published", release=7)


def plans_told(hook: Hook) -> list[dict[str, Any]]:
    return [message for message in hook.taken if message["what"] == "plan"]


@pytest.mark.proof
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
        again = happened(record("stopped", "published")).with_event(
            "rolled back", kind="rolled back", state="rolled back"
        )
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


def test_the_daemon_delivers_what_waits_and_says_what_has_nowhere_to_go(
    readings: World, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLATFORM_DOMAINS", "platform_assets_tests.support.domains.told")
    with listening() as hook:
        monkeypatch.setenv("WEEK_REFRESH_URL", hook.url)
        monkeypatch.delenv("CACHE_REFRESH_URL", raising=False)
        daemon.reload()
        assert daemon.tick("outbox").skip_reason == "nothing is due"
        land(readings, DAYS[0], DAYS[0])
        with open_platform(load_settings()) as platform:
            refresh_on_paper(platform, None, Author("a run", "a reading came"))
        said = str(daemon.tick("outbox").skip_reason)
        assert said.startswith(f"delivered: Release 2 changed gold.sensor_week: {DAYS[0]}.")
        assert "nothing is sent to reading cache: CACHE_REFRESH_URL is not set" in said
        assert [message["exposure"] for message in hook.taken] == ["week dashboard"]
        hook.refuses, hook.status = ["reading cache"], 500
        monkeypatch.setenv("CACHE_REFRESH_URL", hook.url)
        daemon.reload()
        failed = daemon.tick("outbox", fails=True)
        assert failed.error is not None
        assert "2 of 2 messages were not delivered. reading cache answered 500." in failed.error.to_string()
        assert SECRET not in failed.error.to_string()
