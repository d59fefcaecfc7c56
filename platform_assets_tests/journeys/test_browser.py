"""A user's afternoon in the Dagster UI: a backfill, a bad file, a held day, the mended file."""

from __future__ import annotations

import os
from datetime import date, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from PIL import Image
from playwright.sync_api import Page, expect
from pyspark.sql import SparkSession

from platform_assets.cli.session import dagster_home
from platform_assets.ledger.ledger import Ledger
from platform_assets.orchestration.build import build_definitions, materialize_range, run_job
from platform_assets.settings import load_settings, project_root
from platform_assets_tests.support.installation import JARS
from platform_assets_tests.support.orchestration.daemon import enter_world
from platform_assets_tests.support.orchestration.readings import SENSORS, break_gold, land, land_second_sensor
from platform_assets_tests.support.orchestration.up import NEEDS_CHROMIUM, WINDOW, Server, up, wait
from platform_assets_tests.support.world import World, product, sale

FIRST, DAYS = date(2017, 1, 1), 30
BAD_DAY = FIRST + timedelta(days=DAYS)
BACKFILL, SENSOR = "dagster/backfill", "dagster/sensor_name"
SCREENSHOTS = project_root() / ".platform" / "screenshots"

pytestmark = [NEEDS_CHROMIUM, pytest.mark.timeout(900)]


def land_thirty_days(world: World) -> None:
    world.deliver_rows("products", str(FIRST), "p.jsonl", [product(1, str(FIRST), "MEAT")])
    for n in range(DAYS):
        day = str(FIRST + timedelta(days=n))
        world.deliver_rows("transactions", day, "t.jsonl", [sale(100 * n + i, 1, day) for i in range(10 + n % 3)])


def picture(page: Page, name: str) -> None:
    """Kept for a person to look at."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.wait_for_timeout(2000)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")


def picture_of_docs(page: Page, name: str) -> None:
    """Taken anew by `poe pictures`: a few colours, since what they show is text and areas."""
    if folder := os.environ.get("PICTURES"):
        page.set_viewport_size({"width": 1100, "height": 680})
        page.wait_for_timeout(2000)
        with Image.open(BytesIO(page.screenshot())) as taken:
            taken.quantize(128).save(project_root() / folder / f"{name}.png", optimize=True)
        page.set_viewport_size(WINDOW)


def set_late_data(server: Server, *, running: bool) -> None:
    """What the switch on the page of automations does."""
    selector = {
        "repositoryName": "__repository__",
        "repositoryLocationName": "platform_assets",
        "sensorName": "late_data",
    }
    [state] = [
        found["sensorState"]
        for found in server.graphql(
            "query($r: RepositorySelector!) { sensorsOrError(repositorySelector: $r) "
            "{ ... on Sensors { results { name sensorState { id selectorId } } } } }",
            r={key: selector[key] for key in ("repositoryName", "repositoryLocationName")},
        )["sensorsOrError"]["results"]
        if found["name"] == "late_data"
    ]
    if running:
        server.graphql("mutation($s: SensorSelector!) { startSensor(sensorSelector: $s) { __typename } }", s=selector)
    else:
        server.graphql("mutation($i: String!) { stopSensor(id: $i) { __typename } }", i=state["id"])


def runs(server: Server, status: str, tag: str) -> list[str]:
    """Runs that carry a tag, since the schedules of the server start runs of their own whenever their hour comes."""
    found = server.graphql(
        "query($s: [RunStatus!]) { runsOrError(filter: {statuses: $s}) "
        "{ ... on Runs { results { id tags { key } } } } }",
        s=[status],
    )
    return [str(run["id"]) for run in found["runsOrError"]["results"] if tag in {has["key"] for has in run["tags"]}]


def loaded(world: World, table: str) -> set[date]:
    with Ledger.open(world.settings.ledger_url.get_secret_value(), read_only=True) as ledger:
        return set(ledger.current_days(table))


def held(world: World) -> set[tuple[str, date]]:
    with Ledger.open(world.settings.ledger_url.get_secret_value(), read_only=True) as ledger:
        return {(hold.table, hold.day) for hold in ledger.holds()}


def launch_backfill(server: Server, page: Page, first: date, last: date) -> None:
    """Launch a backfill of everything, and wait for its run."""
    page.goto(f"{server.url}/asset-groups")
    page.get_by_role("button", name="Materialize all").click()
    field = page.get_by_placeholder("ex: ")
    field.fill(f"[{first}...{last}]")
    field.press("Enter")
    picture(page, "1-backfill-dialog")
    page.get_by_role("button", name="Launch backfill").click()
    wait(lambda: len(runs(server, "SUCCESS", BACKFILL)) == 1, "the backfill", 300)


@pytest.mark.proof
def test_a_held_day_is_red_on_every_page_of_its_table_and_a_chart_stands_in_place(
    spark: SparkSession, tmp_path: Path, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs in this process, then a webserver and a browser."""
    last = FIRST + timedelta(days=1)
    chosen: dict[str, Any] = {"domains": SENSORS, "calendar_first": FIRST, "calendar_last": last, "today": last}
    world = World(load_settings(state=tmp_path / "state", jars=JARS, **chosen), spark)
    enter_world(world, monkeypatch)
    monkeypatch.chdir(project_root())
    for day in (FIRST, last):
        land(world, str(day), str(day))
    with dg.DagsterInstance.from_config(str(dagster_home(world.settings))) as instance:
        assert not materialize_range(build_definitions(world.settings), instance, FIRST, last).failures
        land_second_sensor(world, str(last))
        with pytest.MonkeyPatch.context() as patch:
            break_gold(patch)
            run = run_job(build_definitions(world.settings), instance, "refresh", {})
        assert len(run.failures) == 1
    with up(tmp_path, "--read-only", **chosen) as server:
        asset = f"{server.url}/assets/gold.sensor_week"
        page.goto(f"{asset}?view=partitions")
        expect(page.get_by_text("Failed (1)").first).to_be_visible(timeout=30_000)
        picture(page, "7-a-held-day-is-red")
        page.goto(f"{asset}?view=events")
        chart = page.get_by_alt_text("chart").first
        expect(chart).to_be_visible(timeout=30_000)
        assert chart.evaluate("drawn => drawn.complete && drawn.naturalWidth") > 500
        page.goto(f"{asset}?view=partitions&partition={last}")
        expect(page.get_by_text("failed, and did not materialize this asset").first).to_be_visible(timeout=30_000)
        picture(page, "7-the-held-day-itself")
        page.goto(f"{asset}?view=checks&checkDetail=contract")
        expect(page.get_by_text("1 row without coldest, which may not be null").first).to_be_visible(timeout=30_000)
        expect(page.get_by_text(f"platform-assets undo readings/{last}/bad.jsonl").first).to_be_visible()
        picture(page, "7-its-check")
        page.get_by_role("tab", name="Partitions").last.click()
        expect(page.get_by_text("Failed (1)").first).to_be_visible(timeout=30_000)
        picture(page, "7-its-check-by-day")
        page.goto(f"{asset}?view=checks&checkDetail=volume")
        expect(page.get_by_text("Not evaluated", exact=True).first).to_be_visible(timeout=30_000)
        picture(page, "7-a-check-that-cannot-judge")
        page.goto(f"{asset}?view=checks&checkDetail=freshness")
        expect(page.get_by_text(f"gold.sensor_week: 1 held, {last}").first).to_be_visible(timeout=30_000)
        page.goto(f"{server.url}/asset-groups")
        expect(page.get_by_text("50% filled (1 failed)").first).to_be_visible(timeout=30_000)
        picture(page, "7-the-graph")
        page.goto(f"{server.url}/runs/{run.run_id}")
        expect(page.get_by_text(f"platform-assets undo readings/{last}/bad.jsonl").first).to_be_visible()
        picture(page, "7-the-run")


