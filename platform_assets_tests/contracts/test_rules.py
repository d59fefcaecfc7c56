"""Rules of every kind are refused by table, rule and remedy where no row could tell what they mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from platform_assets.contracts import (
    Catalogue,
    Contract,
    ContractError,
    Domain,
    Input,
    Rule,
    as_of,
    compare,
    exists,
    in_range,
    length,
    matches,
    not_null,
    one_of,
    same_day,
    unique,
)
from platform_assets.contracts.rules import RowTolerance
from platform_assets.domains.retail.contracts import (
    DAILY_SALES,
    RAW_PRODUCTS,
    RAW_TRANSACTIONS,
    SILVER_PRODUCTS,
    SILVER_TRANSACTIONS,
)

PRODUCTS = Input("silver.products", as_of())
LOOKED_INTO = (Input("raw.transactions", same_day()), PRODUCTS)


def rule(expression: Any, severity: Any = "block", **more: Any) -> Rule:
    return Rule("r", expression, "A rule.", severity=severity, **more)


@pytest.mark.parametrize(
    ("wrong", "why", "todo"),
    [
        (lambda: rule(in_range("n")), "neither `least` nor `most`", "arguments of in_range"),
        (lambda: rule(in_range("n", 3, 2)), "no value through: 3 is more than 2", "in_range"),
        (lambda: rule(in_range("n", float("nan"))), "which is no number", "in_range"),
        (lambda: rule(one_of("n")), "names no value", "one_of"),
        (lambda: rule(one_of("n", b"x")), "compares with b'x'", "one_of"),  # type: ignore[arg-type]
        (lambda: rule(matches("n", "(")), "no regular expression", "matches"),
        (lambda: rule(length("n", 3, 2)), "no length through: 3 to 2", "length"),
        (lambda: rule(compare("a", "=>", "b")), "compares by '=>'", "compare"),  # type: ignore[arg-type]
        (lambda: rule(unique()), "names no column", "unique"),
        (lambda: rule(exists("a", "b", table="silver.t", theirs=("a",))), "other numbers of columns", "exists"),
        (lambda: rule(not_null("n"), tolerance="101 %"), "impossible tolerance: '101 %'", "`3 rows, 0.5 %`"),
        (lambda: rule(not_null("n"), tolerance="-1 rows"), "impossible tolerance", "rows"),
        (lambda: rule(not_null("n"), tolerance="2 rows, 3 rows"), "impossible tolerance", "rows"),
        (lambda: rule(not_null("n"), "ignore"), "severity='ignore'", "'quarantine', 'block' or 'warn'"),
        (lambda: rule(unique("n"), "quarantine"), "which looks at other rows", "severity='block'"),
        (lambda: rule(unique("n", within="window")), "which of them came first", "severity='warn'"),
        (lambda: rule(not_null("n"), breach="void"), "breach='void' and severity='block'", "Leave out one"),
    ],
)
def test_a_rule_that_no_row_could_keep_or_break(wrong: Callable[[], Rule], why: str, todo: str) -> None:
    with pytest.raises(ContractError) as refused:
        wrong()
    assert "rule 'r'" in refused.value.what
    assert why in refused.value.what
    assert todo in refused.value.todo


@pytest.mark.parametrize(
    ("contract", "changes", "why", "todo"),
    [
        (SILVER_TRANSACTIONS, {"rules": (rule("true"), rule("true"))}, "the name of another one", "Rename"),
        (DAILY_SALES, {"rules": (rule("true", "quarantine"),)}, "stands for many rows", "severity='block'"),
        (DAILY_SALES, {"rules": (rule(unique("lines", within="window"), "warn"),)}, "only silver", "within the day"),
        (
            SILVER_TRANSACTIONS,
            {"rules": (rule(exists("product_id", table="silver.products")),)},
            "does not read as of the day",
            "Input('silver.products', as_of())",
        ),
        (SILVER_TRANSACTIONS, {"rules": (), "inputs": LOOKED_INTO}, "exactly one raw table", "exists"),
        (DAILY_SALES, {"rules": (rule(not_null("depratment")),)}, "'depratment'", "Did you mean department?"),
        (SILVER_TRANSACTIONS, {"rules": (rule(not_null("net_amount"), "quarantine"),)}, "raw.transactions", "Name one"),
        (DAILY_SALES, {"rules": (rule(in_range("lines", "1")),)}, "lines (long) with '1'", "one type"),
        (DAILY_SALES, {"rules": (rule(in_range("net", 0.5)),)}, "with 0.5", "one type"),
        (DAILY_SALES, {"rules": (rule(compare("lines", "<", "department")),)}, "do not compare", "one type"),
        (DAILY_SALES, {"rules": (rule(length("lines", 1)),)}, "is no text", "one type"),
        (
            DAILY_SALES,
            {"rules": (rule(exists("department", table="silver.products", theirs=("product_id",))),)},
            "which do not compare",
            "same type",
        ),
        (
            DAILY_SALES,
            {"rules": (rule(exists("department", table="silver.products", theirs=("dept",))),)},
            "'dept', which silver.products does not declare",
            "Name one",
        ),
    ],
)
def test_a_rule_that_does_not_go_with_its_table(
    contract: Contract, changes: dict[str, Any], why: str, todo: str
) -> None:
    tables = (RAW_TRANSACTIONS, RAW_PRODUCTS, SILVER_PRODUCTS, SILVER_TRANSACTIONS, DAILY_SALES)
    others = tuple(one for one in tables if one is not contract)
    with pytest.raises(ContractError) as refused:
        Catalogue.of([Domain("own", (*others, replace(contract, **changes)), "own.transforms")])
    assert contract.name in refused.value.what
    assert why in refused.value.what
    assert todo in refused.value.todo
    assert refused.value.table == contract.name


@pytest.mark.parametrize(
    ("text", "allowed", "refused"),
    [
        ("", (0, 100), (1, 100)),
        ("3 rows", (3, 3), (4, 1_000_000)),
        ("0.5 %", (1, 200), (1, 199)),
        ("3 rows, 0.5 %", (3, 3), (4, 799)),
        ("1 row,50%", (2, 4), (3, 4)),
        ("100 %", (7, 7), (8, 7)),
        ("0 rows", (0, 0), (1, 1)),
    ],
)
def test_a_tolerance_allows_as_many_rows_as_it_says(
    text: str, allowed: tuple[int, int], refused: tuple[int, int]
) -> None:
    tolerance = RowTolerance.parse(text)
    assert tolerance is not None
    assert tolerance.allows(*allowed)
    assert not tolerance.allows(*refused)
