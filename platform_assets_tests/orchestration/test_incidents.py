"""Incidents: a chat hears once that something began and once that it is over, of its kinds and owners, by daylight."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pydantic import SecretStr, ValidationError

from platform_assets.contracts.domain import ANNOUNCEMENTS
from platform_assets.operations.opening import open_platform
from platform_assets.operations.outbox import deliver
from platform_assets.operations.webhook import WebhookError, notify
from platform_assets.orchestration.automation.announcements import FailedRun, Present
from platform_assets.orchestration.automation.incidents import Event, newest_ended, news, route_messages
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import CIRCUIT, Hold
from platform_assets.records.outbox import Announced, AnnouncedDay, Message
from platform_assets.routes import Route
from platform_assets.settings import load_settings
from platform_assets_tests.support.http import Quiet, serving
from platform_assets_tests.support.installation import JARS
from platform_assets_tests.support.orchestration.readings import GOLD, SENSORS, SILVER

FAILURE, SUCCESS = dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.SUCCESS
NOON = datetime(2017, 7, 9, 12, tzinfo=UTC)
SALES, GOODS = "gold.sales", "gold.goods"
OWNERS = {SALES: frozenset({"finance"}), GOODS: frozenset({"buyers"})}


def hold(table: str, day: int = 1, gate: str = "volume") -> Hold:
    return Hold(table, date(2017, 7, day), Attempt(f"{day}"), gate, "too few <rows>", "a run", NOON)


def failed(run: str, *left: str) -> FailedRun:
    days = frozenset((table, date(2017, 7, 1)) for table in left)
    return FailedRun(run, "refresh", "it broke", by_gates=False, is_tried_again=False, left=days)


def told(now: Present, announced: Announced = Announced(), **route: Any) -> tuple[list[str], Announced]:  # noqa: B008
    """Titles of what a route hears, and what it knows then."""
    owners = OWNERS | {run.job: frozenset().union(*(OWNERS[table] for table, _ in run.left)) for run in now.failed}
    heard = list(news(now, announced, Route(url_env="CHAT", **route), owners))
    known: set[AnnouncedDay] = set(announced.held)
    for each in heard:
        known = (known | each.about.held) - each.over
    return [each.title for each in heard], Announced(frozenset(known))


def test_an_incident_is_announced_once_until_it_ends_and_its_end_once() -> None:
    titles, known = told(Present([hold(SALES, 1), hold(SALES, 2)]))
    assert titles == [f"{SALES}: 2 days held."]
    assert told(Present([hold(SALES, 2), hold(SALES, 3)]), known) == ([], known), "other days of it are no news"
    titles, over = told(Present([]), known)
    assert titles == [f"{SALES}: no day is held any more; readers see the newest content."]
    assert told(Present([]), over) == ([], Announced())
    assert told(Present([hold(SALES, 9)]), over)[0] == [f"{SALES}: 2017-07-09 held."], "another one"


def test_circuits_and_jobs_are_incidents_of_their_own() -> None:
    now = Present([hold(SALES), hold(SALES, 2, CIRCUIT)], [failed("r1")], failing=frozenset({"r1"}))
    titles, known = told(now)
    assert titles == [
        f"{SALES}: its circuit is open, nothing of it is published.",
        f"{SALES}: 2017-07-01 held.",
        "Run r1 of refresh failed.",
    ]
    again = Present([hold(SALES)], [failed("r1"), failed("r2")], failing=frozenset({"r2"}))
    assert told(again, known)[0] == [f"{SALES}: its circuit is closed; waiting days are published again."]
    assert "refresh succeeded again." in told(Present([], recovered=frozenset({"refresh"})), known)[0]
    assert "refresh succeeded again." not in told(Present([]), known)[0], "it was silent for a week, no more"


def test_a_job_has_recovered_when_its_newest_run_succeeded() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        for job, status in (("a", FAILURE), ("a", SUCCESS), ("b", SUCCESS), ("b", FAILURE), ("c", SUCCESS)):
            instance.add_run(dg.DagsterRun(job_name=job, status=status))
        newest = [(run.job_name, run.status) for run in newest_ended(instance, ["d"])]
    assert newest == [("a", SUCCESS), ("b", FAILURE)]


@pytest.mark.parametrize(
    ("route", "heard"),
    [
        ({}, 3),
        ({"kinds": ("held",)}, 2),
        ({"kinds": ("failed",)}, 1),
        ({"owners": ("buyers",)}, 1),
        ({"owners": ("finance", "buyers")}, 3),
        ({"owners": ("finance",), "kinds": ("held",)}, 1),
        ({"kinds": ("circuit", "plan")}, 0),
    ],
)
def test_a_route_hears_its_kinds_and_owners(route: dict[str, Any], heard: int) -> None:
    now = Present([hold(SALES), hold(GOODS)], [failed("r1", SALES)], failing=frozenset({"r1"}))
    assert len(told(now, **route)[0]) == heard


@pytest.mark.parametrize(
    ("quiet", "at", "is_quiet"),
    [
        ("", 3, False),
        ("22:00-07:00", 3, True),
        ("22:00-07:00", 7, False),
        ("22:00-07:00", 22, True),
        ("12:00-13:00", 12, True),
        ("12:00-13:00", 13, False),
        ("22:00-07:00 Europe/Berlin", 5, False),
        ("22:00-07:00 Europe/Berlin", 20, True),
    ],
)
def test_quiet_hours_are_in_their_zone(quiet: str, at: int, is_quiet: bool) -> None:
    assert Route(url_env="CHAT", quiet=quiet).is_quiet(NOON.replace(hour=at)) == is_quiet


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"quiet": "10 pm to 7 am"}, "is not written like 22:00-07:00"),
        ({"quiet": "08:00-08:00"}, "is not written like 22:00-07:00"),
        ({"quiet": "22:00-25:00"}, "is not written like 22:00-07:00"),
        ({"quiet": "22:00-07:00 Europe/Nowhere"}, "is not written like 22:00-07:00"),
        ({"kinds": ["hold"]}, "Input should be 'held', 'circuit', 'failed', 'plan' or 'schema'"),
        ({"url_env": "slack://a/b/c"}, "must name the environment variable"),
    ],
)
def test_a_wrong_route_is_refused_without_its_address(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as error:
        Route.model_validate({"url_env": "CHAT", **given})
    assert says in str(error.value)


def test_the_routes_of_the_docs_are_usable() -> None:
    page = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- example: routes -->\n```toml\n(.*?)```", page, re.DOTALL)
    assert found
    routes = tomllib.loads(found[1])["notify"]
    assert [Route.model_validate(each).kinds for each in routes.values()] == [("held", "circuit"), ("failed",)]


@pytest.fixture
def service() -> Iterator[tuple[str, list[dict[str, Any]], list[int]]]:
    """What Apprise posts JSON to, what came, and how it answers."""
    came: list[dict[str, Any]] = []
    answers = [200]

    class Handler(Quiet):
        def respond(self) -> None:
            came.append(json.loads(self.content()))
            self.answer(answers[0])

    with serving(Handler) as port:
        yield f"json://zoe:hunter22@127.0.0.1:{port}/t0ken-t0ken", came, answers


def test_a_route_hears_by_the_outbox_and_never_of_what_is_over_by_morning(
    service: tuple[str, list[dict[str, Any]], list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, came, _ = service
    monkeypatch.setenv("CHAT", url)
    routes = {"chat": {"url_env": "CHAT", "quiet": "22:00-07:00"}, "none": {"url_env": "NOWHERE"}}
    settings = load_settings(state=tmp_path, jars=JARS, domains=SENSORS, notify=routes)
    brief, lasting = hold(GOLD), hold(SILVER)
    drifted = f"{SILVER}: columns otherwise than declared"
    message = Message("0" * 32, ANNOUNCEMENTS, drifted, json.dumps({"text": drifted}), created_at=NOON, due_at=NOON)
    events = [Event("schema", "zoe", message)]
    with open_platform(settings) as platform:
        for hour, holds in ((3, [brief, lasting]), (12, [lasting]), (13, [lasting]), (14, [])):
            list(route_messages(platform, Present(holds), events, NOON.replace(hour=hour)))
        done = deliver(platform)
    assert done.no_address == {"announcements: none": "NOWHERE is not set"}
    with open_platform(load_settings(state=tmp_path, jars=JARS, domains=SENSORS)) as platform:
        assert deliver(platform).no_address == {"announcements: none": "no route has this name"}
    assert len([each for each in came if drifted in each["message"]]) == 1
    assert [each["title"] for each in came if each["title"]] == [
        f"{SILVER}: 2017-07-01 held.",
        f"{SILVER}: no day is held any more; readers see the newest content.",
    ]


def test_apprise_delivers_and_a_failure_names_no_secret(
    service: tuple[str, list[dict[str, Any]], list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    url, came, answers = service
    caplog.set_level("DEBUG")
    text = "Title.\n`too few <rows>`\nhttp://127.0.0.1:3000/assets/gold.sales"
    message = Message("k", "announcements: chat", "Title.", json.dumps({"text": text}), NOON, NOON)
    notify(SecretStr(url), "CHAT", message)
    assert (came[0]["title"], came[0]["message"]) == ("Title.", text.partition("\n")[2])
    plan = replace(message, title="Plan of <!channel>", body=json.dumps({"text": "`Plan of <!channel>`"}))
    notify(SecretStr(url), "CHAT", plan)
    assert (came[1]["title"], came[1]["message"]) == ("", "`Plan of <!channel>`"), "once, and as code"
    problems = []
    answers[0] = 500
    for address in (url, "json://zoe:hunter22@127.0.0.1:9/t0ken-t0ken", "slack://t0ken-t0ken", "pigeon://t0ken-t0ken"):
        with pytest.raises(WebhookError) as error:
            notify(SecretStr(address), "CHAT", message)
        problems.append(error.value.reason)
    assert "error=500" in problems[0]
    assert problems[1].startswith("did not take it: A Connection error occurred")
    assert problems[2:] == ["has no usable address: CHAT is not written as Apprise wants it"] * 2
    for secret in ("hunter22", "t0ken"):
        assert secret not in caplog.text + str(problems)
