"""Checks that a contract declares beyond columns and keys: against other tables, on volume, freshness, settled sums.

The contract itself and the conservation of rows cannot be chosen: they always block, so that nothing unproved is ever
visible.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, get_args

from platform_assets.contracts.columns import IDENTIFIER, Column, why_no_sum
from platform_assets.contracts.errors import ContractError, Days, Minutes, Percent, Times, check_declaration

Severity = Literal["block", "warn"]
"""What a finding does: `block` keeps the day unpublished, `warn` is shown with the published day."""

FailureClass = Literal["contract", "conservation", "reconciliation", "rules", "volume", "settled", "code", "missing"]
"""What a run of a table can fail by: a check that blocked; `code`, where its transform or a check crashed; `missing`,
where no verdict came, because the machine or Spark failed, or it took longer than `verdict_within_minutes`."""

Function = Literal["sum", "count", "min", "max"]

_ONE_AGGREGATE = re.compile(r"\s*(sum|count|min|max)\s*\((?!\s*distinct\b)(.*)\)\s*", re.IGNORECASE | re.DOTALL)
TABLE_SIDE = re.compile(r"((?:raw|silver|gold)\.[^/@]+)(?:@(stage:)?(.+))?")
"""A table as a side of a comparison: its name, whether a stage has it, and which stage or release."""
_PART = re.compile(r"(\d{1,20}(?:\.\d{1,10})?)\s*(%|keys?)?")
_FORMS = "Write an amount, a percentage up to 100 % or a number of keys, each once, as `0.05, 0.1 %, 161 keys`."
_FUNCTIONS: dict[str, Function] = {name: name for name in get_args(Function)}


class ToleranceError(ContractError):
    """A tolerance that no two figures could keep."""

    is_misspelt = True


@dataclass(frozen=True)
class Tolerance:
    """How far two sides may differ and still agree.

    Args:
        absolute: most difference of two figures.
        percent: most difference of two figures, as a share of the greater one.
        keys: most keys of a day that differ by more than that.
    """

    absolute: Decimal = Decimal(0)
    percent: Decimal = Decimal(0)
    keys: int = 0

    @classmethod
    def parse(cls, text: str) -> Tolerance:
        """Parse a tolerance from its text; an empty one allows nothing.

        Raises:
            ToleranceError: the text is not a tolerance, or an impossible one.
        """
        found: dict[str, Decimal] = {}
        for part in text.split(",") if text.strip() else ():
            match = _PART.fullmatch(part.strip())
            field = {None: "absolute", "%": "percent"}.get(match[2], "keys") if match else ""
            number = Decimal(match[1]) if match else Decimal(0)
            is_possible = {"percent": number <= 100, "keys": number == int(number)}.get(field, bool(field))
            if not is_possible or field in found:
                raise ToleranceError(f"{text!r} is no tolerance.", _FORMS, field="tolerance")
            found[field] = number
        return cls(found.get("absolute", Decimal(0)), found.get("percent", Decimal(0)), int(found.get("keys", 0)))

    @property
    def is_exact(self) -> bool:
        """Return whether two figures have to be equal."""
        return not (self.absolute or self.percent)

    def __bool__(self) -> bool:
        return not self.is_exact or self.keys > 0

    def __str__(self) -> str:
        parts = [f"{self.absolute}"] if self.absolute else []
        parts += [f"{self.percent} %"] if self.percent else []
        parts += [f"{self.keys:,} key{'' if self.keys == 1 else 's'}"] if self.keys else []
        return ", ".join(parts) or "none"


EXACT = Tolerance()


def tolerance_problems(whose: str, text: str) -> Iterator[ContractError]:
    """Yield the problems of a declaration's tolerance."""
    try:
        Tolerance.parse(text)
    except ToleranceError as error:
        yield ContractError(f"{whose} has an impossible tolerance: {text!r}.", error.todo, field="tolerance")


@dataclass(frozen=True)
class Checks:
    """Choose how serious a finding of each check is.

    Args:
        volume: of a single day with unusually many or few rows. An empty day always blocks if rows are usual. With too
            little history a day that lost more than half of its rows is a warning, even if `block` is set.
        freshness: of overdue days. Nothing is held; `block` makes it an error.
        volume_blocks_after: `(k, n)`: a day also blocks if it is at least the `k`-th of the last `n` days with too few
            (or too many) rows. Not for tables with windows of several days, which share rows.
        aside_percent: warns of a silver day if more than this share of its keys has only quarantined rows, and of a
            file if more than this share of its rows was refused. 100 warns of none.
        most_aside_percent: holds such a silver day, and refuses such a file as a whole. 100 holds none.
        rivals: of a silver day with two versions of a key that are equal in `updated_at`, arrival date and declared
            file `order`, but differ in content.
    """

    volume: Severity = "warn"
    freshness: Severity = "warn"
    volume_blocks_after: tuple[int, int] = (3, 7)
    aside_percent: Percent = 10
    most_aside_percent: Percent = 100
    rivals: Severity = "warn"

    def __post_init__(self) -> None:
        check_declaration(self, "The declaration of checks", self._problems)

    def _problems(self) -> Iterator[ContractError]:
        least, of = self.volume_blocks_after
        if not 1 <= least <= of:
            yield ContractError(
                f"volume_blocks_after={self.volume_blocks_after} asks for {least} of {of} days.",
                "Give (k, n) with 1 <= k <= n: (3, 7) is three of the last seven days.",
                field="volume_blocks_after",
            )


