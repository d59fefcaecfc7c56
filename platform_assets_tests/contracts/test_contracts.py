"""A contract that contradicts itself is refused with the table, the field and the remedy."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date

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
    offsets,
    same_day,
    span,
)
from platform_assets.domains.retail import DOMAIN
from platform_assets.domains.retail.contracts import DAILY_SALES, RAW_TRANSACTIONS, SILVER_TRANSACTIONS

K = Column("k", "long", "Key.", nullable=False)


def with_absent(contract: Contract, name: str) -> tuple[Column, ...]:
    """Its columns, one of which files may lack."""
    return tuple(replace(c, may_be_absent=True, nullable=True) if c.name == name else c for c in contract.columns)


@pytest.mark.parametrize(
    ("contract", "changes", "says"),
    [
        (DAILY_SALES, {"name": "daily_sales"}, "not <layer>.<table>"),
        (DAILY_SALES, {"name": "gold.Daily-Sales"}, "not <layer>.<table>"),
        (RAW_TRANSACTIONS, {"key": ()}, "has no key"),
        (DAILY_SALES, {"key": ("event_date",)}, "of which the day is part already"),
        (DAILY_SALES, {"key": ("nothing",)}, "does not declare"),
        (DAILY_SALES, {"inputs": ()}, "reads nothing"),
        (DAILY_SALES, {"columns": (*DAILY_SALES.columns, K, K)}, "twice"),
        (DAILY_SALES, {"inputs": (Input("raw.transactions", same_day()),)}, "reads raw"),
        (DAILY_SALES, {"inputs": (Input("gold.other", as_of()),)}, "as of a day"),
        (
            DAILY_SALES,
            {"inputs": (Input("silver.a", span(2, 1)), Input("silver.b", as_of()))},
            "of silver.a that lie",
        ),
        (DAILY_SALES, {"inputs": (Input("silver.a", offsets(-7, 1)), Input("silver.b", as_of()))}, "of silver.a that"),
        (SILVER_TRANSACTIONS, {"inputs": (Input("raw.transactions", span(3)),)}, "same day"),
        (SILVER_TRANSACTIONS, {"key": ("household_id",)}, "allows nulls"),
        (RAW_TRANSACTIONS, {"source": None}, "no source"),
        (RAW_TRANSACTIONS, {"event_time": "week"}, "'week'"),
        (RAW_TRANSACTIONS, {"voided": "gone"}, "'gone'"),
        (
            RAW_TRANSACTIONS,
            {"updated_at": ("updated_at", "sales_value")},
            "needs 'sales_value' as a column of type timestamp",
        ),
        (RAW_TRANSACTIONS, {"restatement_window_days": -1}, "restatement_window_days=-1"),
        (RAW_TRANSACTIONS, {"deep_restatement_days": 90}, "restates 90 days deep"),
        (RAW_TRANSACTIONS, {"ahead_days": -1}, "ahead_days=-1"),
        (RAW_TRANSACTIONS, {"delivered_after_days": -1}, "delivered_after_days=-1"),
        (RAW_TRANSACTIONS, {"rules": (Rule("r", "true", ""),)}, "inputs or rules"),
        (RAW_TRANSACTIONS, {"columns": with_absent(RAW_TRANSACTIONS, "voided")}, "lets files lack 'voided'"),
        (RAW_TRANSACTIONS, {"columns": with_absent(RAW_TRANSACTIONS, "updated_at")}, "lets files lack 'updated_at'"),
    ],
)
def test_a_contradiction_is_named(contract, changes, says):
    with pytest.raises(ContractError, match=says) as caught:
        replace(contract, **changes)
    assert caught.value.todo


@pytest.mark.parametrize(
    ("changes", "says", "todo"),
    [
        ({"moves_within_days": -1}, "moves_within_days=-1", "greater than or equal to 0"),
        ({"moves_within_days": "7"}, "moves_within_days='7'", "a valid integer"),
        ({"moves_within_days": True}, "moves_within_days=True", "a valid integer"),
        ({"moves_within_days": 10**9}, "moves_within_days=1000000000", "less than or equal to 36500"),
        ({"ahead_days": 1.0}, "ahead_days=1.0", "a valid integer"),
        ({"deep_restatement_days": "365"}, "deep_restatement_days='365'", "a valid integer"),
        ({"delivers": "on_change"}, "delivers='on_change'", "'daily' or 'on change'"),
        ({"key": "order_id"}, "key='order_id'", "key=('order_id',)"),
        ({"key": ["line_id", "day"]}, "key=['line_id', 'day']", "key=('line_id', 'day',)"),
        ({"key": ("line_id", 1)}, "key[1]=1", "a valid string"),
        ({"columns": K}, "columns=Column(", "it must be a tuple"),
        ({"columns": (K, "at")}, "columns[1]='at'", "an instance of Column"),
        ({"inputs": (same_day(),)}, "inputs[0]=Span(", "an instance of Input"),
        ({"source": "tills"}, "source='tills'", "an instance of LandingFiles"),
        ({"event_time": K}, "event_time=Column(", "a valid string"),
        ({"closed_days": frozenset({"2017-12-25"})}, "closed_days[0]='2017-12-25'", "a valid date"),
        ({"closed_days": (date(2017, 12, 25),)}, "closed_days=(datetime.date(", "a valid frozenset"),
        ({"checks": None}, "checks=None", "an instance of Checks"),
        ({"freshness": 3}, "freshness=3", "an instance of Freshness"),
        ({"code_version": 3}, "code_version=3", "a valid string"),
        ({"description": None}, "description=None", "a valid string"),
    ],
)
def test_a_field_of_another_type_or_out_of_its_range_is_named_with_what_is_allowed(changes, says, todo):
    with pytest.raises(ContractError) as caught:
        replace(RAW_TRANSACTIONS, **changes)
    assert caught.value.what.startswith(f"The contract of raw.transactions has {says}")
    assert next(iter(changes)) in caught.value.todo
    assert todo in caught.value.todo


@pytest.mark.parametrize(
    ("declare", "says"),
    [
        (lambda: Column("k", "long", "Key.", nullable="no"), "column 'k' has nullable='no'"),  # type: ignore[arg-type]
        (lambda: Column("k", "long", "Key.", made_from="silver.a.k"), "made_from='silver.a.k'"),  # type: ignore[arg-type]
        (lambda: Column("k", "long", "Key.", nullable=False, may_be_absent=True), "'k' may be absent, and allows no"),
        (lambda: Column("k", "decimal(39,2)", ""), "a decimal that does not exist"),
        (lambda: Column("k", "decimal(2,3)", ""), "a decimal that does not exist"),
        (lambda: Column("k", "decimal(0,0)", ""), "a decimal that does not exist"),
        (lambda: Input("silver.a", same_day), "input 'silver.a' has window=<function"),  # type: ignore[arg-type]
        (lambda: Input("a", same_day()), "not <layer>.<table>"),
        (lambda: Rule("Two words", "true", ""), "rule 'Two words'"),
        (lambda: Rule("r", " ", ""), "rule 'r'"),
        (lambda: Rule("r", None, ""), "expression=None"),  # type: ignore[arg-type]
        (lambda: LandingFiles(None), "folder=None"),  # type: ignore[arg-type]
        (lambda: LandingFiles(""), "no folder below the landing root"),
        (lambda: LandingFiles("/srv/tills"), "no folder below the landing root"),
        (lambda: LandingFiles("a/../../b"), "no folder below the landing root"),
        (lambda: LandingFiles("tills", complete=True), "complete=True"),  # type: ignore[arg-type]
        (lambda: span("7"), "before='7'"),  # type: ignore[arg-type]
        (lambda: span(7, True), "after=True"),
        (lambda: Domain("d", K, "nowhere"), "domain 'd' has tables="),  # type: ignore[arg-type]
        (lambda: Domain("d", (), None), "transforms=None"),  # type: ignore[arg-type]
    ],
)
def test_what_a_contract_holds_is_looked_at_as_closely(declare, says):
    with pytest.raises(ContractError, match=re.escape(says)) as caught:
        declare()
    assert caught.value.todo


@pytest.mark.parametrize(("name", "type_"), [("Upper", "long"), ("x", "money"), ("x; drop table", "long"), ("x", "")])
def test_a_column_outside_the_allow_list_is_refused(name, type_):
    with pytest.raises(ContractError):
        Column(name, type_, "")


def test_a_window_backwards_is_refused():
    with pytest.raises(ContractError, match="before=-1"):
        span(-1)


def test_an_unknown_table_names_the_known_ones():
    with pytest.raises(UnknownTableError, match=r"gold\.daily_sales"):
        Catalogue.of([DOMAIN])["gold.weekly_sales"]


def test_tables_that_read_each_other_are_refused():
    a = Contract("gold.a", "", "", (K,), ("k",), inputs=(Input("gold.b", same_day()),))
    b = Contract("gold.b", "", "", (K,), ("k",), inputs=(Input("gold.a", same_day()),))
    with pytest.raises(ContractError, match=r"gold\.[ab] is made from itself: it reads gold\.[ab], which reads gold"):
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
