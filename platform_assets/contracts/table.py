"""The contract of a table: what it promises, declared once.

Reading, invalidation, Dagster assets, checks and documentation all follow from this value; nothing about a table
is declared anywhere else. A contract is pure: building one starts no JVM and imports no engine.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from platform_assets.contracts.calendar import EveryDays, Protected, Weekdays
from platform_assets.contracts.checks import (
    Checks,
    Circuit,
    Comparison,
    Freshness,
    Reconciliation,
    Settled,
    settled_problems,
)
from platform_assets.contracts.columns import IDENTIFIER, Column, is_zone, place_problems, words
from platform_assets.contracts.errors import ContractError, Days, check_declaration, wrong_among
from platform_assets.contracts.landing import LandingFiles
from platform_assets.contracts.rules import Rule, declared_rule_problems
from platform_assets.contracts.windows import AsOf, Offsets, Span, Window

_CODE_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def code_version_problems(where: str, version: str | None, table: str | None = None) -> Iterator[ContractError]:
    """Yield why a hand-set code version is unusable: it is empty, or has characters that are not allowed."""
    if version is not None and not _CODE_VERSION.fullmatch(version):
        yield ContractError(
            f"{where} sets the code version {version!r}, which is {'not one' if version.strip() else 'empty'}.",
            "Write letters, digits, dots and dashes, as in '2024-03.1', or remove it to have the source decide.",
            table=table,
            field="code_version",
        )


Layer = Literal["raw", "silver", "gold"]
LAYERS: tuple[Layer, ...] = ("raw", "silver", "gold")

DAY = "event_date"
"""The partition column of every table: the event date, in UTC or the `day_zone` of the raw table, never null."""


@dataclass(frozen=True)
class Input:
    """Declare one input of a transform, and which of its days one day reads.

    Args:
        table: `<layer>.<table>`. The transform gets it as a parameter that is named without the layer.
        window: which days one day reads. `same_day()` passes a DataFrame, `as_of()` a `History`, any other window a
            `Windowed`.
    """

    table: str
    window: Window

    def __post_init__(self) -> None:
        check_declaration(self, f"The input {self.table!r}", lambda: _name_problems(self.table))

    @property
    def parameter(self) -> str:
        """The name of the transform's parameter: the table without its layer."""
        return self.table.split(".")[1]


def _name_problems(name: str) -> Iterator[ContractError]:
    """Yield why a text is not the name of a table."""
    layer, _, table = name.partition(".")
    if layer not in LAYERS or not IDENTIFIER.fullmatch(table):
        yield ContractError(
            f"Table name {name!r} is not <layer>.<table>.",
            "Name it raw.x, silver.x or gold.x, in lower case.",
            table=name,
            field="name",
        )


def _reads_ahead(window: Window) -> bool:
    return (isinstance(window, Span) and window.after > 0) or (isinstance(window, Offsets) and max(window.each) > 0)


