"""Selected tables, days and keys, and the request made from them.

Only the rows of some keys of a day may be computed, while all others are copied. Also here: protected days, and samples
of days.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from difflib import get_close_matches
from hashlib import sha256

from platform_assets.contracts import Catalogue, Contract
from platform_assets.contracts.calendar import why_protected
from platform_assets.errors import PlatformError, did_you_mean
from platform_assets.planning.reasons import Reasons
from platform_assets.planning.windows import Calendar, day_range, union_read, which
from platform_assets.records.erased_keys import canonical
from platform_assets.words import counted

MIXED = "mixed:"
"""How the fingerprint or code version of a day begins whose rows do not share one; no other begins so."""

_NEAREST = 3
"""Values that are named to choose from."""
_BITS = {"int": 32, "long": 64}


class ScopeError(PlatformError):
    """Rows of some keys cannot be computed apart from the rest of their days."""


@dataclass(frozen=True)
class KeyScope:
    """Keys by the values of their columns; a row needs a matching value in each column.

    Args:
        keys: columns, each with the texts of its values, both sorted.
    """

    keys: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the restricted columns."""
        return tuple(name for name, _ in self.keys)

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        """Return the scope for a manifest."""
        return dict(self.keys)

    def __str__(self) -> str:
        return shown_keys(self.texts)


def shown_keys(keys: Mapping[str, Collection[str]]) -> str:
    """Return keys in the syntax of the command line, for people."""
    return " and ".join(f"{name}={','.join(map(_quoted, values))}" for name, values in keys.items())


def _quoted(text: str) -> str:
    is_plain = not (text.startswith('"') or any(mark in text for mark in ",\n\r"))
    return text if is_plain else '"{}"'.format(text.replace('"', '""'))


def scope_of(contract: Contract, asked: Mapping[str, Collection[str]]) -> KeyScope:
    """Return the named scope, checked against the contract of a table.

    Raises:
        ScopeError: the table does not promise that its rows can be computed separately by a column, or a value does
            not fit the column.
    """
    if not asked or not all(asked.values()):
        raise ScopeError("No key was named.", "Name a column and its values, as store_id=330,337.")
    for name in asked:
        if name not in contract.separable_by:
            by = ", ".join(contract.separable_by)
            raise ScopeError(
                f"{contract.name} does not promise that its rows can be computed by {name} alone.",
                (f"Name values of {by}, or " if by else f"Add {name} to its `separable_by` if that is so, or ")
                + "compute its days whole.",
            )
    return KeyScope(
        tuple(
            (name, tuple(sorted({_checked(contract, name, text) for text in texts})))
            for name, texts in sorted(asked.items())
        )
    )


def value_of(text: str, type_: str) -> int | str | date:
    """Return a text as a Python value."""
    if type_ == "date":
        return date.fromisoformat(text)
    return int(text) if type_ in _BITS else text


def nearest(text: str, there: Collection[str]) -> tuple[str, ...]:
    """Return the few values nearest to a missing one; without near ones, the first."""
    near = get_close_matches(text, sorted(there), _NEAREST, 0.3)
    return tuple(near or sorted(there)[:_NEAREST])


def mixed(before: str, now: str) -> str:
    """Return the fingerprint, or code version, of a day with newly computed and copied rows.

    If both are equal, it is that one. Else it is one that no day would ever get, so the day stays stale for just this
    reason until it is computed whole, even if its input or code returns to what it was.
    """
    return now if before == now else MIXED + sha256(f"{before} {now}".encode()).hexdigest()[:16]


def is_mixed(*recorded: str) -> bool:
    """Return whether a day's fingerprint or code version says that its rows do not share one."""
    return any(text.startswith(MIXED) for text in recorded)


def _checked(contract: Contract, name: str, text: str) -> str:
    type_ = contract.column(name).type
    found = canonical(text, type_)
    try:
        value = value_of(found, type_)
        is_one = str(value) == found and (
            not isinstance(value, int) or -(2 ** (_BITS[type_] - 1)) <= value < 2 ** (_BITS[type_] - 1)
        )
    except ValueError:
        is_one = False
    if not is_one:
        raise ScopeError(f"{text!r} is no {type_}, as {name} of {contract.name} is.", "Correct the value.")
    return found


