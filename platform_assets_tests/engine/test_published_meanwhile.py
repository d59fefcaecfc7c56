"""Of two refreshes at once, the one that finds its days published by the other says by whom."""

from __future__ import annotations

from datetime import date

import pytest

from platform_assets.cli.commands.refresh import refresh_report
from platform_assets.cli.console import print_parts
from platform_assets.engine.meanwhile import published_meanwhile
from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import RefreshResult, refresh
from platform_assets.engine.step import stage as staging
from platform_assets_tests.support.meanwhile import once_at
from platform_assets_tests.support.prepared import Prepared
from platform_assets_tests.support.recipes import DAYS, correct, four_days
from platform_assets_tests.support.world import World

RAW, SILVER, GOLD = "raw.transactions", "silver.transactions", "gold.daily_sales"
DAY = date.fromisoformat(DAYS[1])


def refreshed(world: World, run: str) -> RefreshResult:
    with world.open() as platform:
        return refresh(platform, lambda: world.spark, Author(run, f"{run} refresh", "Zoë"))


def test_who_finds_its_days_published_by_another_run_names_that_run(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lake of four days, if no other test has made it, and two refreshes of one of them."""
    world = prepared(four_days)
    correct(world, DAYS[1], "ours")
    with world.open() as platform:
        since = platform.current_release().number
    once_at(monkeypatch, staging, "stage.before_publish", lambda: refreshed(world, "theirs"))
    done = refreshed(world, "ours")
    assert {step.table: step.published for step in done.steps} == {SILVER: {}, GOLD: {}}
    with world.open() as platform:
        planned = {RAW: None, SILVER: [DAY], GOLD: [DAY]}
        others = published_meanwhile(platform, since, "ours", planned)
        assert [(other.table, other.days, other.by.run) for other in others] == [
            (SILVER, 1, "theirs"),
            (GOLD, 1, "theirs"),
        ]
        assert published_meanwhile(platform, platform.current_release().number, "ours", planned) == ()
    outcome = refresh_report(done, 1.0, None, others)
    assert not outcome.needs_a_look
    assert [other["run"] for other in outcome.data["published_meanwhile"]] == ["theirs", "theirs"]
    print_parts(outcome.parts)
    said = " ".join(capsys.readouterr().out.split())
    by = others[0].by
    assert (
        f"{SILVER}: 1 day not by this run but by theirs of Zoë (theirs refresh), publication {by.publication}" in said
    )
