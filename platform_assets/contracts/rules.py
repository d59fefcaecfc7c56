"""Rules: conditions on rows of a table, the fate of rows or days that break them, and tables of rows set aside."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, NamedTuple

from platform_assets.contracts.columns import IDENTIFIER
from platform_assets.contracts.errors import ContractError, check_declaration
from platform_assets.contracts.kinds import Kind, condition, family_of, type_problem
from platform_assets.errors import did_you_mean

_PART = re.compile(r"(\d{1,12}) rows?|(\d{1,3}(?:\.\d{1,10})?) ?%")
_FORMS = "Write a number of rows, a percentage up to 100 % or both, as `3 rows, 0.5 %`."


class RuleCount(NamedTuple):
    """Rows of a day that break a rule, among those that it judges."""

    broken: int = 0
    judged: int = 0


@dataclass(frozen=True)
class RowTolerance:
    """How many rows may break a rule: as many as the greater of both allows.

    Args:
        rows: a number.
        percent: a share of the rows that the rule judges.
    """

    rows: int = 0
    percent: Decimal = Decimal(0)

    @classmethod
    def parse(cls, text: str) -> RowTolerance | None:
        """Parse a tolerance; None if the text is not one, or an impossible one."""
        found: dict[str, Decimal] = {}
        for part in text.split(",") if text.strip() else ():
            match = _PART.fullmatch(part.strip())
            field = "" if match is None else "rows" if match[1] else "percent"
            if match is None or field in found:
                return None
            found[field] = Decimal(match[1] or match[2])
        percent = found.get("percent", Decimal(0))
        return None if percent > 100 else cls(int(found.get("rows", 0)), percent)

    def allows(self, broken: int, judged: int) -> bool:
        """Return whether so many of the judged rows may break the rule."""
        return broken <= self.rows or 100 * broken <= self.percent * judged

    def __str__(self) -> str:
        parts = [f"{self.rows:,} row{'' if self.rows == 1 else 's'}"] if self.rows or not self.percent else []
        parts += [f"{self.percent} %"] if self.percent else []
        return " or ".join(parts)


@dataclass(frozen=True)
class Rule:
    """Declare what every row must meet, and what happens to a row or day that does not.

    Args:
        name: identifier, shown as the reason.
        expression: a kind, as `in_range("amount", 0)`, or a Spark SQL condition as text. A rule that quarantines sees
            the columns of the raw contract; any other sees the columns of its own table. Both see the day,
            `event_date`. Null counts as a violation.
        description: what a reader should know, for the list of quarantined rows.
        breach: what happens to the key of a quarantined row. `skip` keeps its older version. `void` deletes the key:
            for a value that a source corrects to "missing", such as -9999.
        severity: `quarantine` sets the row aside (silver tables only), `block` holds the day, `warn` publishes it with
            a warning.
        where: Spark SQL condition; other rows are not judged.
        tolerance: how many of the judged rows of a day may break the rule, as `3 rows`, `0.5 %` or `3 rows, 0.5 %`;
            none by default. With more the day is held. A rule that quarantines tolerates any number by default.
    """

    name: str
    expression: str | Kind
    description: str
    breach: Literal["skip", "void"] = "skip"
    severity: Literal["quarantine", "block", "warn"] = "quarantine"
    where: str = ""
    tolerance: str = ""

    def __post_init__(self) -> None:
        check_declaration(self, f"The rule {self.name!r}", self._problems)

    @property
    def kind(self) -> Kind:
        """Return its condition on rows."""
        return self.expression if isinstance(self.expression, Kind) else condition(self.expression)

    @property
    def allowed(self) -> RowTolerance | None:
        """Return how many rows may break it before the day is refused or warned of; None for any number."""
        return None if self.quarantines and not self.tolerance.strip() else RowTolerance.parse(self.tolerance)

    @property
    def quarantines(self) -> bool:
        """Return whether a row that breaks it is set aside."""
        return self.severity == "quarantine"

    def _problems(self) -> Iterator[ContractError]:
        whose = f"The rule {self.name!r}"
        if not IDENTIFIER.fullmatch(self.name) or not self.kind.text.strip():
            yield ContractError(
                f"{whose} has no identifier as its name, or no expression.",
                "Name it in lower-case letters, digits and underscores, and give a condition, as n > 0.",
                field=self.name,
            )
        names: list[object] = [*self.kind.names]
        if nameless := [each for each in names if not isinstance(each, str) or not each.strip()]:
            todo = f"Give {self.kind.name}(…) the names of columns and tables as texts."
            yield ContractError(f"{whose} looks at {nameless[0]!r}, which is no name.", todo, field=self.name)
        if self.kind.wrong:
            todo = f"Correct the arguments of {self.kind.name}(…)."
            yield ContractError(f"{whose} {self.kind.wrong}.", todo, field=self.name)
        if RowTolerance.parse(self.tolerance) is None:
            yield ContractError(f"{whose} has an impossible tolerance: {self.tolerance!r}.", _FORMS, field=self.name)
        if self.quarantines and not self.kind.is_condition:
            yield ContractError(
                f"{whose} quarantines rows by {self.kind.name}, which looks at other rows: with these, another version "
                "of a record could count.",
                "Give it severity='block' or severity='warn'.",
                field=self.name,
            )
        if self.breach == "void" and not self.quarantines:
            yield ContractError(
                f"{whose} has breach='void' and severity={self.severity!r}: only a row in quarantine takes a key back.",
                "Leave out one of them.",
                field=self.name,
            )
        if self.kind.within == "window" and self.severity == "block":
            yield ContractError(
                f"{whose} blocks a day for rows of other days, which day depends on which of them came first.",
                "Give it severity='warn', or look within the day.",
                field=self.name,
            )


Types = Mapping[str, str]
"""The type of each column, by name."""

_DAY = "event_date"


def declared_rule_problems(table: str, rules: Sequence[Rule], as_of: Collection[str]) -> Iterator[ContractError]:
    """Yield the problems of a silver or gold table's rules that do not depend on its inputs.

    Args:
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
    """Yield rules with missing columns or incomparable types.

    Args:
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


def refused_table(raw: str) -> str:
    """Return the table of rows refused at parsing, for a raw table."""
    return f"refused.{raw.partition('.')[2]}"


def quarantine_table(silver: str) -> str:
    """Return the table of quarantined rows, for a silver table."""
    return f"quarantine.{silver.partition('.')[2]}"


def with_quarantine(table: str) -> tuple[str, ...]:
    """Return a table and, of a silver one, its quarantine: a gold table of the same name has none."""
    return (table, quarantine_table(table)) if table.startswith("silver.") else (table,)


SUPERSEDED = "superseded."
"""Prefix of a silver table's name without its layer: its superseded rows, looked up in raw."""
