"""What a backfill will cost: its start, its steps, its jobs and its days, each by what such parts took."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from math import isfinite
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.planning.backfill.backfill import ENOUGH, Experience, PastRun, Price, experience, price, timed
from platform_assets.planning.backfill.days import RolloutStep
from platform_assets.planning.backfill.plan_file import Budget
from platform_assets.planning.plan import Estimate, PlannedStep
from platform_assets.planning.reasons import Reasons
from platform_assets.records.history import DayMark, Timing

SILVER, GOLD = "silver.sales", "gold.tills"
DAY_S = {SILVER: 0.25, GOLD: 0.1}
KNOWN = Experience(9.0, 0.5, 2.0, DAY_S, (0.9, 1.1) * 4)


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
    assert priced(planned(SILVER, 3), known=Experience(day_s=DAY_S)).between is None


START_S, STEP_S, JOB_S = 11.0, 0.8, 1.5
PER_DAY = {SILVER: 0.4, GOLD: 0.05}
LOADED = (Timing(SILVER, 300, JOB_S + 300 * PER_DAY[SILVER]), Timing(GOLD, 300, JOB_S + 300 * PER_DAY[GOLD]))
TABLES = tuple(PER_DAY)


def run(steps: int, starts: int = 1, off: float = 1.0, **days: int) -> PastRun:
    """A backfill of so many days of silver, gold, or both, each in every step."""
    of = {f"{layer}.{'sales' if layer == 'silver' else 'tills'}": count for layer, count in days.items()}
    jobs = steps * len(of)
    by_days = sum(PER_DAY[table] * count for table, count in of.items())
    seconds = off * (START_S * starts + STEP_S * steps + JOB_S * jobs + by_days)
    return PastRun(seconds, starts, steps, jobs, of)


def varied(count: int, seed: int = 1, spread: float = 0.0) -> list[PastRun]:
    """Backfills as they come, each over or under what it should take, by as much as the machine pleases."""
    chance = random.Random(seed)
    layers = ({"silver": 1}, {"gold": 1}, {"silver": 1, "gold": 1})
    found = []
    for _ in range(count):
        days = chance.choice((1, 3, 8, 30, 120))
        tables = dict.fromkeys(chance.choice(layers), days)
        found.append(run(chance.randint(1, 3), off=chance.lognormvariate(0, spread), **tables))
    return found


def says(known: Experience, one: PastRun) -> float:
    """What is said of a backfill."""
    days = sum(known.of_days(table, count, one.jobs // len(one.days)) for table, count in one.days.items())
    return known.start_s + known.step_s * one.steps + days


@pytest.mark.parametrize(("steps", "days"), [(1, 1), (3, 3), (3, 90), (1, 300)])
def test_after_three_backfills_few_days_in_many_steps_are_said_as_well_as_many_in_one(steps: int, days: int) -> None:
    known = experience([run(1, gold=3), run(2, silver=15, gold=15), run(1, silver=8)], LOADED, TABLES)
    asked = run(steps, silver=days, gold=days)
    assert says(known, asked) == pytest.approx(asked.seconds, rel=0.25)


def test_a_machine_that_was_busy_four_times_bends_little_and_widens_the_interval() -> None:
    calm = varied(20)
    busy = [replace(one, seconds=3 * one.seconds) if number % 5 == 0 else one for number, one in enumerate(calm)]
    asked = run(2, silver=20, gold=20)
    known = experience(busy, LOADED, TABLES)
    assert says(known, asked) == pytest.approx(asked.seconds, rel=0.15)
    _, longest = known.between(10.0, 10.0) or (0.0, 0.0)
    _, longest_if_calm = experience(calm, LOADED, TABLES).between(10.0, 10.0) or (0.0, 0.0)
    assert longest > 3 * 10.0 * 0.9, "one of five took three times as long"
    assert longest_if_calm < 12.0


def test_without_backfills_a_start_is_assumed_and_days_are_those_of_large_jobs() -> None:
    small_and_slow = Timing(SILVER, 2, 12.0)
    known = experience([], [small_and_slow, *LOADED], TABLES)
    assert known.runs == 0
    assert known.between(10.0, 10.0) is None
    assert known.start_s == pytest.approx(8.0)
    assert known.day_s[SILVER] == pytest.approx(PER_DAY[SILVER], rel=0.15)


def test_until_there_are_enough_backfills_there_is_no_interval() -> None:
    few = [run(1, silver=9) for _ in range(ENOUGH - 1)]
    assert experience(few, LOADED, TABLES).between(10.0, 10.0) is None
    assert experience([*few, run(1, gold=9)], LOADED, TABLES).between(10.0, 10.0)


def test_a_table_that_was_never_timed_is_not_known_and_its_backfills_say_nothing() -> None:
    strange = PastRun(50.0, 1, 1, 1, {"gold.new": 3})
    known = experience([strange], LOADED, (*TABLES, "gold.new"))
    assert "gold.new" not in known.day_s
    assert known.runs == 0


runs = st.tuples(st.floats(0.01, 1e5), st.integers(1, 3), st.integers(1, 40), st.integers(1, 900))


@given(st.lists(runs, max_size=12), st.lists(st.tuples(st.integers(1, 900), st.floats(0.001, 1e5)), max_size=4))
def test_whatever_was_taken_no_cost_is_negative_or_endless_and_no_backfill_is_said_to_take_nothing(
    took: list[tuple[float, int, int, int]], loaded: list[tuple[int, float]]
) -> None:
    past = [PastRun(seconds, starts, jobs, jobs, {SILVER: days}) for seconds, starts, jobs, days in took]
    known = experience(past, [Timing(SILVER, days, seconds) for days, seconds in loaded], [SILVER])
    assert all(
        isfinite(cost) and cost > 0 for cost in (known.start_s, known.step_s, known.job_s, *known.day_s.values())
    )
    between = known.between(50.0, 80.0)
    assert (between is None) == (len(took) < ENOUGH or not loaded)
    if between:
        assert 0 <= between[0] < 50.0 < 80.0 < between[1]


@pytest.mark.parametrize("count", [3, 5, 10, 20])
def test_four_of_five_backfills_lie_in_the_interval(count: int) -> None:
    """On machines that are busy as they please: each backfill takes its time over or under by a fifth, as a rule."""
    inside = []
    for seed in range(60):
        *past, asked = varied(count + 1, 1000 * count + seed, 0.2)
        known = experience(past, LOADED, TABLES)
        low, high = known.between(says(known, asked), says(known, asked)) or (0.0, 0.0)
        inside.append(low <= asked.seconds <= high)
    assert 0.7 <= sum(inside) / len(inside) <= 0.99


def test_what_is_said_is_near_the_middle() -> None:
    ratios = []
    for seed in range(40):
        *past, asked = varied(15, seed, 0.2)
        ratios.append(asked.seconds / says(experience(past, LOADED, TABLES), asked))
    assert median(ratios) == pytest.approx(1.0, abs=0.1)
    assert sum(abs(ratio - 1) <= 0.3 for ratio in ratios) >= 0.8 * len(ratios)
