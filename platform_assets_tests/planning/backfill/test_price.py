"""What a backfill will cost: days by what days took, and besides them what backfills took beyond their days."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.planning.backfill.experience import (
    ENOUGH,
    Overhead,
    PastRun,
    overhead,
    seconds_per_day,
)
from platform_assets.planning.backfill.plan_file import Budget
from platform_assets.planning.backfill.price import Price, price
from platform_assets.planning.backfill.rollout import RolloutStep
from platform_assets.planning.estimates import Estimate
from platform_assets.planning.plan import PlannedStep
from platform_assets.planning.reasons import Reasons
from platform_assets.records.history import Timing

SILVER, GOLD = "silver.sales", "gold.tills"
TIMINGS = (Timing(SILVER, 2, 12.0), Timing(SILVER, 30, 6.0), Timing(SILVER, 20, 6.0), Timing(GOLD, 30, 3.0))
PER_DAY = {SILVER: 0.25, GOLD: 0.1}


def days(count: int) -> tuple[date, ...]:
    return tuple(date(2017, 1, 1) + timedelta(number) for number in range(count))


def planned(table: str, count: int, reasons: Reasons = ("asked for",), known: bool = True) -> PlannedStep:
    return PlannedStep(
        table, dict.fromkeys(days(count), reasons), Estimate(10 * count, 1000 * count, 99.0) if known else None
    )


def run(jobs: int, silver: int, *, start: float = 9.0, job: float = 2.0, starts: int = 1, off: float = 1.0) -> PastRun:
    took = start * starts + job * jobs + PER_DAY[SILVER] * silver
    return PastRun(took * off, starts, jobs, {SILVER: silver})


def priced(*steps: PlannedStep, past: tuple[PastRun, ...] = (), rollout: int = 1, hourly: str = "") -> Price:
    rolled = tuple(RolloutStep(100, {step.table: step.days for step in steps}) for _ in range(rollout))
    budget = Budget(price_per_core_hour=Decimal(hourly) if hourly else None)
    return price(steps, rolled, TIMINGS, past, 2, budget)


def test_a_day_takes_what_it_took_in_large_jobs() -> None:
    assert seconds_per_day(TIMINGS) == pytest.approx(PER_DAY)


def test_what_backfills_took_beyond_their_days_is_start_and_jobs() -> None:
    found = overhead([run(1, 30), run(2, 8), run(6, 12), run(4, 3, starts=2)], PER_DAY)
    assert (found.start_s, found.job_s) == pytest.approx((9.0, 2.0))
    assert found.runs == 4


def test_one_backfill_on_a_busy_machine_bends_nothing_and_widens_the_interval() -> None:
    calm = [run(n, 5 * n) for n in range(1, 9)]
    busy = [*calm, run(3, 10, off=4.0)]
    found = overhead(busy, PER_DAY)
    assert found.start_s + 3 * found.job_s == pytest.approx(15.0, rel=0.15)
    assert found.spread is not None
    assert found.spread > (overhead(calm, PER_DAY).spread or 0) + 0.3


def test_until_there_are_enough_backfills_a_start_is_assumed_and_no_interval_is_given() -> None:
    few = tuple(run(1, 9) for _ in range(ENOUGH - 1))
    said = priced(planned(SILVER, 10), past=few)
    assert said.overhead == Overhead()
    assert said.between is None
    assert said.seconds == pytest.approx(said.overhead.start_s + said.overhead.job_s + 2.5)
    strange = PastRun(50.0, 1, 2, {"gold.other": 3})
    assert overhead([*few, strange], PER_DAY).runs == 0, "of tables that nobody knows nothing can be told"


def test_a_backfill_is_its_start_its_jobs_and_its_days() -> None:
    past = tuple(run(n, 5 * n) for n in range(1, 7))
    said = priced(planned(SILVER, 30), planned(GOLD, 30), past=past, rollout=2, hourly="0.9")
    assert said.seconds == pytest.approx(9.0 + 4 * 2.0 + 30 * 0.25 + 30 * 0.1)
    assert (said.rows, said.bytes) == (600, 60_000)
    assert said.money == Decimal("0.01")
    assert said.between is not None
    assert said.between[0] < said.seconds < said.between[1]


def test_backfills_of_other_tables_tell_of_start_and_jobs_as_well() -> None:
    said = priced(planned(GOLD, 30), past=tuple(run(n, 5 * n) for n in range(1, 7)))
    assert said.overhead.runs == 6
    assert said.seconds == pytest.approx(9.0 + 2.0 + 30 * 0.1)


def test_days_that_are_only_reached_may_turn_out_to_need_nothing() -> None:
    past = tuple(run(n, 5 * n) for n in range(1, 7))
    sure = priced(planned(SILVER, 30), planned(GOLD, 30), past=past)
    perhaps = priced(planned(SILVER, 30), planned(GOLD, 30, ("upstream content",)), past=past)
    assert perhaps.seconds == sure.seconds
    assert sure.between
    assert perhaps.between
    assert perhaps.between[0] < sure.between[0]
    assert perhaps.between[1] == sure.between[1]


def test_a_table_that_was_never_timed_is_named_and_left_out() -> None:
    said = priced(planned(SILVER, 3), planned("gold.new", 3, known=False), past=tuple(run(n, n) for n in range(1, 9)))
    assert said.unknown == ("gold.new",)
    assert said.between is None
    assert priced(planned("gold.new", 3, known=False)).seconds == 0.0


@given(st.lists(st.tuples(st.floats(1, 1e5), st.integers(1, 3), st.integers(1, 40), st.integers(1, 900)), max_size=12))
def test_whatever_backfills_took_a_start_is_not_negative_and_the_interval_holds_what_is_said(
    took: list[tuple[float, int, int, int]],
) -> None:
    found = overhead([PastRun(s, n, jobs, {SILVER: count}) for s, n, jobs, count in took], PER_DAY)
    assert found.start_s >= 0
    assert found.job_s >= 0
    between = found.between(50.0, 80.0)
    assert (between is None) == (len(took) < ENOUGH)
    if between:
        assert 0 <= between[0] < 50.0 < 80.0 < between[1]


@pytest.mark.parametrize("count", [3, 5, 10, 20])
def test_four_of_five_backfills_lie_in_the_interval(count: int) -> None:
    """On machines that are busy as they please: each backfill takes its time over or under by a fifth, as a rule."""
    chance = random.Random(count)
    inside = 0
    for _ in range(400):
        past = [
            run(chance.randint(1, 8), chance.randint(1, 60), off=chance.lognormvariate(0, 0.2)) for _ in range(count)
        ]
        jobs, silver = chance.randint(1, 8), chance.randint(1, 60)
        found = overhead(past, PER_DAY)
        says = found.start_s + found.job_s * jobs + PER_DAY[SILVER] * silver
        low, high = found.between(says, says) or (0.0, 0.0)
        inside += low <= run(jobs, silver, off=chance.lognormvariate(0, 0.2)).seconds <= high
    assert 0.7 <= inside / 400 <= 0.97


def test_the_estimate_is_near_the_middle() -> None:
    chance = random.Random(7)
    past = [run(chance.randint(1, 8), chance.randint(1, 60), off=chance.lognormvariate(0, 0.2)) for _ in range(20)]
    found = overhead(past, PER_DAY)
    ratios = [
        run(jobs, 5 * jobs).seconds / (found.start_s + found.job_s * jobs + PER_DAY[SILVER] * 5 * jobs)
        for jobs in range(1, 9)
    ]
    assert median(ratios) == pytest.approx(1.0, abs=0.15)