@dataclass(frozen=True)
class Selection:
    """Selected tables and days; all by default."""

    tables: frozenset[str] = frozenset()
    days: frozenset[date] | None = None

    def has_table(self, table: str) -> bool:
        """Return whether a table is among them."""
        return not self.tables or table in self.tables

    def has_day(self, day: date | None) -> bool:
        """Return whether a day is selected; rows without a day are if no days are named."""
        return self.days is None or day in self.days


EVERYTHING = Selection()
"""The selection without names: all tables and days."""


@dataclass(frozen=True)
class Request(Selection):
    """A selection to bring up to date with all its inputs, and how far.

    Args:
        by_person: whether days that are stale only through code or configuration are included.
        force: whether the requested days are recomputed whatever their state.
        by_table: days of each table, in place of `days`; of other tables only stale or reached days.
        protected_too: protected days to compute, as a plan file explains.
        keys: only rows of these keys are computed, of the named tables and days; all of them by default.
        takes: whether raw tables first ingest their deliveries.
    """

    by_person: bool = False
    force: bool = False
    by_table: Mapping[str, frozenset[date]] = field(default_factory=dict, hash=False)
    protected_too: frozenset[date] = frozenset()
    keys: KeyScope | None = None
    takes: bool = True

    def named_days(self, table: str, wanted: Collection[date]) -> frozenset[date]:
        """Return the days of a table requested by name: the table's, the days', or by force all."""
        if self.by_table:
            return self.by_table.get(table, frozenset()).intersection(wanted) if table in self.tables else frozenset()
        named = table in self.tables or (not self.tables and (self.days is not None or self.force))
        if not named:
            return frozenset()
        return frozenset(wanted) if self.days is None else self.days.intersection(wanted)

    def leaves(self, table: str, day: date) -> bool:
        """Return whether a day that is stale by code alone stays so: other days of its table are named."""
        return bool(self.by_table) and table in self.tables and day not in self.by_table.get(table, ())


AUTOMATIC = Request()
"""What sensors and schedules ask for: everything that is stale through data."""

BY_PERSON = Request(by_person=True)
"""What a person asks for who names nothing: everything that is stale."""


def wanted_days(catalogue: Catalogue, request: Request, calendar: Calendar) -> dict[str, frozenset[date]]:
    """Return the requested days, and the days of their inputs through every window."""
    every = frozenset(calendar.days())
    if request.by_table:
        wanted = {name: set(every & days) for name, days in request.by_table.items()}
    elif not request.tables and request.days is None:
        return dict.fromkeys(catalogue.names, every)
    else:
        days = every if request.days is None else every & request.days
        wanted = {name: set(days) for name in request.tables or catalogue.names}
    for contract in reversed(catalogue.tables):
        for read in contract.inputs:
            for span in union_read(read.window, wanted.get(contract.name, ()), calendar):
                wanted.setdefault(read.table, set()).update(day_range(*span))
    return {table: frozenset(of_table) for table, of_table in wanted.items()}


def days_to_probe(rows: Mapping[date, int], together: int) -> tuple[date, ...]:
    """Return the days most likely to reveal a faulty transform; none if they could show nothing new.

    A day with neighbours on both sides shows reads of the day before and the day after; among those the one with most
    rows has most ties. Without such a day all days are taken.

    A single day shows nothing about reads of neighbours, nor do few days about reads of distant ones. So a larger
    number of days than ever before has something new to show.

    Args:
        together: most days with rows that the transform has computed together before.
    """
    ordered = [day for day in sorted(rows) if rows[day]]
    # A neighbour that comes out empty may have been looked at all the same.
    if together >= max(len(ordered), min(len(rows), 2)):
        return ()
    inner = ordered[1:-1]
    return (max(inner, key=lambda day: (rows[day], day)),) if inner else tuple(ordered)


@dataclass(frozen=True)
class Draw:
    """A random sample of days to verify.

    Args:
        most: number of days besides the newest; fewer if there are fewer.
        seed: the same seed draws the same days.
    """

    most: int = 3
    seed: int = 0

    def of(self, days: Collection[date]) -> tuple[date, ...]:
        """Return the newest of some days and others drawn at random, oldest first."""
        ordered = sorted(days)
        older, newest = ordered[:-1], ordered[-1:]
        drawn = random.Random(self.seed).sample(older, min(self.most, len(older)))  # noqa: S311
        return (*sorted(drawn), *newest)


_NOT_DATA = {"code", "configuration"}


