"""Protected days: code computes none of them but by a plan that says so, data does, and a first load is none of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from platform_assets.contracts import Catalogue, ContractError, Domain, Protected, Span
from platform_assets.planning.late_queue import LateRows, LateSelection
from platform_assets.planning.selection import BY_PERSON, ProtectedDaysError, Request, protected_in, refuse_protected
from platform_assets.records.code_version import Version
from platform_assets_tests.support.catalogues import chain, computed, days_of, nth, nths, planned

OLD = Version("old", "configuration")
CLOSED = Protected(nth(0), nth(5), nth(9), "the books of the week are closed")


def closed() -> Catalogue:
    """raw.t0, of which days are protected, to silver.t1 and gold.t2, which reads three days."""
    raw, *others = chain(Span(2, 0)).tables
    return Catalogue.of([Domain("chain", (replace(raw, protected=(CLOSED,)), *others), "nowhere")])


def test_what_protects_a_raw_table_protects_all_that_is_made_from_it():
    assert [closed().protecting(name) for name in ("raw.t0", "silver.t1", "gold.t2")] == [(CLOSED,)] * 3


def test_protected_days_stale_through_code_wait_for_a_plan_that_overrides_it():
    catalogue = closed()
    tables = computed(catalogue, made_by={"silver.t1": dict.fromkeys(nths(4, 5, 6), OLD)})
    plan = planned(catalogue, tables, BY_PERSON)
    assert days_of(plan) == {"silver.t1": set(nths(6)), "gold.t2": set(nths(6, 7, 8))}
    assert [(step.table, step.days) for step in plan.waiting] == [("silver.t1", nths(4, 5))]
    assert protected_in(catalogue, days_of(plan), tables.marks) == {}
    overridden = planned(catalogue, tables, replace(BY_PERSON, protected_too=frozenset(nths(5))))
    assert days_of(overridden)["silver.t1"] == set(nths(5, 6))
    assert protected_in(catalogue, days_of(overridden), tables.marks) == {
        "silver.t1": {nth(5): CLOSED.reason},
        "gold.t2": {nth(5): CLOSED.reason},
    }


def test_data_that_was_let_in_is_computed_and_so_is_what_never_was():
    catalogue = closed()
    tables = computed(catalogue, changed={"raw.t0": nths(3)}, made_by={"silver.t1": dict.fromkeys(nths(4), OLD)})
    assert days_of(planned(catalogue, tables))["silver.t1"] == set(nths(3))
    lacking = computed(catalogue, lacking={"silver.t1": nths(2), "gold.t2": nths(2)})
    first = planned(catalogue, lacking)
    assert days_of(first)["silver.t1"] == set(nths(2))
    reasons = {step.table: dict(step.reasons) for step in first.steps}
    refuse_protected(catalogue, {"silver.t1": reasons["silver.t1"]}, lacking.marks)


def test_protected_days_that_are_forced_are_refused_with_why_and_what_to_do():
    catalogue = closed()
    tables = computed(catalogue)
    request = Request(frozenset(["gold.t2"]), frozenset(nths(5, 6)), by_person=True, force=True)
    reasons = {step.table: dict(step.reasons) for step in planned(catalogue, tables, request).steps}
    with pytest.raises(ProtectedDaysError, match=rf"1 day of gold.t2 \({nth(5)}\).*{CLOSED.reason}") as refused:
        refuse_protected(catalogue, reasons, tables.marks)
    assert "override_protected" in refused.value.todo


def test_the_deep_restatement_opens_no_closed_day():
    rows = LateRows("raw.t0", "a.jsonl", nth(12), nth(3), 5)
    deep = LateSelection(table="raw.t0", days=frozenset(nths(3)), most_days_late=300)
    assert rows in deep
    assert replace(rows, protected=CLOSED.reason) not in deep
    assert replace(rows, protected=CLOSED.reason) in LateSelection(table="raw.t0", days=frozenset(nths(3))), "a person"


@pytest.mark.parametrize(
    ("first", "last", "since", "reason", "says"),
    [
        (nth(2), nth(1), nth(3), "closed", "are in no order"),
        (nth(1), nth(2), nth(1), "closed", "are in no order"),
        (nth(1), nth(2), nth(3), " ", "for no reason"),
    ],
)
def test_what_protects_nothing_is_refused(first: date, last: date, since: date, reason: str, says: str):
    with pytest.raises(ContractError, match=says):
        Protected(first, last, since, reason)


def test_only_raw_tables_protect_days():
    with pytest.raises(ContractError, match="has `protected`, which only raw tables have"):
        replace(chain().tables[1], protected=(CLOSED,))
