"""Days and files cut into batches and parts; days between which records have moved pass together."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from platform_assets.planning.steps import (
    batches,
    bytes_among,
    days_of,
    has_heavy_key,
    held_together,
    newest_to_take,
    parts_of,
    put_off,
    whole_parts_of,
)
from platform_assets.planning.windows import Calendar
from platform_assets.records.manifest import DataFile

FIRST = date(2017, 1, 1)
CALENDAR = Calendar(FIRST, FIRST + timedelta(days=59))


def test_batches_keep_order_and_size():
    days = [FIRST + timedelta(days=n) for n in (5, 1, 3, 3)]
    assert batches(days, 2) == ((days[1], days[2]), (days[0],))


@given(
    st.sets(st.dates(CALENDAR.first, CALENDAR.last)),
    st.lists(st.tuples(st.dates(CALENDAR.first, CALENDAR.last), st.dates(CALENDAR.first, CALENDAR.last)), max_size=20),
    st.integers(1, 9),
)
def test_tied_days_are_in_one_batch_and_every_day_in_one(days, ties, most):
    found = batches(days, most, ties)
    assert sorted(day for batch in found for day in batch) == sorted(days)
    where = {day: number for number, batch in enumerate(found) for day in batch}
    assert all(where[one] == where[other] for one, other in ties if one in days and other in days)
    for batch in found:
        inside = [(one, other) for one, other in ties if one in batch and other in batch]
        assert len(batch) <= most or len(batches(batch, most, inside)) == 1


@given(st.dictionaries(st.dates(CALENDAR.first, CALENDAR.last), st.integers(0, 40)), st.integers(1, 9))
def test_arrival_batches_hold_every_date_once_in_order_and_are_worth_it(sizes, most):
    found = batches(sizes, most, (), sizes, least_bytes=50)
    assert [day for batch in found for day in batch] == sorted(sizes)
    for batch in found[:-1]:
        assert len(batch) >= most
        assert len(batch) == most or sum(sizes[day] for day in batch[:-1]) < 50
    for batch in found if len(found) > 1 else ():
        assert sum(sizes[day] for day in batch) >= 50


@given(
    st.sets(st.dates(CALENDAR.first, CALENDAR.last)),
    st.dictionaries(st.dates(CALENDAR.first, CALENDAR.last), st.integers(0, 40)),
    st.integers(1, 9),
)
def test_days_for_which_little_is_read_are_one_batch(days, sizes, most):
    found = batches(days, most, (), sizes, least_bytes=50)
    assert [day for batch in found for day in batch] == sorted(days)
    for batch in found[:-1]:
        assert len(batch) == most or sum(sizes.get(day, 0) for day in batch[:-1]) < 50
    if sum(sizes.get(day, 0) for day in days) < 50:
        assert len(found) <= 1


@given(
    st.dictionaries(st.dates(CALENDAR.first, CALENDAR.last), st.integers(0, 40)), st.integers(1, 9), st.integers(20, 90)
)
def test_no_batch_has_more_than_it_may_unless_a_day_has(sizes, most, most_bytes):
    found = batches(sizes, most, (), sizes, least_bytes=50, most_bytes=most_bytes)
    assert [day for batch in found for day in batch] == sorted(sizes)
    for batch in found:
        assert len(batch) == 1 or sum(sizes[day] for day in batch) <= most_bytes
    for batch, after in pairwise(found):
        had = sum(sizes[day] for day in batch)
        assert len(batch) == most or sum(sizes[day] for day in batch[:-1]) < 50 or had + sizes[after[0]] > most_bytes


def test_what_little_is_left_joins_the_batch_before():
    sizes = {FIRST + timedelta(days=n): 10 if n < 4 else 1 for n in range(7)}
    assert [len(batch) for batch in batches(sizes, 2, (), sizes, least_bytes=20)] == [2, 5]
    assert [len(batch) for batch in batches(sizes, 2, (), sizes, least_bytes=0)] == [2, 2, 2, 1]


def test_a_day_that_is_put_off_is_computed_with_the_day_that_it_waits_for():
    one, two, three, four = (FIRST + timedelta(days=n) for n in range(4))
    assert put_off([(two,), (three, four)], {one: three}) == [(two,), (one, three, four)]
    assert put_off([(two,)], {}) == [(two,)]
    assert days_of([(two,), (three, four)]) == {two, three, four}


@given(st.dictionaries(st.dates(CALENDAR.first, CALENDAR.last), st.integers(1, 9)), st.integers(1, 30))
def test_a_run_takes_the_oldest_arrival_dates_whole_and_always_at_least_one(files, most):
    until = newest_to_take(files, most)
    taken = {day: n for day, n in files.items() if until is None or day <= until}
    assert len(taken) == min(len(files), 1) or sum(taken.values()) <= most
    if until is not None:
        first_left = min(set(files) - set(taken))
        assert sum(taken.values()) + files[first_left] > most


SMALL, LARGE = date(2017, 1, 1), date(2017, 1, 2)


def test_only_days_of_more_than_one_part_have_any() -> None:
    assert parts_of({SMALL: 100, LARGE: 101}, 100) == {LARGE: 2}
    assert parts_of({LARGE: 1000}, 100) == {LARGE: 10}


def test_files_that_are_joined_do_not_become_small_again() -> None:
    assert whole_parts_of({SMALL: 199, LARGE: 1099}, 100) == {LARGE: 10}


def test_files_that_are_written_by_themselves_have_parts_by_themselves() -> None:
    """As those of other columns: few of them do not become as many files as all of the day."""
    old, new = (
        [DataFile(path=f"{name}{n}", size=size, modified_ms=0, stats="") for n in range(2)]
        for name, size in (("a", 1000), ("b", 40))
    )
    files = {LARGE: [*old, *new], SMALL: new[:1]}
    assert whole_parts_of(bytes_among(files, ["a0", "a1"]), 100) == {LARGE: 20}
    assert whole_parts_of(bytes_among(files, ["b0", "b1"]), 100) == {}
    assert bytes_among(files, ["b0"]) == {LARGE: 40, SMALL: 40}


def test_a_key_is_heavy_that_is_more_than_a_part_of_a_day_that_has_several() -> None:
    assert has_heavy_key(4, rows=100, most=26)
    assert not has_heavy_key(4, rows=100, most=25)
    assert not has_heavy_key(1, rows=100, most=100), "one task has the day whatever its keys"


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
