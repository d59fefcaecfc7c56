"""Settled figures: sums of a table's days that move no further than declared once the day is old enough."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from platform_assets.contracts.checks import Tolerance, tolerance_problems
from platform_assets.contracts.columns import Column, why_no_sum
from platform_assets.contracts.errors import ContractError
from platform_assets.contracts.mistakes import Days, check_declaration


@dataclass(frozen=True)
class Settled:
    """Limit how far sums of a day may move once the day is settled.

    A day beyond the limit keeps what readers have, until a person accepts it or an approved plan brings it. The
    distance is measured from the sum when the day settled, or when it was last accepted, so many small corrections add
    up.

    Args:
        sums: columns of whole numbers or decimals.
        by: columns by whose values they are summed; one sum a day if empty.
        after_days: a day is settled once any delivery was ingested that arrived more days than this after it.
        tolerance: how far each sum may move, as `0.05, 0.1 %`: an amount, or a share of the greater figure.
    """

    sums: tuple[str, ...]
    by: tuple[str, ...] = ()
    after_days: Days = 30
    tolerance: str = ""

    def __post_init__(self) -> None:
        check_declaration(self, "The declaration of settled figures", self._problems)

    def __str__(self) -> str:
        by = f" by {', '.join(self.by)}" if self.by else ""
        return f"{', '.join(self.sums)}{by}"

    @property
    def allowed(self) -> Tolerance:
        """The tolerance that its text says."""
        return Tolerance.parse(self.tolerance)

    def _problems(self) -> Iterator[ContractError]:
        whose = f"The declaration of settled figures {self}"
        wrong = list(tolerance_problems(whose, self.tolerance))
        yield from wrong
        if not wrong and self.allowed.keys:
            yield ContractError(
                f"{whose} has the tolerance {self.tolerance!r}, and each sum has to stay by itself.",
                "Write an amount or a percentage up to 100 %, as `0.05, 0.1 %`.",
                field="tolerance",
            )
        if not self.sums:
            yield ContractError(f"{whose} names no sum.", 'Give `sums`, as ("amount",).', field="sums")
        names = [*self.sums, *self.by]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield ContractError(f"{whose} names {name!r} twice.", "Name it once, in `sums` or in `by`.", field=name)


def settled_problems(table: str, columns: Collection[Column], declared: Collection[Settled]) -> Iterator[ContractError]:
    """Yield why a table cannot keep settled figures, as far as its contract alone tells."""
    by_name = {column.name: column for column in columns}

    def error(what: str, todo: str, field: str) -> ContractError:
        return ContractError(f"The contract of {table} {what}.", todo, table=table, field=field)

    if declared and table.startswith("raw."):
        yield error(
            "has settled figures, but raw rows are kept as delivered",
            "Declare them on the silver table that reads it.",
            "settled",
        )
        return
    figures = [(name, settled.by) for settled in declared for name in settled.sums]
    for name, _ in sorted({figure for figure in figures if figures.count(figure) > 1}):
        yield error(f"settles the sum of {name!r} by the same columns twice", "Declare it once.", name)
    for settled in declared:
        for name in (*settled.sums, *settled.by):
            part = "sums" if name in settled.sums else "by"
            if name not in by_name:
                known = ", ".join(by_name)
                yield error(f"settles {settled}, and declares no column {name!r}", f"Use one of {known}.", name)
            elif why := _unfit(by_name[name], part):
                yield error(f"settles {settled} with {name!r} in `{part}`, but {why}", "Leave it out.", name)


def _unfit(column: Column, part: str) -> str | None:
    """Return why a column cannot be summed, or summed by; None where it can."""
    if column.sensitive:
        return "it is sensitive, and its values would stay in manifests"
    if column.type == "double":
        return "it is a double, whose sums and values are not exact"
    return why_no_sum(column) if part == "sums" else None
