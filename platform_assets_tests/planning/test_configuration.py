"""What of a contract counts for the content of a table, and what a change of it means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from platform_assets.contracts import Catalogue, Checks, Column, ContractError, Freshness, Input, Rule, span
from platform_assets.domains.retail import DOMAIN
from platform_assets.domains.retail.contracts import DAILY_SALES, RAW_TRANSACTIONS, SILVER_TRANSACTIONS
from platform_assets.engine.platform import code_versions
from platform_assets.planning.configuration import column_changes, configuration, contract_changes, is_wider, need_of
from platform_assets.records.code_version import ENGINE_SEMANTICS, Version

AMOUNT = Column("amount", "long", "An amount.")


def catalogue(*changed):
    """The retail tables, some of them replaced."""
    by_name = {contract.name: contract for contract in changed}
    tables = tuple(by_name.get(contract.name, contract) for contract in DOMAIN.tables)
    return Catalogue.of([replace(DOMAIN, tables=tables)])


def parts(contract, *others):
    return configuration(catalogue(contract, *others), contract)


def changes(before, after):
    return [
        (change.what, change.compatible, change.needs)
        for change in contract_changes(parts(before).parts, parts(after).parts)
    ]


BEFORE = parts(SILVER_TRANSACTIONS).hash


@pytest.mark.parametrize(
    "changed",
    [
        {"description": "Reworded."},
        {"owner": "somebody@example.com"},
        {"checks": Checks(volume="block")},
        {"freshness": Freshness(within_days=9)},
        {"closed_days": frozenset()},
        {"restatement_window_days": 7},
        {"ahead_days": 7},
        {"delivered_after_days": 1},
        {"columns": tuple(replace(c, description="Reworded.") for c in SILVER_TRANSACTIONS.columns)},
        {"rules": tuple(replace(rule, description="Reworded.") for rule in SILVER_TRANSACTIONS.rules)},
        {"code_version": "2024-03"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_what_no_row_depends_on_makes_nothing_stale(changed):
    assert parts(replace(SILVER_TRANSACTIONS, **changed)).hash == BEFORE


@pytest.mark.parametrize(
    "changed",
    [
        {"columns": (*SILVER_TRANSACTIONS.columns, AMOUNT)},
        {"key": ("basket_id",)},
        {"rules": SILVER_TRANSACTIONS.rules[1:]},
        {"rules": tuple(replace(rule, breach="void") for rule in SILVER_TRANSACTIONS.rules)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_what_rows_depend_on_does(changed):
    assert parts(replace(SILVER_TRANSACTIONS, **changed)).hash != BEFORE


def test_a_kind_of_rule_means_what_the_same_condition_in_sql_means():
    texts = {rule.name: rule.kind.text for rule in SILVER_TRANSACTIONS.rules}
    assert texts["week_of_year"] == "week BETWEEN 1 AND 53"
    as_texts = tuple(replace(rule, expression=rule.kind.text) for rule in SILVER_TRANSACTIONS.rules)
    assert parts(replace(SILVER_TRANSACTIONS, rules=as_texts)).hash == BEFORE
    assert "judged" not in parts(SILVER_TRANSACTIONS).parts


@pytest.mark.parametrize(
    ("changed", "what", "compatible"),
    [
        ({"where": "week > 0"}, "rule 'r' changed from n > 0 to n > 0 where week > 0", False),
        ({"tolerance": "3 rows"}, "rule 'r' added (rows in quarantine, at most 3 rows)", True),
        ({"severity": "warn"}, "rule 'r' added (warn unless n > 0, at most 0 rows)", True),
    ],
)
def test_rules_that_change_are_told_and_tried_anew_and_those_that_only_judge_are_no_content(changed, what, compatible):
    rule = Rule("r", "n > 0", "A rule.")
    before = parts(replace(SILVER_TRANSACTIONS, rules=(rule,)))
    after = parts(replace(SILVER_TRANSACTIONS, rules=(replace(rule, **changed),)))
    assert before.hash != after.hash
    changes = {change.what: change.compatible for change in contract_changes(before.parts, after.parts)}
    assert changes[what] is compatible


@pytest.mark.parametrize("changed", [{"moves_within_days": 7}, {"updated_at": None}, {"voided": None}])
def test_how_raw_rows_are_ordered_counts_for_the_silver_table_that_orders_them(changed):
    assert parts(SILVER_TRANSACTIONS, replace(RAW_TRANSACTIONS, **changed)).hash != BEFORE


@pytest.mark.parametrize(
    ("changed", "needs"),
    [
        ({"moves_within_days": 7}, "nothing"),
        ({"updated_at": None}, "another table"),
        ({"voided": None}, "another table"),
        ({"key": ("basket_id",)}, "another table"),
    ],
    ids=lambda value: next(iter(value)),
)
def test_rows_that_were_ordered_otherwise_when_they_were_delivered_stay_so(changed, needs):
    after = parts(SILVER_TRANSACTIONS, replace(RAW_TRANSACTIONS, **changed)).parts
    [change] = contract_changes(parts(SILVER_TRANSACTIONS).parts, after)
    assert (change.needs, change.is_of_column) == (needs, False)
    assert change.what.startswith(f"order 'raw.transactions {next(iter(changed))}' changed from ")


def test_times_of_a_raw_table_that_are_read_otherwise_need_its_deliveries_again():
    columns = [replace(c, zone="America/Chicago") if c.name == "updated_at" else c for c in RAW_TRANSACTIONS.columns]
    after = parts(SILVER_TRANSACTIONS, replace(RAW_TRANSACTIONS, columns=tuple(columns))).parts
    before = parts(SILVER_TRANSACTIONS).parts
    [added], [removed] = contract_changes(before, after), contract_changes(after, before)
    assert added.needs == removed.needs == "another table"
    assert added.what == "order 'raw.transactions times' added ({'updated_at': 'America/Chicago'})"


def test_arrivals_of_before_are_no_snapshots_of_a_whole_table():
    assert RAW_TRANSACTIONS.source is not None
    whole = replace(RAW_TRANSACTIONS.source, replaces="table", resent="anew")
    after = parts(SILVER_TRANSACTIONS, replace(RAW_TRANSACTIONS, source=whole, moves_within_days=0)).parts
    changes = {change.what: change.needs for change in contract_changes(parts(SILVER_TRANSACTIONS).parts, after)}
    assert changes["order 'raw.transactions replaces' added (table)"] == "another table"


def test_changes_are_told_apart():
    plain = replace(SILVER_TRANSACTIONS, columns=(*SILVER_TRANSACTIONS.columns, AMOUNT))
    renamed = replace(plain, columns=(*plain.columns[:-1], replace(AMOUNT, name="total")))
    retyped = replace(plain, columns=(*plain.columns[:-1], replace(AMOUNT, type="string")))
    required = replace(plain, columns=(*plain.columns[:-1], replace(AMOUNT, nullable=False)))
    longer = replace(plain, columns=(*plain.columns[:-1], replace(AMOUNT, type="double")))
    whole = replace(plain, columns=(*plain.columns[:-1], replace(AMOUNT, type="int")))
    assert changes(SILVER_TRANSACTIONS, plain) == [("column 'amount' (long) added", True, "any days")]
    assert changes(SILVER_TRANSACTIONS, required) == [("column 'amount' (long, no nulls) added", False, "all days")]
    assert changes(plain, SILVER_TRANSACTIONS) == [("column 'amount' dropped", False, "all days")]
    assert changes(plain, renamed) == [("column 'amount' renamed to 'total'", False, "all days")]
    assert changes(plain, retyped) == [("column 'amount' retyped from long to string", False, "all days")]
    assert changes(plain, longer) == [("column 'amount' retyped from long to double", False, "all days")]
    assert changes(whole, plain) == [("column 'amount' widened from int to long", True, "all days")]
    assert changes(plain, required) == [("column 'amount' may not be null now", False, "nothing")]
    assert changes(required, plain) == [("column 'amount' may be null now", True, "nothing")]
    assert changes(plain, plain) == []
    other_key = replace(plain, key=("basket_id",))
    assert changes(plain, other_key) == [("key changed from (basket_id, product_id) to (basket_id)", False, "all days")]


@pytest.mark.parametrize(
    ("old", "new", "wider"),
    [
        ("int", "long", True),
        ("int", "double", True),
        ("long", "double", False),
        ("long", "int", False),
        ("decimal(12,2)", "decimal(18,2)", True),
        ("decimal(12,2)", "decimal(13,3)", True),
        ("decimal(12,2)", "decimal(13,4)", False),
        ("decimal(12,2)", "decimal(12,1)", False),
        ("decimal(12,2)", "double", False),
        ("date", "timestamp", False),
    ],
)
def test_a_type_is_wider_if_it_holds_every_value_exactly(old, new, wider):
    assert is_wider(new, old) is wider


def test_changed_rules_and_windows_are_named():
    rule = Rule("week_of_year", "week > 0", "Weeks are counted from 1.")
    fewer = tuple(r for r in SILVER_TRANSACTIONS.rules if r.name != rule.name)
    without, changed = replace(SILVER_TRANSACTIONS, rules=fewer), replace(SILVER_TRANSACTIONS, rules=(*fewer, rule))
    assert changes(SILVER_TRANSACTIONS, without) == [("rule 'week_of_year' removed", False, "nothing")]
    assert changes(without, changed) == [("rule 'week_of_year' added (week > 0)", False, "nothing")]
    [(what, _, _)] = changes(SILVER_TRANSACTIONS, changed)
    assert what == "rule 'week_of_year' changed from week BETWEEN 1 AND 53 to week > 0"
    wider = replace(DAILY_SALES, inputs=(DAILY_SALES.inputs[0], Input("silver.products", span(9))))
    assert ("input 'silver.products' changed from as_of to span(9, 0)", False, "nothing") in changes(DAILY_SALES, wider)


def test_what_a_table_on_disk_needs_to_follow_its_contract():
    types = {column.name: column.type for column in DAILY_SALES.columns}
    assert column_changes(types, DAILY_SALES) == ()
    fewer = {name: type_ for name, type_ in types.items() if name != "net"} | {"lines": "int"}
    found = column_changes(fewer, DAILY_SALES)
    assert {(change.what, change.needs) for change in found} == {
        ("column 'net' (decimal(18,2), no nulls) added", "all days"),
        ("column 'lines' widened from int to long", "all days"),
    }
    assert need_of(found) == "all days"
    assert need_of(()) == "nothing"


def test_raw_tables_take_added_columns_and_no_other_change():
    types = {column.name: column.type for column in RAW_TRANSACTIONS.columns}
    fewer = {name: type_ for name, type_ in types.items() if name != "household_id"}
    assert [change.needs for change in column_changes(fewer, RAW_TRANSACTIONS)] == ["any days"]
    found = column_changes(types | {"colour": "string"}, RAW_TRANSACTIONS)
    assert [str(change) for change in found] == [
        "column 'colour' dropped: the table cannot take it, since raw rows are kept as they were delivered"
    ]


def test_a_version_that_nobody_recorded_does_not_differ():
    now = Version("code", "configuration")
    assert Version("", "").differs(now) == (False, False)
    assert Version("old", "configuration").differs(now) == (True, False)
    assert Version("code", "old").differs(now) == (False, True)


def test_a_code_version_set_by_hand_takes_the_place_of_the_source():
    by_source = code_versions(catalogue())
    by_hand = code_versions(catalogue(replace(DAILY_SALES, code_version="7.1")))
    assert by_hand == by_source | {"gold.daily_sales": f"7.1+engine{ENGINE_SEMANTICS}"}
    whole = code_versions(Catalogue.of([replace(DOMAIN, code_version="2024-03")]))
    assert set(whole.values()) == {f"2024-03+engine{ENGINE_SEMANTICS}"}


@pytest.mark.parametrize("version", ["", "  ", "a b", "a@b", "-", "a+b"])
def test_a_code_version_that_is_none_is_refused(version):
    with pytest.raises(ContractError, match=r"gold\.daily_sales sets the code version"):
        replace(DAILY_SALES, code_version=version)
    with pytest.raises(ContractError, match=r"The domain 'retail' sets the code version"):
        replace(DOMAIN, code_version=version)


def test_a_code_version_set_twice_or_on_raw_is_refused():
    tables = tuple(replace(t, code_version="2") if t.name == "gold.daily_sales" else t for t in DOMAIN.tables)
    with pytest.raises(
        ContractError, match=r"code version of gold\.daily_sales is set twice: '2' in its contract and '1'"
    ):
        replace(DOMAIN, tables=tables, code_version="1")
    with pytest.raises(ContractError, match=r"raw\.transactions has a code version"):
        replace(RAW_TRANSACTIONS, code_version="1")