@pytest.mark.proof
def test_backfill_hold_and_heal_as_a_user_sees_them(tmp_path: Path, page: Page) -> None:
    with up(tmp_path, calendar_first=FIRST, calendar_last=BAD_DAY, today=BAD_DAY) as server:
        backfill_hold_and_heal(server, page)


def backfill_hold_and_heal(server: Server, page: Page) -> None:
    """The whole afternoon."""
    world = server.world
    set_late_data(server, running=False)
    land_thirty_days(world)

    # A backfill of everything over thirty days.
    launch_backfill(server, page, FIRST, BAD_DAY - timedelta(days=1))
    thirty = {FIRST + timedelta(days=n) for n in range(DAYS)}
    for table in ("raw.transactions", "silver.transactions", "gold.daily_sales", "gold.sales_month_to_date"):
        assert loaded(world, table) == thirty
    page.goto(f"{server.url}/assets/gold.daily_sales?view=partitions")
    expect(page.get_by_text("Materialized").first).to_be_visible(timeout=30_000)
    picture(page, "2-days-are-green")
    page.goto(f"{server.url}/assets/gold.daily_sales?view=partitions&default_range=[{min(thirty)}...{max(thirty)}]")
    expect(page.get_by_text("30 Partitions Selected")).to_be_visible(timeout=30_000)
    picture_of_docs(page, "partitions")
    page.goto(f"{server.url}/assets/gold.daily_sales?view=overview")
    expect(page.get_by_text("reconciliation").or_(page.get_by_text("Latest check results")).first).to_be_visible()
    picture(page, "3-what-an-asset-shows")

    # A file of which every line breaks a rule: the day would be empty.
    broken = [sale(9000 + i, 1, str(BAD_DAY), store_id=-1) for i in range(10)]
    world.deliver_rows("transactions", str(BAD_DAY), "t.jsonl", broken)
    set_late_data(server, running=True)
    wait(lambda: len(runs(server, "FAILURE", SENSOR)) == 1, "the failed run", 300)
    assert ("silver.transactions", BAD_DAY) in held(world)
    assert BAD_DAY not in loaded(world, "gold.daily_sales")
    page.goto(f"{server.url}/assets/silver.transactions?view=checks&checkDetail=volume")
    expect(page.get_by_text("too few rows").first).to_be_visible(timeout=30_000)
    picture(page, "4-the-check-is-red")
    picture_of_docs(page, "check")
    page.goto(f"{server.url}/runs/{runs(server, 'FAILURE', SENSOR)[0]}")
    # The held day of silver, and the same day of the three tables that read it.
    expect(page.get_by_text("Days not published: 4").first).to_be_visible(timeout=30_000)
    expect(page.get_by_text("Stack Trace")).to_have_count(0)
    expect(page.locator(".marker-whiskers").first).to_be_visible()
    picture_of_docs(page, "held")
    picture(page, "5-the-reason")

    # The same lines, corrected.
    fixed = [sale(9000 + i, 1, str(BAD_DAY), updated_at=f"{BAD_DAY}T12:00:00Z") for i in range(10)]
    world.deliver_rows("transactions", str(BAD_DAY), "t-corrected.jsonl", fixed)
    wait(lambda: BAD_DAY in loaded(world, "gold.daily_sales"), "the corrected day", 300)
    assert held(world) == set()
    page.goto(f"{server.url}/assets/silver.transactions?view=checks&checkDetail=volume")
    expect(page.get_by_text("Succeeded").first).to_be_visible(timeout=30_000)
    picture(page, "6-healed")
