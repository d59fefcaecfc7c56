"""The digest: what is in a day, as five numbers that add up."""

from __future__ import annotations

from dataclasses import dataclass

HALVES = 4
"""Sums per digest: the two 32-bit halves of two salted 64-bit row hashes."""


@dataclass(frozen=True)
class Digest:
    """Content of a day: its rows and the sums of the halves of their hashes.

    Independent of the order of rows and of how they lie in files; unlike a XOR it tells one copy of a row from three.
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
        """Return the digest that `str` wrote."""
        rows, *sums = text.split("-")
        a, b, c, d = (int(part, 16) for part in sums)
        return cls(int(rows), (a, b, c, d))