class ProtectedDaysError(PlatformError):
    """Protected days would be computed without a plan that says why."""


def protected_in(
    catalogue: Catalogue, planned: Mapping[str, Collection[date]], known: Mapping[str, Collection[date]]
) -> dict[str, dict[date, str]]:
    """Return the protected days of a plan that have content, each with the reason, by table."""
    protected = {table: _protected(catalogue, table, days, known) for table, days in planned.items()}
    return {table: days for table, days in protected.items() if days}


def protected_without_data(
    catalogue: Catalogue, reasons: Mapping[str, Mapping[date, Reasons]], known: Mapping[str, Collection[date]]
) -> dict[str, dict[date, str]]:
    """Return protected days that are stale without a change of their data, or for an unknown reason."""
    without_data = {
        table: [day for day, why in of_table.items() if "asked for" in why or _NOT_DATA.issuperset(why)]
        for table, of_table in reasons.items()
    }
    return protected_in(catalogue, without_data, known)


def refuse_protected(
    catalogue: Catalogue, reasons: Mapping[str, Mapping[date, Reasons]], known: Mapping[str, Collection[date]]
) -> None:
    """Refuse to compute protected days that have content, unless their data changed.

    Raises:
        ProtectedDaysError: names the first table.
    """
    for table, days in protected_without_data(catalogue, reasons, known).items():
        raise ProtectedDaysError(
            f"{counted(len(days), 'day')} of {table} ({which(list(days))}) cannot be computed so: they are protected, "
            f"because {next(iter(days.values()))}.",
            "Leave them out, or write a plan with `override_protected`: `platform-assets backfill new`.",
        )


def _protected(
    catalogue: Catalogue, table: str, days: Collection[date], known: Mapping[str, Collection[date]]
) -> dict[date, str]:
    periods, there = catalogue.protecting(table), known.get(table, ())
    return (
        {day: why for day in sorted(days) if day in there and (why := why_protected(periods, day))} if periods else {}
    )


STALE = "stale"
_KINDS = ("domain", "tag")


class SelectorError(PlatformError):
    """A selector selects no table."""

    is_misspelt = True


def is_selector(word: str) -> bool:
    """Return whether a word can only be a selector, because no table can have such a name."""
    return word == STALE or word.startswith("+") or word.endswith("+") or word.partition(":")[0] in _KINDS


def select(catalogue: Catalogue, words: Iterable[str], stale: Callable[[], Collection[str]]) -> frozenset[str]:
    """Return the names of the tables that any of these selectors selects.

    Args:
        stale: returns the tables with stale days; called only if a selector needs it.

    Raises:
        UnknownTableError: a selector names a table that no domain declares.
        SelectorError: a selector selects nothing.
    """
    return frozenset(table for word in words for table in _selected(catalogue, word, stale))


def _selected(catalogue: Catalogue, word: str, stale: Callable[[], Collection[str]]) -> Collection[str]:
    body = word.removeprefix("+").removesuffix("+")
    chosen = _without_signs(catalogue, body, stale)
    if not chosen:
        raise _nothing(catalogue, word, body)
    above = catalogue.with_inputs(chosen) if word.startswith("+") else chosen
    below = catalogue.with_dependants(chosen) if word.endswith("+") else chosen
    return {*above, *below}


def _without_signs(catalogue: Catalogue, body: str, stale: Callable[[], Collection[str]]) -> Collection[str]:
    kind, colon, name = body.partition(":")
    if body == STALE:
        return stale()
    if colon and kind == "domain":
        return [contract.name for domain in catalogue.domains if domain.name == name for contract in domain.tables]
    if colon and kind == "tag":
        return [contract.name for contract in catalogue if name in contract.tags]
    return [catalogue[body].name]


def _nothing(catalogue: Catalogue, word: str, body: str) -> SelectorError:
    kind, _, name = body.partition(":")
    if body == STALE:
        return SelectorError(f"{word!r} selects nothing: no table is stale.", "Name tables, or wait for new files.")
    there = {
        "domain": [domain.name for domain in catalogue.domains],
        "tag": sorted({tag for contract in catalogue for tag in contract.tags}),
    }[kind]
    todo = f"There are {', '.join(there)}." if there else f"No table has a {kind}."
    return SelectorError(f"{word!r} selects no table.", f"{did_you_mean(name, there)}{todo}")
