"""A stale day that an input keeps from being computed: what every command says of it. No session is started."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from platform_assets.engine.day_contents import loaded_empty
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.refresh import planned
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import plan_steps, states_around
from platform_assets.engine.step.stage import Stage
from platform_assets.operations.opening import open_platform
from platform_assets.planning.day_states import Blocked, DayState
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.planning.selection import BY_PERSON
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import Hold
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.commands import Run
from platform_assets_tests.support.cli.products import DAYS, computed, publish_on_paper

RAW, SILVER, GOLD, PRODUCTS = "raw.transactions", "silver.transactions", "gold.daily_sales", "silver.products"
DAY = DAYS[1]
AUTHOR = Author("r", "a test")


def made(platform: Platform, table: str) -> dict[str, Any]:
    """By what a table with a transform is computed today."""
    if not platform.catalogue[table].inputs:
        return {}
    return {"code_version": platform.version(table).code, "configuration": platform.configurations[table].parts}


def other(platform: Platform, table: str, digest: str) -> None:
    """The day as others made it."""
    contents = computed(platform, table) if platform.catalogue[table].inputs else loaded_empty(DAYS)
    day = {DAY: contents[DAY].model_copy(update={"digest": digest})}
    publish_on_paper(platform, table, day, **made(platform, table))


def gone(platform: Platform, table: str) -> None:
    """As a rollback to before the day was ever computed leaves it."""
    publish_on_paper(
        platform, table, {DAY: computed(platform, table)[DAY].model_copy(update={"digest": "", "fingerprint": ""})}
    )
    made_from = Attempt(_mark(platform, table))
    platform.ledger.hold([Hold(table, DAY, made_from, "roll back", "rolled back", "r", datetime.now(UTC))])


def _mark(platform: Platform, table: str) -> str:
    contract, snapshot = platform.catalogue[table], LakeSnapshot.now(platform)
    digests = {read.table: snapshot.digests(read.table) for read in contract.inputs}
    return fingerprints(contract, [DAY], digests, platform.calendar, {})[DAY]


def hold_silver(platform: Platform) -> None:
    """New rows came for the day, and a gate refused what silver would become of them."""
    other(platform, RAW, "0-7-7-7-7")
    refused = Attempt(_mark(platform, SILVER), platform.version(SILVER))
    platform.ledger.hold([Hold(SILVER, DAY, refused, "volume", "far too few", "r", datetime.now(UTC))])


def state(platform: Platform) -> DayState:
    return states_around(LakeSnapshot.now(platform), platform.catalogue[GOLD], [DAY])[1][DAY]


@pytest.fixture
def lake(products: Settings) -> Settings:
    """Every table is up to date."""
    with open_platform(products) as platform:
        publish_on_paper(platform, RAW, loaded_empty(DAYS))
        for table in (SILVER, GOLD):
            publish_on_paper(platform, table, computed(platform, table), **made(platform, table))
    return products


@pytest.fixture
def of_old_code(lake: Settings) -> Settings:
    """Gold's code was changed since, and its input day is held: readers see the day as the old code made it."""
    with open_platform(lake) as platform:
        old = made(platform, GOLD) | {"code_version": "old"}
        publish_on_paper(platform, GOLD, {DAY: computed(platform, GOLD)[DAY]}, **old)
        hold_silver(platform)
        found = state(platform)
    assert isinstance(found, Blocked)
    assert found.otherwise
    assert found.otherwise.by_code
    return lake


def test_stale_and_why_agree(run: Run, of_old_code: Settings) -> None:
    listed = run("status", "stale", GOLD)
    assert listed.code == 1
    assert "gold.daily_sales 2017-01-02 (code): silver.transactions is held on 2017-01-02: far too few" in listed.out
    [blocked] = run("status", "stale", GOLD, "--json").json["cannot_be_computed"]
    assert (blocked["day"], blocked["reasons"], blocked["held"]) == (str(DAY), ["code"], str(DAY))
    assert run("status", "stale", GOLD, "--days", "2017-01-01").code == 0
    why = run("why", GOLD, str(DAY))
    assert why.code == 1
    assert "stale gold.daily_sales 2017-01-02: code" in why.out
    assert "cannot be computed silver.transactions is held on 2017-01-02: far too few" in why.out
    assert run("why", GOLD, str(DAY), "--json").json["blocked"]["reads"] == SILVER


@pytest.mark.parametrize("more", [(), ("--days", str(DAY)), ("--days", str(DAY), "--force")])
def test_a_refresh_that_can_do_nothing_for_a_stale_day_is_no_success(
    run: Run, of_old_code: Settings, more: tuple[str, ...]
) -> None:
    said = run("refresh", GOLD, *more)
    assert said.code == 1
    assert "cannot be computed gold.daily_sales 2017-01-02 (code" in said.out
    assert "no day is stale" not in said.out


def test_a_reached_day_is_in_the_plan_though_another_input_keeps_it(run: Run, lake: Settings) -> None:
    """Reference data changes as of every day; gold reads it, and one day of gold's other input is held."""
    with open_platform(lake) as platform:
        hold_silver(platform)
        first = {DAYS[0]: loaded_empty(DAYS)[DAYS[0]].model_copy(update={"digest": "0-3-3-3-3"})}
        publish_on_paper(platform, "raw.products", first)
    plan = run("refresh", "--explain", "--json").json["plan"]
    assert [each["day"] for each in plan["cannot_be_computed"] if each["table"] == GOLD] == [str(DAY)]


def test_a_day_made_from_what_is_gone_is_not_called_up_to_date(run: Run, lake: Settings) -> None:
    with open_platform(lake) as platform:
        gone(platform, SILVER)
    assert "made from more than is there" in run("status", "stale", GOLD).out
    why = run("why", GOLD, str(DAY))
    assert why.code == 1
    assert "out of date gold.daily_sales 2017-01-02: made from more than is there" in why.out


def test_a_plan_is_made_anew_once_a_hold_was_lifted(lake: Settings) -> None:
    with open_platform(lake) as platform:
        hold_silver(platform)
        seen = plan_steps(platform, BY_PERSON)
        assert SILVER not in {step.table for step in seen.steps}
        assert planned(Stage(platform, AUTHOR), BY_PERSON, seen) is seen
        platform.ledger.drop(platform.ledger.holds(SILVER))
        assert SILVER in {step.table for step in planned(Stage(platform, AUTHOR), BY_PERSON, seen).steps}
