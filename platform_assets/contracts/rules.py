"""Conditions that every row of a silver table must meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from platform_assets.contracts.columns import IDENTIFIER
from platform_assets.contracts.errors import ContractError
from platform_assets.contracts.mistakes import check_declaration


@dataclass(frozen=True)
class Rule:
    """A condition every row must meet; a row that breaks it goes to quarantine with the rule's name as reason.

    Args:
        name: identifier, shown as the reason.
        expression: Spark SQL over the columns of the raw contract and the day of the event, `event_date`; what the
            platform adds to them is out of its sight. Null counts as broken.
        description: what a reader should know, for the quarantine listing.
        breach: what becomes of the key. With `skip` its older version stays, as if the row had never come. With `void`
            the row takes the key back: for a value that a source corrects to "missing", such as -9999.
    """

    name: str
    expression: str
    description: str
    breach: Literal["skip", "void"] = "skip"

    def __post_init__(self) -> None:
        check_declaration(self, f"The rule {self.name!r}", self._problems)

    def _problems(self) -> Iterator[ContractError]:
        if not IDENTIFIER.fullmatch(self.name) or not self.expression.strip():
            yield ContractError(
                f"The rule {self.name!r} has no identifier as its name, or no expression.",
                "Name it in lower-case letters, digits and underscores, and give a condition, as n > 0.",
                field=self.name,
            )
