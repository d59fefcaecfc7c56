"""Checks are declared on the contract, and a declaration that cannot work is refused with the remedy."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from platform_assets.contracts import (
    Aggregate,
    Amount,
    Catalogue,
    Checks,
    Column,
    Comparison,
    Contract,
    ContractError,
    Domain,
    Freshness,
    Input,
    Reconciliation,
    Settled,
    all_history,
    month_to_date,
    offsets,
    same_day,
    span,
)
from platform_assets.domains.retail import DOMAIN
from platform_assets.domains.retail.contracts import DAILY_SALES, RAW_TRANSACTIONS

ROWS = Amount("rows", "sum(rows)", "count(1)")
K = Column("k", "long", "Key.", nullable=False)

WEIGHED = replace(
    DAILY_SALES,
    columns=(
        *DAILY_SALES.columns,
        Column("weight", "double", "Kilograms."),
        Column("share", "decimal(5,2)", "Percent.", additive=False),
        Column("card", "string", "Whose.", sensitive=True),
    ),
)


def reconciling(upstream, by=()):
    return (Reconciliation(upstream, by, (ROWS,)),)


@pytest.mark.parametrize(
    ("contract", "reconciles", "says"),
    [
        (DAILY_SALES, reconciling("silver.lost"), r"gold\.daily_sales reconciles with silver\.lost.* no input"),
        (DAILY_SALES, reconciling("silver.products"), "as of a day"),
        (DAILY_SALES, reconciling("silver.transactions", ("product_id",)), "by 'product_id'"),
        (DAILY_SALES, reconciling("silver.transactions", ("event_date",)), "by 'event_date'"),
        (RAW_TRANSACTIONS, reconciling("silver.transactions"), r"raw\.transactions reconciles.* no input"),
    ],
)
def test_a_reconciliation_that_cannot_be_is_named(contract, reconciles, says):
    with pytest.raises(ContractError, match=says) as caught:
        replace(contract, reconciles=reconciles)
    assert caught.value.todo


@pytest.mark.parametrize(
    ("declare", "says"),
    [
        (lambda: Checks(volume="off"), "volume='off'"),  # type: ignore[arg-type]
        (lambda: Checks(volume_blocks_after=(3, 7, 9)), "volume_blocks_after="),  # type: ignore[arg-type]
        (lambda: Freshness(within_days="1"), "within_days='1'"),  # type: ignore[arg-type]
        (lambda: Reconciliation("silver.a", "day", (ROWS,)), "by='day'"),  # type: ignore[arg-type]
        (lambda: Checks(volume_blocks_after=(8, 7)), r"\(8, 7\)"),
        (lambda: Checks(aside_percent=101), "aside_percent=101"),
        (lambda: Freshness(within_days=-1), "within_days=-1"),
        (lambda: Reconciliation("silver.a", (), (ROWS,), severity="Block"), "severity='Block'"),  # type: ignore[arg-type]
        (lambda: Reconciliation("silver.a", (), (ROWS,), "-1"), r"silver\.a has an impossible tolerance: '-1'"),
        (lambda: Comparison("a", "gold.x", tolerance="101 %"), "'a' has an impossible tolerance: '101 %'"),
        (lambda: Comparison("A", "gold.x"), "'A' has no identifier"),
        (lambda: Comparison("a", "copies/x.csv"), "other='copies/x.csv', which is no table and no full path"),
        (lambda: Reconciliation("silver.x", ("a",), ()), r"silver\.x compares nothing"),
        (lambda: Reconciliation("silver.x", ("a", "a"), (ROWS,)), "'a' twice"),
        (lambda: Reconciliation("silver.x", ("rows",), (ROWS,)), "'rows' twice"),
        (lambda: Reconciliation("silver.x", (), (ROWS, ROWS)), "'rows' twice"),
        (lambda: Settled("net"), "sums='net'"),  # type: ignore[arg-type]
        (lambda: Settled(("net",), after_days=-1), "after_days=-1"),
        (lambda: Settled(("net",), tolerance="101 %"), "net has an impossible tolerance: '101 %'"),
        (lambda: Settled(("net",), tolerance="-1"), "net has an impossible tolerance: '-1'"),
        (lambda: Settled(("net",), tolerance="3 keys"), "'3 keys', and each sum has to stay by itself"),
        (lambda: Settled(()), "names no sum"),
        (lambda: Settled(("net",), ("net",)), "names 'net' twice"),
        (lambda: Amount("a b", "sum(x)", "sum(x)"), "'a b'"),
        (lambda: Amount("a", " ", "sum(x)"), "`ours`"),
        (lambda: Amount("a", "sum(x)", ""), "`theirs`"),
    ],
)
def test_a_declaration_without_sense_is_named(declare, says):
    with pytest.raises(ContractError, match=says) as caught:
        declare()
    assert caught.value.todo


@pytest.mark.parametrize(
    ("contract", "settled", "field", "says"),
    [
        (DAILY_SALES, Settled(("margin",)), "margin", "settles margin, and declares no column 'margin'"),
        (DAILY_SALES, Settled(("net",), ("shop",)), "shop", "settles net by shop, and declares no column 'shop'"),
        (DAILY_SALES, Settled(("department",)), "department", "'department' in `sums`, but it is a string"),
        (WEIGHED, Settled(("share",)), "share", "'share' in `sums`, but its contract declares it additive=False"),
        (WEIGHED, Settled(("weight",)), "weight", "'weight' in `sums`, but it is a double"),
        (WEIGHED, Settled(("net",), ("weight",)), "weight", "'weight' in `by`, but it is a double"),
        (WEIGHED, Settled(("net",), ("card",)), "card", "'card' in `by`, but it is sensitive"),
        (RAW_TRANSACTIONS, Settled(("quantity",)), "settled", "raw rows are kept as delivered"),
    ],
)
def test_a_settled_figure_that_cannot_be_is_named_with_its_table(contract, settled, field, says):
    with pytest.raises(ContractError, match=rf"{contract.name} .*{says}") as caught:
        replace(contract, settled=(settled,))
    assert (caught.value.table, caught.value.field, bool(caught.value.todo)) == (contract.name, field, True)
    with pytest.raises(ContractError, match="settles the sum of 'net' by the same columns twice"):
        replace(DAILY_SALES, settled=(Settled(("net",)), Settled(("net",), after_days=9)))


@pytest.mark.parametrize(
    ("comparisons", "says"),
    [
        ((Comparison("a", "/x"), Comparison("a", "/y")), "two comparisons of the name 'a'"),
        ((Comparison("a", "/x", ("shop",)),), "by 'shop', a column that it does not declare"),
        ((Comparison("a", "gold.daily_sale"),), r"which no domain declares.*Did you mean gold\.daily_sales"),
        ((Comparison("a", "silver.transactions"),), "no common key"),
    ],
)
def test_a_comparison_that_cannot_be_is_named_with_its_table(comparisons, says):
    def declare():
        changed = replace(DAILY_SALES, comparisons=comparisons)
        Catalogue.of([replace(DOMAIN, tables=tuple(changed if one is DAILY_SALES else one for one in DOMAIN.tables))])

    with pytest.raises(ContractError, match=rf"(?s)gold\.daily_sales.*{says}") as caught:
        declare()
    assert (caught.value.table, caught.value.field is not None) == ("gold.daily_sales", True)


def test_contract_and_conservation_cannot_be_weakened():
    assert {field.name for field in fields(Checks)} == {
        "volume",
        "freshness",
        "volume_blocks_after",
        "aside_percent",
        "most_aside_percent",
        "rivals",
    }


@pytest.mark.parametrize("window", [same_day(), span(27), offsets(-364), month_to_date(), all_history()])
def test_every_window_but_as_of_reconciles(window):
    reads = (Input("silver.transactions", window),)
    contract = replace(DAILY_SALES, inputs=reads, reconciles=reconciling("silver.transactions", ("store_id",)))
    assert contract.reconciles[0].by == ("store_id",)


@pytest.mark.parametrize(
    ("theirs", "parsed"),
    [
        ("sum(net_amount)", Aggregate("sum", "net_amount")),
        (" SUM ( a * (b + c) ) ", Aggregate("sum", "a * (b + c)")),
        ("count(1)", Aggregate("count", "1")),
        ("min(if(a, b, c))", Aggregate("min", "if(a, b, c)")),
        ("Max(celsius)", Aggregate("max", "celsius")),
        ("count(distinct basket_id)", None),
        ("count(a, b)", None),
        ("sum( DISTINCT a)", None),
        ("sum(a) + sum(b)", None),
        ("sum(a) filter (where b)", None),
        ("avg(a)", None),
        ("approx_count_distinct(a)", None),
        ("sum(a))", None),
    ],
)
def test_only_a_single_aggregate_of_days_can_become_one_of_a_window(theirs, parsed):
    amount = Amount("figure", "sum(lines)", theirs)
    assert amount.sides == (Aggregate("sum", "lines"), parsed)
    declared = (Reconciliation("silver.transactions", ("store_id",), (amount,)),)
    same = (Input("silver.transactions", same_day()),)
    assert replace(DAILY_SALES, inputs=same, reconciles=declared).reconciles == declared
    longer = (Input("silver.transactions", span(27)),)
    if parsed is not None:
        assert replace(DAILY_SALES, inputs=longer, reconciles=declared).reconciles == declared
        return
    with pytest.raises(ContractError, match=r"gold\.daily_sales reconciles 'figure' with .* several days") as caught:
        replace(DAILY_SALES, inputs=longer, reconciles=declared)
    assert caught.value.todo


@pytest.mark.parametrize(
    ("theirs", "says"),
    [(Column("k", "string", "Key.", nullable=False), "long here and string there"), (None, "no column there")],
)
def test_both_sides_need_the_column_of_a_reconciliation(theirs, says):
    other = Column("j", "long", "Other.", nullable=False)
    above = Contract("gold.a", "", "", tuple(c for c in (other, theirs) if c), ("j",), (Input("silver.t", same_day()),))
    below = Contract(
        "gold.b", "", "", (K,), ("k",), (Input("gold.a", same_day()),), reconciles=reconciling("gold.a", ("k",))
    )
    silver = Contract("silver.t", "", "", (K,), ("k",), (Input("raw.t", same_day()),))
    raw = replace(RAW_TRANSACTIONS, name="raw.t")
    with pytest.raises(ContractError, match=rf"gold\.b reconciles with gold\.a by 'k'.*{says}"):
        Catalogue.of([Domain("d", (raw, silver, above, below), "nowhere")])


def test_every_gold_table_of_the_sample_reconciles_with_the_layer_above():
    tables = [contract for contract in Catalogue.of([DOMAIN]) if contract.layer == "gold"]
    assert all(contract.reconciles for contract in tables)
