"""Days between which records have moved pass together or are held together."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from platform_assets.planning.steps import held_together

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
