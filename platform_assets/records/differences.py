"""Digests of days, which can be added, and differences between two tables or two versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

HALVES = 4
"""Sums per digest: the two 32-bit halves of two salted 64-bit row hashes."""


@dataclass(frozen=True)
class Digest:
    """Digest of a day: its number of rows and the sums of the halves of their hashes.

    Independent of the order of rows and of their files. Unlike a XOR it distinguishes one copy of a row from three.
    Digests of disjoint sets of rows add up to the digest of their union, which is how a day of raw keeps its digest
    through an append without being read again.
    """

    rows: int = 0
    sums: tuple[int, int, int, int] = (0, 0, 0, 0)

    def __add__(self, other: Digest) -> Digest:
        a, b, c, d = (x + y for x, y in zip(self.sums, other.sums, strict=True))
        return Digest(self.rows + other.rows, (a, b, c, d))

    def __str__(self) -> str:
        return "-".join((str(self.rows), *(f"{part:x}" for part in self.sums)))

    @classmethod
    def parse(cls, text: str) -> Digest:
        """Parse a digest from its text."""
        rows, *sums = text.split("-")
        a, b, c, d = (int(part, 16) for part in sums)
        return cls(int(rows), (a, b, c, d))


EXAMPLES = 5
"""Most examples of each kind of difference; counts are complete."""

Key = tuple[str | None, ...]
"""Values of the columns that name a row as text, in their declared order."""

Figure = int | Decimal | None
Figures = tuple[Figure, ...]


@dataclass(frozen=True)
class Difference:
    """A key on which two tables disagree.

    Args:
        key: values of the declared `by` columns.
        ours: figures of the declared amounts, in order; None if the table does not have the key.
    """

    key: Key
    ours: Figures | None
    theirs: Figures | None


@dataclass(frozen=True)
class Differences:
    """Comparison of two tables on one day; true if they differ.

    Args:
        keys: keys that either table has.
        missing: keys that only the upstream table has.
        extra: keys that only the table itself has.
        unequal: keys of both tables with other figures.
        examples: the first few of each kind, in that order.
        ours: figures of the whole day; None for one that is not a sum over keys.
    """

    keys: int = 0
    missing: int = 0
    extra: int = 0
    unequal: int = 0
    examples: tuple[Difference, ...] = ()
    ours: Figures = ()
    theirs: Figures = ()

    @property
    def differing(self) -> int:
        """Return how many keys differ in any way."""
        return self.missing + self.extra + self.unequal

    def __bool__(self) -> bool:
        return bool(self.differing)


@dataclass(frozen=True)
class KeyCounts:
    """Numbers of differing keys of a day.

    Args:
        missing_left: keys that only the right side has.
        missing_right: keys that only the left side has.
        different: keys of both sides with other values, or in another number of rows.
    """

    missing_left: int = 0
    missing_right: int = 0
    different: int = 0

    def __add__(self, other: KeyCounts) -> KeyCounts:
        left, right, different = self.missing_left, self.missing_right, self.different
        return KeyCounts(left + other.missing_left, right + other.missing_right, different + other.different)

    @property
    def total(self) -> int:
        """Return the sum of all counts."""
        return self.missing_left + self.missing_right + self.different


@dataclass(frozen=True)
class DayChange:
    """Comparison of a day's new content with the former one.

    Args:
        changed: keys whose row changed in any column.
        sums_before: sum of every amount over the content before, by column.
    """

    added: int
    removed: int
    changed: int
    sums_before: Mapping[str, int | Decimal]
    sums_after: Mapping[str, int | Decimal]


class Sum(NamedTuple):
    """A sum of a day.

    Args:
        by: columns that group it.
        key: values of these columns, as text.
    """

    column: str
    by: tuple[str, ...]
    key: Key


@dataclass
class Moves:
    """Sums of a day that new content changes.

    Args:
        pairs: before and after; None if there is nothing to sum. Of many keys only the first.
    """

    keys: int = 0
    pairs: dict[Sum, tuple[Decimal | None, Decimal | None]] = field(default_factory=dict)