@dataclass(frozen=True)
class Contract:
    """Declare what a table promises.

    Args:
        name: `<layer>.<table>`; the layer is raw, silver or gold.
        description: one paragraph for a reader of the table.
        owner: who answers for it.
        columns: every column except `event_date`, in order.
        key: the natural key. Silver and gold have one row per key and day; silver has one row per key within
            `moves_within_days` of its raw input. `()` is one row a day, not for raw tables.
        inputs: what the transform reads. A raw table has none. A silver table has one raw table, read on the same day,
            and may have silver tables read as of the day, for its rules only.
        source: where arrivals of a raw table come from.
        event_time: the raw column (timestamp or date) whose date is the day: its UTC date, or that in `day_zone`.
        day_zone: the time zone of a shop whose local dates are the days, as `Europe/Berlin`: some have 23 or 25 hours.
            How late a row is, and what windows read, follows from these days; what "today" is stays UTC.
        updated_at: the raw column that orders the versions of a key, or several, the most significant first:
            timestamps, dates or whole numbers. If they are equal or absent, docs/versions.md says which version
            counts.
        voided: what deletes a key: a raw boolean column, or a Spark SQL condition over raw columns such as `op = 'D'`.
            Null deletes nothing. A delete may lack the event time: docs/corrections.md.
        moves_within_days: how many days apart two versions of one key can be.
        delivers: the days for which rows are expected. `daily` is every open day; `Weekdays(("saturday",))` or
            `EveryDays(14, date(2024, 1, 6))` only these. An expected day without an arrival is missing; any other day
            is loaded and empty. `on change` expects nothing: a day without an arrival is loaded and empty.
        delivered_after_days: how many days after a day its rows arrive. Until then the day is neither empty nor
            missing, and nothing is computed from it.
        restatement_window_days: rows that arrive more days than this after their day wait in the late queue.
        deep_restatement_days: the periodic deep restatement ingests waiting rows that are at most so many days late. By
            default only a person does.
        ahead_days: rows that arrive more days than this before their day wait until it comes.
        protected: days that do not change without a decision, here and in all tables computed from this one.
        rules: what rows must meet, for silver and gold tables: docs/rules.md.
        closed_days: days on which no rows are expected, such as holidays.
        checks: which findings block a day and which only warn.
        reconciles: comparisons with the inputs, before a day is published.
        comparisons: comparisons with any other side, on a schedule.
        settled: sums that move no further than declared, once a day is old enough.
        freshness: when a day is overdue.
        circuit: after which failures the table is no longer published, and how that ends.
        code_version: set by hand, in place of a hash of the code that the transform reaches.
        separable_by: key columns of a gold table whose values can be computed independently: no sum, rank or share
            crosses values, and none is computed for nulls. It allows `refresh --stage NAME --only COLUMN=VALUE`. Of
            inputs that have such a column only the rows with the value are read; other inputs, and those read as of a
            day, are read whole.
        tags: words by which tables are selected together, as `tag:finance`; they change no row.
    """

    name: str
    description: str
    owner: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    inputs: tuple[Input, ...] = ()
    source: LandingFiles | None = None
    event_time: str | None = None
    updated_at: str | tuple[str, ...] | None = None
    voided: str | None = None
    moves_within_days: Days = 0
    delivers: Literal["daily", "on change"] | Weekdays | EveryDays = "daily"
    delivered_after_days: Days = 0
    restatement_window_days: Days = 90
    deep_restatement_days: Days | None = None
    ahead_days: Days = 366
    protected: tuple[Protected, ...] = ()
    rules: tuple[Rule, ...] = ()
    closed_days: frozenset[date] = field(default_factory=frozenset)
    checks: Checks = field(default_factory=Checks)
    reconciles: tuple[Reconciliation, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    settled: tuple[Settled, ...] = ()
    freshness: Freshness = field(default_factory=Freshness)
    circuit: Circuit = field(default_factory=Circuit)
    code_version: str | None = None
    separable_by: tuple[str, ...] = ()
    day_zone: str | None = None
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_declaration(self, f"The contract of {self.name}", self._problems, self.name)

    def _problems(self) -> Iterator[ContractError]:
        wrong_among(self.columns, self.name)
        names = [column.name for column in self.columns]
        if wrong := list(_name_problems(self.name)):
            yield from wrong
            return  # the rest depends on the layer
        for name in dict.fromkeys(name for name in names if names.count(name) > 1 or name == DAY):
            yield self._error(
                f"declares the column {name!r} twice or in place of the day", "Remove it from `columns`.", name
            )
        for name in self.key:
            if name == DAY:
                yield self._error(
                    "names event_date in its key, and the day is part of each key already",
                    "Leave it out; a silver or gold table with one row a day has key=().",
                    "key",
                )
            elif name not in names:
                yield self._error(f"has the key column {name!r} that it does not declare", "Add it to `columns`.", name)
            elif self.column(name).nullable:
                yield self._error(f"allows nulls in its key column {name!r}", "Set nullable=False.", name)
        for tag in self.tags:
            if not IDENTIFIER.fullmatch(tag):
                yield self._error(f"has the tag {tag!r}", "Use lower-case letters, digits and underscores.", "tags")
        if len(set(self.key)) < len(self.key):
            yield self._error("names a column twice in its key", "Name each once.", "key")
        if not self.key and self.layer == "raw":
            yield self._error("has no key", "Name the columns that identify a row, as its event time.", "key")
        parts = (*self.inputs, *(read.window for read in self.inputs))
        if not wrong_among(parts, self.name):  # whether they go together is asked once each is right
            yield from self._raw_problems() if self.layer == "raw" else self._derived_problems()
        for reconciliation in self.reconciles:
            yield from self._reconciliation_problems(reconciliation)
        yield from self._comparison_problems()
        yield from settled_problems(self.name, self.columns, self.settled)
        yield from separable_problems(self.name, self.columns, self.key, self.separable_by)
        yield from code_version_problems(f"The contract of {self.name}", self.code_version, self.name)

    def _error(self, what: str, todo: str, field: str | None = None) -> ContractError:
        return ContractError(f"The contract of {self.name} {what}.", todo, table=self.name, field=field)

    def _raw_problems(self) -> Iterator[ContractError]:
        if self.source is None or self.event_time is None:
            yield self._error("has no source or no event time", "Give `source` and `event_time`.", "source")
        if self.source is not None and self.source.replaces and self.moves_within_days:
            yield self._error(
                "has a source that replaces whole days, and records that move between days",
                "Leave out `moves_within_days`: a source that brings both days whole has moved the record itself.",
                "moves_within_days",
            )
        yield from place_problems(
            self.name, self.columns, self.source.csv.columns if self.source and self.source.csv else ()
        )
        if self.deep_restatement_days is not None and self.deep_restatement_days <= self.restatement_window_days:
            yield self._error(
                f"restates {self.deep_restatement_days} days deep, which its restatement window of "
                f"{self.restatement_window_days} days takes unasked",
                "Give `deep_restatement_days` more days than `restatement_window_days`, or leave it out.",
                "deep_restatement_days",
            )
        if self.inputs or self.rules:
            yield self._error("has inputs or rules", "Declare them on the silver table that reads it.", "inputs")
        if self.code_version is not None:
            yield self._error(
                "has a code version, but raw rows are kept as delivered and computed by no code",
                "Set it on the silver table that reads it.",
                "code_version",
            )
        if self.circuit != Circuit():
            yield self._error(
                "has a circuit, but no check judges raw rows",
                "Declare it on the silver table that reads it; `platform-assets admin breaker --open` stops a raw "
                "table, too.",
                "circuit",
            )
        for what, todo, wrong in () if self.source is None else self.source.misfits(self):
            yield self._error(what, todo, wrong)
        yield from self._version_problems()

    def _version_problems(self) -> Iterator[ContractError]:
        """Yield why the versions of a key cannot be ordered or assigned to a day, or none can be chosen."""
        is_column = self.voided is None or IDENTIFIER.fullmatch(self.voided)
        if self.voided is not None and not is_column and not words(self.voided) & {*self.column_names}:
            yield self._error(
                f"has the condition voided={self.voided!r}, which looks at none of its columns",
                "Name a boolean column, or compare one that it declares, as op = 'D'.",
                "voided",
            )
        expected = [
            (self.event_time, ("timestamp", "date")),
            *((name, ("timestamp", "date", "int", "long")) for name in self.versioned_by),
            (self.voided if is_column else None, ("boolean",)),
        ]
        for name, types in expected:
            if name is not None and (name not in self.column_names or self.column(name).type not in types):
                yield self._error(
                    f"needs {name!r} as a column of type {' or '.join(types)}",
                    "Declare it so.",
                    name,
                )
        if self.day_zone is not None and (
            not is_zone(self.day_zone)
            or (self.event_time in self.column_names and self.column(self.event_time).type == "date")
        ):
            yield self._error(
                f"has day_zone={self.day_zone!r} for the days of {self.event_time!r}",
                "Name a zone of the IANA database, as Europe/Berlin, for an event time that is a timestamp; a date is "
                "a day already.",
                "day_zone",
            )
        for column in self.columns:
            is_needed = column.name in self.needed and not (column.name == self.event_time and self.takes_undated)
            if column.may_be_absent and is_needed:
                yield self._error(
                    f"lets files lack {column.name!r}, without which their rows cannot be taken or ordered",
                    "Leave out may_be_absent=True: only a column that is not in the key, `event_time`, `updated_at` or "
                    "`voided` may be absent.",
                    column.name,
                )

    def _derived_problems(self) -> Iterator[ContractError]:
        if not self.inputs:
            yield self._error("reads nothing", "Declare its `inputs`.", "inputs")
            return
        for name in ("source", "event_time", "day_zone", "updated_at", "voided", "protected"):
            if getattr(self, name) not in (None, ()):
                yield self._error(
                    f"has `{name}`, which only raw tables have",
                    "Set it on the raw table that it is made from, and leave it out here.",
                    name,
                )
        if not wrong_among(self.rules, self.name):
            as_of = {read.table for read in self.inputs if isinstance(read.window, AsOf)}
            yield from declared_rule_problems(self.name, self.rules, as_of)
        if len({i.parameter for i in self.inputs}) < len(self.inputs):
            yield self._error("has two inputs of one name", "Read each table through one window.", "inputs")
        if self.layer == "silver":
            reads, *looked_into = self.inputs
            unused = {read.table for read in looked_into} - {rule.kind.table for rule in self.rules}
            if unused or not reads.table.startswith("raw.") or reads.window != Span(0, 0):
                yield self._error(
                    "does not read exactly one raw table on the same day",
                    "Give one same_day() input; after it, only what a rule of the kind exists(…) looks into.",
                    "inputs",
                )
        elif any(i.table.startswith("raw.") for i in self.inputs):
            yield self._error("reads raw", "Read silver or gold.", "inputs")
        if any(isinstance(i.window, AsOf) and not i.table.startswith("silver.") for i in self.inputs):
            yield self._error(
                "reads something else than a silver table as of a day",
                "Use as_of() on silver tables.",
                "inputs",
            )
        ahead = [i.table for i in self.inputs if _reads_ahead(i.window)]
        if ahead and any(isinstance(i.window, AsOf) for i in self.inputs):
            yield self._error(
                f"reads days of {ahead[0]} that lie ahead beside a table that it reads as of the day",
                "Join what is valid as of the day in a separate table that reads both on the same day, and read "
                "that table through its window.",
                "inputs",
            )

    def _reconciliation_problems(self, declared: Reconciliation) -> Iterator[ContractError]:
        windows = {read.table: read.window for read in self.inputs}
        if declared.upstream not in windows:
            yield self._error(
                f"reconciles with {declared.upstream}, which is no input of it",
                f"Declare an Input of it, or set `upstream` to one of {', '.join(windows)}."
                if windows
                else "Remove it from `reconciles`.",
                "reconciles",
            )
            return
        window = windows[declared.upstream]
        if isinstance(window, AsOf):
            yield self._error(
                f"reconciles with {declared.upstream}, which it reads as of a day",
                "Remove it from `reconciles`: there are no rows of the day to compare with.",
                "reconciles",
            )
        for amount in declared.amounts:
            if window != Span(0, 0) and amount.sides[1] is None:
                yield self._error(
                    f"reconciles {amount.name!r} with {amount.theirs!r} of {declared.upstream}, which it reads through "
                    "several days and which cannot be put together from single days",
                    "Use one sum(...), count(...), min(...) or max(...) of one argument, not of distinct values; for "
                    "several of them declare several amounts.",
                    amount.name,
                )
        for name in declared.by:
            if name not in self.column_names:
                yield self._error(
                    f"reconciles with {declared.upstream} by {name!r}, a column that it does not declare",
                    "Name columns in `by` that both tables have.",
                    name,
                )

    def _comparison_problems(self) -> Iterator[ContractError]:
        compared = [comparison.name for comparison in self.comparisons]
        for name in dict.fromkeys(name for name in compared if compared.count(name) > 1):
            yield self._error(f"has two comparisons of the name {name!r}", "Rename one.", name)
        for comparison in self.comparisons:
            for name in comparison.by:
                if name not in (*self.column_names, DAY):
                    yield self._error(
                        f"is compared with {comparison.other} by {name!r}, a column that it does not declare",
                        "Name columns in `by` that both sides have.",
                        name,
                    )

    @property
    def layer(self) -> Layer:
        """Return raw, silver or gold."""
        return next(layer for layer in LAYERS if layer == self.name.split(".")[0])

    @property
    def table(self) -> str:
        """Return the name without its layer."""
        return self.name.split(".")[1]

    @property
    def column_names(self) -> tuple[str, ...]:
        """Return the names of the declared columns, in order, without the day."""
        return tuple(column.name for column in self.columns)

    @property
    def transform_inputs(self) -> tuple[Input, ...]:
        """The inputs that the transform is given; what only rules of a silver table look into is not among them."""
        return self.inputs[:1] if self.layer == "silver" else self.inputs

    @property
    def quarantine_rules(self) -> tuple[Rule, ...]:
        """The rules by which delivered rows are set aside."""
        return tuple(rule for rule in self.rules if rule.quarantines)

    @property
    def judging_rules(self) -> tuple[Rule, ...]:
        """Return the rules about rows to be published, which can refuse a day or warn of it."""
        return tuple(rule for rule in self.rules if not rule.quarantines)

    @property
    def row_key(self) -> tuple[str, ...]:
        """Return the columns that identify a row of a day: the key, or the day for a table with one row a day."""
        return self.key or (DAY,)

    @property
    def versioned_by(self) -> tuple[str, ...]:
        """Return the columns that order the versions of a key, the most significant first; none if it declares none."""
        return (self.updated_at,) if isinstance(self.updated_at, str) else self.updated_at or ()

    @property
    def needed(self) -> frozenset[str]:
        """Return the columns without which no row can be ingested and ordered."""
        named = {*self.key, self.event_time, *self.versioned_by, *words(self.voided or "")}
        return frozenset(name for name in self.column_names if name in named)

    @property
    def takes_undated(self) -> bool:
        """Return whether a delete may lack the event time, since its key identifies the record."""
        is_whole = self.source is None or self.source.replaces is not None
        return self.voided is not None and not is_whole and self.event_time not in {*self.key, *self.versioned_by}

    @property
    def void_condition(self) -> str | None:
        """Return the condition in Spark SQL by which a raw row deletes its key."""
        return f"`{self.voided}`" if self.voided in self.column_names else self.voided and f"({self.voided})"

    def expects(self, day: date) -> bool:
        """Return whether rows of a day are expected: it is not closed, and `delivers` includes it."""
        return day not in self.closed_days and (isinstance(self.delivers, str) or self.delivers.includes(day))

    def column(self, name: str) -> Column:
        """Return the declared column of that name."""
        for column in self.columns:
            if column.name == name:
                return column
        raise self._error(
            f"declares no column {name!r}",
            f"Use one of {', '.join(self.column_names)}.",
        )


_TYPES = ("string", "long", "int", "date")
"""Types whose values have one text each, by which a person can name them."""


def separable_problems(
    table: str, columns: Collection[Column], key: Collection[str], separable_by: Collection[str]
) -> Iterator[ContractError]:
    """Yield why rows cannot be computed separately by the contract's columns, as far as the contract alone shows."""
    by_name = {column.name: column for column in columns}
    for name in separable_by:
        if not table.startswith("gold."):
            what = f"is separable by {name!r}, but only gold tables can be: records move between days of the others"
        elif name not in key or name not in by_name:
            what = f"is separable by {name!r}, which is not in its key"
        elif by_name[name].sensitive:
            what = f"is separable by {name!r}, which is sensitive: its values would stay in manifests"
        elif by_name[name].type not in _TYPES:
            what = f"is separable by {name!r}, whose type is not one of {', '.join(_TYPES)}"
        else:
            continue
        yield ContractError(
            f"The contract of {table} {what}.",
            "Leave it out of `separable_by`.",
            table=table,
            field="separable_by",
        )


def amounts(contract: Contract) -> tuple[str, ...]:
    """Return columns whose sums are meaningful: additive decimals and whole numbers that are not sensitive."""
    return tuple(
        column.name
        for column in contract.columns
        if column.type.startswith(("decimal", "int", "long"))
        and column.name not in contract.key
        and not column.name.endswith("_id")
        and not column.sensitive
        and column.additive
    )
