"""The plan: exactly the days that a change reaches, as brute force finds them, and no day left out without a word."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from platform_assets.contracts import (
    AllHistory,
    Catalogue,
    Contract,
    Domain,
    Input,
    LandingFiles,
    MonthToDate,
    Span,
    offsets,
)
from platform_assets.planning.day_states import Held, TableStates, day_states
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.planning.plan import Intake, Plan, left_to_do, make_plan, reason_counts
from platform_assets.planning.reasons import Past
from platform_assets.planning.selection import AUTOMATIC, BY_PERSON, Request
from platform_assets.records.code_version import Attempt, TiedTo, Version
from platform_assets.records.history import Hold
from platform_assets_tests.support.catalogues import (
    AT,
    CALENDAR,
    FIRST,
    KEY,
    NOW,
    brute_force,
    chain,
    computed,
    days_of,
    hold,
    nth,
    nths,
    planned,
)

some_windows = st.one_of(
    st.builds(Span, st.integers(0, 9), st.integers(0, 9)),
    st.sampled_from([MonthToDate(), AllHistory(), offsets(-20, -1), offsets(-9, 0, 3)]),
)


def in_the_way(plan: Plan) -> dict[str, dict[date, tuple[str, date]]]:
    return {
        table: {day: (why.state.table, why.state.day) for day, why in days.items()}
        for table, days in plan.blocked.items()
    }


some_days = st.sets(st.dates(CALENDAR.first, CALENDAR.last), max_size=5)
OLD = Version("old", "configuration")


@given(st.lists(some_windows, max_size=3), some_days)
def test_planned_days_equal_brute_force(windows, days):
    catalogue = chain(*windows)
    plan = planned(catalogue, computed(catalogue, changed={"raw.t0": days}))
    assert days_of(plan) == brute_force(catalogue, {"raw.t0": days})
    order = [step.table for step in plan.steps]
    assert order == [name for name in catalogue.names if name in order]


@given(st.lists(some_windows, max_size=2), some_days, some_days)
@settings(max_examples=50)
def test_days_never_computed_and_days_they_reach_are_planned_too(windows, changed, never):
    catalogue = chain(*windows)
    derived = [name for name in catalogue.names if name != "raw.t0"]
    tables = computed(catalogue, changed={"raw.t0": changed}, lacking=dict.fromkeys(derived, never))
    expected = brute_force(catalogue, {"raw.t0": changed, **dict.fromkeys(derived, never)})
    assert days_of(planned(catalogue, tables)) == expected


@given(some_windows, some_days, some_days)
@settings(max_examples=50)
def test_days_that_read_a_day_nobody_delivered_are_not_planned(window, changed, absent):
    catalogue = chain(window)
    lacking = {
        "raw.t0": absent,
        "silver.t1": absent,
        "gold.t2": brute_force(catalogue, {"silver.t1": absent}).get("gold.t2", ()),
    }
    plan = days_of(planned(catalogue, computed(catalogue, changed={"raw.t0": changed - absent}, lacking=lacking)))
    assert not plan.get("gold.t2", set()) & set(lacking["gold.t2"])
    assert not plan.get("silver.t1", set()) & absent
    assert plan.get("silver.t1", set()) == changed - absent


def test_a_plan_of_nothing_is_empty():
    catalogue = chain(Span(3, 0), MonthToDate())
    assert planned(catalogue, computed(catalogue)) == planned(catalogue, computed(catalogue), BY_PERSON)
    assert planned(catalogue, computed(catalogue)).days == 0


def test_a_day_that_was_refused_is_left_alone_until_it_would_become_something_else():
    catalogue = chain()
    tables = computed(catalogue, changed={"raw.t0": nths(0)})
    refused = fingerprints(catalogue["silver.t1"], [FIRST], tables.digests, CALENDAR, {})
    held = {"silver.t1": [hold("silver.t1", FIRST, Attempt(refused[FIRST], NOW))]}
    assert days_of(planned(catalogue, replace(tables, holds=held))) == {}
    corrected = replace(computed(catalogue), holds=held)
    assert days_of(planned(catalogue, corrected)) == {"silver.t1": {FIRST}}
    assert days_of(planned(catalogue, replace(corrected, holds={}))) == {}


def test_days_stale_only_through_code_wait_for_a_person_and_reach_nothing_until_then():
    catalogue = chain(Span(2, 0))
    tables = computed(catalogue, made_by={"silver.t1": dict.fromkeys(nths(4, 5), OLD)})
    plan = planned(catalogue, tables)
    assert plan.steps == ()
    assert [(step.table, step.days) for step in plan.waiting] == [("silver.t1", nths(4, 5))]
    taken = planned(catalogue, tables, BY_PERSON)
    assert taken.waiting == ()
    assert days_of(taken) == {"silver.t1": set(nths(4, 5)), "gold.t2": set(nths(4, 5, 6, 7))}
    assert taken.steps[0].reasons == dict.fromkeys(nths(4, 5), ("code",))
    assert taken.steps[1].reasons == dict.fromkeys(nths(4, 5, 6, 7), ("upstream content",))


def test_a_day_stale_through_data_and_code_does_not_wait_and_says_both():
    catalogue = chain()
    made_by = {"silver.t1": dict.fromkeys(nths(4, 5), Version("old", "old"))}
    plan = planned(catalogue, computed(catalogue, changed={"raw.t0": nths(5)}, made_by=made_by))
    assert plan.steps[0].reasons == {nth(5): ("correction", "code", "configuration")}
    assert plan.waiting[0].reasons == {nth(4): ("code", "configuration")}
    assert reason_counts([*plan.steps, *plan.waiting]) == {"correction": 1, "code": 2, "configuration": 2}


def test_a_table_that_has_to_follow_its_contract_is_left_to_people_with_what_reads_it():
    catalogue = chain(Span(0, 0), Span(0, 0))
    changed = computed(catalogue, changed={"raw.t0": nths(5), "gold.t2": nths(7)})
    tables = replace(changed, changing={"silver.t1": "all days"})
    plan = planned(catalogue, tables)
    assert plan.by_people == ("gold.t2", "silver.t1")
    assert days_of(plan) == {"gold.t3": set(nths(7))}, "what does not read it goes on"
    assert [(step.table, len(step.days)) for step in plan.waiting] == [("silver.t1", 60)]
    assert plan.waiting[0].reasons[nth(5)] == ("correction", "configuration")
    taken = planned(catalogue, tables, BY_PERSON)
    assert (taken.by_people, taken.waiting) == ((), ())
    assert days_of(taken)["silver.t1"] == days_of(taken)["gold.t2"] == set(CALENDAR.days())


def test_days_needed_together_that_lack_an_input_are_named():
    catalogue = chain()
    tables = replace(computed(catalogue, lacking={"raw.t0": nths(3)}), changing={"silver.t1": "all days"})
    plan = planned(catalogue, tables, BY_PERSON)
    assert in_the_way(plan) == {"silver.t1": {nth(3): ("raw.t0", nth(3))}}
    assert days_of(plan)["silver.t1"] == set(CALENDAR.days()) - {nth(3)}


def test_raw_tables_take_added_columns_by_themselves_and_wait_for_a_person_with_any_other_change():
    catalogue = chain()
    tables = computed(catalogue)
    assert planned(catalogue, replace(tables, changing={"raw.t0": "any days"})).by_people == ()
    assert planned(catalogue, replace(tables, changing={"raw.t0": "another table"})).by_people == (
        "raw.t0",
        "silver.t1",
    )


def test_a_version_nobody_recorded_makes_nothing_stale():
    catalogue = chain()
    unknown = {"silver.t1": dict.fromkeys(CALENDAR.days(), Version("code", ""))}
    assert planned(catalogue, computed(catalogue, made_by=unknown), BY_PERSON).steps == ()


def test_what_is_asked_for_comes_with_what_it_is_made_from_and_nothing_else():
    catalogue = chain(Span(2, 0), Span(0, 0))
    tables = computed(catalogue, changed={"raw.t0": nths(1, 10, 20)})
    request = Request(frozenset({"gold.t2"}), frozenset(nths(11)), by_person=True)
    assert days_of(planned(catalogue, tables, request)) == {"silver.t1": {nth(10)}, "gold.t2": {nth(11)}}
    everything = planned(catalogue, tables, Request(days=frozenset(nths(20))))
    assert days_of(everything) == {"silver.t1": {nth(20)}, "gold.t2": {nth(20)}, "gold.t3": {nth(20)}}
    assert days_of(planned(catalogue, tables, Request(frozenset({"silver.t1"})))) == {"silver.t1": set(nths(1, 10, 20))}


def test_days_asked_for_by_force_are_recomputed_whatever_their_state():
    catalogue = chain(Span(2, 0), Span(0, 0))
    request = Request(frozenset({"gold.t2"}), frozenset(nths(11)), by_person=True, force=True)
    plan = planned(catalogue, computed(catalogue), request)
    assert [(step.table, step.reasons) for step in plan.steps] == [("gold.t2", {nth(11): ("asked for",)})]


@pytest.mark.parametrize("force", [False, True])
def test_days_asked_for_that_lack_an_input_are_named_with_it(force):
    catalogue = chain(Span(2, 0))
    lacking = {"raw.t0": nths(10), "silver.t1": nths(10), "gold.t2": nths(9, 10, 11, 12)}
    request = Request(frozenset({"gold.t2"}), frozenset(nths(8, 9, 11)), by_person=True, force=force)
    plan = planned(catalogue, computed(catalogue, lacking=lacking), request)
    assert in_the_way(plan) == {"gold.t2": {nth(11): ("raw.t0", nth(10))}}
    assert days_of(plan) == {"gold.t2": {nth(8), nth(9)} if force else {nth(9)}}


def test_an_estimate_counts_days_as_they_were_and_the_start_of_a_job_once():
    catalogue = chain()
    tables = computed(catalogue, changed={"raw.t0": nths(3, 4)})
    marks = dict(tables.marks["silver.t1"])
    marks[nth(3)] = marks[nth(3)]._replace(rows=700, release=2, seconds=2.1)
    tables = replace(tables, marks={**tables.marks, "silver.t1": marks})
    found = planned(catalogue, tables).estimate
    assert found is not None
    assert (found.rows, found.bytes) == (800, 2000)
    assert found.seconds == pytest.approx(2 * 0.1 + 2.0)


def test_a_table_that_was_never_timed_has_no_estimate_and_so_has_the_plan():
    catalogue = chain(Span(0, 0))
    every = CALENDAR.days()
    plan = planned(catalogue, computed(catalogue, lacking={"silver.t1": every, "gold.t2": every}))
    assert [step.estimate for step in plan.steps] == [None, None]
    assert plan.estimate is None


def test_files_that_wait_are_part_of_the_plan_of_the_tables_they_are_for():
    catalogue = chain(Span(0, 0))
    tables, intake = computed(catalogue), Intake("raw.t0", 2, 1000, nths(3))
    assert make_plan(catalogue, tables, {}, Past(), intakes=[intake]).intakes == (intake,)
    none = Request(frozenset({"silver.t1"}), frozenset())
    assert make_plan(catalogue, tables, {}, Past(), none, [intake]).intakes == ()


SAME_DAY = Span(0, 0)
CHAIN = chain(SAME_DAY)
SILVER, GOLD = "silver.t1", "gold.t2"


def two_inputs() -> Catalogue:
    """`gold.g` reads the same day of `silver.a` and `silver.b`, and `gold.h` that of `gold.g`."""
    raw = [Contract(f"raw.{x}", "", "", (KEY, AT), ("k",), source=LandingFiles(x), event_time="at") for x in "ab"]
    silver = [Contract(f"silver.{x}", "", "", (KEY,), ("k",), inputs=(Input(f"raw.{x}", SAME_DAY),)) for x in "ab"]
    inputs = (Input("silver.a", SAME_DAY), Input("silver.b", SAME_DAY))
    gold = Contract("gold.g", "", "", (KEY,), ("k",), inputs=inputs)
    after = Contract("gold.h", "", "", (KEY,), ("k",), inputs=(Input("gold.g", SAME_DAY),))
    return Catalogue.of([Domain("two", (*raw, *silver, gold, after), "nowhere")])


TWO = two_inputs()


def refused(tables: TableStates, table: str, day: date, catalogue: Catalogue = CHAIN) -> Hold:
    """A gate refused just what the day would be made of now."""
    mark = fingerprints(catalogue[table], [day], tables.digests, CALENDAR, {})[day]
    return hold(table, day, Attempt(mark, NOW))


def named(plan: Plan) -> dict[str, set[date]]:
    """Every day that a plan speaks of, by table."""
    days: dict[str, set[date]] = {}
    for step in (*plan.steps, *plan.waiting):
        days.setdefault(step.table, set()).update(step.days)
    for part in (plan.blocked, plan.bereft):
        for table in part:
            days.setdefault(table, set()).update(part[table])
    return days


@pytest.mark.parametrize("request_", [AUTOMATIC, BY_PERSON])
def test_a_day_that_a_step_reaches_and_another_input_keeps_is_named_with_its_reason(request_: Request) -> None:
    tables = computed(TWO, changed={"raw.a": nths(3), "raw.b": nths(3)})
    plan = planned(TWO, replace(tables, holds={"silver.a": [refused(tables, "silver.a", nth(3), TWO)]}), request_)
    assert days_of(plan) == {"silver.b": {nth(3)}}
    kept = plan.blocked["gold.g"][nth(3)]
    assert (kept.state.table, kept.state.day, kept.reasons) == ("silver.a", nth(3), ("upstream content",))


def test_a_day_of_other_code_whose_input_is_held_waits_for_a_person_who_is_told_what_keeps_it() -> None:
    old = {GOLD: {nth(3): Version("old", NOW.configuration)}}
    tables = computed(CHAIN, changed={"raw.t0": nths(3)}, made_by=old)
    tables = replace(tables, holds={SILVER: [refused(tables, SILVER, nth(3))]})
    by_person = planned(CHAIN, tables, BY_PERSON)
    assert by_person.blocked[GOLD][nth(3)].reasons == ("code",)
    assert by_person.stale == {GOLD: nths(3)}
    assert [(step.table, step.days) for step in planned(CHAIN, tables).waiting] == [(GOLD, nths(3))]


def test_an_input_that_is_gone_is_not_hidden_by_another_one_that_is_held() -> None:
    tables = computed(TWO, changed={"raw.a": nths(3)}, lacking={"raw.b": nths(3), "silver.b": nths(3)})
    held = replace(tables, holds={"silver.a": [refused(tables, "silver.a", nth(3), TWO)]})
    for known in (tables, held):
        assert planned(TWO, known).bereft["gold.g"].keys() == {nth(3)}


def test_nothing_is_planned_on_a_day_of_which_another_input_is_gone() -> None:
    """The hold of the one input is about to be lifted, since it has other input now."""
    tables = computed(TWO, changed={"raw.a": nths(3)}, lacking={"raw.b": nths(3), "silver.b": nths(3)})
    plan = planned(TWO, replace(tables, holds={"silver.a": [hold("silver.a", nth(3), Attempt("before"))]}))
    assert days_of(plan) == {"silver.a": {nth(3)}}
    assert plan.bereft["gold.g"].keys() == {nth(3)}


@pytest.mark.parametrize("numbers", [(3, 4, 5), (5, 4, 3), (4, 5, 3)])
def test_a_day_tied_to_a_tied_day_is_left_alone_whichever_is_older(numbers: tuple[int, int, int]) -> None:
    first, second, third = map(nth, numbers)
    tables = computed(CHAIN, changed={"raw.t0": [first, second, third]})
    holds = [
        refused(tables, SILVER, first),
        hold(SILVER, second, TiedTo(first)),
        hold(SILVER, third, TiedTo(second)),
    ]
    tables = replace(tables, holds={SILVER: sorted(holds, key=lambda each: each.day)})
    states = day_states(CHAIN[SILVER], [first, second, third], tables)
    assert all(isinstance(state, Held) for state in states.values())


def test_a_table_that_needs_all_its_days_has_those_refused_before_in_its_step() -> None:
    """So that the step can say which day is in the way, and why."""
    tables = replace(computed(CHAIN, changed={"raw.t0": nths(3)}), changing={SILVER: "all days"})
    tables = replace(tables, holds={SILVER: [refused(tables, SILVER, nth(3))]})
    [silver, *_] = planned(CHAIN, tables, BY_PERSON).steps
    assert set(silver.days) == set(CALENDAR.days())
    left = left_to_do(silver, day_states(CHAIN[SILVER], silver.days, tables), BY_PERSON)
    assert nth(3) in left.days


def test_a_reached_day_that_is_what_it_would_be_is_struck_though_its_input_was_refused() -> None:
    tables = computed(CHAIN, changed={"raw.t0": nths(3)})
    [step] = [step for step in planned(CHAIN, tables).steps if step.table == GOLD]
    after = replace(tables, holds={SILVER: [refused(tables, SILVER, nth(3))]})
    assert left_to_do(step, day_states(CHAIN[GOLD], step.days, after), AUTOMATIC) == ((), nths(3))


def test_a_held_day_is_not_planned_and_force_takes_it() -> None:
    tables = computed(CHAIN, changed={"raw.t0": nths(3)})
    tables = replace(tables, holds={SILVER: [refused(tables, SILVER, nth(3))]})
    assert named(planned(CHAIN, tables)) == {}
    forced = Request(frozenset({SILVER}), frozenset(nths(3)), by_person=True, force=True)
    assert days_of(planned(CHAIN, tables, forced))[SILVER] == {nth(3)}
