"""A mistake in a domain: what is wrong, where, and what to do; and the one error that tells all of them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Sequence

from platform_assets.contracts import Catalogue, Contract, ContractError
from platform_assets.errors import PlatformError, users_line


@dataclasses.dataclass(frozen=True)
class Mistake:
    """Something in a domain that keeps a table from being computed.

    Args:
        place: file and line, where one is to blame.
        table: whose contract or transform it is about.
        field: of the contract; or the column, rule, amount or parameter.
    """

    what: str
    todo: str
    package: str
    place: str | None = None
    table: str | None = None
    field: str | None = None
    error: PlatformError | None = dataclasses.field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, error: PlatformError, package: str, place: str | None = None, table: str | None = None) -> Mistake:
        """Return a mistake as the error says it; the place joins what is told, unless it is told already."""
        table = getattr(error, "table", None) or table
        place = (
            place
            or getattr(error, "place", None)
            or (users_line(error.__cause__, package) if error.__cause__ else None)
        )
        is_told = place is None or ", line " not in place or place in error.what
        what = error.what if is_told else f"{error.what} It is declared in {place}."
        return cls(what, error.todo, package, place, table, getattr(error, "field", None), error)

    def json(self) -> dict[str, str | None]:
        """Return its fields for programs."""
        names = ("package", "place", "table", "field", "what", "todo")
        return {name: getattr(self, name) for name in names}


class MistakesError(ContractError):
    """Several things are wrong in domains."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        super().__init__(
            f"{len(mistakes)} things are wrong in the domains; nothing was done.",
            "Correct them; `platform-assets check` tells whether all is well.",
            lines=[
                line
                for number, mistake in enumerate(mistakes, 1)
                for line in (f"{number}. {mistake.what}", f"   {mistake.todo}")
            ],
        )
        self.mistakes = tuple(mistakes)


def refuse_mistakes(mistakes: Sequence[Mistake]) -> None:
    """Raise what is wrong, all of it at once.

    Raises:
        MistakesError: there are several.
        PlatformError: there is one, told as the error that it is.
    """
    distinct = list(dict.fromkeys(mistakes))
    if len(distinct) > 1:
        raise MistakesError(distinct) from distinct[0].error
    for mistake in distinct:
        if isinstance(mistake.error, ContractError):
            error = mistake.error
            raise ContractError(
                mistake.what, error.todo, table=error.table, field=error.field, place=mistake.place
            ) from (error.__cause__ or error)
        if mistake.error is not None:
            raise mistake.error


def mistakes_in(error: PlatformError, package: str = "") -> tuple[Mistake, ...]:
    """Return what an error tells of: all mistakes of a `MistakesError`, else the one that it is itself."""
    return error.mistakes if isinstance(error, MistakesError) else (Mistake.of(error, package),)


_DELETES = re.compile(r"(?i)delete|void|tombstone|(<>|!=|\bnot\b).*'(d|del|removed?)'")
"""Looks like a rule by which deleted rows are left out."""


def advice(catalogue: Catalogue, tables: Collection[str]) -> Iterator[Mistake]:
    """Point out what of some tables lets a deleted or moved record count on."""
    for contract in catalogue:
        if contract.name not in tables or contract.layer != "silver":
            continue
        source, package = catalogue[contract.inputs[0].table], catalogue.domain_of(contract.name).transforms
        for rule in contract.quarantine_rules if source.voided is None else ():
            if rule.breach == "skip" and _DELETES.search(rule.kind.text):
                what = (
                    f"the rule {rule.name!r} of {contract.name} ({rule.kind.text}) looks as if it left out deleted "
                    "rows. A row that breaks a rule is skipped, and the older version of its key counts again."
                )
                todo = f"Declare the delete on {source.name}, as voided=\"op = 'D'\"."
                yield Mistake(what, todo, package, table=source.name, field="voided")
        if may_move(contract, catalogue) and source.moves_within_days == 0:
            time = source.event_time
            what = f"moves_within_days=0 says that no key's {time} is corrected to another day: it would count twice."
            todo = f"Set it to how far {time} can move; or add {time} to the key, if keys have a row on many days."
            yield Mistake(what, todo, package, table=source.name, field="moves_within_days")


def may_move(contract: Contract, catalogue: Catalogue) -> bool:
    """Return whether a key of a silver table is to lie on one day, though its event time can be corrected.

    A key that contains the event time moves nowhere. Without `updated_at` a key may well have a row on every day.
    """
    if contract.layer != "silver":
        return False
    source = catalogue[contract.inputs[0].table]
    can_be_corrected = bool(contract.key and (source.updated_at or source.moves_within_days))
    return can_be_corrected and source.event_time not in {*source.key, *contract.key}
