"""A contract that contradicts itself is refused with the table, the field and the remedy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from platform_assets.contracts import (
    Catalogue,
    Column,
    Contract,
    ContractError,
    Domain,
    Input,
    LandingFiles,
    Rule,
    UnknownTableError,
    as_of,
    same_day,
    span,
)
from platform_assets.domains.retail import DOMAIN
from platform_assets.domains.retail.contracts import DAILY_SALES, RAW_TRANSACTIONS, SILVER_TRANSACTIONS

K = Column("k", "long", "Key.", nullable=False)


@pytest.mark.parametrize(
    ("contract", "changes", "says"),
    [
        (DAILY_SALES, {"name": "daily_sales"}, "not <layer>.<table>"),
        (DAILY_SALES, {"name": "gold.Daily-Sales"}, "not <layer>.<table>"),
        (DAILY_SALES, {"key": ()}, "has no key"),
        (DAILY_SALES, {"key": ("nothing",)}, "does not declare"),
        (DAILY_SALES, {"inputs": ()}, "reads nothing"),
        (DAILY_SALES, {"columns": (*DAILY_SALES.columns, K, K)}, "twice"),
        (DAILY_SALES, {"inputs": (Input("raw.transactions", same_day()),)}, "reads raw"),
        (DAILY_SALES, {"inputs": (Input("gold.other", as_of()),)}, "as of a day"),
        (SILVER_TRANSACTIONS, {"inputs": (Input("raw.transactions", span(3)),)}, "same day"),
        (SILVER_TRANSACTIONS, {"key": ("household_id",)}, "allows nulls"),
        (RAW_TRANSACTIONS, {"source": None}, "no source"),
        (RAW_TRANSACTIONS, {"event_time": "week"}, "'week'"),
        (RAW_TRANSACTIONS, {"voided": "gone"}, "'gone'"),
        (RAW_TRANSACTIONS, {"restatement_window_days": -1}, "a restatement window of -1 days"),
        (RAW_TRANSACTIONS, {"deep_restatement_days": 90}, "restates 90 days deep"),
        (RAW_TRANSACTIONS, {"ahead_days": -1}, "takes rows -1 days ahead"),
        (RAW_TRANSACTIONS, {"delivered_after_days": -1}, "is delivered -1 days after its days"),
        (RAW_TRANSACTIONS, {"rules": (Rule("r", "true", ""),)}, "inputs or rules"),
    ],
)
def test_a_contradiction_is_named(contract, changes, says):
    with pytest.raises(ContractError, match=says) as caught:
        replace(contract, **changes)
    assert caught.value.todo


@pytest.mark.parametrize(("name", "type_"), [("Upper", "long"), ("x", "money"), ("x; drop table", "long"), ("x", "")])
def test_a_column_outside_the_allow_list_is_refused(name, type_):
    with pytest.raises(ContractError):
        Column(name, type_, "")


def test_a_window_backwards_is_refused():
    with pytest.raises(ContractError, match="backwards"):
        span(-1)


def test_an_unknown_table_names_the_known_ones():
    with pytest.raises(UnknownTableError, match=r"gold\.daily_sales"):
        Catalogue.of([DOMAIN])["gold.weekly_sales"]


def test_tables_that_read_each_other_are_refused():
    a = Contract("gold.a", "", "", (K,), ("k",), inputs=(Input("gold.b", same_day()),))
    b = Contract("gold.b", "", "", (K,), ("k",), inputs=(Input("gold.a", same_day()),))
    with pytest.raises(ContractError, match="circle"):
        Catalogue.of([Domain("loop", (a, b), "nowhere")])


def test_two_domains_cannot_declare_one_table():
    with pytest.raises(ContractError, match="declared twice"):
        Catalogue.of([DOMAIN, DOMAIN])


def test_an_undeclared_input_is_named():
    a = Contract("gold.a", "", "", (K,), ("k",), inputs=(Input("silver.lost", same_day()),))
    with pytest.raises(ContractError, match=r"silver\.lost"):
        Catalogue.of([Domain("d", (a,), "nowhere")])


@pytest.mark.parametrize("marker", ["", ".", "a/b", "../x", "day.csv", ".csv", ".PARQUET", "a b", "x" * 65])
def test_a_marker_that_is_no_file_beside_the_others_or_would_be_a_delivery_is_refused(marker):
    with pytest.raises(ContractError, match="cannot mark") as caught:
        LandingFiles("sales", complete=marker)
    assert "_SUCCESS" in caught.value.todo


@pytest.mark.parametrize(("marker", "marks_files"), [("_SUCCESS", False), ("done.txt", False), (".done", True)])
def test_a_source_marks_what_is_complete_by_folder_or_by_file(marker, marks_files):
    assert LandingFiles("sales", complete=marker).marks_files == marks_files
