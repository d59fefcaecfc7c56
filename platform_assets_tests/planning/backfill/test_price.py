"""What a backfill will cost: its start, its steps, its jobs and its days, each by what such parts took."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest

from platform_assets.planning.backfill.plan_file import Budget
from platform_assets.planning.backfill.price import Experience, Price, price, timed
from platform_assets.planning.backfill.rollout import RolloutStep
from platform_assets.planning.estimates import Estimate
from platform_assets.planning.plan import PlannedStep
from platform_assets.planning.reasons import Reasons
from platform_assets.records.history import DayMark

SILVER, GOLD = "silver.sales", "gold.tills"
PER_DAY = {SILVER: 0.25, GOLD: 0.1}
KNOWN = Experience(9.0, 0.5, 2.0, PER_DAY, (0.9, 1.1) * 4)


def days(count: int) -> tuple[date, ...]:
    return tuple(date(2017, 1, 1) + timedelta(number) for number in range(count))


def planned(table: str, count: int, reasons: Reasons = ("asked for",), known: bool = True) -> PlannedStep:
    return PlannedStep(
        table, dict.fromkeys(days(count), reasons), Estimate(10 * count, 1000 * count, 99.0) if known else None
    )


def priced(*steps: PlannedStep, known: Experience = KNOWN, rollout: int = 1, hourly: str = "") -> Price:
    rolled = tuple(RolloutStep(100, {step.table: step.days for step in steps}) for _ in range(rollout))
    budget = Budget(price_per_core_hour=Decimal(hourly) if hourly else None)
    return price(timed(steps, rolled, known, {}), rolled, known, 2, budget)


def test_a_backfill_is_its_start_its_steps_its_jobs_and_its_days() -> None:
    said = priced(planned(SILVER, 30), planned(GOLD, 30), rollout=2, hourly="0.9")
    assert said.seconds == pytest.approx(9.0 + 2 * 0.5 + 4 * 2.0 + 30 * 0.25 + 30 * 0.1)
    assert (said.rows, said.bytes) == (600, 60_000)
    assert said.money == Decimal("0.01")
    assert said.between is not None
    assert said.between[0] < said.seconds < said.between[1]


def test_a_table_takes_its_jobs_and_its_days() -> None:
    rollout = (RolloutStep(10, {SILVER: days(3)}), RolloutStep(100, {SILVER: days(30)[3:], GOLD: days(30)}))
    steps = timed([planned(SILVER, 30), planned(GOLD, 30), planned("gold.new", 3)], rollout, KNOWN, {})
    assert [step.estimate.seconds if step.estimate else None for step in steps] == pytest.approx(
        [2 * 2.0 + 30 * 0.25, 2.0 + 30 * 0.1, None]
    )


def test_days_that_a_rollback_put_back_took_no_time_and_are_priced_by_what_others_took() -> None:
    back = planned(GOLD, 4, known=False)
    there = {day: DayMark(day, rows=7, bytes=900) for day in days(3)}
    [step] = timed([back], (RolloutStep(100, {GOLD: days(4)}),), KNOWN, {GOLD: there})
    assert step.estimate is not None
    assert (step.estimate.rows, step.estimate.bytes) == (28, 3600), "the fourth as large as the others"
    assert step.estimate.seconds == pytest.approx(2.0 + 4 * 0.1)
    assert timed([back], (), Experience(), {GOLD: there})[0].estimate is None


def test_days_that_are_only_reached_may_turn_out_to_need_nothing() -> None:
    sure = priced(planned(SILVER, 30), planned(GOLD, 30))
    perhaps = priced(planned(SILVER, 30), planned(GOLD, 30, ("upstream content",)))
    assert perhaps.seconds == sure.seconds
    assert sure.between
    assert perhaps.between
    assert perhaps.between[0] < sure.between[0]
    assert perhaps.between[1] == sure.between[1]


def test_a_table_that_was_never_timed_is_named_and_left_out() -> None:
    said = priced(planned(SILVER, 3), planned("gold.new", 3, known=False))
    assert said.unknown == ("gold.new",)
    assert said.between is None
    assert said.seconds == pytest.approx(9.0 + 0.5 + 2.0 + 3 * 0.25)
    assert priced(planned("gold.new", 3, known=False)).seconds == 0.0


def test_without_experience_there_is_no_interval() -> None:
    assert priced(planned(SILVER, 3), known=Experience(day_s=PER_DAY)).between is None
