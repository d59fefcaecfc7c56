"""Chains of hashes: each entry carries the hash of all before it, so that nothing in the middle changes unseen.

Releases and people's decisions have one each, made in the same way. A chain does not protect against a person who can
rewrite all of it: keep its head elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Self


def hash_of(content: bytes) -> str:
    """Return the sha256 of an entry's stored content."""
    return sha256(content).hexdigest()


def linked(before: str, content_hash: str) -> str:
    """Return the chain at an entry: a hash of the chain before it and of its content.

    Args:
        before: chain of the entry before; empty where the chain starts.
    """
    return sha256(f"{before}{content_hash}".encode()).hexdigest()


@dataclass(frozen=True)
class Entry:
    """An entry of a chain stored as rows.

    Args:
        number: from 1, without a gap.
        before: the chain before it; empty for the first.
    """

    number: int
    content: str
    before: str
    chain: str

    @classmethod
    def after(cls, last: Head, content: str) -> Self:
        """Return the entry that follows a head."""
        return cls(last.number + 1, content, last.chain, linked(last.chain, hash_of(content.encode())))

    @property
    def head(self) -> Head:
        """Return the head of the chain at this entry."""
        return Head(self.number, self.chain)

    @property
    def is_whole(self) -> bool:
        """Return whether the content matches its hash. A forger could also make a new hash."""
        return self.chain == linked(self.before, hash_of(self.content.encode()))


@dataclass(frozen=True)
class Break:
    """A place where a chain differs from what was written.

    Args:
        number: number of the entry that shows it.
        what: the rest of a sentence about that entry.
    """

    number: int
    what: str


def breaks(entries: Iterable[Entry]) -> Iterator[Break]:
    """Yield every sign that entries were changed, removed, moved or inserted; entries cut off the end leave none."""
    last = Head(0, "")
    for entry in entries:
        follows = last.number + 1
        if entry.number > follows:
            gone = f"{follows} is" if entry.number == follows + 1 else f"{follows} to {entry.number - 1} are"
            yield Break(entry.number, f"does not follow the one before: {gone} gone")
        elif entry.number < follows:
            yield Break(entry.number, "has a number that no entry was given")
        if not entry.is_whole:
            yield Break(entry.number, "says something else than what was written")
        if entry.before != last.chain and entry.number == follows:
            yield Break(entry.number, "does not follow the one before, which was rewritten, moved or put in")
        last = entry.head


@dataclass(frozen=True)
class Head:
    """Head of a chain.

    Args:
        chain: hash up to it; empty without entries.
    """

    number: int = 0
    chain: str = ""

    def __str__(self) -> str:
        """Return it as one value: number and hash."""
        return f"{self.number}:{self.chain}" if self.chain else "none"

    def is_in(self, chain: Mapping[int, str]) -> bool:
        """Return whether a chain, given as hashes by number, contains it; an empty head is in all."""
        return not self.chain or chain.get(self.number) == self.chain


_WRITTEN = re.compile(r"releases=(none|(\d+):([0-9a-f]{64})),decisions=(none|(\d+):([0-9a-f]{64}))")


@dataclass(frozen=True)
class Heads:
    """The heads of both chains at one moment, to be kept elsewhere as an anchor."""

    releases: Head = Head()
    decisions: Head = Head()

    def __str__(self) -> str:
        """Return both as one value without a space."""
        return f"releases={self.releases},decisions={self.decisions}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse both heads from their text."""
        found = _WRITTEN.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text!r} is no head of two chains")
        _, release, of_releases, _, decision, of_decisions = found.groups()
        return cls(_head(release, of_releases), _head(decision, of_decisions))


def _head(number: str | None, chain: str | None) -> Head:
    return Head(int(number), chain) if number and chain else Head()
