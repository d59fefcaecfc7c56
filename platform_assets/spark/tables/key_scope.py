"""The rows of some keys, and all others, told by a predicate that is pushed down to the files."""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from platform_assets.contracts import Contract
from platform_assets.planning.key_scope import KeyScope, value_of


def in_scope(contract: Contract, scope: KeyScope, among: Collection[str]) -> Column:
    """Whether a row is of the keys, as far as it has their columns; values are bound, never part of a text.

    Args:
        contract: that has the columns' types.
        among: the row's columns.
    """
    parts = [
        F.col(name).isin([value_of(text, contract.column(name).type) for text in texts])
        for name, texts in scope.keys
        if name in among
    ]
    return reduce(lambda a, b: a & b, parts, F.lit(True))


def out_of_scope(contract: Contract, scope: KeyScope) -> Column:
    """Whether a row of the table is of none of the keys; one without a value is of none."""
    return ~F.coalesce(in_scope(contract, scope, contract.column_names), F.lit(False))
