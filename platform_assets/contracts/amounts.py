"""Amounts: the columns of a table whose sums say what a change of its content comes to."""

from __future__ import annotations

from platform_assets.contracts.table import Contract


def amounts(contract: Contract) -> tuple[str, ...]:
    """Columns whose sums tell something: additive decimals and whole numbers, neither names of things nor sensitive."""
    return tuple(
        column.name
        for column in contract.columns
        if column.type.startswith(("decimal", "int", "long"))
        and column.name not in contract.key
        and not column.name.endswith("_id")
        and not column.sensitive
        and column.additive
    )
