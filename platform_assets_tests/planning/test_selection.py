"""Which days and keys are taken of those that somebody names: protected days, keys apart, days that stand for all."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.contracts import Catalogue, Column, ContractError, Domain, Protected, Span
from platform_assets.domains.retail.contracts import (
    DAILY_SALES,
    HOUSEHOLD_28D,
    SALES_MONTH_TO_DATE,
    SILVER_TRANSACTIONS,
    TABLES,
)
from platform_assets.planning.rows_aside import LateRows, LateSelection
from platform_assets.planning.selection import (
    BY_PERSON,
    Draw,
    ProtectedDaysError,
    Request,
    ScopeError,
    days_to_probe,
    mixed,
    nearest,
    protected_in,
    refuse_protected,
    scope_of,
    value_of,
)
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


def day(number: int) -> date:
    return date(2017, 1, number)


def test_the_day_with_most_rows_between_two_others_is_tried():
    assert days_to_probe({day(1): 90, day(2): 4, day(3): 7, day(4): 80}, 0) == (day(3),)
    assert days_to_probe({day(1): 90, day(2): 7, day(3): 7, day(4): 80}, 0) == (day(3),)
    assert days_to_probe({day(5): 1}, 0) == (day(5),)
    assert days_to_probe({day(5): 0, day(6): 0}, 0) == ()
    assert days_to_probe({}, 0) == ()


def test_of_two_days_both_are_tried():
    assert days_to_probe({day(1): 90, day(2): 4}, 0) == (day(1), day(2))
    assert days_to_probe({day(1): 90, day(2): 0, day(3): 80}, 0) == (day(1), day(3))
    assert days_to_probe({day(1): 0, day(2): 90, day(3): 80}, 0) == (day(2), day(3))


def test_only_more_days_than_ever_before_are_tried():
    days = {day(number): number for number in range(1, 5)}
    assert [days_to_probe(days, together) for together in range(6)] == [(day(3),)] * 4 + [()] * 2
    assert days_to_probe({day(5): 1}, 1) == ()
    assert days_to_probe({day(5): 1, day(6): 1}, 1) == (day(5), day(6))


def test_a_day_beside_an_empty_one_is_tried_until_two_with_rows_were():
    assert days_to_probe({day(5): 1, day(6): 0}, 1) == (day(5),)
    assert days_to_probe({day(5): 1, day(6): 0}, 2) == ()


def test_the_newest_day_is_always_verified_and_the_seed_chooses_the_others():
    days = [day(number) for number in range(1, 31)]
    found = Draw(3, seed=1).of(days)
    assert len(found) == 4
    assert found[-1] == day(30)
    assert list(found) == sorted(set(found))
    assert found == Draw(3, seed=1).of(days[::-1])
    assert len({Draw(3, seed).of(days) for seed in range(10)}) > 1
    assert Draw(0, seed=1).of(days) == (day(30),)
    assert Draw(9, seed=1).of(days[:2]) == (day(1), day(2))
    assert Draw(3, seed=1).of([]) == ()


def test_spellings_of_a_value_are_one_and_values_are_typed_by_the_contract():
    scope = scope_of(DAILY_SALES, {"store_id": ["337", " 330", "330.0", "0330"]})
    assert scope.texts == {"store_id": ("330", "337")}
    assert str(scope) == "store_id=330,337"
    assert value_of("330", "long") == 330


@pytest.mark.parametrize(
    ("contract", "asked", "says"),
    [
        (DAILY_SALES, {}, "No key"),
        (DAILY_SALES, {"store_id": []}, "No key"),
        (DAILY_SALES, {"department": ["MEAT"]}, "does not promise that its rows can be computed by department"),
        (DAILY_SALES, {"1=1 or store_id": ["1"]}, "does not promise"),
        (HOUSEHOLD_28D, {"household_id": ["1"]}, "does not promise"),
        (DAILY_SALES, {"store_id": ["330) or (1=1"]}, "is no long"),
        (DAILY_SALES, {"store_id": [str(2**63)]}, "is no long"),
        (DAILY_SALES, {"store_id": ["1.5"]}, "is no long"),
    ],
)
def test_what_the_contract_does_not_promise_and_what_is_no_value_is_refused(contract, asked, says):
    with pytest.raises(ScopeError, match=says) as refused:
        scope_of(contract, asked)
    assert refused.value.todo


def test_a_value_of_text_stays_as_it_is():
    hostile = "x' OR '1'='1"
    assert scope_of(SALES_MONTH_TO_DATE, {"department": [hostile]}).texts == {"department": (hostile,)}


@given(st.lists(st.text(max_size=3), min_size=2, max_size=6))
def test_a_day_is_on_record_as_what_all_of_it_was_made_by_or_as_what_no_day_would_get(versions):
    before, *later = versions
    recorded = before
    for now in later:
        is_same, recorded = recorded == now, mixed(recorded, now)
        assert (recorded == now) == is_same
        assert recorded not in versions or recorded == before == now


@pytest.mark.parametrize(
    ("contract", "changes", "says"),
    [
        (DAILY_SALES, {"separable_by": ("net",)}, "not in its key"),
        (HOUSEHOLD_28D, {"separable_by": ("household_id",)}, "sensitive"),
        (SILVER_TRANSACTIONS, {"separable_by": ("basket_id",)}, "only gold tables"),
        (
            DAILY_SALES,
            {"columns": (Column("at", "timestamp", "t", nullable=False),), "key": ("at",), "separable_by": ("at",),
             "reconciles": ()},
            "not one of string, long, int, date",
        ),
    ],
)  # fmt: skip
def test_a_contract_promises_only_what_can_be_kept(contract, changes, says):
    with pytest.raises(ContractError, match=says):
        replace(contract, **changes)


def test_a_column_that_no_input_can_be_read_by_is_refused():
    by_department = replace(DAILY_SALES, separable_by=("department",))
    tables = tuple(by_department if table is DAILY_SALES else table for table in TABLES)
    with pytest.raises(ContractError, match=r"gold\.daily_sales is separable by 'department', which no input has"):
        Catalogue.of([Domain("retail", tables, "platform_assets.domains.retail.transforms")])


def test_a_value_that_is_not_there_is_told_with_the_nearest_or_the_first() -> None:
    assert nearest("SFX", {"SEA", "SFO", "PDX"})[0] == "SFO"
    assert nearest("zz", {"d", "c", "b", "a"}) == ("a", "b", "c")
    assert nearest("SFX", set()) == ()
