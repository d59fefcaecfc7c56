"""Which keys may be computed apart from the rest of their days, and what such a day is on record as."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.contracts import Catalogue, Column, ContractError, Domain
from platform_assets.domains.retail.contracts import (
    DAILY_SALES,
    HOUSEHOLD_28D,
    SALES_MONTH_TO_DATE,
    SILVER_TRANSACTIONS,
    TABLES,
)
from platform_assets.planning.key_scope import ScopeError, mixed, nearest, scope_of, value_of


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
            "none of string, long, int, date",
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