@dataclass(frozen=True)
class Circuit:
    """Declare when the circuit of a silver or gold table opens, and how it closes.

    While a circuit is open, nothing of the table is published, tables computed from it wait, and readers keep what they
    have. By default it opens after five failed runs in a row. The table is then tried again after an hour, and at once
    after new input or code.

    Args:
        failures: `(k, n)`: it opens when `k` of the last `n` runs failed.
        per: `runs` counts runs, `dates` the dates (UTC) on which the table was judged.
        classes: failures that `failures` counts.
        warnings: whether a finding that only warns counts too.
        at_once: classes in which a single failure opens it.
        rollbacks: `(n, days)`: it opens after `n` rollbacks of the table within so many days.
        verdict_within_minutes: a batch without a verdict after this time counts as failed (class `missing`).
        wait_minutes: from opening to the first try. Each failed try doubles the wait.
        longest_wait_minutes: the wait does not grow beyond this.
        successes: successful tries in a row before it closes.
        rolls_back: whether opening rolls back the publication that opened it: the one with the warnings, or what the
            failed run had published.
    """

    failures: tuple[Times, Times] = (5, 5)
    per: Literal["runs", "dates"] = "runs"
    classes: tuple[FailureClass, ...] = ("contract", "conservation", "reconciliation", "rules", "volume", "code")
    warnings: bool = False
    at_once: tuple[FailureClass, ...] = ()
    rollbacks: tuple[Times, Days] | None = None
    verdict_within_minutes: Minutes | None = None
    wait_minutes: Minutes = 60
    longest_wait_minutes: Minutes = 1440
    successes: Times = 1
    rolls_back: bool = False

    def __post_init__(self) -> None:
        check_declaration(self, "The circuit", self._problems)

    def _problems(self) -> Iterator[ContractError]:
        least, of = self.failures
        if least > of:
            yield ContractError(
                f"The circuit has failures={self.failures}: {least} of the last {of} {self.per} cannot fail.",
                "Give (k, n) with 1 <= k <= n: (3, 5) opens after three failures among the last five.",
                field="failures",
            )
        if self.wait_minutes > self.longest_wait_minutes:
            yield ContractError(
                f"The circuit waits {self.wait_minutes} minutes, and at most {self.longest_wait_minutes}.",
                "Give `longest_wait_minutes` as many minutes as `wait_minutes`, or more.",
                field="longest_wait_minutes",
            )
        if "missing" in (*self.classes, *self.at_once) and self.verdict_within_minutes is None:
            yield ContractError(
                "The circuit counts missing verdicts and does not say when one is missing.",
                "Give `verdict_within_minutes`, as 120.",
                field="verdict_within_minutes",
            )


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of one argument over all rows: figures of single days can be put together to those of a window.

    Args:
        function: what it does with the argument.
        argument: Spark SQL, evaluated for every row.
    """

    function: Function
    argument: str

    @classmethod
    def parse(cls, expression: str) -> Aggregate | None:
        """Parse a single aggregate; None for any other expression."""
        match = _ONE_AGGREGATE.fullmatch(expression)
        return cls(_FUNCTIONS[match[1].lower()], match[2].strip()) if match and _is_one_argument(match[2]) else None


@dataclass(frozen=True)
class Amount:
    """Declare one figure that both sides of a reconciliation have.

    Args:
        name: identifier, shown in findings.
        ours: Spark SQL aggregate over the rows of the table's day, as `sum(net)`.
        theirs: Spark SQL aggregate over the upstream rows that the day reads, as `sum(net_amount)`. Use counts,
            integers and decimals, never doubles. For an input with a window of more than the same day, use a single
            sum, count, min or max, not of distinct values.
    """

    name: str
    ours: str
    theirs: str

    def __post_init__(self) -> None:
        check_declaration(self, f"The amount {self.name!r} of a reconciliation", self._problems)

    def _problems(self) -> Iterator[ContractError]:
        if not IDENTIFIER.fullmatch(self.name):
            yield ContractError(
                f"The amount {self.name!r} of a reconciliation is not an identifier.",
                "Use lower-case letters, digits and underscores.",
                field=self.name,
            )
        for side in ("ours", "theirs"):
            if not getattr(self, side).strip():
                yield ContractError(
                    f"The amount {self.name!r} of a reconciliation has no expression `{side}`.",
                    "Give a Spark SQL aggregate, as sum(net).",
                    field=self.name,
                )

    @property
    def sides(self) -> tuple[Aggregate | None, Aggregate | None]:
        """Return `ours` and `theirs` as single aggregates; None for a larger expression."""
        return Aggregate.parse(self.ours), Aggregate.parse(self.theirs)

    @property
    def is_additive(self) -> bool:
        """Return whether both sides are sums or counts, so that an absent key counts as zero."""
        return all(side is not None and side.function in ("sum", "count") for side in self.sides)


@dataclass(frozen=True)
class Reconciliation:
    """Require that a table has the same figures as an input, for each key.

    A key that one side lacks counts as zero in sums and counts. To find lost keys with an amount of zero, add a count
    of rows.

    Args:
        upstream: an input of the contract, read through any window but `as_of`.
        by: columns of both tables; figures are compared for each of their values, or per day if empty.
        amounts: the figures.
        tolerance: how far they may differ, as `0.05, 0.1 %, 161 keys`: an amount, a share of the greater figure, and
            how many keys of a day may differ by more.
        severity: whether a day beyond the tolerance is held, or published with a warning.
    """

    upstream: str
    by: tuple[str, ...]
    amounts: tuple[Amount, ...]
    tolerance: str = ""
    severity: Severity = "block"

    def __post_init__(self) -> None:
        check_declaration(self, f"The reconciliation with {self.upstream!r}", self._problems)

    @property
    def allowed(self) -> Tolerance:
        """Return the parsed tolerance."""
        return Tolerance.parse(self.tolerance)

    def _problems(self) -> Iterator[ContractError]:
        yield from tolerance_problems(f"The reconciliation with {self.upstream}", self.tolerance)
        if not self.amounts:
            yield ContractError(
                f"The reconciliation with {self.upstream} compares nothing.",
                'Give `amounts`, as Amount("rows", "sum(rows)", "count(1)").',
                field="amounts",
            )
        names = [*self.by, *(amount.name for amount in self.amounts)]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield ContractError(
                f"The reconciliation with {self.upstream} uses the name {name!r} twice.",
                "Rename the amount, or remove one from `by` or `amounts`.",
                field=name,
            )


@dataclass(frozen=True)
class Comparison:
    """Compare what readers see of a table with another side, on a schedule.

    Args:
        name: identifier; Dagster shows the check `comparison_<name>`.
        other: the other side, as `diff` accepts it: another table, a table at a release, or a golden copy by its
            full path or URL.
        by: columns of both sides by whose values sums are compared, `event_date` for one sum a day; rows by their key
            if empty.
        tolerance: how far both may differ, as of a reconciliation.
        severity: whether a difference is an error in Dagster or a warning. Published days stay.
    """

    name: str
    other: str
    by: tuple[str, ...] = ()
    tolerance: str = ""
    severity: Severity = "warn"

    def __post_init__(self) -> None:
        check_declaration(self, f"The comparison {self.name!r}", self._problems)

    @property
    def allowed(self) -> Tolerance:
        """Return the parsed tolerance."""
        return Tolerance.parse(self.tolerance)

    @property
    def other_table(self) -> str | None:
        """Return the table of the other side; None for a golden copy."""
        match = TABLE_SIDE.fullmatch(self.other)
        return match[1] if match else None

    def _problems(self) -> Iterator[ContractError]:
        yield from tolerance_problems(f"The comparison {self.name!r}", self.tolerance)
        if not IDENTIFIER.fullmatch(self.name):
            todo = "Use lower-case letters, digits and underscores."
            yield ContractError(f"The comparison {self.name!r} has no identifier as its name.", todo, field="name")
        if not (self.other_table or self.other.startswith("/") or "://" in self.other):
            yield ContractError(
                f"The comparison {self.name!r} has other={self.other!r}, which is no table and no full path.",
                "Name a table as gold.x, or a golden copy by its path from / or its URL.",
                field="other",
            )


@dataclass(frozen=True)
class Freshness:
    """Declare how soon a day must be published.

    Args:
        within_days: a day is overdue if it is not published this many days after it ended. 0: when it ends.
    """

    within_days: Days = 1

    def __post_init__(self) -> None:
        check_declaration(self, "The freshness")


def _is_one_argument(text: str) -> bool:
    """Return whether brackets match and no comma is outside of them: `a) + sum(b` is not one argument."""
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0 or (depth == 0 and character == ","):
            return False
    return depth == 0


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
        """Return the parsed tolerance."""
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
    """Yield why a table cannot have settled figures, as far as its contract alone shows."""
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
    """Return why a column cannot be summed or grouped by; None if it can."""
    if column.sensitive:
        return "it is sensitive, and its values would stay in manifests"
    if column.type == "double":
        return "it is a double, whose sums and values are not exact"
    return why_no_sum(column) if part == "sums" else None
