"""What is wrong with the rules of a contract, by itself and beside the tables it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from platform_assets.contracts.errors import ContractError
from platform_assets.contracts.kinds import family_of, type_problem
from platform_assets.contracts.rules import Rule
from platform_assets.contracts.windows import AsOf
from platform_assets.errors import did_you_mean

if TYPE_CHECKING:
    from platform_assets.contracts.table import Contract

_DAY = "event_date"


def declared_rule_problems(contract: Contract) -> Iterator[ContractError]:
    """Yield what is wrong with the rules of a silver or gold table, whatever it reads."""
    names = [rule.name for rule in contract.rules]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield ContractError(
            f"The contract of {contract.name} has two rules of the name {name!r}, and quarantined rows and findings "
            "say no more than it.",
            "Rename one.",
            table=contract.name,
            field=name,
        )
    as_of = {read.table for read in contract.inputs if isinstance(read.window, AsOf)}
    for rule in contract.rules:
        if contract.layer == "gold" and rule.quarantines:
            yield _error(
                contract,
                rule,
                "would quarantine rows of a gold table: a row of an aggregate stands for many rows, and all that is "
                "summed up without it would be wrong",
                "Give it severity='block' or severity='warn', or quarantine on the silver table.",
            )
        if contract.layer == "gold" and rule.kind.within == "window":
            todo = "Look within the day, or declare it on the silver table."
            yield _error(contract, rule, "looks within moves_within_days, which only silver tables have", todo)
        if rule.kind.table and rule.kind.table not in as_of:
            yield _error(
                contract,
                rule,
                f"looks into {rule.kind.table}, which the table does not read as of the day",
                f"Add Input({rule.kind.table!r}, as_of()) to `inputs`: days are then judged anew when it changes.",
            )


def rule_problems(contract: Contract, by_name: Mapping[str, Contract]) -> Iterator[ContractError]:
    """Yield rules that look at columns that are not there, or compare types that do not compare."""
    for rule in contract.rules:
        judged = by_name[contract.inputs[0].table] if rule.quarantines else contract
        types = {column.name: column.type for column in judged.columns}
        types |= {_DAY: "date"} if rule.kind.is_condition else {}
        yield from _column_problems(contract, rule, judged, rule.kind.columns, types)
        there = by_name.get(rule.kind.table)
        if rule.kind.columns and {*rule.kind.columns} <= types.keys():
            if problem := type_problem(rule.kind, types):
                yield _error(contract, rule, problem, "Compare columns and values of one type.")
            if there is not None:
                yield from _reference_problems(contract, rule, there, types)


def _reference_problems(
    contract: Contract, rule: Rule, there: Contract, types: Mapping[str, str]
) -> Iterator[ContractError]:
    theirs = {column.name: column.type for column in there.columns}
    yield from _column_problems(contract, rule, there, rule.kind.theirs, theirs)
    for our, their in zip(rule.kind.columns, rule.kind.theirs, strict=True):
        if their in theirs and family_of(types[our]) != family_of(theirs[their]):
            what = f"looks for {our} ({types[our]}) in {there.name}.{their} ({theirs[their]}), which do not compare"
            yield _error(contract, rule, what, "Look into a column of the same type.")


def _column_problems(
    contract: Contract, rule: Rule, judged: Contract, names: tuple[str, ...], types: Mapping[str, str]
) -> Iterator[ContractError]:
    for name in dict.fromkeys(name for name in names if name not in types):
        todo = f"{did_you_mean(name, types)}Name one of {', '.join(types)}."
        yield _error(contract, rule, f"looks at {name!r}, which {judged.name} does not declare", todo)


def _error(contract: Contract, rule: Rule, what: str, todo: str) -> ContractError:
    whose = f"The rule {rule.name!r} of {contract.name}"
    return ContractError(f"{whose} {what}.", todo, table=contract.name, field=rule.name)
