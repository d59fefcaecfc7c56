"""What is wrong with a declaration."""

from __future__ import annotations

from platform_assets.errors import PlatformError


class ContractError(PlatformError):
    """A contract or a domain contradicts itself.

    Args:
        what: what is wrong.
        todo: what to do about it.
        table: whose contract it is about, where that is known.
        field: of the declaration, or the name of the column, rule or amount that is wrong.
    """

    def __init__(self, what: str, todo: str, *, table: str | None = None, field: str | None = None) -> None:
        super().__init__(what, todo)
        self.table = table
        self.field = field


class UnknownTableError(PlatformError):
    """A table was named that no domain declares."""

    is_misspelt = True
