"""What is computed of a plan to be looked at: nothing of it comes out otherwise than with all of the plan."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from platform_assets.contracts import AllHistory, MonthToDate, Span
from platform_assets.planning.backfill.request import reached_days
from platform_assets.planning.backfill.sample import sampled_days
from platform_assets.planning.selection import Request
from platform_assets.planning.windows import days_read
from platform_assets_tests.support.catalogues import CALENDAR, chain, computed, nths, planned

some_windows = st.one_of(
    st.builds(Span, st.integers(0, 9), st.integers(0, 3)), st.sampled_from([MonthToDate(), AllHistory()])
)
some_days = st.sets(st.dates(CALENDAR.first, CALENDAR.last), min_size=1, max_size=12)


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
