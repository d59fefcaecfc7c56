"""Days that are to be recomputed and cannot be: none of them is ever left out of a plan without a word."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from platform_assets.contracts import Catalogue, Contract, Domain, Input, LandingFiles, Span
from platform_assets.planning.day_states import Held, TableStates, day_states
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.planning.plan import Plan, left_to_do
from platform_assets.planning.selection import AUTOMATIC, BY_PERSON, Request
from platform_assets.records.code_version import Attempt, TiedTo, Version
from platform_assets.records.history import Hold
from platform_assets_tests.support.catalogues import (
    AT,
    CALENDAR,
    KEY,
    NOW,
    chain,
    computed,
    days_of,
    hold,
    nth,
    nths,
    planned,
)

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
