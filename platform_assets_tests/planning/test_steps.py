"""The days to recompute: exactly those a change reaches, as brute force finds them."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from platform_assets.contracts import Catalogue, Column, Contract, Domain, Input, LandingFiles, MonthToDate, Span
from platform_assets.domains.retail import DOMAIN
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.planning.steps import (
    Standing,
    Step,
    affected,
    arrival_batches,
    batches,
    newest_to_take,
    out_of_date,
    stale,
)
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
    standing = Standing(now, recorded, {}, CALENDAR)
    found = {step.table: set(step.days) for step in out_of_date(catalogue, standing)}
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
        assert len(batch) == most or sum(sizes[day] for day in batch[:-1]) < 50
    for batch in found if len(found) > 1 else ():
        assert sum(sizes[day] for day in batch) >= 50


def test_what_little_is_left_joins_the_batch_before():
    sizes = {FIRST + timedelta(days=n): 10 if n < 4 else 1 for n in range(7)}
    assert [len(batch) for batch in arrival_batches(sizes, 2, least_bytes=20)] == [2, 5]
    assert [len(batch) for batch in arrival_batches(sizes, 2, least_bytes=0)] == [2, 2, 2, 1]


def test_a_day_that_was_refused_is_left_alone_until_it_would_become_something_else():
    catalogue = chain()
    contract = catalogue["silver.t1"]
    digests = {"raw.t0": {FIRST: "bad"}}
    refused = fingerprints(contract, [FIRST], digests, CALENDAR)
    held = Standing(digests, {}, {"silver.t1": set(refused.items())}, CALENDAR)
    assert stale(contract, [FIRST], held) == {}
    assert out_of_date(catalogue, held) == ()
    corrected = {"raw.t0": {FIRST: "good"}}
    again = (Step("silver.t1", (FIRST,)),)
    assert out_of_date(catalogue, Standing(corrected, {}, held.refused, CALENDAR)) == again
    as_before = {"silver.t1": fingerprints(contract, [FIRST], corrected, CALENDAR)}
    assert out_of_date(catalogue, Standing(corrected, as_before, held.refused, CALENDAR)) == again
    assert out_of_date(catalogue, Standing(corrected, as_before, {}, CALENDAR)) == ()


@given(st.dictionaries(st.dates(CALENDAR.first, CALENDAR.last), st.integers(1, 9)), st.integers(1, 30))
def test_a_run_takes_the_oldest_arrival_dates_whole_and_always_at_least_one(files, most):
    until = newest_to_take(files, most)
    taken = {day: n for day, n in files.items() if until is None or day <= until}
    assert len(taken) == min(len(files), 1) or sum(taken.values()) <= most
    if until is not None:
        first_left = min(set(files) - set(taken))
        assert sum(taken.values()) + files[first_left] > most
