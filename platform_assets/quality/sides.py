"""Two sides of a reconciliation: which columns and days to compare, and whether they agree."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal, InvalidOperation, localcontext
from typing import Literal

from platform_assets.contracts import DAY
from platform_assets.contracts.checks import Tolerance
from platform_assets.planning.windows import which
from platform_assets.records.differences import Digest, KeyCounts
from platform_assets.words import counted

_EXACT = Context(prec=100, traps=[InvalidOperation])

SideOutcome = Literal["equal", "within tolerance", "different"]
Pair = tuple[Decimal | None, Decimal | None]


@dataclass(frozen=True)
class DayBeside:
    """A day whose content differs; every pair is left and right.

    Args:
        outcome: whether the difference is within the tolerance.
        sums: of amounts; None where a side has no sum.
        keys: number of keys beyond the tolerance; None if the keys were not joined.
    """

    day: date
    outcome: SideOutcome
    rows: tuple[int, int]
    sums: Mapping[str, Pair]
    keys: KeyCounts | None = None

    @property
    def figures(self) -> dict[str, tuple[int | Decimal | None, int | Decimal | None]]:
        """Return the rows, and the sums that differ."""
        return {"rows": self.rows, **{name: pair for name, pair in self.sums.items() if pair[0] != pair[1]}}


@dataclass(frozen=True)
class KeyBeside:
    """A key that differs by more than the tolerance.

    Args:
        key: key for people, sensitive values masked.
        values: left and right value of each differing column, sensitive values masked; for numbers also the difference.
        arrivals: arrivals that brought the rows of the key, if a raw table has its columns.
    """

    day: date
    key: str
    how: Literal["missing left", "missing right", "different"]
    rows: tuple[int, int]
    values: Mapping[str, tuple[str, str, str | None]]
    arrivals: tuple[str, ...] = ()


@dataclass(frozen=True)
class SidesBeside:
    """Result of a reconciliation; every pair is left and right.

    Args:
        key: columns that identify a row, or a group, within its day.
        schema: sentences on columns that only one side has, or both with other types.
        differing: the days whose content differs, oldest first.
        keys: the first keys that differ by more than the tolerance, of each kind.
        outside: differing days outside the calendar.
    """

    names: tuple[str, str]
    key: tuple[str, ...]
    schema: tuple[str, ...]
    tolerance: Tolerance
    days: int
    rows: tuple[int, int]
    differing: tuple[DayBeside, ...]
    keys: tuple[KeyBeside, ...]
    outside: tuple[date, ...] = ()

    @property
    def different(self) -> tuple[DayBeside, ...]:
        """Return the days that differ by more than the tolerance."""
        return tuple(day for day in self.differing if day.outcome == "different")

    @property
    def agree(self) -> bool:
        """Return whether both sides agree within the tolerance."""
        return not (self.schema or self.different)

    @property
    def sums(self) -> dict[str, Pair]:
        """Return the differing sums over all days; None if one of them has no sum."""
        names = self.differing[0].sums if self.differing else ()
        pairs = {name: zip(*(day.sums[name] for day in self.differing), strict=True) for name in names}
        return {name: (_total(left), _total(right)) for name, (left, right) in pairs.items()}

    @property
    def counts(self) -> KeyCounts | None:
        """Return the counts of differing keys over all days; None if the keys of a day were not joined."""
        joined = [day.keys for day in self.differing if day.keys is not None]
        return sum(joined, KeyCounts()) if len(joined) == len(self.differing) else None


def shared_columns(
    left: Mapping[str, str], right: Mapping[str, str], *, is_one_table: bool = True
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns to compare, and sentences on the others.

    Args:
        left: type of each column of the left side; those of the platform itself begin with `_`.
        is_one_table: whether both should have the same columns; those of two tables of course differ.
    """
    shared, sentences = [], []
    for name in (name for name in {**left, **right} if not name.startswith("_") and name != DAY):
        here, there = left.get(name, "absent"), right.get(name, "absent")
        if here == there:
            shared.append(name)
        elif is_one_table or "absent" not in (here, there):
            sentences.append(f"column {name!r} is {here} on the left and {there} on the right")
    return tuple(shared), tuple(sentences)


def differing_days(left: Mapping[date, Digest], right: Mapping[date, Digest]) -> tuple[date, ...]:
    """Return the days with different rows, oldest first; an empty day equals a missing one."""
    nothing = Digest()
    return tuple(sorted(day for day in {*left, *right} if left.get(day, nothing) != right.get(day, nothing)))


def days_to_join(differing: Collection[date], tolerance: Tolerance, *, drill: bool) -> tuple[date, ...]:
    """Return the days whose keys must be joined: a hash does not show by how much a day differs."""
    return tuple(differing) if drill or tolerance else ()


def outcome_of(keys: KeyCounts | None, tolerance: Tolerance) -> SideOutcome:
    """Return whether a differing day is beyond the tolerance.

    Keys that differ by more than the tolerance of figures count; None where they were not joined.
    """
    return "different" if keys is None or not tolerance or keys.total > tolerance.keys else "within tolerance"


def difference(left: object, right: object) -> str | None:
    """Return the left figure minus the right one; None if either is not a number."""
    try:
        with localcontext(_EXACT):  # a transform may have set another one
            return f"{Decimal(str(left)) - Decimal(str(right)):+,}"
    except InvalidOperation:
        return None


def facts(found: SidesBeside) -> Iterator[str]:
    """Yield the results of a reconciliation, in sentences."""
    yield f"Left is {found.names[0]}, right is {found.names[1]}: {'they agree' if found.agree else 'they differ'}."
    yield from (f"{sentence}." for sentence in found.schema)
    rows = " and ".join(f"{rows:,}" for rows in found.rows)
    yield f"{counted(found.days, 'day')} compared by {', '.join(found.key) or 'day'}; rows {rows}."
    if found.differing:
        allowed = f", {len(found.differing) - len(found.different):,} of them within {found.tolerance}"
        yield f"{counted(len(found.differing), 'day')} with other content{allowed if found.tolerance else ''}."
    if found.outside:
        yield f"The calendar does not have {which(found.outside)}: raw keeps such rows, no table is computed of them."
    if found.differing and (counts := found.counts):
        yield (
            f"Keys: {counts.missing_left:,} missing left, {counts.missing_right:,} missing right, "
            f"{counts.different:,} different."
        )


def key_sentence(key: KeyBeside) -> str:
    """Return a differing key as a line: for each column left, right, and for numbers the difference."""
    rows = [f"rows {key.rows[0]:,}, not {key.rows[1]:,}"] if key.rows[0] != key.rows[1] else []
    values = [
        f"{name} {left}, not {right}{f' ({off})' if off else ''}" for name, (left, right, off) in key.values.items()
    ]
    arrivals = f"; brought by {', '.join(key.arrivals)}" if key.arrivals else ""
    return f"{key.how} {key.day}: {key.key or 'the day'}: {'; '.join(rows or values)}{arrivals}"


def _total(figures: Sequence[Decimal | None]) -> Decimal | None:
    known = [figure for figure in figures if figure is not None]
    with localcontext(_EXACT):
        return sum(known, Decimal(0)) if len(known) == len(figures) else None
