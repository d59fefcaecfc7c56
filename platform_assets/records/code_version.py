"""Code, configuration (the part of the contract) and engine that compute a day; and refused combinations."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

ENGINE_SEMANTICS = 1
"""Raised when the engine itself makes other rows from the same input; golden digests in the tests guard it."""


DIRTY = "+dirty"
"""Marks a commit from which the code differs that was run."""


def shown_commits(commits: str) -> str:
    """Return one commit, or several joined by commas, shortened for people."""
    return ", ".join(commit[:12] + DIRTY * commit.endswith(DIRTY) for commit in commits.split(", "))


@dataclass(frozen=True, order=True)
class Version:
    """Code and configuration of a day, computed or to be computed.

    Args:
        code: version of all code that the transform can reach; empty if not recorded.
        configuration: hash of the contract's meaningful parts; empty if not recorded.
    """

    code: str = ""
    configuration: str = ""

    def differs(self, now: Version) -> tuple[bool, bool]:
        """Return whether code or configuration certainly differs; unknown ones do not."""
        return self.code not in ("", now.code), self.configuration not in ("", now.configuration)


def hand_set(version: str) -> str:
    """Return a code version set by hand. The engine's own version still counts."""
    return f"{version}+engine{ENGINE_SEMANTICS}"


def code_version(code: Iterable[str]) -> str:
    """Return a hash of all code that a table's transform can reach, and of the engine's part in it."""
    total = hashlib.sha256(f"engine {ENGINE_SEMANTICS}".encode())
    for part in code:
        total.update(f"|{part}".encode())
    return total.hexdigest()[:16]


@dataclass(frozen=True, order=True)
class Attempt:
    """A fingerprint computed in this way: other input, code or rules are worth another try.

    Args:
        made_by: code and configuration; empty if that does not matter.
    """

    fingerprint: str
    made_by: Version = field(default_factory=Version)


UNTIL_LIFTED = Attempt("*")
"""Refuse any new result of the day: a person rolled it back, and only a person lifts that."""


@dataclass(frozen=True)
class TiedTo:
    """A tie to another day: nothing is wrong with the day itself, but records moved between both, and that is held."""

    day: date


Refused = Attempt | TiedTo


EngineName = Literal["spark", "sail"]


class Admission(BaseModel):
    """Result for a table on another engine than Spark.

    Args:
        code_version: code version that was computed.
        configuration: configuration of its contract.
        software: versions that computed it, by name.
        days: days that were equal on both engines, oldest first.
        refused: why it is not admitted; empty if it is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    code_version: str
    configuration: str
    software: dict[str, str]
    days: tuple[date, ...] = ()
    rows: int = 0
    refused: str = ""
    who: str = ""
    at: datetime
