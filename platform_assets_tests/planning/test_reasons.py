"""Why a day is stale: one word for everything that can happen to what it was made from."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from platform_assets.contracts import Catalogue, Contract, Domain, Input, LandingFiles, Span, as_of
from platform_assets.planning.reasons import Past, Revision, changed_days, digest_at, through_data, what_happened
from platform_assets.records.code_version import Attempt
from platform_assets_tests.support.catalogues import AT, CALENDAR, KEY, chain, computed, hold, nth, nths, planned

READ_AT = 3
BEFORE = Revision(2, "a", rows=10, tombstones=1)


def happened(*since: Revision, before: Revision | None = BEFORE) -> frozenset[str]:
    return what_happened([*([before] if before else []), *since], READ_AT)


def test_rows_for_a_day_without_any_are_a_new_arrival_and_for_others_a_correction():
    assert happened(Revision(4, "b", 12, 1)) == {"correction"}
    assert happened(Revision(4, "b", 12, 0), before=Revision(1, "a")) == {"new arrival"}
    assert happened(Revision(4, "b", 12, 0), before=None) == {"new arrival"}
    assert happened(Revision(4, "b", 5, 0), Revision(5, "c", 6, 0), before=None) == {"new arrival", "correction"}


def test_tombstones_that_came_are_a_moved_key():
    assert happened(Revision(4, "b", 11, 2)) == {"moved key"}
    assert happened(Revision(4, "b", 12, 2)) == {"moved key", "correction"}


def test_rows_that_were_taken_out_again_are_a_correction():
    assert happened(Revision(4, "b", 6, 1)) == {"correction"}
    assert happened(Revision(4, "b", 10, 1)) == {"correction"}


def test_what_a_day_was_at_a_release_is_what_the_last_one_up_to_it_made():
    revisions = [Revision(2, "a"), Revision(5, "b"), Revision(9, "c")]
    assert [digest_at(revisions, release) for release in (1, 2, 4, 5, 8, 9, 99)] == [None, "a", "a", "b", "b", "c", "c"]


@given(st.dictionaries(st.integers(0, 59), st.lists(st.sampled_from("ab"), min_size=1, max_size=4)), st.integers(0, 5))
def test_input_days_that_differ_are_those_whose_content_does(contents, read_at):
    revisions = {
        nth(n): tuple(Revision(release, digest) for release, digest in enumerate(found))
        for n, found in sorted(contents.items())
    }
    then = {n: (found[: read_at + 1] or [None])[-1] for n, found in contents.items()}
    found = changed_days(Input("silver.x", Span(7, 1)), nth(20), read_at, revisions, CALENDAR)
    assert found == nths(*(n for n in sorted(contents) if 13 <= n <= 21 and then[n] != contents[n][-1]))


def test_a_gap_lies_between_computed_days():
    catalogue = chain()
    tables = computed(catalogue, lacking={"silver.t1": nths(0, 5, 59)})
    [step] = planned(catalogue, tables).steps
    assert step.reasons == {nth(0): ("never computed",), nth(5): ("gap",), nth(59): ("never computed",)}


def test_a_changed_history_of_what_is_read_as_of_the_day_is_reference_data():
    raw = Contract("raw.r", "", "", (KEY, AT), ("k",), source=LandingFiles("r"), event_time="at")
    silver = Contract("silver.r", "", "", (KEY, AT), ("k",), inputs=(Input("raw.r", Span(0, 0)),))
    facts = chain().tables
    reads = (Input("silver.t1", Span(1, 0)), Input("silver.r", as_of()))
    gold = Contract("gold.g", "", "", (KEY,), ("k",), inputs=reads)
    catalogue = Catalogue.of([Domain("d", (*facts, raw, silver, gold), "nowhere")])
    now = {"silver.r": {nth(0): "as it was", nth(11): "other", nth(12): "as it was then"}}
    tables = replace(computed(catalogue), views=now)
    past = Past(
        {"gold.g": {day: {"silver.t1": 1, "silver.r": 1} for day in nths(9, 10, 11, 12, 13)}},
        {
            "silver.t1": {nth(9): (Revision(1, "a"), Revision(2, "b")), nth(11): (Revision(1, "a"), Revision(2, "a"))},
            "silver.r": {nth(11): (Revision(1, "a"), Revision(2, "b"))},
        },
        {"silver.r": {1: {nth(0): "as it was", nth(12): "as it was then"}}},
    )
    assert through_data(gold, nths(9, 10, 11, 12, 13), tables, past) == {
        nth(9): ("upstream content",),
        nth(10): ("upstream content",),
        nth(11): ("reference data",),
        nth(12): ("reference data",),  # it reads rows of the day before, and may join them as of then
        nth(13): ("upstream content",),
    }


def test_a_held_day_whose_input_came_back_is_a_correction():
    catalogue = chain()
    tables = computed(catalogue, holds=[hold("silver.t1", nth(3), Attempt("bad"))])
    [step] = planned(catalogue, tables).steps
    assert step.reasons == {nth(3): ("correction",)}
