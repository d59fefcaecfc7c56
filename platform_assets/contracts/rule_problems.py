"""What is wrong with the rules of a contract, by itself and beside the tables it reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from platform_assets.contracts.errors import ContractError
from platform_assets.contracts.kinds import family_of, type_problem
from platform_assets.contracts.rules import Rule
from platform_assets.errors import did_you_mean

Types = Mapping[str, str]
"""The type of each column, by name."""

_DAY = "event_date"


def declared_rule_problems(table: str, rules: Sequence[Rule], as_of: Collection[str]) -> Iterator[ContractError]:
    """Yield what is wrong with the rules of a silver or gold table, whatever it reads.

    Args:
        table: whose rules.
        rules: as declared.
        as_of: the tables that it reads as of the day.
    """
    seen: set[str] = set()
    for rule in rules:
        if rule.name in seen:
            what = "has the name of another one, and quarantined rows and findings say no more than it"
            yield _error(table, rule, what, "Rename one.")
        seen.add(rule.name)
        if table.startswith("gold.") and rule.quarantines:
            yield _error(
                table,
                rule,
                "would quarantine rows of a gold table: a row of an aggregate stands for many rows, and all that is "
                "summed up without it would be wrong",
                "Give it severity='block' or severity='warn', or quarantine on the silver table.",
            )
        if table.startswith("gold.") and rule.kind.within == "window":
            todo = "Look within the day, or declare it on the silver table."
            yield _error(table, rule, "looks within moves_within_days, which only silver tables have", todo)
        if rule.kind.table and rule.kind.table not in as_of:
            yield _error(
                table,
                rule,
                f"looks into {rule.kind.table}, which the table does not read as of the day",
                f"Add Input({rule.kind.table!r}, as_of()) to `inputs`: days are then judged anew when it changes.",
            )


def rule_problems(
    table: str, rules: Sequence[Rule], first_input: str, types_of: Mapping[str, Types]
) -> Iterator[ContractError]:
    """Yield rules that look at columns that are not there, or compare types that do not compare.

    Args:
        table: whose rules.
        rules: as declared.
        first_input: of the table; of silver, the raw table.
        types_of: the columns of every table.
    """
    for rule in rules:
        kind, judged = rule.kind, first_input if rule.quarantines else table
        types = {**types_of[judged], **({_DAY: "date"} if kind.is_condition else {})}
        yield from _column_problems(table, rule, judged, kind.columns, types)
        if not {*kind.columns} <= types.keys():
            continue
        if problem := type_problem(kind, types):
            yield _error(table, rule, problem, "Compare columns and values of one type.")
        theirs = types_of.get(kind.table, {})
        yield from _column_problems(table, rule, kind.table, kind.theirs, theirs)
        for our, their in zip(kind.columns, kind.theirs, strict=False):
            if their in theirs and family_of(types[our]) != family_of(theirs[their]):
                what = f"looks for {our} ({types[our]}) in {kind.table}.{their} ({theirs[their]}), which do not compare"
                yield _error(table, rule, what, "Look into a column of the same type.")


def _column_problems(
    table: str, rule: Rule, judged: str, names: Sequence[str], types: Types
) -> Iterator[ContractError]:
    for name in dict.fromkeys(name for name in names if name not in types):
        todo = f"{did_you_mean(name, types)}Name one of {', '.join(types)}."
        yield _error(table, rule, f"looks at {name!r}, which {judged} does not declare", todo)


def _error(table: str, rule: Rule, what: str, todo: str) -> ContractError:
    return ContractError(f"The rule {rule.name!r} of {table} {what}.", todo, table=table, field=rule.name)
