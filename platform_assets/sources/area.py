"""Where sources deliver, as one listing sees it: a folder of this machine, or a beginning of names in a bucket.

What a listing makes of names, dates and times is the same wherever files lie (`sources.listing`); here is what differs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from platform_assets.sources.content import State
from platform_assets.sources.landing import Problem, StoredVersion

Kind = Literal["file", "link", "other"]


@dataclass(frozen=True)
class Seen:
    """Something that lies in the folder of an arrival date.

    Args:
        path: below the landing root.
        file: where it is; of an object of a bucket nothing but its path.
        kind: whether it is a file at all.
        size: bytes.
        modified_ns: last change, nanoseconds since 1970.
        state: by which it is told from another one in its place.
        stored: the object, of one in a bucket.
    """

    path: str
    file: Path
    kind: Kind
    size: int
    modified_ns: int
    state: State
    stored: StoredVersion | None = None


class DateFolder(ABC):
    """What arrived on one date from one source. Names are told without those that are left to their writer."""

    @abstractmethod
    def names(self, problems: list[Problem]) -> list[str]:
        """Of what lies in it, sorted; what cannot be listed or has no proper name is a problem."""

    @abstractmethod
    def has(self, name: str) -> bool:
        """Whether somebody put it there, as far as this user may know."""

    @abstractmethod
    def look(self, name: str) -> Seen:
        """What it is.

        Raises:
            OSError: it cannot be looked at, or is gone.
        """

    @abstractmethod
    def expect_open(self, seen: Seen) -> None:
        """See that it can be opened, and is what was seen.

        Raises:
            ChangedError, LinkError, OSError: it is not, or it cannot be.
        """


class Area(ABC):
    """A landing area, while one listing looks at it: what it has seen it need not look at twice.

    Args:
        name: as people call it.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def problem(self) -> Problem | None:
        """Why nothing at all can be taken from it, if so."""

    @abstractmethod
    def is_there(self) -> bool:
        """Whether what it does not show is not there, rather than the whole of it out of sight."""

    @abstractmethod
    def folders(self, above: str) -> list[str]:
        """Names of folders in a folder, without those that are left to their writer; none if it may not be looked at.

        Args:
            above: below the landing root, or "." for that.
        """

    @abstractmethod
    def dates(self, folder: str, only: Collection[str] | None, problems: list[Problem]) -> list[str]:
        """Names of what lies in the folder of a source; what cannot be listed or has no proper name is a problem.

        Args:
            folder: below the landing root.
            only: names of the only ones to look for; None for all.
        """

    @abstractmethod
    def date_folder(self, path: str, only: Collection[str] | None) -> DateFolder | Problem:
        """The folder of an arrival date, or why it is none.

        Args:
            path: below the landing root.
            only: names of the only files to look for; None for all.
        """

    @abstractmethod
    def has_gone(self, path: str) -> bool:
        """Whether nothing lies there any more, as far as this user may know."""


def is_left_to_its_writer(name: str) -> bool:
    """Whether a name says that nobody else is to look."""
    return name[0] in "._"
