"""Of a stage is computed again exactly what others overtook, and what reads it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from platform_assets.contracts import AllHistory, MonthToDate, Span
from platform_assets.engine.step.stage import overtaken
from platform_assets.planning.windows import days_read
from platform_assets_tests.support.catalogues import CALENDAR, chain, nth, nths

windows = st.one_of(
    st.builds(Span, st.integers(0, 9), st.integers(0, 3)), st.sampled_from([MonthToDate(), AllHistory()])
)
some_days = st.sets(st.integers(0, 59).map(nth), max_size=8)


@given(st.lists(windows, min_size=1, max_size=3), st.data())
def test_as_brute_force_says(through, data):
    catalogue = chain(*through)
    staged = {name: data.draw(some_days) for name in catalogue.names if not name.startswith("raw.")}
    changed = {name: data.draw(some_days) for name in catalogue.names}
    expected: dict[str, set] = {}
    for contract in catalogue:
        for day in staged.get(contract.name, ()):
            reads = {(read.table, other) for read in contract.inputs for other in days_read(read.window, day, CALENDAR)}
            is_other = {(name, other) for name, days in changed.items() for other in days}
            is_other |= {(name, other) for name, days in expected.items() for other in days}
            if (contract.name, day) in is_other or reads & is_other:
                expected.setdefault(contract.name, set()).add(day)
    found = overtaken(catalogue, staged, changed, CALENDAR)
    assert {table: set(days) for table, days in found.items()} == expected
    assert list(found) == [name for name in catalogue.names if name in found], "inputs first"


def test_disjoint_days_do_not_overtake_each_other():
    catalogue = chain(Span(0, 0))
    staged = {"silver.t1": nths(3, 4), "gold.t2": nths(3, 4)}
    assert overtaken(catalogue, staged, {"silver.t1": nths(5), "raw.t0": nths(5)}, CALENDAR) == {}
    assert overtaken(catalogue, staged, {"raw.t0": nths(4)}, CALENDAR) == {
        "silver.t1": nths(4),
        "gold.t2": nths(4),
    }
