"""A mistake in a rule or a transform is told by table, line and name, and nothing of it is published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.contracts import Rule
from platform_assets.domains.retail.contracts import RAW_TRANSACTIONS, SILVER_TRANSACTIONS
from platform_assets.domains.retail.transforms import silver
from platform_assets.spark.tables.staging import TransformError
from platform_assets_tests.support.domains import tills
from platform_assets_tests.support.history import TILLS
from platform_assets_tests.support.world import MakeWorld, World, sale


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    """One line, taken."""
    world = make_world(days=1, domains=TILLS)
    world.deliver_rows("transactions", "2017-01-01", "one.jsonl", [sale(1, 1, "2017-01-01")])
    return world


def test_a_rule_over_a_column_that_is_not_there(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(SILVER_TRANSACTIONS, rules=(Rule("sold", "quantty > 0", "Something is sold."),))
    monkeypatch.setattr(tills, "DOMAIN", replace(tills.DOMAIN, tables=(RAW_TRANSACTIONS, wrong)))
    with pytest.raises(TransformError, match=r"silver.transactions .*`quantty`.*`quantity`"):
        world.refresh()


def misspelt(transactions: DataFrame) -> DataFrame:
    """A column that is not there."""
    return transactions.select(F.col("quantty"))


def broken(transactions: DataFrame) -> DataFrame:
    """An error of its own."""
    return transactions.limit(len(transactions.columns) // 0)


@pytest.mark.parametrize(("transform", "told"), [(misspelt, "`quantty`"), (broken, "ZeroDivisionError")])
def test_a_transform_that_fails(
    world: World, monkeypatch: pytest.MonkeyPatch, transform: Callable[..., DataFrame], told: str
) -> None:
    monkeypatch.setattr(silver, "transactions", transform)
    line = transform.__code__.co_firstlineno + 2
    with pytest.raises(TransformError, match=rf"silver.transactions .*test_users_code.py, line {line}.*{told}"):
        world.refresh()
    assert not world.digests()["silver.transactions"]


FAILS = {
    "quantity / 0 > 1": "Division by zero",
    "cast(concat('x', quantity) AS int) > 0": "CAST_INVALID_INPUT",
    "cast(quantity * 1000000000 AS int) * 1000000000 > 0": "ARITHMETIC_OVERFLOW",
    "raise_error('words of my own') IS NULL": "words of my own",
}


@pytest.mark.parametrize("expression", [pytest.param(each, marks=pytest.mark.proof) for each in FAILS])
def test_an_expression_that_fails_on_a_value(world: World, monkeypatch: pytest.MonkeyPatch, expression: str) -> None:
    as_it_is = silver.transactions
    monkeypatch.setattr(silver, "transactions", lambda transactions: as_it_is(transactions.where(expression)))
    with pytest.raises(
        TransformError, match=f"silver.transactions fails on a value of 2017-01-01: .*{FAILS[expression]}"
    ) as told:
        world.refresh()
    assert "ansi" not in told.value.what, "which is not free to choose"
    assert "SQLSTATE" not in told.value.what
    assert not world.digests()["silver.transactions"]


@pytest.mark.proof
def test_a_function_in_python_that_fails_on_a_value(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = F.udf(lambda quantity: quantity // 0, "int")
    as_it_is = silver.transactions
    monkeypatch.setattr(
        silver, "transactions", lambda transactions: as_it_is(transactions.where(fails("quantity") > 0))
    )
    with pytest.raises(TransformError, match=r"of 2017-01-01: ZeroDivisionError: integer division or modulo by zero"):
        world.refresh()


def test_a_rule_that_fails_on_a_value(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(SILVER_TRANSACTIONS, rules=(Rule("sold", "1 / (quantity - quantity) > 0", "Something is sold."),))
    monkeypatch.setattr(tills, "DOMAIN", replace(tills.DOMAIN, tables=(RAW_TRANSACTIONS, wrong)))
    with pytest.raises(TransformError, match=r"silver.transactions fails on a value of 2017-01-01: .*Division by zero"):
        world.refresh()
