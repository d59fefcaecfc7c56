"""Plans from Dagster's launchpad, as a person sees it."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from playwright.sync_api import Page, expect
from pyspark.sql import SparkSession

from platform_assets.engine.platform import Author
from platform_assets.operations.backfill.files import new_plan
from platform_assets.operations.plan_record import read_record
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.settings import load_settings, project_root
from platform_assets_tests.support.installation import JARS
from platform_assets_tests.support.orchestration.readings import GOLD, SILVER, land, refresh_on_paper
from platform_assets_tests.support.orchestration.up import NEEDS_CHROMIUM, Server, up, wait
from platform_assets_tests.support.world import World

FIRST = date(2017, 1, 1)
LAST = FIRST + timedelta(days=3)
SCREENSHOTS = project_root() / ".platform" / "screenshots"
TOLD = "platform_assets_tests.support.domains.told"

pytestmark = [NEEDS_CHROMIUM, pytest.mark.timeout(900), pytest.mark.proof]


def launch(server: Server, page: Page, job: str) -> str:
    """Type the plan's name at the launchpad, launch, and wait for the end of the run; its id."""
    before = runs(server, job)
    page.goto(f"{server.url}/locations/platform_assets/jobs/{job}/playground")
    editor = page.locator(".CodeMirror").first
    expect(editor).to_be_visible(timeout=60_000)
    editor.click()
    page.keyboard.press("Control+A")
    page.keyboard.type("plan: discount")
    picture(page, f"8-launchpad-{job}")
    page.get_by_role("button", name="Launch run").click()
    wait(lambda: len(ended(server, job)) > len(before), f"the run of {job}", 300)
    [run_id] = ended(server, job) - before
    return run_id


def runs(server: Server, job: str, *statuses: str) -> set[str]:
    """Ids of runs of a job."""
    found = server.graphql(
        "query($f: RunsFilter!) { runsOrError(filter: $f) { ... on Runs { results { id } } } }",
        f={"pipelineName": job} | ({"statuses": list(statuses)} if statuses else {}),
    )
    return {str(run["id"]) for run in found["runsOrError"]["results"]}


def ended(server: Server, job: str) -> set[str]:
    return runs(server, job, "SUCCESS", "FAILURE", "CANCELED")


def picture(page: Page, name: str) -> None:
    """Kept for a person to look at."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.wait_for_timeout(2000)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")


def test_a_plan_is_explained_and_refused_at_the_launchpad_and_exposures_lie_downstream(
    tmp_path: Path, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three days on paper, then `up` with two runs of its own, which need no Spark, and a browser."""
    chosen: dict[str, Any] = {"domains": TOLD, "calendar_first": FIRST, "calendar_last": LAST, "today": LAST}
    chosen |= {"plans": tmp_path / "plans"}
    settings = load_settings(state=tmp_path / "state", jars=JARS, **(chosen | {"domains": (TOLD,)}))
    world = World(settings, cast("SparkSession", None))
    for number in range(3):
        day = str(FIRST + timedelta(number))
        land(world, day, day)
    with world.open() as platform:
        refresh_on_paper(platform, None, Author("a run", "refresh"))
    said = {"name": "discount", "reason": "taken twice", "owner": "ada", "tables": [GOLD]}
    days = {"days": {"range": f"{FIRST}..{FIRST + timedelta(2)}"}, "approvals": {"above_days": 0}}
    new_plan(PlanFile.model_validate(said | days), tmp_path / "plans" / "discount.yaml")
    monkeypatch.chdir(project_root())
    with up(tmp_path, **chosen) as server:
        page.goto(f"{server.url}/runs/{launch(server, page, 'plan_explain')}")
        expect(page.get_by_text("3 days of tables. About").first).to_be_visible(timeout=30_000)
        picture(page, "8-explained")
        page.goto(f"{server.url}/runs/{launch(server, page, 'plan_apply')}")
        expect(page.get_by_text("The plan discount needs 1 approval of").first).to_be_visible(timeout=30_000)
        expect(page.get_by_text("Stack Trace")).to_have_count(0)
        picture(page, "8-refused")
        page.goto(f"{server.url}/assets/exposure/week%20dashboard")
        expect(page.get_by_text("https://boards.example.com/week").first).to_be_visible(timeout=30_000)
        expect(page.get_by_text("boards@example.com").first).to_be_visible()
        picture(page, "8-an-exposure")


def test_a_plan_that_is_applied_at_the_launchpad_is_named_by_the_days_that_it_made(
    tmp_path: Path, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`up` with two Sparks: the first refresh, and the plan."""
    chosen: dict[str, Any] = {"domains": TOLD, "calendar_first": FIRST, "calendar_last": LAST, "today": LAST}
    chosen |= {"plans": tmp_path / "plans"}
    settings = load_settings(state=tmp_path / "state", jars=JARS, **(chosen | {"domains": (TOLD,)}))
    world = World(settings, cast("SparkSession", None))
    days = [str(FIRST + timedelta(number)) for number in range(4)]
    for day in days:
        land(world, day, day)
    said = {"name": "discount", "reason": "taken twice", "owner": "ada", "tables": [SILVER, GOLD], "rollout": [50, 100]}
    gates = [{"table": GOLD, "metric": "rows", "tolerance_percent": 0, "each_day": True}]
    more = {"days": {"range": f"{days[0]}..{days[2]}"}, "gates": gates, "afterwards": {"verify": 1}}
    new_plan(PlanFile.model_validate(said | more), tmp_path / "plans" / "discount.yaml")
    monkeypatch.chdir(project_root())
    with up(tmp_path, **chosen) as server:
        wait(lambda: bool(runs(server, "refresh", "SUCCESS")), "the first refresh", 300)
        run_id = launch(server, page, "plan_apply")
        assert runs(server, "plan_apply", "SUCCESS") == {run_id}
        page.goto(f"{server.url}/runs/{run_id}")
        expect(page.get_by_text("computed once more and equal").first).to_be_visible(timeout=30_000)
        picture(page, "8-applied")
        page.goto(f"{server.url}/runs?q[0]=tag%3Aplatform%2Fplan%3Ddiscount")
        expect(page.get_by_text(run_id[:8]).first).to_be_visible(timeout=30_000)
        picture(page, "8-runs-of-the-plan")
        with world.open() as platform:
            record = read_record(platform.lake, "discount")
        assert (record.state, record.runs) == ("published", (run_id,))
        page.goto(f"{server.url}/assets/gold.sensor_week?view=partitions&partition={days[1]}")
        for shown in ("plan hash", record.hash, record.publication):
            expect(page.get_by_text(shown, exact=True).first).to_be_visible(timeout=30_000)
        picture(page, "8-a-day-of-the-plan")
        page.goto(f"{server.url}/assets/gold.sensor_week?view=events")
        expect(page.get_by_text(run_id[:8]).first).to_be_visible(timeout=30_000)
        picture(page, "8-events-of-the-plan")
