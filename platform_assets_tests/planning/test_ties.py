"""Days between which records have moved pass together or are held together."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from platform_assets.planning.ties import held_together, still_refused

FIRST = date(2017, 1, 1)
DAYS = [FIRST + timedelta(days=n) for n in range(12)]
some_days = st.sets(st.sampled_from(DAYS))
some_ties = st.lists(st.tuples(st.sampled_from(DAYS), st.sampled_from(DAYS)), max_size=15)


@given(some_days, some_ties)
def test_what_is_published_and_what_is_not_share_no_tie(failing, ties):
    kept = failing | held_together(failing, ties).keys()
    assert all((one in kept) == (other in kept) for one, other in ties)


@given(some_days, some_ties)
def test_no_day_is_kept_that_no_chain_of_ties_leads_to(failing, ties):
    kept = held_together(failing, ties)
    assert not failing & kept.keys()
    assert set(kept.values()) <= failing
    for day in kept:
        assert kept[day] in held_together({day}, ties)


def test_a_tied_day_is_refused_as_long_as_the_day_that_keeps_it():
    refused, tied = [(DAYS[0], "bad")], [(DAYS[1], DAYS[0])]
    assert still_refused(refused, tied, {DAYS[0]: "bad", DAYS[1]: "x"}) == {DAYS[0], DAYS[1]}
    assert still_refused(refused, tied, {DAYS[0]: "corrected", DAYS[1]: "x"}) == set()
    assert still_refused([], tied, {DAYS[1]: "x"}) == set()
    assert DAYS[1] in still_refused(refused, tied, {DAYS[1]: "x"}), "by a clock to which that day has yet to come"
