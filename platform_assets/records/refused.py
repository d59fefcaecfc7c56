"""What is refused of a held day: what it would be made from and by, or only what records tie it to."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date

from platform_assets.records.code_version import Version


@dataclass(frozen=True, order=True)
class Attempt:
    """This input computed in this way: other input, code or rules are worth another try.

    Args:
        made_by: by what it was computed; an empty version where that does not matter.
    """

    fingerprint: str
    made_by: Version = field(default_factory=Version)


UNTIL_LIFTED = Attempt("*")
"""Refuse whatever the day would become: a person put it back, and only a person lifts that."""


@dataclass(frozen=True)
class TiedTo:
    """Nothing is wrong with the day itself, but records moved between it and another that is held."""

    day: date


Refused = Attempt | TiedTo
