"""The days to recompute: exactly those a change reaches, as brute force finds them."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from platform_assets.contracts import Catalogue, Column, Contract, Domain, Input, LandingFiles, MonthToDate, Span
from platform_assets.domains.retail import DOMAIN
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.planning.steps import affected, arrival_batches, batches, out_of_date
from platform_assets.planning.windows import Calendar, days_read

FIRST = date(2017, 1, 1)
CALENDAR = Calendar(FIRST, FIRST + timedelta(days=59))
KEY = Column("k", "long", "Key.", nullable=False)
AT = Column("at", "date", "When.", nullable=False)
retail = Catalogue.of([DOMAIN])


def chain(*windows):
    """raw.t0 -> silver.t1 -> gold.t2 -> gold.t3 …, each through its window."""
    raw = Contract("raw.t0", "", "", (KEY, AT), ("k",), source=LandingFiles("t"), event_time="at")
    tables = [raw, Contract("silver.t1", "", "", (KEY,), ("k",), inputs=(Input("raw.t0", Span(0, 0)),))]
    for n, window in enumerate(windows, start=2):
        reads = (Input(tables[-1].name, window),)
        tables.append(Contract(f"gold.t{n}", "", "", (KEY,), ("k",), inputs=reads))
    return Catalogue.of([Domain("chain", tuple(tables), "nowhere")])


some_windows = st.one_of(st.builds(Span, st.integers(0, 9), st.integers(0, 9)), st.just(MonthToDate()))
some_days = st.sets(st.dates(CALENDAR.first, CALENDAR.last), max_size=5)


def brute_force(catalogue, changed):
    """Ask every day of every table whether it reads a changed one."""
    dirty = {name: set(days) for name, days in changed.items()}
    for contract in catalogue:
        for day in CALENDAR.days():
            for read in contract.inputs:
                start, end = days_read(read.window, day, CALENDAR)
                if any(start <= d <= end for d in dirty.get(read.table, ())):
                    dirty.setdefault(contract.name, set()).add(day)
    return {name: days for name, days in dirty.items() if days and not name.startswith("raw.")}


@given(st.lists(some_windows, max_size=3), some_days)
def test_affected_days_equal_brute_force(windows, days):
    catalogue = chain(*windows)
    steps = affected(catalogue, {"raw.t0": days}, CALENDAR)
    assert {step.table: set(step.days) for step in steps} == brute_force(catalogue, {"raw.t0": days})


@given(some_days)
def test_tables_come_after_what_they_read(days):
    order = [step.table for step in affected(retail, {"raw.transactions": days}, CALENDAR)]
    assert order == [name for name in retail.names if name in order]


@given(some_days, some_days)
@settings(max_examples=30)
def test_only_days_whose_inputs_changed_are_out_of_date(changed, never_computed):
    catalogue = chain(Span(3, 0))
    before = {name: {day: f"{name} {day}" for day in CALENDAR.days()} for name in catalogue.names}
    recorded = {
        contract.name: {
            day: value
            for day, value in fingerprints(contract, CALENDAR.days(), before, CALENDAR).items()
            if day not in never_computed
        }
        for contract in catalogue
        if contract.inputs
    }
    now = before | {"raw.t0": before["raw.t0"] | dict.fromkeys(changed, "new")}
    found = {step.table: set(step.days) for step in out_of_date(catalogue, now, recorded, CALENDAR)}
    expected = brute_force(catalogue, {"raw.t0": changed, **dict.fromkeys(recorded, never_computed)})
    assert found == expected


def test_a_day_that_reads_a_day_never_loaded_has_no_fingerprint():
    household = retail["gold.household_28d"]
    loaded = {day: "x" for day in CALENDAR.days() if day != date(2017, 1, 10)}
    found = fingerprints(household, CALENDAR.days(), {"silver.transactions": loaded}, CALENDAR)
    assert min(found) == FIRST
    assert date(2017, 1, 9) in found
    assert not {day for day in found if date(2017, 1, 10) <= day <= date(2017, 2, 6)}
    assert date(2017, 2, 7) in found


def test_batches_keep_order_and_size():
    days = [FIRST + timedelta(days=n) for n in (5, 1, 3, 3)]
    assert batches(days, 2) == ((days[1], days[2]), (days[0],))


@given(st.dictionaries(st.dates(CALENDAR.first, CALENDAR.last), st.integers(0, 40)), st.integers(1, 9))
def test_arrival_batches_hold_every_date_once_in_order_and_are_worth_it(sizes, most):
    found = arrival_batches(sizes, most, least_bytes=50)
    assert [day for batch in found for day in batch] == sorted(sizes)
    for batch in found[:-1]:
        assert len(batch) >= most
        assert sum(sizes[day] for day in batch) >= 50
        assert len(batch) == most or sum(sizes[day] for day in batch[:-1]) < 50
