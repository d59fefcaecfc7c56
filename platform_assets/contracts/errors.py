"""What is wrong with a declaration."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from platform_assets.errors import PlatformError, did_you_mean


class ContractError(PlatformError):
    """A contract or a domain contradicts itself.

    Args:
        field: of the declaration, or the name of the column, rule or amount that is wrong.
        lines: of what is wrong, after the first.
        place: file and line of the declaration, where that is known.
    """

    def __init__(
        self,
        what: str,
        todo: str,
        *,
        table: str | None = None,
        field: str | None = None,
        lines: Iterable[str] = (),
        place: str | None = None,
    ) -> None:
        super().__init__(what, todo, lines)
        self.table = table
        self.field = field
        self.place = place


class UnknownTableError(PlatformError):
    """A table was named that no domain declares."""

    is_misspelt = True


def unknown_table(name: str, choices: Collection[str]) -> UnknownTableError:
    """Return the error of whoever names a table that there is not, the same wherever tables are named."""
    todo = f"{did_you_mean(name, choices)}Tables are {', '.join(choices)}."
    return UnknownTableError(f"There is no table {name!r}.", todo)
