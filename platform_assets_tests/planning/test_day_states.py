"""The state of a day: one answer, for whoever asks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import date

import pytest

from platform_assets.contracts import Span
from platform_assets.planning.day_states import (
    Blocked,
    DayState,
    Held,
    Missing,
    Stale,
    TableStates,
    UpToDate,
    day_states,
)
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.records.code_version import Attempt, TiedTo, Version
from platform_assets.records.history import ROLL_BACK, Hold
from platform_assets_tests.support.catalogues import CALENDAR, NOW, chain, computed, hold, nth, nths

SILVER, GOLD = "silver.t1", "gold.t2"
CHAIN = chain(Span(1, 0))
OLD = Version("old", NOW.configuration)


def fingerprint(tables: TableStates, day: date, table: str = SILVER) -> str:
    return fingerprints(CHAIN[table], [day], tables.digests, CALENDAR, {})[day]


def state(
    tables: TableStates, day: date, table: str = SILVER, *, forced: Collection[date] = (), accept: Collection[str] = ()
) -> DayState:
    return day_states(CHAIN[table], [day], tables, forced=forced, accept=accept)[day]


def with_holds(tables: TableStates, *holds: Hold) -> TableStates:
    return replace(tables, holds={SILVER: holds})


def test_a_day_that_is_what_it_would_become_is_up_to_date_unless_somebody_forces_it():
    tables = computed(CHAIN)
    assert state(tables, nth(3)) == UpToDate()
    assert state(tables, nth(3), forced=[nth(3)]) == Stale(fingerprint(tables, nth(3)))


def test_a_raw_day_is_there_or_missing():
    tables = computed(CHAIN, lacking={"raw.t0": nths(3)})
    assert (state(tables, nth(3), "raw.t0"), state(tables, nth(4), "raw.t0")) == (Missing(), UpToDate())


def test_a_day_is_stale_through_what_it_reads_or_by_what_it_was_computed():
    tables = computed(CHAIN, changed={"raw.t0": nths(3)}, made_by={SILVER: dict.fromkeys(nths(3, 4), OLD)})
    assert state(tables, nth(3)) == Stale(fingerprint(tables, nth(3)), by_data=True, by_code=True)
    assert state(tables, nth(4)) == Stale(fingerprint(tables, nth(4)), by_code=True)
    changing = replace(tables, changing={SILVER: "all days"})
    assert state(changing, nth(5)) == Stale(fingerprint(tables, nth(5)), by_configuration=True)


def test_what_a_gate_refused_is_tried_again_once_input_or_code_is_another_or_its_finding_accepted():
    tables = computed(CHAIN, changed={"raw.t0": nths(3)})
    now = fingerprint(tables, nth(3))
    refused = hold(SILVER, nth(3), Attempt(now, NOW))
    assert state(with_holds(tables, refused), nth(3)) == Held(refused)
    for other in (Attempt(now, OLD), Attempt("before", NOW)):
        assert state(with_holds(tables, hold(SILVER, nth(3), other)), nth(3)) == Stale(now, by_data=True)
    assert state(with_holds(tables, refused), nth(3), accept=["volume"]) == Stale(now, by_data=True)
    assert state(with_holds(tables, refused), nth(3), forced=[nth(3)]) == Stale(now, by_data=True)


def test_a_held_day_whose_input_came_back_is_computed_again_which_lifts_the_hold():
    tables = with_holds(computed(CHAIN), hold(SILVER, nth(3), Attempt("other", NOW)))
    assert state(tables, nth(3)) == Stale(fingerprint(tables, nth(3)), by_data=True)
    assert state(tables, nth(3), accept=["volume"]) == Stale(fingerprint(tables, nth(3)), by_data=True)


def test_what_was_put_back_with_its_input_waits_for_a_person_where_other_code_had_made_it():
    """Readers have again what old code made of the same input: what new code made of another one was undone."""
    tables = computed(CHAIN)
    today = {**tables.versions, SILVER: Version("newer", NOW.configuration)}
    tables, now = replace(tables, versions=today), fingerprint(tables, nth(3))

    def under(gate: str) -> object:
        return state(with_holds(tables, hold(SILVER, nth(3), Attempt("other", today[SILVER]), gate)), nth(3))

    assert under(ROLL_BACK) == Stale(now, by_code=True)
    assert under("volume") == Stale(now, by_data=True, by_code=True)


def test_what_a_person_put_back_waits_for_a_person_when_only_code_or_contract_is_another():
    tables = computed(CHAIN, changed={"raw.t0": nths(3)})
    now = fingerprint(tables, nth(3))

    def put_back(*tried: Version) -> TableStates:
        holds = [hold(SILVER, nth(3), Attempt(now, version), ROLL_BACK) for version in tried]
        return with_holds(tables, *holds)

    assert isinstance(state(put_back(NOW), nth(3)), Held)
    assert isinstance(state(put_back(OLD, NOW), nth(3)), Held)
    assert state(put_back(OLD), nth(3)) == Stale(now, by_code=True)
    assert state(put_back(Version(NOW.code, "other")), nth(3)) == Stale(now, by_configuration=True)
    other_input = with_holds(tables, hold(SILVER, nth(3), Attempt("before", NOW), ROLL_BACK))
    assert state(other_input, nth(3)) == Stale(now, by_data=True)
    whatever_the_code = with_holds(tables, hold(SILVER, nth(3), Attempt(now), ROLL_BACK))
    assert isinstance(state(whatever_the_code, nth(3)), Held)


def test_what_other_code_had_made_of_the_same_input_says_nothing_against_what_todays_code_has_made():
    tables = computed(CHAIN)
    refused = hold(SILVER, nth(3), Attempt(fingerprint(tables, nth(3)), OLD), ROLL_BACK)
    assert state(with_holds(tables, refused), nth(3)) == UpToDate()


def test_a_tied_day_is_held_as_long_as_the_day_that_keeps_it():
    tables = computed(CHAIN, changed={"raw.t0": nths(3)})
    tied = hold(SILVER, nth(4), TiedTo(nth(3)))
    refused = hold(SILVER, nth(3), Attempt(fingerprint(tables, nth(3)), NOW))
    assert state(with_holds(tables, refused, tied), nth(4)) == Held(tied)
    assert isinstance(state(with_holds(computed(CHAIN), refused, tied), nth(4)), Stale), "that day may pass now"
    assert isinstance(state(with_holds(tables, tied), nth(4)), Stale), "nothing is known against that day"
    to_come = replace(
        with_holds(tables, hold(SILVER, CALENDAR.last, Attempt("bad")), replace(tied, refused=TiedTo(CALENDAR.last)))
    )
    lacking = replace(to_come, marks={**to_come.marks, "raw.t0": {nth(4): to_come.marks["raw.t0"][nth(4)]}})
    assert isinstance(state(lacking, nth(4)), Held), "by a clock to which that day has yet to come"


def test_a_day_that_reads_one_never_loaded_is_blocked_by_the_first_such_day():
    tables = computed(CHAIN, lacking={SILVER: nths(2, 3)})
    assert state(tables, nth(3), GOLD) == Blocked(SILVER, nth(2))
    assert isinstance(state(tables, nth(5), GOLD), UpToDate)


@pytest.mark.parametrize(("gate", "blocks"), [("volume", True), (ROLL_BACK, False)])
def test_a_held_day_blocks_what_reads_it_as_the_same_day_unless_a_person_put_it_back(gate: str, blocks: bool):
    same_day = chain(Span(0, 0))
    tables = computed(same_day, changed={SILVER: nths(3)})
    tables = with_holds(tables, *(hold(SILVER, day, Attempt("bad"), gate) for day in nths(3, 4)))
    found = day_states(same_day[GOLD], nths(3, 4, 5), tables)
    if blocks:
        otherwise = Stale(fingerprints(same_day[GOLD], [nth(3)], tables.digests, CALENDAR, {})[nth(3)], by_data=True)
        refused, other = tables.holds[SILVER]
        assert found[nth(3)] == Blocked(SILVER, nth(3), refused, is_there=True, otherwise=otherwise)
        assert found[nth(4)] == Blocked(SILVER, nth(4), other, is_there=True)
    else:
        assert isinstance(found[nth(3)], Stale)
        assert found[nth(4)] == UpToDate()
    assert found[nth(5)] == UpToDate()
    assert isinstance(day_states(CHAIN[GOLD], [nth(4)], tables)[nth(4)], Stale), (
        "through a window its last content counts"
    )
