"""By which columns the rows of a table can be computed apart from each other, as its contract promises."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from platform_assets.contracts.columns import Column
from platform_assets.contracts.errors import ContractError

_TYPES = ("string", "long", "int", "date")
"""Types whose values have one text each, by which a person can name them."""


def separable_problems(
    table: str, columns: Collection[Column], key: Collection[str], separable_by: Collection[str]
) -> Iterator[ContractError]:
    """Why rows cannot be computed apart by the columns that a contract names, as far as it alone tells.

    Args:
        table: `<layer>.<table>`.
        columns: that it declares.
        key: of the table.
        separable_by: as it promises.
    """
    by_name = {column.name: column for column in columns}
    for name in separable_by:
        if not table.startswith("gold."):
            what = f"is separable by {name!r}, but only gold tables can be: records move between days of the others"
        elif name not in key or name not in by_name:
            what = f"is separable by {name!r}, which is not in its key"
        elif by_name[name].sensitive:
            what = f"is separable by {name!r}, which is sensitive: its values would stay in manifests"
        elif by_name[name].type not in _TYPES:
            what = f"is separable by {name!r}, which is none of {', '.join(_TYPES)}"
        else:
            continue
        yield ContractError(
            f"The contract of {table} {what}.",
            "Leave it out of `separable_by`.",
            table=table,
            field="separable_by",
        )
