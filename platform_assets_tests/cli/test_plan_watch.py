"""How far a plan is, as `plan status --watch` tells it."""

from __future__ import annotations

from datetime import date

from platform_assets.cli.commands.plan import watched_line
from platform_assets.operations.backfill.staged import standing_of
from platform_assets.operations.opening import open_platform
from platform_assets.operations.plan_record import BackfillRecord, RecordedStep
from platform_assets.planning.backfill.pace import Standing
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.products import SILVER

DAYS = tuple(date(2017, 1, number) for number in (1, 2, 3, 4))
FILE = PlanFile.model_validate({"name": "a", "reason": "a", "owner": "a", "tables": [SILVER], "days": {"stale": True}})
STEPS = (RecordedStep(share=50, days={SILVER: DAYS[:2]}), RecordedStep(share=100, days={SILVER: DAYS[2:]}))


def test_days_that_need_nothing_are_told_apart_from_those_that_are_staged() -> None:
    record = BackfillRecord(name="a", hash="0", file=FILE, steps=STEPS, done=1)
    line = watched_line(record, Standing(2, 4, 60.0, 90.0, 0, left_alone=1))
    assert line.startswith("a staging: staged 1 of 4 days, need nothing 1 day, rate 2.0 days a minute, took 60.0 s, ")
    assert "need nothing" not in watched_line(record, Standing(2, 4, 60.0, 90.0, 0))


def test_a_plan_that_was_published_says_so_of_the_days_that_it_left_as_they_were(products: Settings) -> None:
    record = BackfillRecord(name="a", hash="0", file=FILE, steps=STEPS, done=2, state="published", published_days=3)
    with open_platform(products) as platform:
        now = standing_of(platform, record)
    assert (now.done, now.staged, now.left_alone) == (4, 3, 1)
