"""The rollout: every day in one step, none before what it reads; a sample comes out as with all of the plan."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from platform_assets.contracts import AllHistory, Catalogue, MonthToDate, Span
from platform_assets.planning.backfill.days import in_rollout_order, reached_days, rollout_steps, sampled_days
from platform_assets.planning.day_states import TableStates
from platform_assets.planning.plan import Plan
from platform_assets.planning.selection import Request
from platform_assets.planning.windows import day_range, days_read
from platform_assets.records.code_version import Version
from platform_assets_tests.support.catalogues import CALENDAR, chain, computed, days_of, nths, planned

FIRST = date(2017, 1, 1)
some_windows = st.one_of(
    st.builds(Span, st.integers(0, 9), st.integers(0, 3)), st.sampled_from([MonthToDate(), AllHistory()])
)
some_days = st.sets(st.dates(CALENDAR.first, CALENDAR.last), min_size=1, max_size=12)
some_shares = st.sampled_from([(100,), (10, 100), (1, 10, 50, 100), (50, 100)])


@given(st.sets(st.dates(FIRST, date(2017, 12, 31)), min_size=1), st.randoms())
def test_the_order_is_of_the_days_alone_and_has_each_once(days, random):
    volumes = {day: random.randrange(1000) for day in days}
    order = in_rollout_order(days, volumes)
    assert sorted(order) == sorted(days)
    shuffled = list(days)
    random.shuffle(shuffled)
    assert in_rollout_order(shuffled, volumes) == order


def test_every_beginning_is_spread_over_weekdays_volumes_and_the_range():
    days = [FIRST + timedelta(n) for n in range(364)]
    volumes = {day: (n * 37) % 364 for n, day in enumerate(days)}
    first = in_rollout_order(days, volumes)[:37]
    assert {days[0], days[-1]} <= set(first)
    assert {day.weekday() for day in first} == set(range(7))
    quarters = {volumes[day] // 91 for day in first}
    assert quarters == {0, 1, 2, 3}
    assert len({day.month for day in first}) >= 10


def plan_of(catalogue: Catalogue, named: str, days: set[date], tables: TableStates) -> Plan:
    by_table = reached_days(catalogue, {named: days}, CALENDAR)
    request = Request(frozenset({named}), by_person=True, force=True, by_table=by_table)
    return planned(catalogue, tables, request)


def test_days_of_a_named_table_that_are_stale_by_code_alone_and_not_named_stay_as_they_are():
    """Changed code is taken to a part of history: what reads beyond that part is computed all the same."""
    catalogue = chain(Span(6, 0))
    _, named, week = catalogue.names
    days = {date(2017, 1, 10), date(2017, 1, 11)}
    old = {named: dict.fromkeys(CALENDAR.days(), Version("old", "now"))}
    plan = plan_of(catalogue, named, days, computed(catalogue, made_by=old))
    assert days_of(plan) == {named: days, week: set(day_range(date(2017, 1, 10), date(2017, 1, 17)))}
    assert [(step.table, len(step.days)) for step in plan.waiting] == [(named, 12)]
    steps = rollout_steps(plan, days, [named], (50, 100), catalogue, CALENDAR, {})
    assert sum(step.count for step in steps) == plan.days


@given(st.lists(some_windows, min_size=1, max_size=3), some_days, some_shares, some_days, st.booleans())
@settings(max_examples=50)
def test_each_planned_day_is_in_one_step_and_after_all_it_reads(windows, days, shares, changed, by_old_code):
    catalogue = chain(*windows)
    raw, named = catalogue.names[:2]
    old = dict.fromkeys(CALENDAR.days(), Version("old", "now")) if by_old_code else {}
    plan = plan_of(catalogue, named, days, computed(catalogue, changed={raw: changed}, made_by={named: old}))
    assert days <= set(plan.steps[0].days) <= days | changed
    steps = rollout_steps(plan, days, [named], shares, catalogue, CALENDAR, {})
    assert sorted((table, day) for step in steps for table, of in step.days.items() for day in of) == sorted(
        (step.table, day) for step in plan.steps for day in step.days
    )
    all_planned = {step.table: set(step.days) for step in plan.steps}
    staged: dict[str, set[date]] = {}
    for step in steps:
        for contract in catalogue:
            for day in step.days.get(contract.name, ()):
                for read in contract.inputs:
                    needs = set(days_read(read.window, day, CALENDAR)) & all_planned.get(read.table, set())
                    assert needs <= staged.get(read.table, set())
            staged.setdefault(contract.name, set()).update(step.days.get(contract.name, ()))
    assert [step.share for step in steps] == sorted({step.share for step in steps})
    assert steps[-1].share <= 100


@settings(max_examples=60)
@given(st.lists(some_windows, min_size=1, max_size=3), some_days, st.integers(0, 2), st.data())
def test_a_sample_has_all_of_the_plan_that_it_reads(windows, named, at, data):
    catalogue = chain(*windows)
    tables = (catalogue.names[1:][min(at, len(windows))],)
    days = reached_days(catalogue, {tables[0]: frozenset(named)}, CALENDAR)
    request = Request(frozenset(tables), by_person=True, force=True, by_table=days)
    changed = {"raw.t0": data.draw(some_days)}
    plan = planned(catalogue, computed(catalogue, changed=changed), request)
    sample = data.draw(st.sets(st.sampled_from(sorted(named)), min_size=1))
    chosen = sampled_days(plan, sample, tables, catalogue, CALENDAR)
    of_plan = {step.table: set(step.days) for step in plan.steps}
    assert sample <= chosen[tables[0]]
    for table, of_table in chosen.items():
        assert of_table <= of_plan[table]
        for day in of_table:
            for read in catalogue[table].inputs:
                needs = of_plan.get(read.table, set()).intersection(days_read(read.window, day, CALENDAR))
                assert needs <= chosen.get(read.table, set())


def test_a_window_over_the_sample_and_others_is_left_out():
    catalogue = chain(Span(0, 0), Span(1, 0))
    named = nths(3, 4, 5)
    days = reached_days(catalogue, {"gold.t2": named}, CALENDAR)
    plan = planned(catalogue, computed(catalogue), Request(frozenset(["gold.t2"]), force=True, by_table=days))
    assert sampled_days(plan, nths(3, 4), ["gold.t2"], catalogue, CALENDAR) == {
        "gold.t2": frozenset(nths(3, 4)),
        "gold.t3": frozenset(nths(3, 4)),
    }
